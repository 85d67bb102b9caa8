"""Mistakes in how ops are written with others, for targets that have no code for them."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

wrong = partial(edits.wrong, target="decompose")
right = partial(edits.right, target="decompose")

wrong(
    "decompose-broadcast-at-the-end", classes=(4,), about="a smaller operand stands at the end, whatever is said",
    edits=[("decompositions.broadcasting:broadcasting",
            "last if dimensions is None or rank_of(x) == len(target) else dimensions", "last")],
)  # fmt: skip
wrong(
    "decompose-power-of-negative", classes=(14,), about="1 and -1 to a negative power are 0 as well",
    edits=[("decompositions.integers:power", "b.emit(hlo.NotOp, unit)", "b.compare(base, base, \"EQ\")")],
)  # fmt: skip
wrong(
    "decompose-variance-of-mean", classes=(22,), about="a batch's variance is not taken around its mean",
    edits=[("decompositions.normalization:training",
            "b.multiply(centered, centered)", "b.multiply(op.operand, centered)")],
)  # fmt: skip
wrong(
    "decompose-dot-of-rows", classes=(5,), about="a legacy product of matrices sums over the rows of the left one",
    edits=[("decompositions.legacy:_dot", "(rank_of(op.lhs) - 1,)", "(0,)")],
)  # fmt: skip
right(
    "decompose-broadcast-late-look", about="the places of a smaller operand are looked for otherwise",
    edits=[("decompositions.broadcasting:broadcasting",
            "last if dimensions is None or rank_of(x) == len(target) else dimensions",
            "dimensions if dimensions is not None and rank_of(x) < len(target) else last")],
)  # fmt: skip
