"""Mistakes in the importers of ONNX operators, and in what they share."""

from __future__ import annotations

from functools import partial

from gcomp.frontends.onnx.engine import registry
from gcomp.frontends.onnx.operators.reduction import REDUCTIONS
from tests.mutants.edits import change
from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong
from tests.mutants.mutant import mutant

wrong = partial(_wrong, target="import")
right = partial(_right, target="import")

ONNX = "frontends.onnx.operators"
WINDOWS, POOLING, CONVOLUTION = f"{ONNX}.windows", f"{ONNX}.pooling", f"{ONNX}.convolution"
INDEXING, SLICING, PADDING, MOVEMENT = f"{ONNX}.indexing", f"{ONNX}.slicing", f"{ONNX}.padding", f"{ONNX}.movement"
ELEMENTWISE, REDUCTION, CONTRACTION = f"{ONNX}.elementwise", f"{ONNX}.reduction", f"{ONNX}.contraction"
RESIZING, RECURRENT, QUANTIZATION = f"{ONNX}.interpolation", f"{ONNX}.recurrent", f"{ONNX}.quantization"

# ---- windows: Conv and the pools ----

wrong(
    "same-lower-is-upper", classes=(27,), about="SAME_LOWER puts the odd element of padding at the end",
    edits=[(f"{WINDOWS}:_padding", 'mode == "SAME_UPPER"', 'mode in ("SAME_UPPER", "SAME_LOWER")')],
)  # fmt: skip
wrong(
    "same-ignores-strides", classes=(27,), about="SAME padding is for a stride of 1",
    edits=[(f"{WINDOWS}:_padding", "(dims.ceildiv(size, s) - 1) * s", "(size - 1)")],
)  # fmt: skip
wrong(
    "pads-interleaved", classes=(27, 38), about="pads are read as (start, end) pairs, not all starts and then all ends",
    edits=[(f"{WINDOWS}:_padding", "tuple(pads[:n]), tuple(pads[n:])", "tuple(pads[::2]), tuple(pads[1::2])")],
)  # fmt: skip
wrong(
    "ceil-mode-window-in-padding", classes=(28,), about="with ceil_mode a last window may lie in the padding alone",
    edits=[(f"{WINDOWS}:Windows._count", "inside = dims.ceildiv(self.spatial[i] + self.low[i], self.strides[i])",
            "inside = dims.ceildiv(span, self.strides[i]) + 1")],
)  # fmt: skip
wrong(
    "reach-without-dilation", classes=(27,), about="SAME padding takes the kernel for one without dilations",
    edits=[(f"{WINDOWS}:Windows.of", "reach = [(k - 1) * d + 1 for", "reach = [k for")],
)  # fmt: skip
wrong(
    "average-counts-padding", classes=(28,), about="AveragePool counts padding unless it is told not to",
    edits=[(f"{POOLING}:_covered", 'ctx.flag("count_include_pad")', 'ctx.flag("count_include_pad", True)')],
)  # fmt: skip
wrong(
    "average-counts-excess", classes=(28,), about="what ceil_mode adds behind the padding is counted with the padding",
    edits=[(f"{POOLING}:_covered_along", "(-low, size + high) if counted", "(-low, size + high + 99) if counted")],
)  # fmt: skip
wrong(
    "max-pool-pads-with-zero", classes=(1, 28), about="the padding of MaxPool holds zeros, which may win",
    edits=[(f"{POOLING}:_folded", "ctx.full_like(x, identity(op, dtype_text(x.type)))", "ctx.full_like(x, 0)")],
)  # fmt: skip
wrong(
    "max-pool-storage-order", classes=(25, 38), about="storage_order is ignored",
    edits=[(f"{POOLING}:_places", 'ctx.flag("storage_order")', "False")],
)  # fmt: skip
wrong(
    "conv-transpose-not-mirrored", classes=(27,), about="the kernel of ConvTranspose is not mirrored",
    edits=[(f"{CONVOLUTION}:_transposed_kernel", "dimensions=spatial", "dimensions=[]")],
)  # fmt: skip
wrong(
    "conv-transpose-output-padding-both-ends", classes=(27,), about="output_padding is put in front",
    edits=[(f"{CONVOLUTION}:conv_transpose", "(r - 1 - lo, r - 1 - hi + e)", "(r - 1 - lo + e, r - 1 - hi)")],
)  # fmt: skip
wrong(
    "conv-transpose-groups-not-split", classes=(27, 25), about="the groups of a transposed kernel are interleaved",
    edits=[(f"{CONVOLUTION}:_transposed_kernel", "(count, taken // count, *shape[1:])",
            "(taken // count, count, *shape[1:])"),
           (f"{CONVOLUTION}:_transposed_kernel", "(0, 2, 1, *(i + 1 for i in spatial))",
            "(1, 2, 0, *(i + 1 for i in spatial))")],
)  # fmt: skip

