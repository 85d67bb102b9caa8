"""Importers of com.microsoft: operators on quantized tensors, element by element, over windows and axes.

Each is defined as the operator on real numbers between a dequantization and a quantization. ONNX Runtime has kernels
in integers for some, which may differ from that by one step of the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.activation import softmax, softmax_flattened
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.movement import agree_dims
from gcomp.frontends.onnx.operators.pooling import average_pool
from gcomp.frontends.onnx.operators.quantization import (
    Granularity,
    dequantize_linear,
    dequantize_operand,
    quantize_linear,
    quantize_ratio,
)
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of

contrib("QuantizeLinear", "x:T y_scale:T y_zero_point:quantized?", "axis block_size output_dtype saturate")(
    quantize_linear
)
contrib("DequantizeLinear", "x:quantized x_scale:float x_zero_point:quantized?", "axis block_size output_dtype")(
    dequantize_linear
)


def on(ctx: NodeContext, operator: str, values: Sequence[SSAValue | Value | None]) -> NodeContext:
    """The node as another operator with other operands, for importers of operators that this one is made of."""
    inner = copy(ctx)
    inner.op_type = operator
    inner.values = [Value.of(v) if isinstance(v, SSAValue) else v for v in values]
    return inner


def known_operand(ctx: NodeContext, index: int) -> Value | None:
    """An optional operand's value."""
    return ctx.value(index) if ctx.has(index) else None


def real(ctx: NodeContext, index: int, scale: int, zero: int) -> SSAValue:
    """A tensor quantized by one scale and zero point, as the f32 numbers that it stands for."""
    if ctx.has(zero) and ctx.element(zero) != ctx.element(index):
        ctx.invalid(f"a zero point is {ctx.element(zero)}", f"its tensor is {ctx.element(index)}")
    return dequantize_operand(ctx, _single(ctx, index, scale), index, scale, zero)


def _single(ctx: NodeContext, index: int, scale: int) -> Granularity:
    if ctx.element(scale) != "f32":
        ctx.invalid(f"input {scale}, a scale, is {ctx.element(scale)}", "f32 is expected")
    return Granularity(ctx.shape(index))


def quantize(ctx: NodeContext, y: SSAValue, scale: int, zero: int, target: str) -> SSAValue:
    """f32 numbers quantized to 8 bits by the scale and zero point with these indices."""
    lie = Granularity(shape_of(y))
    if ctx.has(zero) and ctx.element(zero) != target:
        ctx.invalid(f"a zero point is {ctx.element(zero)}", f"the result is {target}")
    point = lie.spread(ctx, ctx[zero]) if ctx.has(zero) else None
    return quantize_ratio(ctx, ctx.b.divide(y, lie.spread(ctx, ctx[scale])), point, target)


# ---- elementwise -------------------------------------------------------------------------------------------------

_BINARY = "A:Q A_scale:f32 A_zero_point:Q? B:Q B_scale:f32 B_zero_point:Q? C_scale:f32 C_zero_point:Q?"  # fmt: skip


@contrib("QLinearAdd", _BINARY)
def qlinear_add(ctx: NodeContext) -> Results:
    """QLinearAdd: `A + B` of the numbers that they stand for, broadcasting."""
    return [quantize(ctx, ctx.b.add(real(ctx, 0, 1, 2), real(ctx, 3, 4, 5)), 6, 7, ctx.element())]


@contrib("QLinearMul", _BINARY)
def qlinear_mul(ctx: NodeContext) -> Results:
    """QLinearMul: `A * B` of the numbers that they stand for, broadcasting."""
    return [quantize(ctx, ctx.b.multiply(real(ctx, 0, 1, 2), real(ctx, 3, 4, 5)), 6, 7, ctx.element())]


_UNARY = "X:Q X_scale:f32 X_zero_point:Q? Y_scale:f32 Y_zero_point:Q?"


@contrib("QLinearSigmoid", _UNARY)
def qlinear_sigmoid(ctx: NodeContext) -> Results:
    """QLinearSigmoid: `1 / (1 + exp(-X))`."""
    return [quantize(ctx, ctx.b.emit(hlo.LogisticOp, real(ctx, 0, 1, 2)), 3, 4, ctx.element())]


@contrib("QLinearLeakyRelu", _UNARY, "alpha")
def qlinear_leaky_relu(ctx: NodeContext) -> Results:
    """QLinearLeakyRelu: X where it is at least 0, else `alpha * X`."""
    b, x = ctx.b, real(ctx, 0, 1, 2)
    y = b.select(b.compare(x, ctx.b.scalar_like(x, 0), "GE"), x, b.scale(x, ctx.number("alpha", 0.01)))
    return [quantize(ctx, y, 3, 4, ctx.element())]


@contrib(
    "QLinearWhere",
    "condition:i1 X:Q x_scale:f32 x_zero_point:Q Y:Q y_scale:f32 y_zero_point:Q z_scale:f32 z_zero_point:Q",
)
def qlinear_where(ctx: NodeContext) -> Results:
    """QLinearWhere: X where the condition holds, else Y; broadcasting."""
    return [quantize(ctx, ctx.b.select(ctx[0], real(ctx, 1, 2, 3), real(ctx, 4, 5, 6)), 7, 8, ctx.element(1))]


@contrib("MulInteger", "A:Q A_zero_point:Q? B:Q B_zero_point:Q?")
def mul_integer(ctx: NodeContext) -> Results:
    """MulInteger: `(A - A_zero_point) * (B - B_zero_point)` in i32, broadcasting."""

    def center(index: int) -> SSAValue:
        x = ctx.b.convert(ctx[index], "i32")
        if not ctx.has(index + 1):
            return x
        return ctx.b.subtract(x, Granularity(shape_of(x)).spread(ctx, ctx.b.convert(ctx[index + 1], "i32")))

    return [ctx.b.multiply(center(0), center(2))]


