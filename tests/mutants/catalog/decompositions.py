"""Mistakes in how ops are written with others, for targets that have no code for them."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

wrong = partial(edits.wrong, target="decompose")
right = partial(edits.right, target="decompose")

wrong(
    "decompose-gather-sizes-in-order", classes=(20, 30), about="a slice's size of a dropped dimension is another's",
    edits=[("decompositions.amounts:_gather", "1 if i in dropped else next(offsets)", "next(offsets, 1)")],
)  # fmt: skip
right(
    "decompose-broadcast-late-look", about="the places of a smaller operand are looked for otherwise",
    edits=[("decompositions.broadcasting:broadcasting",
            "last if dimensions is None or rank_of(x) == len(target) else dimensions",
            "dimensions if dimensions is not None and rank_of(x) < len(target) else last")],
)  # fmt: skip
