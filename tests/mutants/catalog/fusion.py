"""Mistakes in cutting programs into kernels: circles, lost order, results that get lost or mixed up."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

DECIDE = "analysis.fusion.decide"
FUSE = "passes.fusion.fuse"
fusion = partial(edits.wrong, target="fuse")

fusion(
    "fuse-brings-in-one-of-a-type", classes=(22, 37), about="constants of one type are taken for one another",
    edits=[(f"{FUSE}:_bring_into", "if value not in brought:",
            "value = next((v for v in brought if v.type == value.type), value)\n        if value not in brought:")],
)  # fmt: skip
edits.right(
    "fuse-siblings-first", "fuse", about="kernels that read the same data join before producers and consumers do",
    edits=[(f"{DECIDE}:_Search.run", 'self._merge_by_priority(self._epilogue_pairs, "producer")',
            'self._merge_by_priority(self._sibling_pairs, "siblings")')],
)  # fmt: skip