# ---- elementwise ----

wrong(
    "mod-truncates", classes=(12,), about="Mod of negative integers is the remainder of a truncated division",
    edits=[(f"{ELEMENTWISE}:modulo", 'ctx.element().startswith("ui")', "not is_float(ctx.element())")],
)  # fmt: skip
wrong(
    "clip-bounds-swapped-order", classes=(6,), about="with min > max the result of Clip is min",
    edits=[(f"{ELEMENTWISE}:bounded", "b.emit(hlo.ClampOp, low, x, high)", "b.maximum(b.minimum(x, high), low)")],
)  # fmt: skip
wrong(
    "relu-by-comparison", classes=(6, 9), about="Relu selects what is greater than 0, and NaN is not",
    edits=[(f"{ONNX}.activation:_relu", "b.maximum(x, _like(b, x, 0))", "b.select(_positive(b, x), x,"
            " _like(b, x, 0))")],
)  # fmt: skip
wrong(
    "is-inf-signs-swapped", classes=(38,), about="IsInf finds infinities of the other sign",
    edits=[(f"{ELEMENTWISE}:is_inf", "math.inf if positive else -math.inf", "-math.inf if positive else math.inf")],
)  # fmt: skip
wrong(
    "cast-saturates-never", classes=(16,), about="casts to 8-bit floats overflow where they should saturate",
    edits=[(f"{ELEMENTWISE}:converted", "target in _NARROW_MAX and saturate",
            "target in _NARROW_MAX and not saturate")],
)  # fmt: skip
wrong(
    "cast-bool-via-integer", classes=(16, 19), about="a float casts to a boolean by way of an integer",
    edits=[(f"{ELEMENTWISE}:converted", 'return b.compare(x, ctx.full_like(x, 0), "NE")',
            'x = b.convert(x, "i32")\n        return b.compare(x, ctx.full_like(x, 0), "NE")')],
)  # fmt: skip
wrong(
    "power-in-base-type", classes=(18, 19), about="an integer to the power of a fraction truncates the exponent",
    edits=[(f"{ELEMENTWISE}:power", "is_integer(base) and is_float(y)", "False")],
)  # fmt: skip
wrong(
    "bit-shift-right-logical", classes=(14, 15), about="a right shift of signed integers brings zeros in",
    edits=[(f"{ELEMENTWISE}:bit_shift", "else hlo.ShiftRightArithmeticOp", "else hlo.ShiftRightLogicalOp")],
)  # fmt: skip

# ---- indices ----

