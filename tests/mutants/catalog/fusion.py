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
fusion(
    "fuse-brings-in-backwards", classes=(37,), about="a constant is repeated before it is there, in a branch or a loop",
    edits=[(f"{FUSE}:_bring_in", "block.insert_op_before(copy, first)",
            "block.insert_op_before(copy, block.first_op)")],
)  # fmt: skip
fusion(
    "fuse-brings-in-one-of-a-type", classes=(22, 37), about="constants of one type are taken for one another",
    edits=[(f"{FUSE}:_bring_in", "if value not in brought:",
            "value = next((v for v in brought if v.type == value.type), value)\n        if value not in brought:")],
)  # fmt: skip
edits.right(
    "fuse-stored-constants-only", "fuse", about="a constant that memory must hold is never written by a kernel",
    edits=[("ir.buffer:is_stored", "size <= _STORED_BYTES", "size >= 0")],
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
