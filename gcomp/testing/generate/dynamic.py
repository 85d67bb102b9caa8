"""Steps of dynamic ops, whose sizes are operands: known ones, so that shape inference may make them static."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.structures import ConvDimensions, GatherDimensions
from gcomp.ir.types import FLOATS, INTEGERS, dtype_text, rank_of, shape_of, tensor, with_shape
from gcomp.testing.generate.growth import Growth, step
from gcomp.testing.generate.movement import padding_of, regroup_shape, slice_of, spread


def _known_sizes(g: Growth, sizes: Sequence[Any]) -> SSAValue:
    """Sizes as a constant; now and then behind an op that folding sees through."""
    text = g.choices.chosen(("i64", "i32"))
    array = np.array([int(s) for s in sizes], dtype_of(text))
    value = g.b.emit(hlo.ConstantOp, types=(tensor(array.shape, text),), value=ElementsAttr.of(array))
    if g.choices.flag(0.2):
        value = g.b.emit(hlo.AddOp, value, g.splat(tensor(array.shape, text), 0), types=(value.type,))
    return value


def _static(g: Growth) -> tuple[SSAValue, list[int]]:
    x = g.pick(static=True)
    return x, [s for s in shape_of(x) if isinstance(s, int)]


@step("dynamic-reshape", hlo.DynamicReshapeOp, weight=0.4)
def dynamic_reshape(g: Growth) -> None:
    """A reshape to known sizes."""
    x, shape = _static(g)
    target = regroup_shape(g, shape)
    g.emit(hlo.DynamicReshapeOp, x, _known_sizes(g, target), types=(with_shape(x, target),))


@step("dynamic-broadcast", hlo.DynamicBroadcastInDimOp, weight=0.4)
def dynamic_broadcast(g: Growth) -> None:
    """A broadcast to known sizes."""
    x, shape = _static(g)
    target, places = spread(g, shape)
    if all(isinstance(s, int) for s in target):
        g.emit(hlo.DynamicBroadcastInDimOp, x, _known_sizes(g, target), types=(with_shape(x, target),),
               broadcast_dimensions=places)  # fmt: skip
    else:
        g.keep(x)


@step("dynamic-iota", hlo.DynamicIotaOp, weight=0.25)
def dynamic_iota(g: Growth) -> None:
    """Indices in a known shape."""
    shape = g.shape(least=1, static=True)
    text = g.text_among(hlo.SubtractOp.ELEMENTS)
    g.emit(hlo.DynamicIotaOp, _known_sizes(g, shape), types=(tensor(shape, text),),
           iota_dimension=g.choices.integer(0, len(shape) - 1))  # fmt: skip


@step("dynamic-pad", hlo.DynamicPadOp, weight=0.3)
def dynamic_pad(g: Growth) -> None:
    """A pad by known amounts."""
    x, shape = _static(g)
    low, high, gaps = padding_of(g, shape)
    result = [s + a + b + max(s - 1, 0) * gap for s, a, b, gap in zip(shape, low, high, gaps, strict=True)]
    amounts = [_known_sizes(g, low)]
    text = dtype_text(amounts[0].type)
    for values in (high, gaps):
        array = np.array(values, dtype_of(text))
        amounts.append(g.b.emit(hlo.ConstantOp, types=(amounts[0].type,), value=ElementsAttr.of(array)))
    g.emit(hlo.DynamicPadOp, x, g.scalar(dtype_text(x.type)), *amounts, types=(with_shape(x, result),))


@step("real-dynamic-slice", hlo.RealDynamicSliceOp, weight=0.3)
def real_dynamic_slice(g: Growth) -> None:
    """A slice with known limits."""
    x, shape = _static(g)
    starts, limits, strides = slice_of(g, shape)
    bounds = [(int(str(a)), int(str(b))) for a, b in zip(starts, limits, strict=True)]
    result = [-(-(b - a) // s) for (a, b), s in zip(bounds, strides, strict=True)]
    type = tensor((len(shape),), "i64")
    operands = [
        g.b.emit(hlo.ConstantOp, types=(type,), value=ElementsAttr.of(np.array(values, np.int64)))
        for values in ([a for a, _ in bounds], [b for _, b in bounds], strides)
    ]
    g.emit(hlo.RealDynamicSliceOp, x, *operands, types=(with_shape(x, result),))


@step("dynamic-gather", hlo.DynamicGatherOp, weight=0.25)
def dynamic_gather(g: Growth) -> None:
    """Rows picked by indices, the slice sizes known."""
    x = g.pick(least=1, static=True, empty=False)
    shape = [s for s in shape_of(x) if isinstance(s, int)]
    count = g.choices.chosen((2, 1, 3))
    if not g.fits((count, *shape[1:])):
        count = 1
    numbers = GatherDimensions(tuple(range(1, len(shape))), (0,), (), (), (0,), 1)
    indices = g.of_type(tensor((count,), g.choices.chosen(("i32", "i64"))))
    sizes, types = _known_sizes(g, (1, *shape[1:])), (with_shape(x, (count, *shape[1:])),)
    g.emit(hlo.DynamicGatherOp, x, indices, sizes, types=types, dimension_numbers=numbers, indices_are_sorted=False)


@step("dynamic-conv", hlo.DynamicConvOp, weight=0.2)
def dynamic_conv(g: Growth) -> None:
    """A convolution of known padding, negative too, with strides and dilations."""
    count, text = g.choices.integer(1, 2), g.text_among(FLOATS | INTEGERS)
    sizes, kernel, strides, base, window = (
        [g.choices.chosen(few) for _ in range(count)] for few in ((3, 2, 4, 1), (2, 1, 3), (1, 2), (1, 2), (1, 2))
    )
    padding = [[g.choices.chosen((1, 0, 2, -1)) for _ in range(2)] for _ in range(count)]
    rows = zip(sizes, kernel, strides, padding, base, window, strict=True)
    channels, out = g.choices.chosen((1, 2)), g.choices.chosen((1, 2, 3))
    shape = (1, *(window_size(*row) for row in rows), out)
    if not g.fits(shape):
        g.keep(g.of_type(tensor((1, *sizes, channels), text)))
        return
    amounts = np.array(padding, np.int64).reshape(count, 2)
    g.emit(
        hlo.DynamicConvOp, g.of_type(tensor((1, *sizes, channels), text)),
        g.of_type(tensor((*kernel, channels, out), text)),
        g.b.emit(hlo.ConstantOp, types=(tensor(amounts.shape, "i64"),), value=ElementsAttr.of(amounts)),
        types=(tensor(shape, text),), window_strides=strides, lhs_dilation=base, rhs_dilation=window,
        dimension_numbers=ConvDimensions.channels_last(count), feature_group_count=1, batch_group_count=1,
    )  # fmt: skip


@step("dimension-size", hlo.GetDimensionSizeOp, weight=0.4)
def dimension_size(g: Growth) -> None:
    """The size of a dimension, symbolic ones too."""
    x = g.pick(least=1)
    g.emit(hlo.GetDimensionSizeOp, x, dimension=g.choices.integer(0, rank_of(x) - 1))
