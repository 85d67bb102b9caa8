"""Mistakes in cutting programs into kernels: circles, lost order, results that get lost or mixed up."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

GROUPS = "analysis.fusion.groups"
DECIDE = "analysis.fusion.decide"
FUSE = "passes.fusion.fuse"
fusion = partial(edits.wrong, target="fuse")

fusion(
    "fuse-in-circles", classes=(37,), about="two ops share a kernel though another kernel must run between them",
    edits=[(f"{GROUPS}:Groups.between", "if last in group.successors or len(after) > MAX_SEARCH:", "if not after:")],
)  # fmt: skip
fusion(
    "fuse-order-lost", classes=(37,), about="a merged kernel runs before what it reads",
    edits=[(f"{GROUPS}:Groups.merge", "[*region.before, merged, *region.after]",
            "[merged, *region.before, *region.after]")],
)  # fmt: skip
fusion(
    "fuse-results-mixed-up", classes=(37,), about="a kernel's results take each other's places",
    edits=[(f"{FUSE}:_kernel", "return kernel, results", "return kernel, results[::-1]")],
)  # fmt: skip
fusion(
    "fuse-returned-copied", classes=(37,), about="what the program returns is computed again where it is read only",
    edits=[(f"{DECIDE}:_Search._may_copy", " and not self.flow.returned.intersection(group.members)", "")],
)  # fmt: skip
edits.right(
    "fuse-siblings-first", "fuse", about="kernels that read the same data join before producers and consumers do",
    edits=[(f"{DECIDE}:_Search.run", 'self._merge_by_priority(self._epilogue_pairs, "producer")',
            'self._merge_by_priority(self._sibling_pairs, "siblings")')],
)  # fmt: skip
edits.right(
    "fuse-small-kernels", "fuse", about="kernels hold at most four ops",
    edits=[(f"{DECIDE}:_Search._as_one", "len(members) > self.max_ops", "len(members) > 4")],
)  # fmt: skip
