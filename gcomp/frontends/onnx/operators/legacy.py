"""Operators as they were before opset 7, where they differ: broadcasting by attributes, and other forms of inputs.

The attribute `consumed_inputs` of opset 1 only allowed computing in place; nothing reads it. Operators of opset 1 that
ONNX called experimental (Affine, Crop, Scale, ...) have no schema any more, and no importer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.dtypes import dtype_of, finfo
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add, imports, lookup
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.activation import ACTIVATIONS, activation_importer, prelu
from gcomp.frontends.onnx.operators.contraction import gemm
from gcomp.frontends.onnx.operators.elementwise import bound_values, variadic
from gcomp.frontends.onnx.operators.movement import fitting, parts, repeat_input, split
from gcomp.frontends.onnx.operators.normalization import batch_normalization
from gcomp.frontends.onnx.operators.padding import pad_input
from gcomp.frontends.onnx.operators.random import training_dropout
from gcomp.frontends.onnx.operators.resize import plain_interpolation, resize_by_scales
from gcomp.ir.types import shape_of


def _with_values(ctx: NodeContext, values: Sequence[Value | None]) -> NodeContext:
    """The same node reading other values."""
    return NodeContext(ctx.importer, ctx.scope, ctx.node, ctx.opset, values, ctx.where)


# ---- broadcasting by attributes ----------------------------------------------------------------------------------


@imports("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
def broadcast_by_attributes(ctx: NodeContext) -> Results:
    """Binary operators of opset 1 to 6: only with `broadcast` may B be smaller, and then lies along A's dims from
    `axis` on (its last dims by default)."""
    modern = lookup("", ctx.op_type, 7)
    assert modern is not None
    return modern(_with_values(ctx, [ctx.value(0), _align(ctx)]))


def _align(ctx: NodeContext) -> Value:
    """The second operand in a shape that NumPy's rules broadcast to the first's as the attributes say."""
    shape, other = ctx.shape(), ctx.shape(1)
    if not ctx.flag("broadcast"):
        if len(shape) != len(other):
            ctx.invalid(
                f"its inputs have ranks {len(shape)} and {len(other)}", "without `broadcast` they are of one shape"
            )
        return _fit(ctx, ctx.value(1), dict(enumerate(shape)))
    if all(isinstance(s, int) and s == 1 for s in other):
        return _reshape(ctx, ctx.value(1), ())
    axis = ctx.integer("axis", -1)
    # Caffe2 wrote -1 for "the last dims"; for a B of rank 1 that is what counting from the end says, too.
    axis = len(shape) - len(other) if axis == -1 else axis + len(shape) if axis < 0 else axis
    if not 0 <= axis <= len(shape) - len(other):
        ctx.invalid(f"B of rank {len(other)} does not fit at axis {axis}", f"A has rank {len(shape)}")
    stretched = {i for i, s in enumerate(other) if isinstance(s, int) and s == 1}
    fitted = _fit(ctx, ctx.value(1), {i: shape[axis + i] for i in range(len(other)) if i not in stretched})
    return _reshape(ctx, fitted, (*fitted.shape, *[1] * (len(shape) - axis - len(other))))


def _fit(ctx: NodeContext, value: Value, sizes: dict[int, Size]) -> Value:
    """A value with dims that must be of certain sizes."""
    if all(value.shape[i] == s for i, s in sizes.items()):
        return value
    return Value.of(ctx.restate(value.read(ctx.b), sizes))


def _reshape(ctx: NodeContext, value: Value, shape: Sequence[Size]) -> Value:
    if tuple(shape) == value.shape:
        return value
    if value.known is not None and not any(isinstance(s, Dim) for s in shape):
        return Value(value.element, value.known.reshape(cast("list[int]", shape)), None, value.name)
    return Value.of(ctx.b.reshape(value.read(ctx.b), shape))


@imports("Sum", "Min", "Max", "Mean")
def variadic_of_one_shape(ctx: NodeContext) -> Results:
    """Sum, Min, Max and Mean of opset 1 to 7: all tensors are of one shape."""
    shape = ctx.shape()
    values = [ctx.value(i) for i in range(len(ctx.values))]
    if any(len(v.shape) != len(shape) for v in values):
        ctx.invalid(f"its inputs have ranks {[len(v.shape) for v in values]}", "before opset 8 they are of one shape")
    return variadic(_with_values(ctx, [_fit(ctx, v, dict(enumerate(shape))) for v in values]))


@imports("PRelu")
def prelu_by_channel(ctx: NodeContext) -> Results:
    """PRelu-1, PRelu-6: one slope, or one for each channel."""
    if ctx.rank(1) != 1 or ctx.shape(1) == (1,):
        return prelu(ctx)
    axis = min(1, ctx.rank() - 1)
    slope = ctx.vector(1, ctx.shape()[axis]) if ctx.rank() else ctx[1]
    column = ctx.b.reshape(slope, (*shape_of(slope), *[1] * (ctx.rank() - axis - 1)))
    return prelu(_with_values(ctx, [ctx.value(0), Value.of(column)]))


@imports("Gemm")
def gemm_broadcast(ctx: NodeContext) -> Results:
    """Gemm-1, Gemm-6: only with `broadcast` may C be smaller than the product."""
    if ctx.flag("broadcast") or ctx.rank() != 2 or ctx.rank(1) != 2:
        return gemm(ctx)
    if ctx.rank(2) != 2:
        ctx.invalid(f"C has rank {ctx.rank(2)}", "without `broadcast` it has the shape of the product")
    rows, columns = ctx.shape()[1 if ctx.flag("transA") else 0], ctx.shape(1)[0 if ctx.flag("transB") else 1]
    bias = _fit(ctx, ctx.value(2), {0: rows, 1: columns})
    return gemm(_with_values(ctx, [ctx.value(0), ctx.value(1), bias]))


# ---- modes of training -------------------------------------------------------------------------------------------


@imports("BatchNormalization")
def batch_normalization_is_test(ctx: NodeContext) -> Results:
    """BatchNormalization-1, BatchNormalization-6 with `is_test`."""
    if not ctx.flag("is_test"):
        ctx.unsupported("is_test is 0, so that it normalizes by the batch's own statistics", fix="set is_test to 1")
    return batch_normalization(ctx)


@imports("Dropout")
def dropout_is_test(ctx: NodeContext) -> Results:
    """Dropout-1, Dropout-6: the identity with `is_test`, else elements are dropped at random."""
    if ctx.flag("is_test"):
        # The mask is "not filled".
        return [ctx.value(0), ctx.b.full(ctx.shape(), 1, ctx.element())] if ctx.wants(1) else [ctx.value(0)]
    ratio = ctx.number("ratio", 0.5)
    if not 0 <= ratio < 1:
        ctx.invalid(f"the ratio is {ratio}", "it must be at least 0 and less than 1")
    modern = _with_values(ctx, [ctx.value(0), Value.constant(np.asarray(ratio, np.float32))])
    y, mask = cast("list[SSAValue]", training_dropout(modern))
    return [y, ctx.b.convert(mask, ctx.element())]


# ---- other forms of inputs and defaults --------------------------------------------------------------------------


@imports("Clip")
def clip_attributes(ctx: NodeContext) -> Results:
    """Clip-1, Clip-6: bounds are attributes, by default the least and the greatest finite number."""
    info = finfo(dtype_of(ctx.element()))
    low, high = ctx.number("min", float(info.min)), ctx.number("max", float(info.max))
    return [bound_values(ctx.b, ctx[0], ctx.b.scalar_like(ctx[0], low), ctx.b.scalar_like(ctx[0], high))]


@imports("Pad")
def pad_paddings(ctx: NodeContext) -> Results:
    """Pad-1: the attribute is called `paddings`."""
    pads = cast("list[Size]", ctx.integers("paddings") or [])
    return [pad_input(ctx, pads, list(range(ctx.rank())), ctx.b.scalar_like(ctx[0], ctx.number("value")))]


@imports("Split")
def split_lengths(ctx: NodeContext) -> Results:
    """Split-1: lengths may be an input, of the data's dtype."""
    if ctx.attribute("axis") is None:
        ctx.unsupported("it has no axis, and ONNX states no default before opset 2", fix="set axis")
    if ctx.attribute("split") is not None or not ctx.has(1):
        return split(ctx)
    lengths = ctx.constant(1, "split").reshape(-1).tolist()
    axis = ctx.axis(ctx.integer("axis"), ctx.rank())
    return parts(ctx, axis, fitting(ctx, [_whole(ctx, v) for v in lengths], ctx.shape()[axis]))


