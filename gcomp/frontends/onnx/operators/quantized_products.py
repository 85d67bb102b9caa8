"""Products of quantized tensors: sums of products of integers, scaled once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.dtypes import is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.convolution import add_bias, convolve
from gcomp.frontends.onnx.operators.quantization import SINGLE, is_zero, quantize_ratio
from gcomp.ir.types import dtype_text, rank_of, shape_of


def along(ctx: NodeContext, parameter: SSAValue, shape: Sequence[Size], axis: int | None, role: str) -> SSAValue:
    """A parameter in a shape: a single number, one for each index of `axis`, or of rank 2 and more, broadcasting."""
    b = ctx.b
    if shape_of(parameter) in SINGLE:
        return b.broadcast(b.reshape(parameter, ()), shape, ())
    if 1 < rank_of(parameter) <= len(shape):
        if b.broadcast_shape(shape_of(parameter), shape) != tuple(shape):
            ctx.invalid(f"the {role} has shape {shape_of(parameter)}", f"it does not broadcast to {tuple(shape)}")
        return b.broadcast_to(parameter, shape)
    if rank_of(parameter) == 1 and isinstance(size := shape_of(parameter)[0], Dim):
        if axis is None:
            return b.broadcast(b.reshape(ctx.restate(parameter, {0: 1}), ()), shape, ())
        if size != shape[axis]:
            ctx.unsupported(f"the {role} has the symbolic size {size}: one number, or one for each index?")
    if rank_of(parameter) != 1 or axis is None:
        ctx.invalid(f"the {role} has shape {shape_of(parameter)}", f"it does not fit a tensor of shape {tuple(shape)}")
    return b.broadcast(ctx.restate(parameter, {0: shape[axis]}), shape, (axis,))


def center_operand(ctx: NodeContext, index: int, zero: int, axis: int | None, role: str) -> SSAValue:
    """A quantized operand less its zero point: 8-bit integers as i32, floats as f32."""
    b, x = ctx.b, ctx[index]
    wide = "i32" if is_integer(dtype_text(x.type)) else "f32"
    x = b.convert(x, wide)
    if is_zero(ctx, zero):
        return x
    return b.subtract(x, along(ctx, b.convert(ctx[zero], wide), shape_of(x), axis, f"{role} zero point"))


def match_types(ctx: NodeContext, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Two centered operands in one dtype: f32 where one is a float."""
    return (x, y) if dtype_text(x.type) == dtype_text(y.type) else (ctx.b.convert(x, "f32"), ctx.b.convert(y, "f32"))


@imports("MatMulInteger")
def matmul_integer(ctx: NodeContext) -> Results:
    """MatMulInteger: zero points subtracted, products summed in i32."""
    return [sum_products(ctx, (0, 2), (1, 3))]


@imports("ConvInteger")
def conv_integer(ctx: NodeContext) -> Results:
    """ConvInteger: zero points subtracted, products summed in i32; padding is the input's zero point."""
    x = center_operand(ctx, 0, 2, None, "input's")
    return [convolve(ctx, x, center_operand(ctx, 1, 3, 0, "kernel's"), ctx.b.scalar_like(x, 0))]


def sum_products(ctx: NodeContext, left: tuple[int, int], right: tuple[int, int]) -> SSAValue:
    """NumPy's matmul of two operands less their zero points, which are given per row of the left, column of the right.

    Each operand is its index and that of its zero point.
    """
    rank_a, rank_b = ctx.rank(left[0]), ctx.rank(right[0])
    if not rank_a or not rank_b:
        ctx.invalid("an input has rank 0", "vectors or matrices are expected")
    x = center_operand(ctx, *left, rank_a - 2 if rank_a > 1 else None, "left operand's")
    y = center_operand(ctx, *right, rank_b - 1 if rank_b > 1 else None, "right operand's")
    return ctx.matmul(*match_types(ctx, x, y))


@imports("QLinearMatMul")
def qlinear_matmul(ctx: NodeContext) -> Results:
    """QLinearMatMul: products summed in i32, then scaled and quantized; per row of a, per column of b."""
    b, rank_a, rank_b = ctx.b, ctx.rank(0), ctx.rank(3)
    total = sum_products(ctx, (0, 2), (3, 5))
    shape = shape_of(total)
    last = len(shape) - 1 if rank_b > 1 else None
    above = len(shape) - (2 if rank_b > 1 else 1) if rank_a > 1 else None
    left = along(ctx, b.convert(ctx[1], "f32"), shape, above, "left scale")
    right = along(ctx, b.convert(ctx[4], "f32"), shape, last, "right scale")
    scale = b.divide(b.multiply(left, right), along(ctx, b.convert(ctx[6], "f32"), shape, None, "result's scale"))
    return [requantize(ctx, total, scale, 7)]


def requantize(ctx: NodeContext, total: SSAValue, scale: SSAValue, zero: int) -> SSAValue:
    """Sums times a scale, quantized by the result's zero point."""
    ratio = ctx.b.multiply(ctx.b.convert(total, "f32"), scale)
    point = None
    if not is_zero(ctx, zero):
        point = along(ctx, ctx[zero], shape_of(ratio), None, "result's zero point")
    return quantize_ratio(ctx, ratio, point, ctx.element(zero))


@imports("QLinearConv")
def qlinear_conv(ctx: NodeContext) -> Results:
    """QLinearConv: products summed in i32 with the bias, then scaled and quantized; the kernel per output channel."""
    return [qlinear_convolved(ctx, center_operand(ctx, 0, 2, None, "input's"))]


def qlinear_convolved(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """QLinearConv of a centered input with channels in dim 1."""
    b, kernel = ctx.b, center_operand(ctx, 3, 5, 0, "kernel's")
    total = add_bias(ctx, convolve(ctx, x, kernel, ctx.b.scalar_like(x, 0)), 8)
    shape = shape_of(total)
    scale = b.multiply(along(ctx, ctx[1], shape, None, "input's scale"), along(ctx, ctx[4], shape, 1, "kernel's scale"))
    scale = b.divide(scale, along(ctx, ctx[6], shape, None, "result's scale"))
    return requantize(ctx, total, scale, 7)