wrong(
    "gather-negative-unwrapped", classes=(30,), about="negative indices are left to the clamping of gather",
    edits=[("ir.gathering:wrapped", "b.select(negative, b.add(indices, b.dim(size, text)), indices)",
            "b.select(negative, indices, indices)")],
)  # fmt: skip
wrong(
    "scatter-reduction-none-adds", classes=(31,), about="duplicates of ScatterElements combine with mul as with add",
    edits=[(f"{INDEXING}:_combiner", "_COMBINE[reduction](", '_COMBINE["add" if reduction == "mul" else reduction](')],
)  # fmt: skip
wrong(
    "gather-nd-batch-dims-indexed", classes=(30, 38), about="the vectors of GatherND index the first dims after none",
    edits=[(f"{INDEXING}:gather_nd", "tuple(range(batch)), tuple(range(batch, batch + depth))",
            "tuple(range(batch)), tuple(reversed(range(batch, batch + depth)))")],
)  # fmt: skip
wrong(
    "slice-backward-end-included", classes=(23,), about="a backward slice takes the element at its end",
    edits=[(f"{SLICING}:_backward", "range(first, last, step)", "range(first, max(last - 1, -1), step)")],
)  # fmt: skip
wrong(
    "slice-negative-end-clamped-first", classes=(23,), about="a negative bound is clamped before it is counted from the"
    " end",
    edits=[(f"{SLICING}:_clamped", "ctx.greater(size + bound, 0)\n    if ctx", "0\n    if ctx")],
)  # fmt: skip
wrong(
    "reflect-repeats-edge", classes=(23,), about="reflecting pads repeat the edge",
    edits=[(f"{PADDING}:_before", "1, count + 1", "0, count")],
)  # fmt: skip
wrong(
    "pad-axes-all-starts", classes=(38, 23), about="pads of some axes are read as (start, end) pairs",
    edits=[(f"{PADDING}:padded", "pads[i], pads[i + len(axes)]", "pads[2 * i], pads[2 * i + 1]")],
)  # fmt: skip
wrong(
    "pad-crops-lost", classes=(23,), about="negative pads of other modes than constant crop nothing",
    edits=[(f"{PADDING}:padded", "max(-before, 0), shape_of(x)[axis] - max(-after, 0)", "0, shape_of(x)[axis]")],
)  # fmt: skip

# ---- shapes and movement ----

wrong(
    "broadcast-aligns-leading", classes=(4,), about="operands of other ranks are aligned at their first dims",
    edits=[("ir.builder:Builder.broadcast_to", "range(len(shape) - rank_of(x), len(shape))",
            "next(r for r in (range(rank_of(x)), range(len(shape) - rank_of(x), len(shape)))"
            " if all(s in (1, shape[i]) for s, i in zip(shape_of(x), r)))")],
)  # fmt: skip
wrong(
    "reshape-zero-with-allowzero", classes=(2, 3), about="allowzero is ignored",
    edits=[(f"{MOVEMENT}:resolved_shape", 'if not ctx.flag("allowzero"):', "if True:")],
)  # fmt: skip
wrong(
    "flatten-negative-axis", classes=(39,), about="a negative axis of Flatten counts the new dims too",
    edits=[(f"{MOVEMENT}:flatten", "axis + rank if axis < 0", "axis + rank + 1 if axis < 0")],
)  # fmt: skip
wrong(
    "split-remainder-first", classes=(24, 39), about="parts of uneven sizes: the first is the smaller one",
    edits=[(f"{MOVEMENT}:split_sizes", "[chunk] * (count - 1) + [ctx.greater(total - chunk * (count - 1), 0)]",
            "[ctx.greater(total - chunk * (count - 1), 0)] + [chunk] * (count - 1)")],
)  # fmt: skip
wrong(
    "tile-repeats-elements", classes=(26, 25), about="Tile repeats each element, not the whole",
    edits=[(f"{MOVEMENT}:repeated", "for s in pair]", "for s in reversed(pair)]"),
           (f"{MOVEMENT}:repeated", "range(1, 2 * len(shape), 2)", "range(0, 2 * len(shape), 2)")],
)  # fmt: skip
wrong(
    "depth-to-space-modes-swapped", classes=(25, 38), about="DCR and CRD are taken for each other",
    edits=[(f"{MOVEMENT}:depth_to_space", '== "DCR"', '== "CRD"')],
)  # fmt: skip
wrong(
    "trilu-diagonal-sign", classes=(38,), about="the diagonal of Trilu counts downwards",
    edits=[(f"{ONNX}.shape:trilu", "b.add(rows,", "b.subtract(rows,")],
)  # fmt: skip
wrong(
    "one-hot-negative-off", classes=(30,), about="negative indices of OneHot are off",
    edits=[(f"{ONNX}.shape:one_hot", "b.add(positions, b.dim(depth)), positions)", "positions, positions)")],
)  # fmt: skip

# ---- reductions and order ----


@mutant("reduce-empty-axes-is-noop", "import", classes=(1, 38), about="an empty list of axes never reduces")
def _() -> None:
    for operator in REDUCTIONS:
        importer = registry.lookup("", operator, 20)
        change(importer, 'if not axes and ctx.flag("noop_with_empty_axes")', "if axes == []")