@imports("Tile")
def tile_axis(ctx: NodeContext) -> Results:
    """Tile-1: one axis is repeated; the count and the axis are inputs of the data's dtype."""
    count, axis = (_whole(ctx, ctx.scalar(i, role)) for i, role in ((1, "tiles"), (2, "axis")))
    axis = ctx.axis(axis, ctx.rank())
    return [repeat_input(ctx, [count if i == axis else 1 for i in range(ctx.rank())])]


def _whole(ctx: NodeContext, number: float) -> int:
    if not (abs(number) < 2**53 and number == int(number)):
        ctx.invalid(f"it is given {number} as a count or an axis", "an integer is expected")
    return int(number)


@imports("Upsample")
def upsample_two_scales(ctx: NodeContext) -> Results:
    """Upsample-1: images only, with an attribute for each scale."""
    if ctx.rank() != 4:
        ctx.invalid(f"its input has rank {ctx.rank()}", "(N, C, H, W) is expected")
    scales = [1.0, 1.0, ctx.number("height_scale"), ctx.number("width_scale")]
    modes = {"nearest": "nearest", "bilinear": "linear"}
    if (mode := ctx.string("mode", "nearest")) not in modes:
        ctx.invalid(f"the mode is {mode!r}", f"it must be one of {', '.join(modes)}")
    return [resize_by_scales(ctx, plain_interpolation(modes[mode]), scales, range(4))]


add("Selu", activation_importer(ACTIVATIONS["Selu"][0], {"alpha": 1.6732, "gamma": 1.0507}))
