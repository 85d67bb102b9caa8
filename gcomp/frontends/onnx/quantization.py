"""Quantization: linear, per tensor, per axis or per block."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_integer
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.convolution import biased, convolved
from gcomp.frontends.onnx.elementwise import converted
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.frontends.onnx.values import limits
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of


def _spread(ctx: NodeContext, parameter: SSAValue, shape: Sequence[Size]) -> SSAValue:
    """A scale or zero point, given per tensor, per axis or per block, in the shape of the data."""
    b, rank = ctx.b, len(shape)
    if shape_of(parameter) in ((), (1,)):
        return b.broadcast(b.reshape(parameter, ()), shape, ())
    if rank == 1 and rank_of(parameter) == 1 and not ctx.integer("block_size"):
        ctx.b.broadcast_shape(shape_of(parameter), shape)
        return b.broadcast_to(parameter, shape)
    axis = ctx.axis(ctx.integer("axis", 1), max(rank, 1))
    block = ctx.integer("block_size")
    if not block:
        return b.broadcast(parameter, shape, (axis,) if rank_of(parameter) == 1 else range(rank))
    blocks = shape_of(parameter)
    spread = (*blocks[: axis + 1], block, *blocks[axis + 1 :])
    wide = b.broadcast(parameter, spread, [i if i <= axis else i + 1 for i in range(rank)])
    repeated = b.reshape(wide, (*blocks[:axis], blocks[axis] * block, *blocks[axis + 1 :]))
    return b.slice_axis(repeated, axis, 0, shape[axis])


@imports("QuantizeLinear")
def quantize_linear(ctx: NodeContext) -> Results:
    """QuantizeLinear: `saturate(round(x / scale) + zero_point)`."""
    x, scale = ctx[0], ctx[1]
    precision = ctx.dtype("precision", ctx.element(1)) if ctx.integer("precision") else ctx.element(1)
    target = ctx.dtype("output_dtype", "ui8") if ctx.integer("output_dtype") else "ui8"
    if ctx.has(2):
        target = ctx.element(2)
    b = ctx.b
    ratio = b.divide(b.convert(x, precision), _spread(ctx, b.convert(scale, precision), ctx.shape()))
    zero = _spread(ctx, ctx[2], ctx.shape()) if ctx.has(2) else None
    return [quantized(ctx, ratio, zero, target)]


def quantized(ctx: NodeContext, ratio: SSAValue, zero: SSAValue | None, target: str) -> SSAValue:
    """A tensor of real numbers of quanta as `target`, rounded to even, moved by the zero point and saturated."""
    b = ctx.b
    if not is_integer(target):
        if zero is not None:
            ratio = b.add(ratio, b.convert(zero, element_of(ratio)))
        return converted(ctx, ratio, target, ctx.flag("saturate", True))
    wide = "f32" if dtype_text(ratio.type) != "f64" else "f64"
    rounded = b.emit(hlo.RoundNearestEvenOp, b.convert(ratio, wide))
    low, high = limits(target)
    if zero is not None:
        rounded = b.add(rounded, b.convert(zero, wide))
    bounds = (b.full((), v, wide) for v in (low, high))
    lower, upper = bounds
    return b.convert(b.emit(hlo.ClampOp, lower, rounded, upper), target)


@imports("DequantizeLinear")
def dequantize_linear(ctx: NodeContext) -> Results:
    """DequantizeLinear: `(x - zero_point) * scale`."""
    b, shape, scale = ctx.b, ctx.shape(), ctx.element(1)
    x = b.convert(ctx[0], "f32")
    if ctx.has(2) and is_integer(ctx.element()):
        x = b.subtract(x, b.convert(_spread(ctx, ctx[2], shape), "f32"))
    y = b.multiply(x, b.convert(_spread(ctx, ctx[1], shape), "f32"))
    target = ctx.dtype("output_dtype", scale) if ctx.integer("output_dtype") else scale
    return [b.convert(y, target)]


def _centered(ctx: NodeContext, x: SSAValue, zero: SSAValue, axis: int | None) -> SSAValue:
    """An 8-bit tensor as i32, less its zero point along `axis`."""
    b = ctx.b
    wide, point = b.convert(x, "i32"), b.convert(zero, "i32")
    return b.subtract(wide, _along(ctx, point, shape_of(x), axis))


def _along(ctx: NodeContext, parameter: SSAValue, shape: Sequence[Size], axis: int | None) -> SSAValue:
    if shape_of(parameter) in ((), (1,)) or axis is None:
        return ctx.b.broadcast(ctx.b.reshape(parameter, ()), shape, ())
    if rank_of(parameter) > 1:
        return ctx.b.broadcast_to(parameter, shape)
    return ctx.b.broadcast(parameter, shape, (axis,))


@imports("QLinearMatMul")
def qlinear_matmul(ctx: NodeContext) -> Results:
    """QLinearMatMul: products summed in i32, then scaled and quantized."""
    b, rank_a, rank_b = ctx.b, ctx.rank(0), ctx.rank(3)
    x = _centered(ctx, ctx[0], ctx[2], max(rank_a - 2, 0))
    y = _centered(ctx, ctx[3], ctx[5], rank_b - 1)
    total = ctx.matmul(x, y)
    scale = _product_scale(ctx, total, 1, 4, rows=rank_of(total) - 2)
    ratio = b.multiply(b.convert(total, "f32"), scale)
    return [quantized(ctx, ratio, _along(ctx, ctx[7], shape_of(ratio), rank_of(ratio) - 1), ctx.element(7))]


def _product_scale(ctx: NodeContext, total: SSAValue, a: int, c: int, rows: int) -> SSAValue:
    """`scale_a * scale_b / scale_y` in the shape of the product."""
    b, shape = ctx.b, shape_of(total)
    left = _along(ctx, b.convert(ctx[a], "f32"), shape, rows)
    right = _along(ctx, b.convert(ctx[c], "f32"), shape, len(shape) - 1)
    return b.divide(b.multiply(left, right), _along(ctx, b.convert(ctx[6], "f32"), shape, len(shape) - 1))


@imports("QLinearConv")
def qlinear_conv(ctx: NodeContext) -> Results:
    """QLinearConv: products summed in i32 with the bias, then scaled and quantized."""
    b = ctx.b
    x, kernel = _centered(ctx, ctx[0], ctx[2], None), _centered(ctx, ctx[3], ctx[5], 0)
    total = convolved(ctx, x, kernel, ctx.full_like(x, 0))
    total = biased(ctx, total, 8)
    shape = shape_of(total)
    scale = b.multiply(_along(ctx, ctx[1], shape, None), _along(ctx, ctx[4], shape, 1))
    ratio = b.multiply(b.convert(total, "f32"), b.divide(scale, _along(ctx, ctx[6], shape, None)))
    return [quantized(ctx, ratio, _along(ctx, ctx[7], shape, None), ctx.element(7))]
