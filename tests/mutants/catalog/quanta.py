"""Mistakes in what is done to quantized models, to softmax, and to chlo's loops and ragged dots."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

# ---- integer-products ----

PRODUCTS, QUANTA = "passes.convert.integer_products", "analysis.quanta"
products = partial(edits.wrong, target="integer-products")
products_right = partial(edits.right, target="integer-products")
CORRECTED, CONVOLUTION = f"{PRODUCTS}:_corrected", f"{PRODUCTS}:IntegerConvolution.rewrite"

products(
    "products-unsigned-by-127",
    classes=(15,),
    about="unsigned zero points move by 127 where they are vectors",
    edits=[
        (
            f"{PRODUCTS}:Centered.point",
            'b.full((), self.offset, "i32")) if',
            'b.full((), self.offset - bool(kept), "i32")) if',
        )
    ],
)
products(
    "products-unsigned-plain-at-zero",
    classes=(15,),
    about="a zero point of 0 counts as none, of unsigned quanta too",
    edits=[(f"{PRODUCTS}:Centered.is_plain", "(points == self.offset).all()", "(points == 0).all()")],
)
products(
    "products-no-zero-is-plain",
    classes=(15,),
    about="quanta without a zero point count as plain, unsigned ones too",
    edits=[(f"{PRODUCTS}:Centered.is_plain", "return self.offset == 0", "return True")],
)
products(
    "products-correction-lost",
    classes=(22, 38),
    about="the product of both zero points is not added back",
    edits=[(CORRECTED, "if len(points) == 2:", "if len(points) == 3:")],
)
products(
    "products-count-of-one-dim",
    classes=(5,),
    about="of several contracted dims only the last counts",
    edits=[
        (
            CORRECTED,
            "[shape_of(op.lhs)[i] for i in d.lhs_contracting_dimensions]",
            "[shape_of(op.lhs)[i] for i in d.lhs_contracting_dimensions[-1:]]",
        ),
        (CORRECTED, "b.dim(dims.product(", "b.dim(1 + dims.product("),
    ],
)
products(
    "products-sums-in-operand-order",
    classes=(25,),
    about="sums of a batched operand are spread in the operand's order",
    edits=[(CORRECTED, "order = sorted(range(len(kept)), key=lambda i: kept[i])", "order = list(range(len(kept)))")],
)
products(
    "products-varying-along-sum",
    classes=(4, 22),
    about="zero points that vary along the contracted dim are taken out of the sum",
    edits=[
        (
            f"{PRODUCTS}:IntegerDot.rewrite",
            "axis in contracted and size != 1 for",
            "axis in contracted[1:] and size != 1 for",
        )
    ],
)
products(
    "products-f32-beyond-exact",
    classes=(14, 22, 41),
    about="sums of up to 2**25 count as exact in f32",
    edits=[(f"{QUANTA}:f32_holds", "< EXACT", "< 2 * EXACT")],
)
products(
    "products-bound-of-signed-bytes",
    classes=(15, 41),
    about="quanta are taken for at most 127 from their zero point",
    edits=[
        (
            f"{QUANTA}:Differences.greatest",
            "return max(high - least, greatest - low)",
            "return min(127, max(high - least, greatest - low))",
        )
    ],
)
products(
    "products-bound-ignores-bias",
    classes=(14, 41),
    about="what is added after the sum does not count when f32 is asked whether it holds it",
    edits=[(f"{QUANTA}:f32_holds", "+ added < EXACT", "< EXACT")],
)
products(
    "products-pads-with-zero",
    classes=(27, 28),
    about="a convolution pads with 0 and not with the zero point",
    edits=[(CONVOLUTION, 'b.pad(x, b.convert(point, "i8"), low, high)', 'b.pad(x, b.full((), 0, "i8"), low, high)')],
)
products(
    "products-pads-the-far-side",
    classes=(27,),
    about="low and high padding of integer convolutions change places",
    edits=[(CONVOLUTION, "low[axis], high[axis] = before, after", "high[axis], low[axis] = before, after")],
)
products(
    "products-dilated-input",
    classes=(27,),
    about="a dilated input is padded before it is dilated",
    edits=[(f"{PRODUCTS}:IntegerConvolution._fits", ' and all(n == 1 for n in op.window()["lhs_dilation"])', "")],
)
products(
    "products-narrow-zero-point",
    classes=(15, 16),
    about="any constant counts as a zero point that fits 8 bits",
    edits=[(f"{PRODUCTS}:Centered.fits", "0 <= int(points.reshape(-1)[0]) - self.offset + 128 < 256", "True")],
)
products(
    "products-real-sum-shared",
    classes=(37,),
    about="a bias is added in i32 and again in f32 where the sum has two users",
    edits=[
        (
            f"{PRODUCTS}:RealSum.rewrite",
            "return [b.add(total, _real(b, bias))]",
            "return [b.add(total, _real(b, bias)) if bias is value.op.operands[1] else total]",
        )
    ],
)
products_right(
    "products-never-f32",
    about="no product takes f32",
    edits=[
        (
            f"{PRODUCTS}:_is_faster_in_f32",
            "if isinstance(op, hlo.ConvolutionOp):\n        return True",
            "if not isinstance(op, int):\n        return False",
        )
    ],
)
products_right(
    "products-half-the-bound",
    about="only sums of up to 2**23 take f32",
    edits=[(f"{QUANTA}:f32_holds", "< EXACT", "< EXACT // 2")],
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
quantized(
    "quantized-left-scale-lost",
    classes=(38,),
    about="the left scale is lost where the right one is a vector",
    edits=[
        (f"{QUANTIZED}:_scaled", "b.multiply(*parts)", "(parts[1] if axes[1] and not axes[0] else b.multiply(*parts))")
    ],
)
quantized(
    "quantized-scales-in-order",
    classes=(25, 38),
    about="scales of both sides are laid along the dims of the left one",
    edits=[
        (
            DOT,
            "((left.scale, at_left), (right.scale, at_right))",
            "((left.scale, at_left), (right.scale, at_right if len(at_right) != len(at_left) else at_left))",
        )
    ],
)
quantized(
    "quantized-zero-point-lost",
    classes=(38,),
    about="a zero point that is a scalar is lost",
    edits=[
        (
            f"{QUANTIZED}:Dequantized.centered",
            "if self.zero is None:",
            "if self.zero is None or not shape_of(self.zero.source) and dtype_text(self.quanta.type) == 'i8':",
        )
    ],
)
quantized(
    "quantized-zero-in-eight-bits",
    classes=(14, 15),
    about="zero points are subtracted in 8 bits, which wrap",
    edits=[
        (
            f"{QUANTIZED}:Dequantized.centered",
            'wide = b.convert(self.quanta, "i32")',
            'wide = b.convert(b.convert(self.quanta, "i8"), "i32")',
        )
    ],
)
quantized(
    "quantized-sum-in-sixteen-bits",
    classes=(14,),
    about="sums are narrowed to 16 bits before they are scaled",
    edits=[(f"{QUANTIZED}:_scaled", 'b.convert(total, "f32")', 'b.convert(b.convert(total, "i16"), "f32")')],
)
quantized(
    "quantized-kernel-scale-along-input",
    classes=(25, 27),
    about="a scale for each input feature counts as one for each output feature",
    edits=[(KERNEL, "right.scaled_along() - {out}", "right.scaled_along() - {out, d.kernel_input_feature_dimension}")],
)
quantized_right(
    "quantized-dots-only",
    about="convolutions stay as they are",
    edits=[(KERNEL, "left is None or right is None or", "True or")],
)
quantized_right(
    "quantized-scales-turned",
    about="the scales are multiplied the other way round",
    edits=[(f"{QUANTIZED}:_scaled", "b.multiply(*parts)", "b.multiply(*parts[::-1])")],
)

# ---- quanta-in-f32 ----

KEPT = "passes.convert.quanta_in_f32"
kept = partial(edits.wrong, target="quanta-in-f32")
kept_right = partial(edits.right, target="quanta-in-f32")
REWRITE, CLAMPED = f"{KEPT}:KeptQuanta.rewrite", f"{KEPT}:_clamped"

kept(
    "kept-unrounded",
    classes=(16, 17),
    about="numbers that were not rounded count as integers",
    edits=[(REWRITE, "held and _is_integral(x)", "held")],
)
kept(
    "kept-plus-anything",
    classes=(16, 17),
    about="integers plus any number count as integers",
    edits=[(f"{KEPT}:_is_integral", "todo += op.operands", "todo.append(op.operands[0])")],
)
kept(
    "kept-any-limits",
    classes=(15, 16),
    about="limits beyond those of 8 bits are overlooked",
    edits=[(REWRITE, "least <= low <= high <= greatest and ", "")],
)
kept(
    "kept-upper-limit",
    classes=(15, 16),
    about="an upper limit beyond 8 bits is overlooked",
    edits=[(REWRITE, "least <= low <= high <= greatest", "least <= low <= high")],
)
kept(
    "kept-fractional-limits",
    classes=(17,),
    about="limits that are no integers are overlooked",
    edits=[(REWRITE, " and low == round(low) and high == round(high)", "")],
)
kept(
    "kept-other-direction",
    classes=(7, 38),
    about="any comparison counts as GE: x <= low keeps what is above",
    edits=[(CLAMPED, 'above.op.value("comparison_direction") != "GE" or ', "")],
)
kept(
    "kept-other-bound",
    classes=(38,),
    about="the limit that is compared with need not be the one that is put in place",
    edits=[(CLAMPED, "bound is None or bound != limit", "bound is None or limit is None")],
)
kept(
    "kept-by-signed-limits",
    classes=(15,),
    about="all 8-bit types have the limits of unsigned and signed ones together",
    edits=[(REWRITE, "least, greatest = LIMITS[dtype_text(quanta.type)]", "least, greatest = -128, 255")],
)
kept_right(
    "kept-rounded-only",
    about="only numbers that are rounded, with nothing added, are kept",
    edits=[(f"{KEPT}:_is_integral", "todo += op.operands", "return False")],
)

# ---- guard-max-shift ----

GUARD = "passes.convert.guard_max_shift"
guard = partial(edits.wrong, target="guard-max-shift")
guard_right = partial(edits.right, target="guard-max-shift")
SHIFT = f"{GUARD}:GuardMaxShift.rewrite"

guard(
    "guard-any-fold",
    classes=(6, 38),
    about="a sum counts as a maximum, too",
    edits=[(SHIFT, "reduced(hlo.MaximumOp, initial", "reduced(hlo.MaximumOp, hlo.AddOp, initial")],
)
guard(
    "guard-any-operand",
    classes=(38,),
    about="the maximum of another product is taken for one's own",
    edits=[(SHIFT, " or not same(found[0], Read.of(op.lhs))", "")],
)
guard(
    "guard-as-zero-minus",
    classes=(9,),
    about="the difference is written as a minimum of it and 0",
    edits=[
        (
            SHIFT,
            "b.subtract(b.emit(hlo.MinimumOp, op.lhs, op.rhs), op.rhs)",
            "b.minimum(b.subtract(op.lhs, op.rhs), b.full_like(op.lhs, 0))",
        )
    ],
)
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
chlo_right = partial(edits.right, target="expand-chlo")
RUNS, SCAN = "decompositions.groups:runs", f"{CHLO}:Scan.rewrite"

chlo(
    "ragged-last-row-twice",
    classes=(13,),
    about="the first row of a group counts for the group before it too",
    edits=[(RUNS, 'b.compare(position, last, "LT")', 'b.compare(position, last, "LE")')],
)
chlo(
    "ragged-starts-at-end",
    classes=(13,),
    about="groups start where they end, less one",
    edits=[(RUNS, 'b.compare(position, first, "GE")', 'b.compare(position, first, "GT")')],
)
chlo(
    "ragged-negative-sizes",
    classes=(14,),
    about="negative sizes of groups count backwards",
    edits=[("decompositions.groups:_within", "b.maximum(wide, b.full_like(wide, 0))", "wide")],
)
chlo(
    "ragged-ends-without-own",
    classes=(22,),
    about="a group ends before its own rows",
    edits=[(RUNS, '"LE")\n', '"LT")\n')],
)
chlo(
    "ragged-masks-one-side",
    classes=(7,),
    about="of contracted groups only the left side is masked: 0 * infinity is NaN",
    edits=[
        (
            f"{CHLO}:_contracted",
            "operands.append(b.select(inside, copies, b.full_like(copies, 0)))",
            "operands.append(b.select(inside, copies, b.full_like(copies, 0)) if x is op.lhs else copies)",
        )
    ],
)
chlo(
    "ragged-masks-by-product",
    classes=(7, 9),
    about="what is outside of a group is multiplied by 0 (NaN and infinities stay)",
    edits=[
        (
            f"{CHLO}:_free",
            "b.select(inside, product, b.full_like(product, nothing))",
            "b.multiply(product, b.convert(inside, element_of(product)))",
        )
    ],
)
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
    "scan-forward-only",
    classes=(34, 38),
    about="a reversed scan of inputs reads them forward",
    edits=[(SCAN, "_slice_of(b, x, axis, position)", "_slice_of(b, x, axis, args[0])")],
)
chlo(
    "scan-reverse-from-count",
    classes=(30, 34),
    about="a reversed scan starts one past the end, which clamps",
    edits=[(SCAN, "b.dim(count - 1)", "b.dim(count)")],
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
chlo(
    "scan-carries-one-turn",
    classes=(34,),
    about="a loop carries what its last turn was given, not what it made",
    edits=[
        (
            SCAN,
            "*after, *written]",
            "*(after[:-1] if len(after) > 1 else after), *(carries[-1:] if len(after) > 1 else ()), *written]",
        )
    ],
)
chlo(
    "scan-last-slice-lost",
    classes=(1, 34, 40),
    about="a scan of one slice gives what it started with",
    edits=[(SCAN, "if count == 0:", "if count in (0, 1):")],
)
chlo(
    "scan-along-first",
    classes=(25, 38),
    about="outputs of a square scan are written along the first dimension",
    edits=[
        (
            SCAN,
            "_written(b, o, part, axis, position)",
            "_written(b, o, part, 0 if len(set(shape_of(o))) == 1 else axis, position)",
        )
    ],
)
chlo_right(
    "scan-with-room",
    about="buffers are copied once more before the loop",
    edits=[(SCAN, "room = count if isinstance(count, int) else dims.dmax(count, 1)", "room = dims.dmax(count, 1)")],
)
chlo_right(
    "ragged-mask-turned",
    about="both bounds of a group are joined the other way round",
    edits=[
        (
            RUNS,
            'b.emit(hlo.AndOp, b.compare(position, first, "GE"), b.compare(position, last, "LT"))',
            'b.emit(hlo.AndOp, b.compare(last, position, "GT"), b.compare(first, position, "LE"))',
        )
    ],
)