# ---- along axes --------------------------------------------------------------------------------------------------


@contrib("QLinearSoftmax", "X:Q X_scale:f32 x_zero_point:Q? y_scale:f32 y_zero_point:Q", "axis opset!")
def qlinear_softmax(ctx: NodeContext) -> Results:
    """QLinearSoftmax: along one axis, or before opset 13 (by the attribute) over all dims from the axis on."""
    inner = on(ctx, "Softmax", [real(ctx, 0, 1, 2)])
    if ctx.attribute("axis") is None:
        ctx.invalid("attribute axis is missing", "its default depends on the opset")
    (y,) = (softmax if ctx.integer("opset") >= 13 else softmax_flattened)(inner)
    assert isinstance(y, SSAValue)
    return [quantize(ctx, y, 3, 4, ctx.element())]


@contrib("QLinearConcat", "Y_scale:f32 Y_zero_point:byte inputs:any*", "axis!")
def qlinear_concat(ctx: NodeContext) -> Results:
    """QLinearConcat: inputs after the first two are a tensor, its scale, its zero point, and so on."""
    count = len(ctx.values)
    if count < 5 or count % 3 != 2:
        ctx.invalid(f"it has {count} inputs", "a scale, a zero point, and three for each tensor are expected")
    for i in range(2, count, 3):
        if ctx.element(i) not in ("i8", "ui8"):
            ctx.invalid(f"input {i} is {ctx.element(i)}", "i8 or ui8 is expected")
    parts = [real(ctx, i, i + 1, i + 2) for i in range(2, count, 3)]
    axis = ctx.axis(ctx.integer("axis"), rank_of(parts[0]))
    return [quantize(ctx, ctx.b.concatenate(agree_dims(ctx, parts, axis), axis), 0, 1, ctx.element(1))]


def _reduced_axes(ctx: NodeContext) -> list[int]:
    given = ctx.integers("axes") or list(range(ctx.rank()))
    return ctx.distinct([ctx.axis(a, ctx.rank()) for a in given])


@contrib(
    "QLinearReduceMean", "data:Q data_scale:f32 data_zero_point:Q? reduced_scale:f32 reduced_zero_point:Q?",
    "axes! keepdims!",
)  # fmt: skip
def qlinear_reduce_mean(ctx: NodeContext) -> Results:
    """QLinearReduceMean: the mean over axes (all of them if none are named)."""
    y = ctx.b.mean(real(ctx, 0, 1, 2), _reduced_axes(ctx), keepdims=ctx.flag("keepdims", True))
    return [quantize(ctx, y, 3, 4, ctx.element())]


@contrib("ReduceSumInteger", "data:Q", "axes! keepdims!")
def reduce_sum_integer(ctx: NodeContext) -> Results:
    """ReduceSumInteger: the sum over axes in 32 bits, of the data's signedness."""
    wide = "ui32" if ctx.element() == "ui8" else "i32"
    keepdims = ctx.flag("keepdims", True)
    return [ctx.b.reduce(hlo.AddOp, ctx.b.convert(ctx[0], wide), _reduced_axes(ctx), keepdims=keepdims)]


# ---- windows -----------------------------------------------------------------------------------------------------


def channels_first(ctx: NodeContext, x: SSAValue, compute: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """Compute on a tensor with channels in dim 1; the node may say that it and the result have them last."""
    rank = rank_of(x)
    if not ctx.flag("channels_last"):
        return compute(x)
    if rank < 3:
        ctx.invalid(f"its input has rank {rank}", "rank 3 or more is expected")
    y = compute(ctx.b.transpose(x, (0, rank - 1, *range(1, rank - 1))))
    return ctx.b.transpose(y, (0, *range(2, rank), 1))


@contrib(
    "QLinearAveragePool", "X:Q x_scale:f32 x_zero_point:Q? y_scale:f32 y_zero_point:Q?",
    "auto_pad ceil_mode channels_last count_include_pad kernel_shape! pads strides",
)  # fmt: skip
def qlinear_average_pool(ctx: NodeContext) -> Results:
    """QLinearAveragePool: the mean of each window; channels may be last."""

    def pool(x: SSAValue) -> SSAValue:
        (y,) = average_pool(on(ctx, "AveragePool", [x]))
        assert isinstance(y, SSAValue)
        return y

    return [quantize(ctx, channels_first(ctx, real(ctx, 0, 1, 2), pool), 3, 4, ctx.element())]


@contrib(
    "QLinearGlobalAveragePool", "X:Q x_scale:f32 x_zero_point:Q y_scale:f32 y_zero_point:Q", "channels_last"
)  # fmt: skip
def qlinear_global_average_pool(ctx: NodeContext) -> Results:
    """QLinearGlobalAveragePool: the mean over the spatial dims; channels may be last."""
    b = ctx.b
    if ctx.rank() < 3:
        ctx.invalid(f"its input has rank {ctx.rank()}", "rank 3 or more is expected")
    axes = list(range(1, ctx.rank() - 1) if ctx.flag("channels_last") else range(2, ctx.rank()))
    return [quantize(ctx, b.mean(real(ctx, 0, 1, 2), axes, keepdims=True), 3, 4, ctx.element())]


__all__ = ["channels_first", "known_operand", "on", "quantize", "real"]
