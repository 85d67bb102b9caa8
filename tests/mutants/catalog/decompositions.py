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
            "b.multiply(centered, centered)", "b.multiply(op.operand, op.operand)")],
)  # fmt: skip
wrong(
    "decompose-dot-of-rows", classes=(5,), about="a legacy product of matrices sums over the rows of the left one",
    edits=[("decompositions.legacy:_dot", "(rank_of(op.lhs) - 1,)", "(0,)")],
)  # fmt: skip
wrong(
    "decompose-epsilon-of-f32", classes=(18,), about="the epsilon of narrow floats is not one of them",
    edits=[("decompositions.normalization:normalized",
            'float(np.asarray(properties["epsilon"], dtype_of(text)))', 'properties["epsilon"]')],
)  # fmt: skip
wrong(
    "decompose-pad-without-gaps", classes=(23,), about="gaps between elements that are data are left out",
    edits=[("decompositions.amounts:_padded", "b.add(interior, b.full((count,), 1, \"i64\"))",
            "b.full((count,), 1, \"i64\")")],
)  # fmt: skip
wrong(
    "decompose-slice-from-the-start", classes=(23,), about="a slice whose bounds are data starts at 0",
    edits=[("decompositions.amounts:_slice", "b.add(start, b.multiply(b.iota((count,), 0), stride))",
            "b.multiply(b.iota((count,), 0), stride)")],
)  # fmt: skip
wrong(
    "decompose-gather-sizes-in-order", classes=(20, 30), about="a slice's size of a dropped dimension is another's",
    edits=[("decompositions.amounts:_gather", "1 if i in dropped else next(offsets)", "next(offsets, 1)")],
)  # fmt: skip
wrong(
    "decompose-imaginary-of-real", classes=(38,), about="the imaginary part of a real number is the number",
    edits=[("passes.convert.decompose:RealParts.rewrite", "isinstance(op, hlo.ImagOp)", "False")],
)  # fmt: skip
wrong(
    "decompose-select-by-the-result", classes=(4,), about="a predicate of lower rank stands at the start",
    edits=[("decompositions.broadcasting:broadcasting",
            "range(len(target) - rank_of(x), len(target))", "range(rank_of(x))")],
)  # fmt: skip
right(
    "decompose-broadcast-late-look", about="the places of a smaller operand are looked for otherwise",
    edits=[("decompositions.broadcasting:broadcasting",
            "last if dimensions is None or rank_of(x) == len(target) else dimensions",
            "dimensions if dimensions is not None and rank_of(x) < len(target) else last")],
)  # fmt: skip