wrong(
    "argmax-last-of-ties", classes=(20, 31), about="select_last_index is read the wrong way round",
    edits=[(f"{REDUCTION}:arg_extremum", '"GT" if last else "LT"', '"LT" if last else "GT"'),
           (f"{REDUCTION}:arg_extremum", "limit.min if last else limit.max", "limit.max if last else limit.min")],
)  # fmt: skip
wrong(
    "cumsum-exclusive-in-reverse", classes=(23, 38), about="an exclusive sum in reverse is moved the wrong way",
    edits=[(f"{REDUCTION}:scan", "_shifted(b, x, unit, axis, 1, backward)", "_shifted(b, x, unit, axis, 1, False)")],
)  # fmt: skip
wrong(
    "log-sum-exp-overflows", classes=(8,), about="ReduceLogSumExp does not take the maximum away first",
    edits=[(f"{REDUCTION}:_log_sum_exp", "b.select(b.emit(hlo.IsFiniteOp, most), most, zero)", "zero")],
)  # fmt: skip
wrong(
    "top-k-smallest-unstable", classes=(31,), about="of equal elements TopK takes the last ones",
    edits=[("ir.gathering:sorted_along", '"GT" if descending else "LT"', '"GE" if descending else "LE"')],
)  # fmt: skip

# ---- products, normalization, networks ----

wrong(
    "gemm-transposes-swapped", classes=(5, 25), about="transA is taken for transB",
    edits=[(f"{CONTRACTION}:_gemm", '((0 if ctx.flag("transA") else 1,), (1 if ctx.flag("transB") else 0,))',
            '((0 if ctx.flag("transB") else 1,), (1 if ctx.flag("transA") else 0,))')],
)  # fmt: skip
wrong(
    "gemm-beta-scales-product", classes=(22, 38), about="beta scales the product too",
    edits=[(f"{CONTRACTION}:_gemm", "if alpha != 1:\n        result = b.scaled(result, alpha)",
            "if alpha * beta != 1:\n        result = b.scaled(result, alpha * beta)")],
)  # fmt: skip
wrong(
    "einsum-diagonal-is-sum", classes=(25, 38), about="a repeated letter sums over both dims",
    edits=[(f"{CONTRACTION}:_without_repeats", "b.select(same, x, ctx.full_like(x, 0))", "x")],
)  # fmt: skip
wrong(
    "softmax-old-opset-one-axis", classes=(25, 38), about="Softmax before opset 13 normalizes along one axis",
    edits=[(f"{ONNX}.activation:softmax_flattened", "axis == rank_of(x) - 1", "True")],
)  # fmt: skip
wrong(
    "batch-norm-momentum-swapped", classes=(38,), about="momentum weighs the batch's statistics, not the running ones",
    edits=[(f"{ONNX}.normalization:batch_normalization", "b.add(b.scaled(old, momentum), b.scaled(new, 1 - momentum))",
            "b.add(b.scaled(new, momentum), b.scaled(old, 1 - momentum))")],
)  # fmt: skip
wrong(
    "lrn-window-mirrored", classes=(27, 28), about="the window of LRN reaches further back than forward",
    edits=[(f"{ONNX}.normalization:local_response_normalization", "((size - 1) // 2, size // 2)",
            "(size // 2, (size - 1) // 2)")],
)  # fmt: skip
wrong(
    "causal-mask-off-by-one", classes=(38,), about="a query does not see the key at its own place",
    edits=[(f"{ONNX}.attention:_mask", 'b.iota(shape, 1), "GE")', 'b.iota(shape, 1), "GT")')],
)  # fmt: skip
wrong(
    "lstm-gates-reordered", classes=(38,), about="LSTM's gates are taken in the order input, forget, output, cell",
    edits=[(f"{RECURRENT}:LstmCell.step", "self.gate(sums, 2), 2, c)", "self.gate(sums, 1), 2, c)"),
           (f"{RECURRENT}:LstmCell.step", "self.gate(sums, 1), 1, after)", "self.gate(sums, 2), 1, after)")],
)  # fmt: skip
wrong(
    "gru-update-inverted", classes=(38,), about="GRU's update gate keeps the candidate, not the state",
    edits=[(f"{RECURRENT}:GruCell.step", "kept = b.multiply(update, h)", "kept = b.multiply(update, candidate)"),
           (f"{RECURRENT}:GruCell.step", "update), candidate), kept)", "update), h), kept)")],
)  # fmt: skip
wrong(
    "recurrent-reverse-reads-forward", classes=(34,), about="the reverse direction writes its steps in forward order",
    edits=[(f"{RECURRENT}:_run", "b.emit(hlo.DynamicUpdateSliceOp, steps, row, at, zero, zero)",
            "b.emit(hlo.DynamicUpdateSliceOp, steps, row, count, zero, zero)")],
)  # fmt: skip
wrong(
    "quantize-rounds-away", classes=(18, 29), about="QuantizeLinear rounds ties away from zero",
    edits=[(f"{QUANTIZATION}:quantized", "hlo.RoundNearestEvenOp", "hlo.RoundNearestAfzOp")],
)  # fmt: skip
wrong(
    "dequantize-zero-point-wraps", classes=(14, 15), about="the zero point is taken away in 8 bits",
    edits=[(f"{QUANTIZATION}:dequantized", 'wide = "i32" if ctx.element(index) == "i32" else "f32"',
            'wide = ctx.element(index) if ctx.element(index) in ("i8", "ui8", "i16", "i32") else "f32"')],
)  # fmt: skip

