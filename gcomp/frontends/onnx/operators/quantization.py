"""Linear quantization: per tensor, per axis or per block, from numbers to quantized values and back."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size, ceildiv
from gcomp.dtypes import is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import limits
from gcomp.frontends.onnx.operators.elementwise import convert_value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of
from gcomp.records import record

SINGLE = ((), (1,))
"""The shapes of one parameter for a whole tensor."""


@record
class Granularity:
    """How scales and zero points lie along a tensor: one, one for each index of `axis`, or one for each block of it."""

    shape: Sequence[Size]
    axis: int | None = None
    block: int = 0

    @staticmethod
    def of(ctx: NodeContext, scale: int = 1) -> Granularity:
        """What the shapes of operands 0 and `scale` and the attributes axis and block_size say."""
        shape, block, rank = ctx.shape(), ctx.integer("block_size"), ctx.rank(scale)
        if block < 0:
            ctx.invalid(f"block_size is {block}", "a positive number, or 0 for no blocks, is expected")
        if ctx.shape(scale) in SINGLE and not (block and rank):
            return Granularity(shape)
        # A vector has one axis: the attribute, whose default is 1, is not needed.
        axis = 0 if len(shape) == 1 else ctx.axis(ctx.integer("axis", 1), len(shape))
        if rank != (len(shape) if block else 1):
            ctx.invalid(f"the scale has rank {rank}", f"rank {len(shape)} is expected" if block else "it has no blocks")
        return Granularity(shape, axis, block)

    def spread(self, ctx: NodeContext, parameter: SSAValue) -> SSAValue:
        """A scale or zero point in the shape of the tensor."""
        b = ctx.b
        if self.axis is None:
            if rank_of(parameter) == 1 and isinstance(shape_of(parameter)[0], Dim):
                parameter = ctx.restate(parameter, {0: 1})
            if shape_of(parameter) not in SINGLE:
                ctx.invalid(f"the zero point has shape {shape_of(parameter)}", "the scale is a single number")
            return b.broadcast(b.reshape(parameter, ()), self.shape, ())
        if rank_of(parameter) != (len(self.shape) if self.block else 1):
            ctx.invalid(f"the zero point has shape {shape_of(parameter)}", "it must be the scale's")
        if not self.block:
            return b.broadcast(ctx.restate(parameter, {0: self.shape[self.axis]}), self.shape, (self.axis,))
        return self._repeat_blocks(ctx, parameter, self.axis)

    def _repeat_blocks(self, ctx: NodeContext, parameter: SSAValue, axis: int) -> SSAValue:
        """Each parameter `block` times along the axis; the last block may be cut off."""
        b, shape, block = ctx.b, self.shape, self.block
        blocks = [ceildiv(s, block) if i == axis else s for i, s in enumerate(shape)]
        parameter = ctx.restate(parameter, dict(enumerate(blocks)))
        places = [i if i <= axis else i + 1 for i in range(len(shape))]
        wide = b.broadcast(parameter, (*blocks[: axis + 1], block, *blocks[axis + 1 :]), places)
        repeated = b.reshape(wide, (*blocks[:axis], blocks[axis] * block, *blocks[axis + 1 :]))
        return b.slice_axis(repeated, axis, 0, shape[axis])


def is_zero(ctx: NodeContext, index: int) -> bool:
    """Whether an optional zero point is left out, or known to be 0 everywhere."""
    if not ctx.has(index):
        return True
    known = ctx.known_value(index)
    return known is not None and not known.astype(bool).any()


@imports("QuantizeLinear")
def quantize_linear(ctx: NodeContext) -> Results:
    """QuantizeLinear: `saturate(round(x / scale) + zero_point)`, divided in the scale's dtype or in `precision`."""
    b, target, lie = ctx.b, _target(ctx), Granularity.of(ctx)
    wide = _division(ctx)
    ratio = b.divide(b.convert(ctx[0], wide), lie.spread(ctx, b.convert(ctx[1], wide)))
    zero = None if is_zero(ctx, 2) else lie.spread(ctx, ctx[2])
    return [quantize_ratio(ctx, ratio, zero, target)]


def _target(ctx: NodeContext) -> str:
    """The dtype of quantized values: the zero point's, or `output_dtype`, or uint8."""
    stated = ctx.dtype("output_dtype") if ctx.integer("output_dtype") else None
    target = ctx.element(2) if ctx.has(2) else stated or "ui8"
    if stated is not None and stated != target:
        ctx.invalid(f"output_dtype is {stated}", f"the zero point is {target}")
    if target in ("f64", "f32", "f16", "bf16", "f8E8M0FNU", "i1", "i32", "ui32", "i64", "ui64") or "<" in target:
        ctx.invalid(f"output_dtype is {target}", "tensors are not quantized to this dtype")
    return target


