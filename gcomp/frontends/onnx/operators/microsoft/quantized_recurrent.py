"""Importers of com.microsoft: recurrent operators with quantized weights."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.quantized import known_operand, on
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.quantization import dynamic_parameters, dynamically_quantized
from gcomp.frontends.onnx.operators.recurrent import recurrent_by
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import rank_of, shape_of

_W, _R = 1, 2
_SCALES = {_W: 8, _R: 10}
"""Weights -> their scale, which the zero point follows."""


@contrib(
    "DynamicQuantizeLSTM",
    "X:f32[3] W:byte[3] R:byte[3] B:f32[2]? sequence_lens:i32[1]? initial_h:f32[3]? initial_c:f32[3]? P:f32[2]? "
    "W_scale:f32[1|2] W_zero_point:byte[1|2] R_scale:f32[1|2] R_zero_point:byte[1|2]",
    "activation_alpha activation_beta activations clip direction hidden_size input_forget",
)
def dynamic_quantize_lstm(ctx: NodeContext) -> Results:
    """DynamicQuantizeLSTM: an LSTM whose input, as a whole, and states, anew at every step, are quantized to uint8.

    W and R are (directions, in, 4 * hidden), quantized by one number for a direction or for a column. The range of a
    step's states is that of all sequences of the batch; ONNX Runtime takes it over those that one thread computes.
    """
    for weights, scale in _SCALES.items():
        if ctx.element(weights) != ctx.element(scale + 1):
            ctx.invalid(f"a zero point is {ctx.element(scale + 1)}", f"its weights are {ctx.element(weights)}")
    b = ctx.b
    turned = [b.transpose(ctx[i], (0, 2, 1)) for i in (_W, _R)]

    def product(operand: int, index: int, x: SSAValue, w: SSAValue) -> SSAValue:
        x = _heard(ctx, x) if operand == _W else x
        scale, zero = dynamic_parameters(ctx, x)
        quantized = b.convert(dynamically_quantized(ctx, x, scale, zero), "i32")
        left = b.subtract(quantized, b.broadcast(b.convert(zero, "i32"), shape_of(x), ()))
        right = b.subtract(b.convert(w, "i32"), _spread(ctx, _SCALES[operand] + 1, index, w, "i32"))
        total = b.dot(left, right, DotDimensions((), (), (rank_of(x) - 1,), (1,)))
        column = b.reshape(b.slice_axis(_spread(ctx, _SCALES[operand], index, w, "f32"), 1, 0, 1), shape_of(w)[:1])
        factor = b.multiply(column, b.broadcast(scale, shape_of(column), ()))
        return b.multiply(b.convert(total, "f32"), b.broadcast(factor, shape_of(total), (rank_of(x) - 1,)))

    inner = on(ctx, "LSTM", [ctx.value(0), *turned, *(known_operand(ctx, i) for i in range(3, 8))])
    return recurrent_by(inner, product)


def _heard(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """The input without the steps that come after all sequences' ends: they do not count in its range."""
    if not ctx.has(4):
        return x
    b = ctx.b
    longest = b.reduce(hlo.MaximumOp, b.convert(ctx[4], "i64"), [0])
    at = b.iota(shape_of(x), 0)
    running = b.compare(at, b.broadcast(longest, shape_of(x), ()), "LT")
    return b.select(running, x, ctx.b.scalar_like(x, 0))


def _spread(ctx: NodeContext, operand: int, index: int, w: SSAValue, dtype: str) -> SSAValue:
    """A direction's scale or zero point in the shape of its weights (4 * hidden, in), in a type."""
    b, x = ctx.b, ctx[operand]
    part = b.convert(b.slice_axis(ctx.restate(x, {0: ctx.shape(_W)[0]}), 0, index, index + 1), dtype)
    if rank_of(part) == 1:
        return b.broadcast(b.reshape(part, ()), shape_of(w), ())
    return b.broadcast(b.reshape(ctx.restate(part, {1: shape_of(w)[0]}), shape_of(w)[:1]), shape_of(w), (0,))
