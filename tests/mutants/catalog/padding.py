"""Mistakes in padded programs: padding that takes part, and sizes that are those of the padding."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

padded = partial(edits.wrong, target="pad-dims")

# ---- masks and sizes ----

padded(
    "pad-remainder-truncated", classes=(12, 40), about="true sizes are divided towards zero",
    edits=[("padding.lengths:Lengths._divided", "if all((known", "if True or all((known")],
)  # fmt: skip

# ---- folds and products ----

padded(
    "pad-zero-is-plus-zero", classes=(1, 9, 40), about="padding is +0 in a sum, which makes +0 of -0",
    edits=[("padding.reduction:_zero", "return -0.0 if", "return 0.0 if")],
)  # fmt: skip
padded(
    "pad-zero-times-nan", classes=(7, 40), about="in a product only one operand has zeros, and 0 times NaN is NaN",
    edits=[("padding.contraction:dot_general", "right_zeros.value", "right.value")],
)  # fmt: skip

# ---- orders and control flow ----


edits.right(
    "pad-masks-more", "pad-dims", about="padding is masked even where it is known to hold the right value",
    edits=[("padding.sweep:Sweep.neutral", "(x.fill is not None and same(x.fill, scalar))", "False")],
)  # fmt: skip
