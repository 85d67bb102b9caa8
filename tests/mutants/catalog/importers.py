"""Mistakes in the importers of ONNX operators, and in what they share."""

from __future__ import annotations

from functools import partial

from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong

wrong = partial(_wrong, target="import")
right = partial(_right, target="import")

ONNX = "frontends.onnx.operators"
WINDOWS, POOLING = f"{ONNX}.windows", f"{ONNX}.pooling"
INDEXING, PADDING, MOVEMENT = f"{ONNX}.indexing", f"{ONNX}.padding", f"{ONNX}.movement"
ELEMENTWISE, REDUCTION, CONTRACTION = f"{ONNX}.elementwise", f"{ONNX}.reduction", f"{ONNX}.contraction"
RECURRENT, QUANTIZATION = f"{ONNX}.recurrent", f"{ONNX}.quantization"

# ---- windows: Conv and the pools ----

wrong(
    "pads-interleaved", classes=(27, 38), about="pads are read as (start, end) pairs, not all starts and then all ends",
    edits=[(f"{WINDOWS}:_padding", "tuple(pads[:n]), tuple(pads[n:])", "tuple(pads[::2]), tuple(pads[1::2])")],
)  # fmt: skip
wrong(
    "max-pool-pads-with-zero", classes=(1, 28), about="the padding of MaxPool holds zeros, which may win",
    edits=[(f"{POOLING}:_fold", "ctx.b.scalar_like(x, identity(op, dtype_text(x.type)))", "ctx.b.scalar_like(x, 0)")],
)  # fmt: skip

# ---- elementwise ----

wrong(
    "mod-truncates", classes=(12,), about="Mod of negative integers is the remainder of a truncated division",
    edits=[(f"{ELEMENTWISE}:modulo", 'ctx.element().startswith("ui")', "not is_float(ctx.element())")],
)  # fmt: skip
wrong(
    "relu-by-comparison", classes=(6, 9), about="Relu selects what is greater than 0, and NaN is not",
    edits=[(f"{ONNX}.activation:_relu", "b.maximum(x, b.scalar_like(x, 0))", "b.select(_positive(b, x), x,"
            " b.scalar_like(x, 0))")],
)  # fmt: skip
wrong(
    "cast-bool-via-integer", classes=(16, 19), about="a float casts to a boolean by way of an integer",
    edits=[(f"{ELEMENTWISE}:convert_value", 'return b.compare(x, ctx.b.scalar_like(x, 0), "NE")',
            'x = b.convert(x, "i32")\n        return b.compare(x, ctx.b.scalar_like(x, 0), "NE")')],
)  # fmt: skip
wrong(
    "bit-shift-right-logical", classes=(14, 15), about="a right shift of signed integers brings zeros in",
    edits=[(f"{ELEMENTWISE}:bit_shift", "else hlo.ShiftRightArithmeticOp", "else hlo.ShiftRightLogicalOp")],
)  # fmt: skip

# ---- indices ----

wrong(
    "gather-nd-batch-dims-indexed", classes=(30, 38), about="the vectors of GatherND index the first dims after none",
    edits=[(f"{INDEXING}:gather_nd", "tuple(range(batch)), tuple(range(batch, batch + depth))",
            "tuple(range(batch)), tuple(reversed(range(batch, batch + depth)))")],
)  # fmt: skip
wrong(
    "reflect-repeats-edge", classes=(23,), about="reflecting pads repeat the edge",
    edits=[(f"{PADDING}:_before", "1, count + 1", "0, count")],
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
    "split-remainder-first", classes=(24, 39), about="parts of uneven sizes: the first is the smaller one",
    edits=[(f"{MOVEMENT}:split_sizes", "[chunk] * (count - 1) + [ctx.greater(total - chunk * (count - 1), 0)]",
            "[ctx.greater(total - chunk * (count - 1), 0)] + [chunk] * (count - 1)")],
)  # fmt: skip
wrong(
    "tile-repeats-elements", classes=(26, 25), about="Tile repeats each element, not the whole",
    edits=[(f"{MOVEMENT}:repeat_input", "for s in pair]", "for s in reversed(pair)]"),
           (f"{MOVEMENT}:repeat_input", "range(1, 2 * len(shape), 2)", "range(0, 2 * len(shape), 2)")],
)  # fmt: skip

# ---- reductions and order ----


wrong(
    "argmax-last-of-ties", classes=(20, 31), about="select_last_index is read the wrong way round",
    edits=[(f"{REDUCTION}:arg_extremum", 'compare(there, at, "GT" if last else "LT")',
            'compare(there, at, "LT" if last else "GT")'),
           (f"{REDUCTION}:arg_extremum", "limit.min if last else limit.max", "limit.max if last else limit.min")],
)  # fmt: skip
wrong(
    "log-sum-exp-overflows", classes=(8,), about="ReduceLogSumExp does not take the maximum away first",
    edits=[(f"{REDUCTION}:_log_sum_exp", "b.select(b.emit(hlo.IsFiniteOp, most), most, zero)", "zero")],
)  # fmt: skip

# ---- products, normalization, networks ----

wrong(
    "gemm-transposes-swapped", classes=(5, 25), about="transA is taken for transB",
    edits=[(f"{CONTRACTION}:_gemm", '((0 if ctx.flag("transA") else 1,), (1 if ctx.flag("transB") else 0,))',
            '((0 if ctx.flag("transB") else 1,), (1 if ctx.flag("transA") else 0,))')],
)  # fmt: skip
wrong(
    "gemm-beta-scales-product", classes=(22, 38), about="beta scales the product too",
    edits=[(f"{CONTRACTION}:_gemm", "if alpha != 1:\n        result = b.scale(result, alpha)",
            "if alpha * beta != 1:\n        result = b.scale(result, alpha * beta)")],
)  # fmt: skip
wrong(
    "recurrent-reverse-reads-forward", classes=(34,), about="the reverse direction writes its steps in forward order",
    edits=[(f"{RECURRENT}:_run", "b.emit(hlo.DynamicUpdateSliceOp, steps, row, at, zero, zero)",
            "b.emit(hlo.DynamicUpdateSliceOp, steps, row, count, zero, zero)")],
)  # fmt: skip
wrong(
    "quantize-rounds-away", classes=(18, 29), about="QuantizeLinear rounds ties away from zero",
    edits=[(f"{QUANTIZATION}:quantize_ratio", "hlo.RoundNearestEvenOp", "hlo.RoundNearestAfzOp")],
)  # fmt: skip

# ---- correct changes ----

right(
    "gru-state-plus-difference", about="GRU's next state as the state plus the update's share of the difference",
    edits=[(f"{RECURRENT}:GruCell.step",
            "return [b.add(b.multiply(b.subtract(b.scalar_like(h, 1), update), candidate), kept)]",
            "share = b.subtract(b.scalar_like(h, 1), update)\n"
            "    return [b.add(kept, b.multiply(share, candidate))]")],
)  # fmt: skip