def _division(ctx: NodeContext) -> str:
    """The dtype that x / scale is computed in."""
    x, scale = ctx.element(), ctx.element(1)
    if ctx.integer("precision"):
        stated = ctx.dtype("precision")
        if stated not in ("f32", "f16", "bf16"):
            ctx.invalid(f"precision is {stated}", "f32, f16 or bf16 is expected")
        return stated
    if is_integer(scale):
        return "f64"  # as the reference evaluator: integers are not divided as integers
    if is_integer(x):
        return "f32"  # large integers are no numbers of the scale's dtype where that is narrow
    return x if scale == "f8E8M0FNU" else scale


def quantize_ratio(ctx: NodeContext, ratio: SSAValue, zero: SSAValue | None, target: str) -> SSAValue:
    """`ratio`, numbers divided by their scale, as `target`: rounded to even, plus the zero point, saturated.

    NaN becomes the least value of an integer dtype: ONNX says nothing of it, and ONNX Runtime does so.
    """
    b = ctx.b
    if not is_integer(target):
        if zero is not None:
            ratio = b.add(ratio, b.convert(zero, element_of(ratio)))
        return convert_value(ctx, ratio, target, ctx.flag("saturate", True))
    wide = "f32" if dtype_text(ratio.type) != "f64" else "f64"
    rounded = b.emit(hlo.RoundNearestEvenOp, b.convert(ratio, wide))
    if zero is not None:
        rounded = b.add(rounded, b.convert(zero, wide))
    low, high = (b.full((), v, wide) for v in limits(target))
    above = b.compare(rounded, low, "GE")
    return b.convert(b.select(above, b.minimum(rounded, high), low), target)


@imports("DequantizeLinear")
def dequantize_linear(ctx: NodeContext) -> Results:
    """DequantizeLinear: `(x - zero_point) * scale` in f32, as `output_dtype` or the scale's dtype."""
    target = ctx.dtype("output_dtype") if ctx.integer("output_dtype") else ctx.element(1)
    if target not in ("f32", "f16", "bf16"):
        ctx.invalid(f"the result would be {target}", "output_dtype must be f32, f16 or bf16")
    lie = Granularity.of(ctx)
    return [ctx.b.convert(dequantize_operand(ctx, lie, 0, 1, 2), target)]


def dequantize_operand(ctx: NodeContext, lie: Granularity, index: int, scale: int, zero: int) -> SSAValue:
    """`(x - zero_point) * scale` of the operands with these indices, in f32."""
    b, x = ctx.b, ctx[index]
    if not is_zero(ctx, zero):
        if ctx.element(index) == "i32" and ctx.known_value(zero) is not None:
            ctx.invalid("the zero point is not 0", "32-bit integers have none")
        # An unknown zero point of 32-bit integers is 0 too; taken away before the conversion it rounds nothing.
        wide = "i32" if ctx.element(index) == "i32" else "f32"
        x = b.subtract(b.convert(x, wide), lie.spread(ctx, b.convert(ctx[zero], wide)))
    return b.multiply(b.convert(x, "f32"), lie.spread(ctx, b.convert(ctx[scale], "f32")))


@imports("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx: NodeContext) -> Results:
    """DynamicQuantizeLinear: f32 to uint8 by a scale and zero point that the values' range decides."""
    scale, zero = dynamic_parameters(ctx, ctx[0])
    return [dynamically_quantized(ctx, ctx[0], scale, zero), scale, zero]


def dynamic_parameters(ctx: NodeContext, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The scale (f32) and zero point (ui8) of a whole tensor; its range is made to hold 0.

    A tensor of zeros has scale 1, as in ONNX Runtime: ONNX's formula says 0, and then divides by it.
    """
    b, axes = ctx.b, range(rank_of(x))
    nothing = b.full((), 0, "f32")
    most = b.maximum(b.reduce(hlo.MaximumOp, x, axes), nothing)
    least = b.minimum(b.reduce(hlo.MinimumOp, x, axes), nothing)
    spanned = b.divide(b.subtract(most, least), b.full((), 255, "f32"))
    scale = b.select(b.compare(most, least, "EQ"), b.full((), 1, "f32"), spanned)
    at_least = b.subtract(nothing, b.divide(least, scale))
    return scale, quantize_ratio(ctx, at_least, None, "ui8")


def dynamically_quantized(ctx: NodeContext, x: SSAValue, scale: SSAValue, zero: SSAValue) -> SSAValue:
    """A tensor quantized to ui8 by one scale and zero point."""
    b, shape = ctx.b, shape_of(x)
    ratio = b.divide(x, b.broadcast(scale, shape, ()))
    return quantize_ratio(ctx, ratio, b.broadcast(zero, shape, ()), "ui8")


__all__ = [
    "SINGLE", "Granularity", "dequantize_operand", "dynamic_parameters", "dynamically_quantized", "is_zero",
    "quantize_ratio",
]  # fmt: skip
