"""Mistakes in padded programs: padding that takes part, and sizes that are those of the padding."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

padded = partial(edits.wrong, target="pad-dims")

# ---- masks and sizes ----

padded(
    "pad-mask-off-by-one", classes=(13, 40), about="the first element of the padding counts as real",
    edits=[("padding.lengths:Lengths.real", '"LT"', '"LE"')],
)  # fmt: skip
padded(
    "pad-mean-of-the-padded-size", classes=(40,), about="the size that is read as a number is that of the padding",
    edits=[("padding.rest:dim", "sweep.lengths.true(op.formula, dtype_text(op.result.type))",
            "sweep.b.dim(op.formula, dtype_text(op.result.type))")],
)  # fmt: skip
padded(
    "pad-remainder-truncated", classes=(12, 40), about="true sizes are divided towards zero",
    edits=[("padding.lengths:Lengths._divided", "if all((known", "if True or all((known")],
)  # fmt: skip
padded(
    "pad-factors-forgotten", classes=(25, 40), about="of a merged dimension only the outer factor is masked",
    edits=[("padding.lengths:Lengths.real", "zip(factors, self.digits(factors), strict=True)",
            "list(zip(factors, self.digits(factors), strict=True))[:1]")],
)  # fmt: skip

# ---- folds and products ----

padded(
    "pad-zero-is-plus-zero", classes=(1, 9, 40), about="padding is +0 in a sum, which makes +0 of -0",
    edits=[("padding.reduction:_zero", "return -0.0 if", "return 0.0 if")],
)  # fmt: skip
padded(
    "pad-maximum-with-zeros", classes=(1, 40), about="padding is 0 in a maximum",
    edits=[("padding.reduction:neutral_of", "NEUTRAL[found](text)",
            "(0 if found is hlo.MaximumOp else NEUTRAL[found](text))")],
)  # fmt: skip
padded(
    "pad-fold-keeps-padding", classes=(1, 40), about="a fold with a body of its own takes padding for what is real",
    edits=[("padding.reduction:_masked", "b.select(both, x, y) for x, y in zip(made, one",
            "x for x, y in zip(made, one")],
)  # fmt: skip
padded(
    "pad-init-skipped", classes=(1, 40), about="a fold with a body of its own leaves its initial value out",
    edits=[("padding.reduction:_masked", 'b.constant(True, "i1")', 'b.constant(False, "i1")')],
)  # fmt: skip
padded(
    "pad-window-beyond-the-end", classes=(28, 40), about="windows that reach beyond the end see padding",
    edits=[("padding.reduction:reduce_window", '[1] > 0]', '[1] > 1]')],
)  # fmt: skip
padded(
    "pad-zero-times-nan", classes=(7, 40), about="in a product only one operand has zeros, and 0 times NaN is NaN",
    edits=[("padding.contraction:dot_general", "right_zeros.value", "right.value")],
)  # fmt: skip
padded(
    "pad-convolution-border", classes=(27, 40), about="the border of a convolution is what padding holds",
    edits=[("padding.contraction:convolution", "[*reaching, features[0]]", "[features[0]]")],
)  # fmt: skip

# ---- places ----

padded(
    "pad-gather-clamped-late", classes=(30, 40), about="indices are clamped to the padded size",
    edits=[("padding.indexing:_last", "return sweep.lengths.true(whole - part)",
            "return sweep.b.dim(whole - part)")],
)  # fmt: skip
padded(
    "pad-scatter-of-padding", classes=(31, 40), about="updates of padding are scattered, too",
    edits=[("padding.indexing:scatter", "if loose := [j for j in padded if j not in n.scatter_indices_batching_dims]:",
            "if loose := list[int]():")],
)  # fmt: skip
padded(
    "pad-update-overwrites", classes=(23, 40), about="the padding of an update overwrites what is there",
    edits=[("padding.indexing:dynamic_update_slice", "if mask is not None:", "if False:")],
)  # fmt: skip
padded(
    "pad-concatenate-in-place", classes=(24, 40), about="operands are put where the padded ones before them end",
    edits=[("padding.movement:concatenate", "if any(map(sweep.sizes.touches, sizes[:-1])):", "if False:")],
)  # fmt: skip
padded(
    "pad-reverse-in-place", classes=(25, 40), about="what is turned around begins with its padding",
    edits=[("padding.movement:reverse", "for i in turned:", "for i in turned[:0]:")],
)  # fmt: skip
padded(
    "pad-slice-from-the-padded-end", classes=(23, 40), about="a slice from the end is taken from the padded end",
    edits=[("padding.movement:slice_", "if not moving:", "if True:")],
)  # fmt: skip
padded(
    "pad-after-the-padding", classes=(23, 40), about="edge padding is put behind the padding of buckets",
    edits=[("padding.movement:pad", "masked = sweep.lengths.kept(x.value, x.layout, behind, value.value)",
            "masked = x.value")],
)  # fmt: skip

# ---- orders and control flow ----

padded(
    "pad-sorted-first", classes=(40,), about="padding comes first in a sorted dimension",
    edits=[("padding.sorting:sort", "before, left)", "before, right)")],
)  # fmt: skip
padded(
    "pad-largest-by-infinity", classes=(6, 40), about="padding is -infinity to top_k, and real NaN may be less",
    edits=[("padding.sorting:top_k", "unit = least(dtype_text(x.value.type))",
            "unit = np.asarray(lowest(dtype_text(x.value.type))).astype(dtype_of(dtype_text(x.value.type)))")],
)  # fmt: skip
padded(
    "pad-loop-forgets-layout", classes=(34, 40), about="what a loop carries is taken to stay as it was before it",
    edits=[("padding.control:_joined", "else sweep.plain(a.value)", "else a.layout")],
)  # fmt: skip
padded(
    "pad-reshape-any", classes=(25, 40), about="a reshape that mixes padding in is taken for one that does not",
    edits=[("padding.movement:reshape", "if layout is None:\n        return [sweep.relaid(x, shape)]",
            "if layout is None:\n        layout = sweep.sizes.plain(shape)")],
)  # fmt: skip

padded(
    "pad-fill-of-any", classes=(40,), about="of a value that is full of some number no padding is masked",
    edits=[("padding.sweep:Sweep.neutral", "x.fill is not None and same(x.fill, scalar)", "x.fill is not None")],
)  # fmt: skip

padded(
    "pad-composite-kept", classes=(40,), about="a composite stays as it is, whatever its decomposition does",
    edits=[("padding.rest:composite", "if _stays(sweep, function):", "if True:")],
)  # fmt: skip

edits.right(
    "pad-masks-more", "pad-dims", about="padding is masked even where it is known to hold the right value",
    edits=[("padding.sweep:Sweep.neutral", "(x.fill is not None and same(x.fill, scalar))", "False")],
)  # fmt: skip
edits.right(
    "pad-scatter-promises-less", "pad-dims", about="no scatter promises sorted or unique indices",
    edits=[("padding.indexing:scatter", "if padded:\n", "if True:\n")],
)  # fmt: skip
edits.right(
    "pad-window-masked-always", "pad-dims", about="windows that stay within the end see the initial value behind it",
    edits=[("padding.reduction:reduce_window", '[1] > 0]', '[1] > -9]')],
)  # fmt: skip
