"""Mistakes in what is done to quantized models, to softmax, and to chlo's loops and ragged dots."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

# ---- integer-products ----

VALUES = "analysis.quantized_values"
products = partial(edits.wrong, target="integer-products")
products_right = partial(edits.right, target="integer-products")

products(
    "products-f32-beyond-exact",
    classes=(14, 22, 41),
    about="sums of up to 2**25 count as exact in f32",
    edits=[(f"{VALUES}:f32_holds", "< EXACT", "< 2 * EXACT")],
)
products_right(
    "products-half-the-bound",
    about="only sums of up to 2**23 take f32",
    edits=[(f"{VALUES}:f32_holds", "< EXACT", "< EXACT // 2")],
)

# ---- quantized-products ----

QUANTIZED = "passes.convert.quantized_products"
quantized = partial(edits.wrong, target="quantized-products")
quantized_right = partial(edits.right, target="quantized-products")
DOT, KERNEL = f"{QUANTIZED}:QuantizedDot.rewrite", f"{QUANTIZED}:QuantizedConvolution.rewrite"

quantized(
    "quantized-scale-along-sum",
    classes=(4, 22),
    about="scales that vary along the contracted dim are taken out of the sum",
    edits=[
        (
            DOT,
            "if left.varies_along() & {*contracted[0]} or right.varies_along() & {*contracted[1]}:",
            "if left.varies_along() & {*contracted[0]}:",
        )
    ],
)
quantized_right(
    "quantized-dots-only",
    about="convolutions stay as they are",
    edits=[(KERNEL, "left is None or right is None or", "True or")],
)

# ---- quantized-values-in-f32 ----

KEPT, INTEGRAL = "passes.convert.quantized_values_in_f32", "analysis.clamping"
kept = partial(edits.wrong, target="quantized-values-in-f32")
kept_right = partial(edits.right, target="quantized-values-in-f32")
REWRITE = f"{KEPT}:KeptQuantizedValues.rewrite"

kept(
    "kept-plus-anything",
    classes=(16, 17),
    about="integers plus any number count as integers",
    edits=[(f"{INTEGRAL}:is_integral", "todo += op.operands", "todo.append(op.operands[0])")],
)
kept(
    "kept-upper-limit",
    classes=(15, 16),
    about="an upper limit beyond 8 bits is overlooked",
    edits=[(REWRITE, "least <= low <= high <= greatest", "least <= low <= high")],
)
kept_right(
    "kept-rounded-only",
    about="only numbers that are rounded, with nothing added, are kept",
    edits=[(f"{INTEGRAL}:is_integral", "todo += op.operands", "return False")],
)

# ---- guard-max-shift ----

GUARD = "passes.convert.guard_max_shift"
guard = partial(edits.wrong, target="guard-max-shift")
guard_right = partial(edits.right, target="guard-max-shift")
SHIFT = f"{GUARD}:GuardMaxShift.rewrite"

guard(
    "guard-the-wrong-way",
    classes=(6, 38),
    about="the product is bounded from below by its maximum",
    edits=[(SHIFT, "hlo.MinimumOp, op.lhs, op.rhs", "hlo.MaximumOp, op.lhs, op.rhs")],
)
guard(
    "guard-of-other-rows",
    classes=(25,),
    about="the maximum of another row is taken for one's own",
    edits=[(SHIFT, "not same(found[0], Read.of(op.lhs))", "found[0].value is not op.lhs")],
)
guard_right(
    "guard-products-only",
    about="quotients are not guarded",
    edits=[(f"{GUARD}:_is_product", "hlo.MultiplyOp | hlo.DivideOp", "hlo.MultiplyOp")],
)

# ---- expand-chlo ----

CHLO = "passes.convert.expand_chlo"
chlo = partial(edits.wrong, target="expand-chlo")
RUNS, SCAN = "decompositions.groups:runs", f"{CHLO}:Scan.rewrite"

chlo(
    "ragged-outer-sizes-shared",
    classes=(26,),
    about="sizes of groups of the first batch hold for all",
    edits=[
        (
            RUNS,
            "places = [*(outer if rank > 1 else ()), group]",
            "sizes = b.broadcast(b.slice_axis(sizes, 0, 0, 1), own, range(rank)) if rank > 1 else sizes\n    places "
            "= [*(outer if rank > 1 else ()), group]",
        )
    ],
)
chlo(
    "scan-carries-swapped",
    classes=(34,),
    about="carries of one type change places from turn to turn (pypto#2494)",
    edits=[
        (
            SCAN,
            '[b.add(args[0], b.constant(1, "i64")), *after, *written]',
            '[b.add(args[0], b.constant(1, "i64")), *(after if len({v.type for v in after}) > 1 else after[::-1]), '
            "*written]",
        )
    ],
)