# ---- resizing ----

wrong(
    "resize-half-pixel-asymmetric", classes=(29,), about="half_pixel coordinates lack their half",
    edits=[(f"{RESIZING}:Interpolation._source", "return (y + 0.5) / scale - 0.5, None", "return y / scale, None")],
)  # fmt: skip
wrong(
    "resize-align-corners-by-size", classes=(29,), about="align_corners divides by the length, not the distance"
    " of the corners",
    edits=[(f"{RESIZING}:Interpolation._source", "y * (size - 1) / (width - 1)), None",
            "y * (size - 1) / width), None")],
)  # fmt: skip
wrong(
    "resize-ties-to-ceil", classes=(29,), about="round_prefer_floor rounds a half up",
    edits=[(f"{RESIZING}:Interpolation._kernel", "NEAREST[self.nearest](ratio)",
            'NEAREST[self.nearest.replace("prefer_floor", "prefer_ceil")](ratio)')],
)  # fmt: skip
wrong(
    "resize-exclude-outside-unnormalized", classes=(29,), about="weights without those outside do not add up to 1",
    edits=[(f"{RESIZING}:Interpolation.taps", "weights / np.where(total == 0, 1.0, total)", "weights")],
)  # fmt: skip
wrong(
    "resize-antialias-when-enlarging", classes=(29,), about="antialiasing widens the kernel when it enlarges, too",
    edits=[(f"{RESIZING}:Interpolation._kernel", "min(scale, 1.0) if self.antialias",
            "(min(scale, 1.0) or 1.0) * 0.5 if self.antialias")],
)  # fmt: skip

# ---- correct changes ----

right(
    "relu-by-clamp", about="Relu as a clamp between 0 and infinity",
    edits=[(f"{ONNX}.activation:_relu", "b.maximum(x, _like(b, x, 0))",
            'b.maximum(_like(b, x, 0), x)')],
)  # fmt: skip
right(
    "mod-by-two-remainders", about="Mod of integers as ((x rem y) + y) rem y",
    edits=[(f"{ELEMENTWISE}:modulo", "    zero = ctx.full_like(y, 0)\n",
            "    if not is_float(ctx.element()) and ctx.element() == 'i64':\n"
            "        return [b.binary(hlo.RemainderOp, b.add(remainder, y), y)]\n    zero = ctx.full_like(y, 0)\n")],
)  # fmt: skip
right(
    "same-padding-from-large", about="SAME padding: the larger half first, the smaller one is the rest",
    edits=[(f"{WINDOWS}:_padding", "small = tuple(dims.floordiv(t, 2) for t in totals)",
            "small = tuple(t - dims.ceildiv(t, 2) for t in totals)")],
)  # fmt: skip
right(
    "gru-state-plus-difference", about="GRU's next state as the state plus the update's share of the difference",
    edits=[(f"{RECURRENT}:GruCell.step",
            "return [b.add(b.multiply(b.subtract(b.full((), 1, element_of(h)), update), candidate), kept)]",
            "share = b.subtract(b.full((), 1, element_of(h)), update)\n"
            "    return [b.add(kept, b.multiply(share, candidate))]")],
)  # fmt: skip
