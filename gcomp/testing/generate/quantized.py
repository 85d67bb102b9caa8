"""Steps that make what passes over quantized models look for: products of centered or dequantized 8-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.structures import ConvDimensions, DotDimensions
from gcomp.ir.types import Tensor, dtype_text, shape_of, tensor
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.passes import seeks

Array = np.ndarray[Any, Any]

_BYTES = ("i8", "ui8")
_LIMITS = {"i8": (-128, 127), "ui8": (0, 255)}


def _known_tensor(g: Growth, array: Array) -> SSAValue:
    return g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array))


def _quantized_values(g: Growth, shape: Sequence[int], text: str, *, known: bool) -> SSAValue:
    """Quantized values: an input, a weight, or a constant, at the limits or small."""
    if not known:
        return g.fresh(tensor(shape, text))
    low, high = _LIMITS[text]
    pool = np.array(g.choices.chosen(((low, high, high - 1, 3), (1, 0, 2, high), (high,)))).astype(dtype_of(text))
    array = g.choices.fill(pool, int(np.prod(shape))).reshape(tuple(shape))
    return g.b.weight("w", array) if g.choices.flag() else _known_tensor(g, array)


def _along(g: Growth, shape: Sequence[int], axis: int | None) -> list[int]:
    """The shape of what lies along an axis: a vector, or ones around it; of what lies along none, a scalar or ones."""
    if axis is None:
        return [] if g.choices.flag(0.7) else [1] * len(shape)
    return [shape[axis]] if g.choices.flag(0.7) else [s if i == axis else 1 for i, s in enumerate(shape)]


def _spread(g: Growth, value: SSAValue, shape: Sequence[int], axis: int | None) -> SSAValue:
    small = shape_of(value)
    places = range(len(shape)) if len(small) == len(shape) else [] if axis is None else [axis]
    return g.b.broadcast(value, shape, places)


def _zero(g: Growth, shape: Sequence[int], text: str, wide: str, axis: int | None) -> SSAValue:
    """A zero point in the wide type: quantized values of its own, converted, or a constant of it."""
    choices = g.choices
    small = _along(g, shape, axis)
    if wide == "f32" or choices.flag(0.6):
        narrow = _quantized_values(
            g, small, text if choices.flag(0.85) else choices.chosen(_BYTES), known=choices.flag(0.6)
        )
        point = g.b.convert(narrow, wide)
    else:
        low, high = _LIMITS[text]
        numbers = choices.chosen(((0, 0), (128, 128), (3, 3), (low, high), (high + 1, 0), (1000, 7)))
        array = np.resize(np.array(numbers), int(np.prod(small))).reshape(small).astype(dtype_of(wide))
        point = _known_tensor(g, array)
    return _spread(g, point, shape, axis)


def _side(g: Growth, quantized: SSAValue, wide: str, along: Sequence[int | None]) -> SSAValue:
    """An operand: quantized values in a wide type, less a zero point or not, times a scale where the type is f32."""
    choices, shape, text = g.choices, [s for s in shape_of(quantized) if isinstance(s, int)], dtype_text(quantized.type)
    x = g.b.convert(quantized, wide)
    if choices.flag(0.7):
        x = g.b.subtract(x, _zero(g, shape, text, wide, choices.chosen(along)))
    if wide == "i32":
        return x
    axis = choices.chosen(along)
    small = _along(g, shape, axis)
    pool = np.array(choices.chosen(((0.5, 0.25, 2.0), (0.1, 0.003, 0.7), (1e-30, 1.0, 1e20))), np.float32)
    scale = choices.fill(pool, int(np.prod(small))).reshape(small)
    known = g.b.weight("s", scale) if choices.flag(0.3) else _known_tensor(g, scale)
    return g.b.multiply(x, _spread(g, known, shape, axis))


def _layout(g: Growth) -> tuple[list[int], list[int], DotDimensions, list[int]]:
    """The shapes of a dot's operands, its dimension numbers and its result's shape; now and then a long sum."""
    choices = g.choices
    long = choices.flag(0.12)
    inner = choices.chosen((259, 300, 511)) if long else choices.chosen((2, 3, 4, 1))
    rows = [1] if long else choices.chosen(([1], [3], [], [2, 2], [2]))
    columns = [1] if long else choices.chosen(([2], [3], [], [2, 1]))
    batch = [2] if not long and choices.flag(0.25) else []
    left, right = [*batch, *rows, inner], [*batch, inner, *columns]
    numbers = (tuple(range(len(batch))), (len(left) - 1,), (len(batch),))
    if choices.flag(0.4):
        left_order, right_order = choices.permutation(len(left)), choices.permutation(len(right))
    else:
        left_order, right_order = list(range(len(left))), list(range(len(right)))
    at_left, at_right = (
        [left_order.index(i) for i in range(len(left))],
        [right_order.index(i) for i in range(len(right))],
    )
    lhs, rhs = [left[i] for i in left_order], [right[i] for i in right_order]
    dims = DotDimensions(tuple(at_left[i] for i in numbers[0]), tuple(at_right[i] for i in numbers[0]),
                         tuple(at_left[i] for i in numbers[1]), tuple(at_right[i] for i in numbers[2]))  # fmt: skip
    used = {*dims.lhs_batching_dimensions, *dims.lhs_contracting_dimensions}
    other = {*dims.rhs_batching_dimensions, *dims.rhs_contracting_dimensions}
    free = [s for i, s in enumerate(lhs) if i not in used], [s for i, s in enumerate(rhs) if i not in other]
    return lhs, rhs, dims, [*batch, *free[0], *free[1]]


def _product(g: Growth, wide: str) -> SSAValue:
    """A dot of two operands in the wide type."""
    choices = g.choices
    lhs, rhs, numbers, result = _layout(g)
    sides: list[SSAValue] = []
    for shape, contracted, known in (
        (lhs, numbers.lhs_contracting_dimensions, 0.1),
        (rhs, numbers.rhs_contracting_dimensions, 0.7),
    ):
        quantized = _quantized_values(g, shape, choices.chosen(_BYTES), known=choices.flag(known))
        free = [i for i in range(len(shape)) if i not in contracted]
        sides.append(_side(g, quantized, wide, [None, None, *free, *(contracted if choices.flag(0.4) else ())]))
    text = wide if choices.flag(0.95) else {"i32": "i64", "f32": "f64"}[wide]
    return g.emit(hlo.DotGeneralOp, *sides, types=(tensor(result, text),), dot_dimension_numbers=numbers)


def _convolution(g: Growth, wide: str) -> SSAValue:
    """A convolution of an input of one zero point by a kernel, any order of dimensions."""
    choices = g.choices
    sizes = list(choices.chosen(((4,), (3, 3), (5,), (2, 3))))
    groups = choices.chosen((1, 1, 2))
    channels, out = groups * choices.chosen((1, 2, 2)), groups * choices.chosen((1, 2))
    # What f32 does not hold takes many channels.
    long = choices.flag(0.3)
    if long:
        sizes, groups, channels, out = [3], 1, 300, 1
    spatial = len(sizes)
    if choices.flag():
        numbers = ConvDimensions.channels_last(spatial)
    else:
        space = tuple(range(2, spatial + 2))
        numbers = ConvDimensions(0, 1, space, 1, 0, space, 0, 1, space)
    kernel = [choices.chosen((2, 1, 3)) for _ in sizes]
    near = choices.integer(0, 9)
    w: dict[str, list[Any]] = {
        "window_strides": [choices.chosen((1, 1, 2)) for _ in sizes],
        "padding": [[choices.chosen((0, 1, 2)), choices.chosen((0, 1, 0))] for _ in sizes],
        "lhs_dilation": [2 if near == 0 else 1 for _ in sizes],
        "rhs_dilation": [choices.chosen((1, 1, 2)) for _ in sizes],
    }
    spans = zip(sizes, kernel, w["window_strides"], w["padding"], w["lhs_dilation"], w["rhs_dilation"], strict=True)
    result_sizes = [window_size(*span) for span in spans]

    def placed(first: int, second: int, space: Sequence[int], a: int, b: int, middle: Sequence[Any]) -> list[int]:
        shape = [0] * (2 + spatial)
        shape[first], shape[second] = a, b
        for place, size in zip(space, middle, strict=True):
            shape[place] = size
        return shape

    lhs = placed(numbers[0], numbers[1], numbers[2], 1, channels, sizes)
    rhs = placed(numbers[3], numbers[4], numbers[5], channels // groups, out, kernel)
    result = placed(numbers[6], numbers[7], numbers[8], 1, out, result_sizes)
    left = _side(
        g, _quantized_values(g, lhs, choices.chosen(_BYTES), known=False), wide, [None, None, None, numbers[1]]
    )
    right = _side(
        g,
        _quantized_values(g, rhs, choices.chosen(_BYTES), known=choices.flag(0.8)),
        wide,
        [None, numbers[4], numbers[4], numbers[3]],
    )
    return g.emit(hlo.ConvolutionOp, left, right, types=(tensor(result, wide),), dimension_numbers=numbers,
                  feature_group_count=groups, batch_group_count=1, **w)  # fmt: skip


@seeks("integer-products", weight=10)
def integer_product(g: Growth) -> None:
    """A product of centered integers, at times plus known ones, at times converted to f32 or used twice."""
    choices = g.choices
    total = _product(g, "i32") if choices.flag(0.7) else _convolution(g, "i32")
    shape = [s for s in shape_of(total) if isinstance(s, int)]
    text = dtype_text(total.type)
    if choices.flag(0.2):
        g.emit(hlo.NegateOp, total, types=(total.type,))
    if choices.flag(0.4):
        numbers = choices.chosen(((1, -5, 77), ((1 << 24) + 1, 0, -3), ((1 << 24) - 65025 * 2, 5, 1)))
        axis = len(shape) - 1 if shape and choices.flag() else None
        small = [] if axis is None else [shape[axis]]
        array = np.resize(np.array(numbers), int(np.prod(small))).reshape(small).astype(dtype_of(text))
        bias = _spread(g, _known_tensor(g, array) if choices.flag(0.85) else g.fresh(tensor(small, text)), shape, axis)
        total = g.b.add(total, bias) if choices.flag() else g.b.add(bias, total)
    if choices.flag(0.6):
        g.emit(hlo.ConvertOp, total, types=(tensor(shape, "f32" if choices.flag(0.9) else "f64"),))
    else:
        g.keep(total)


@seeks("integer-products", weight=4)
def deep_convolution(g: Growth) -> None:
    """A convolution of more terms than f32 holds, of a padded input with a zero point by a kernel without one."""
    choices, numbers = g.choices, ConvDimensions.channels_last(1)
    text, size, width = choices.chosen(_BYTES), choices.chosen((3, 4)), choices.chosen((2, 1))
    channels, out = choices.chosen((520, 300)), choices.chosen((1, 2))
    padding = [[choices.chosen((1, 0, 2)), choices.chosen((0, 1))]]
    dilation = choices.chosen((1, 1, 2))
    left = g.b.convert(_quantized_values(g, (1, size, channels), text, known=choices.flag(0.4)), "i32")
    left = g.b.subtract(left, _zero(g, (1, size, channels), text, "i32", None))
    kernel = _quantized_values(g, (width, channels, out), "i8", known=choices.flag(0.7))
    result = window_size(size, width, 1, padding[0], dilation, 1)
    g.emit(hlo.ConvolutionOp, left, g.b.convert(kernel, "i32"), types=(tensor((1, result, out), "i32"),),
           dimension_numbers=numbers, padding=padding, lhs_dilation=[dilation], feature_group_count=1,
           batch_group_count=1)  # fmt: skip


@seeks("integer-products", weight=4)
def long_sum(g: Growth) -> None:
    """A sum of products of the greatest values, as long as f32 just holds, or just not, or not with what is added."""
    count, texts = (
        g.choices.chosen((259, 258, 261, 301, 3, 3)),
        [g.choices.chosen(("ui8", "ui8", "i8")) for _ in range(2)],
    )
    sides: list[SSAValue] = []
    for text, shape in zip(texts, ((1, count), (count, 1)), strict=True):
        array = np.full(shape, _LIMITS[text][1]).astype(dtype_of(text))
        sides.append(
            g.b.convert(g.b.weight("w", array) if sides or g.choices.flag() else _known_tensor(g, array), "i32")
        )
    numbers = DotDimensions((), (), (1,), (0,))
    total = g.emit(hlo.DotGeneralOp, *sides, types=(tensor((1, 1), "i32"),), dot_dimension_numbers=numbers)
    if count == 3 or g.choices.flag(0.2):
        bias = np.full((1, 1), (1 << 24) - g.choices.chosen((2, 1, 9))).astype(np.int32)
        total = g.keep(g.b.add(total, _known_tensor(g, bias)))
    if g.choices.flag():
        g.convert(total, "f32")


@seeks("quantized-products", weight=10)
def dequantized_product(g: Growth) -> None:
    """A product of dequantized integers."""
    _product(g, "f32") if g.choices.flag(0.7) else _convolution(g, "f32")


def _splat(g: Growth, type: Tensor, number: float) -> SSAValue:
    return g.splat(type, number, broadcast=g.choices.flag())


@seeks("quantized-values-in-f32", weight=10)
def kept_quantized_values(g: Growth) -> None:
    """Numbers rounded, moved by integers, clamped, converted to 8 bits and back; or nearly: not rounded, other limits,
    another way to clamp."""
    choices = g.choices
    shape = list(choices.chosen(((3,), (2, 2), (), (4,))))
    text, type = choices.chosen(_BYTES), tensor(shape, "f32")
    low, high = _LIMITS[text]
    x, near = g.keep(g.fresh(type)), choices.integer(0, 15)
    if near == 1:
        x = g.emit(hlo.MultiplyOp, x, _splat(g, type, 0.5), types=(type,))
    if choices.flag(0.7):
        x = g.b.emit(hlo.MultiplyOp, x, _splat(g, type, choices.chosen((4.0, 100.0, 0.3))), types=(type,))
    if near != 0:
        x = g.b.emit(choices.chosen((hlo.RoundNearestEvenOp,) * 9 + (hlo.AbsOp,)), x, types=(type,))
    for _ in range(choices.chosen((0, 1, 1, 2))):
        kind = choices.integer(0, 3)
        if kind == 0:
            point = g.b.convert(g.fresh(tensor((), text)), "f32")
            moved = g.b.broadcast(point, shape, ())
        elif kind == 1:
            moved = g.fresh(type) if near == 2 else _splat(g, type, 3.0)
        else:
            moved = _splat(g, type, choices.chosen((128.0, -3.0, 7.0)) if near != 3 else 0.5)
        pair = (moved, x) if near == 4 else (x, moved)
        x = g.b.emit(hlo.AddOp, *pair, types=(type,))
    bottom, top = {5: (low - 1, high), 6: (low, high + 1), 7: (low + 0.5, high), 8: (low, high - 0.5),
                   9: (low + 3, high - 9), 15: (high, low)}.get(near, (low, high))  # fmt: skip
    floor = _splat(g, type, bottom)
    limit = _splat(g, type, bottom - 5 if near == 10 else bottom)
    above = g.b.emit(hlo.CompareOp, x, limit, types=(tensor(shape, "i1"),),
                     comparison_direction={11: "GT", 12: "LE"}.get(near, "GE"))  # fmt: skip
    top_value = _splat(g, type, top)
    least = g.b.emit(hlo.MinimumOp, *((x, top_value) if choices.flag(0.7) else (top_value, x)), types=(type,))
    branches = (floor, least) if near == 13 else (least, floor)
    q = g.keep(g.b.emit(hlo.SelectOp, above, *branches, types=(type,)))
    narrow = g.b.convert(q, choices.chosen(_BYTES) if near == 14 else text)
    if choices.flag(0.2):
        g.keep(narrow)
    g.keep(g.b.convert(narrow, "f32"))
