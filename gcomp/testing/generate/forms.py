"""Forms that models have and random steps do not come to: large weights seen otherwise, convolutions padded when they
run, loops in loops that capture, stacks written beyond their end, bounds that differ from element to element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions, DotDimensions
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.types import FLOATS, INTEGERS, dtype_text, shape_of, tensor, tensor_of, with_shape
from gcomp.reference.values import edge_pool
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.operands import NUMBERS, ordinary, sizes_of, varying
from gcomp.testing.generate.passes import seeks

_I32, _BOOL = tensor((), "i32"), tensor((), "i1")


@seeks("fold-constants", "canonicalize", "dot-weight-layout", weight=1)
def large_weight_seen_otherwise(g: Growth) -> None:
    """A weight of more than 1 KB, transposed and reshaped, in either order; then cut, converted, or multiplied by."""
    choices, text = g.choices, g.choices.chosen(("f32", "f16", "i32", "f64"))
    rows, columns = choices.chosen(((33, 17), (16, 40), (300, 2), (24, 24)))
    array = (np.arange(rows * columns) % 61).astype(dtype_of(text)).reshape(rows, columns)
    x = g.b.weight("w", array)
    for view in choices.permutation(2)[: choices.integer(1, 2)]:
        shape = sizes_of(x)
        if view == 0:
            x = g.b.transpose(x, choices.permutation(len(shape)))
        else:
            x = g.b.reshape(x, choices.chosen(((rows * columns,), shape[::-1], [1, *shape], [*shape, 1])))
    shape = sizes_of(x)
    kind = choices.integer(0, 3)
    if kind == 0:
        x = g.b.convert(x, choices.chosen(("f32", "i32", "bf16")))
    elif kind == 1 and len(shape) == 2:
        x = g.b.matmul(g.fresh(tensor((2, shape[0]), text)), x)
    g.keep(g.b.slice(x, [0] * len(sizes_of(x)), [min(2, s) for s in sizes_of(x)]))


@seeks("canonicalize", weight=6)
def nearly_nothing_of_many_dimensions(g: Growth) -> None:
    """Movement of a tensor of five or six dimensions that leaves all of them but the last ones as they are."""
    choices, rank = g.choices, g.choices.chosen((5, 6))
    sizes = [choices.chosen((1, 2)) for _ in range(rank - 2)] + list(choices.chosen(((2, 2), (1, 3), (2, 3))))
    x = varying(g, sizes)
    kept, zeros = list(range(rank)), [0] * rank
    swapped = [*kept[:-2], rank - 1, rank - 2]
    kind = choices.integer(0, 5)
    if kind <= 1:
        g.emit(hlo.TransposeOp, x, permutation=swapped)
    elif kind == 2:
        target = [sizes[i] for i in swapped]
        g.emit(hlo.BroadcastInDimOp, x, types=(with_shape(x, target),), broadcast_dimensions=swapped)
    elif kind == 3:
        limits = [*sizes[:-1], sizes[-1] - 1]
        g.emit(hlo.SliceOp, x, start_indices=zeros, limit_indices=limits, strides=[1] * rank)
    elif kind == 4:
        g.emit(hlo.ReshapeOp, x, types=(with_shape(x, [*sizes[:-2], sizes[-1], sizes[-2]]),))
    else:
        last = [*zeros[:-1], 1]
        amounts = choices.chosen(((last, zeros, zeros), (zeros, last, zeros), (zeros, zeros, last)))
        g.emit(hlo.PadOp, x, g.scalar(dtype_text(x.type)), edge_padding_low=amounts[0], edge_padding_high=amounts[1],
               interior_padding=amounts[2])  # fmt: skip


@seeks("decompose", weight=2)
def convolution_padded_when_it_runs(g: Growth) -> None:
    """A convolution whose padding is an operand, with dilations of input and kernel, strides, and groups."""
    choices = g.choices
    text, count = g.text_among(NUMBERS), choices.integer(1, 2)
    channels, out = choices.chosen(((1, 1), (2, 2), (2, 1), (2, 4)))
    groups = 2 if channels == 2 and out % 2 == 0 and choices.flag(0.4) else 1
    sizes = [choices.chosen((3, 2, 4, 1)) for _ in range(count)]
    kernel = [choices.chosen((2, 1, 3)) for _ in range(count)]
    strides, base, window = ([choices.chosen((1, 2, 3)) for _ in range(count)] for _ in range(3))
    padding = [[choices.chosen((1, 0, 2, -1)) for _ in range(2)] for _ in range(count)]
    result = [window_size(*row) for row in zip(sizes, kernel, strides, padding, base, window, strict=True)]
    known = choices.flag(0.7)
    array = np.array(padding, np.int64).reshape(count, 2)
    amounts = (
        g.b.emit(hlo.ConstantOp, types=(tensor(array.shape, "i64"),), value=ElementsAttr.of(array))
        if known
        else g.numbers(tensor(array.shape, "i64"))
    )
    x = varying(g, (1, *sizes, channels), {tensor((), text).element_type})
    rhs = ordinary(g, (*kernel, channels // groups, out), text)
    g.emit(
        hlo.DynamicConvOp, x, rhs, amounts, types=(tensor((1, *result, out), text),), window_strides=strides,
        lhs_dilation=base, rhs_dilation=window, dimension_numbers=ConvDimensions.channels_last(count),
        feature_group_count=groups, batch_group_count=1,
    )  # fmt: skip


@seeks("sink-transposes", weight=4)
def clamped_by_bounds_of_each(g: Growth) -> None:
    """A channels-first view between bounds that are tensors themselves, constants or not, one of them a scalar."""
    choices, text = g.choices, g.text_among(FLOATS | INTEGERS)
    rank = choices.chosen((4, 4, 3, 5))
    shape = [choices.chosen((1, 2, 3)) if i < 4 else 1 for i in range(rank)]
    view = g.b.transpose(varying(g, shape, {tensor((), text).element_type}), (0, rank - 1, *range(1, rank - 1)))
    bounds: list[SSAValue] = []
    for _ in range(2):
        if choices.flag(0.2):
            bounds.append(g.scalar(text))
        else:
            pool = edge_pool(text)
            array = choices.fill(pool, int(np.prod(sizes_of(view)))).reshape(sizes_of(view))
            bounds.append(g.b.constant(array, text) if choices.flag(0.6) else g.like(view))
    if len({shape_of(v) for v in bounds}) > 1:
        bounds = [v if shape_of(v) else g.b.broadcast(v, shape_of(view), ()) for v in bounds]
    g.emit(hlo.ClampOp, bounds[0], view, bounds[1], types=(tensor_of(view),))


@seeks("plan-memory", "order-for-memory", "rematerialize", "inline", "cse", weight=2)
def stack_in_nested_loops(g: Growth) -> None:
    """A loop that writes rows of a stack, the last of them beyond its end, of what an inner loop computes from values
    that it captures from outside."""
    choices = g.choices
    row = g.pick(FLOATS | INTEGERS, least=1, most=2, static=True, empty=False)
    text, shape = dtype_text(row.type), sizes_of(row)
    height, turns = choices.integer(1, 3), choices.integer(1, 4)
    stack = g.fresh(tensor((height, *shape), text)) if choices.flag() else g.splat(tensor((height, *shape), text), 0)
    outside = g.b.emit(hlo.MaximumOp, row, g.like(row), types=(row.type,))

    def written(counter: SSAValue, carried: SSAValue) -> SSAValue:
        inner = _loop(g, choices.integer(0, 2), row, lambda _, x: g.b.emit(
            choices.chosen((hlo.MaximumOp, hlo.MinimumOp)), x, outside, types=(row.type,)))  # fmt: skip
        part = g.b.emit(hlo.ReshapeOp, inner, types=(tensor((1, *shape), text),))
        zeros = [g.index(0) for _ in shape]
        changed = g.b.emit(hlo.DynamicUpdateSliceOp, carried, part, counter, *zeros, types=(carried.type,))
        return g.b.emit(hlo.MaximumOp, changed, carried, types=(carried.type,)) if choices.flag(0.3) else changed

    g.keep(_loop(g, turns, stack, written))


def _loop(g: Growth, turns: int, start: SSAValue, turn: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """So many turns over one carried value."""
    types = [_I32, tensor_of(start)]
    cond, body = Block(arg_types=types), Block(arg_types=types)
    first, bound = g.index(0), g.index(turns)
    with g.b.inside(cond):
        g.b.emit_all(hlo.ReturnOp, g.b.emit(hlo.CompareOp, cond.args[0], bound, types=(_BOOL,),
                                            comparison_direction="LT"), types=())  # fmt: skip
    with g.within(body):
        after = turn(body.args[0], body.args[1])
        counter = g.b.emit(hlo.AddOp, body.args[0], g.index(1), types=(_I32,))
        g.b.emit_all(hlo.ReturnOp, counter, after, types=())
    return g.b.emit_all(hlo.WhileOp, first, start, types=types, regions=(Region(cond), Region(body)))[1]


@seeks("pack-convolution-weights", weight=10)
def convolution_by_columns(g: Growth) -> None:
    """A convolution or two by a weight of several panels; or nearly: one panel, other readers, groups, no weight."""
    choices, text = g.choices, g.text_among(NUMBERS)
    features, near = choices.chosen((48, 64, 32, 24, 16)), choices.integer(0, 7)
    channels, groups = choices.chosen((1, 2, 3)), 1
    if near == 0:
        groups = channels = 2
    elif near == 5:
        groups, per = choices.chosen(((8, 4), (4, 8), (16, 2), (8, 8), (3, 4)))
        features = channels = groups * per
    window = list(choices.chosen(((2,), (2, 1), (1, 2))))
    sizes = (*window, channels // groups, features)
    array = (np.arange(np.prod(sizes)) % 7).astype(dtype_of(text)).reshape(sizes)
    w = g.fresh(tensor(sizes, text)) if near == 1 else g.b.weight("w", array)
    numbers = ConvDimensions.channels_last(len(window))
    if near == 2:
        numbers = numbers._replace(kernel_spatial_dimensions=numbers.kernel_spatial_dimensions[::-1])
        window = window[::-1]
    for _ in range(choices.chosen((1, 1, 2))):
        x = g.fresh(tensor([1, *(s + 1 for s in window), channels], text))
        result = tensor([1, *(2 for _ in window), features], text)
        g.emit(hlo.ConvolutionOp, x, w, types=(result,), dimension_numbers=numbers, feature_group_count=groups,
               batch_group_count=1)  # fmt: skip
    if near == 3:
        g.keep(g.b.slice(w, [0] * len(sizes), [1] * len(sizes)))
    elif near == 4:
        g.keep(g.b.add(w, w))


@seeks("pack-dot-weights", weight=10)
def dots_by_columns(g: Growth) -> None:
    """A dot or two by a weight of 16 columns or more; or nearly: other readers, no weight, a number of no panels."""
    choices, text = g.choices, g.text_among(NUMBERS)
    columns, near = choices.chosen((16, 32, 48, 64, 24, 8, 0)), choices.integer(0, 8)
    inner = columns if near == 0 else choices.chosen((33, 72, 16, 2, 0))
    contracted = choices.integer(0, 1)
    sizes = (inner, columns) if contracted == 0 else (columns, inner)
    array = (np.arange(inner * columns) % 7).astype(dtype_of(text)).reshape(sizes)
    w = g.b.weight("w", array)
    if near == 1:
        w = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array))
    elif near == 2:
        w = g.fresh(tensor(sizes, text))
    elif near == 3:
        w = g.b.emit(hlo.AbsOp, w) if text[0] != "u" else g.b.add(w, w)
    for over in (contracted, *((contracted,) if near == 4 else (1 - contracted,) if near == 0 else ())):
        rows = list(choices.chosen(((3,), (1,), (), (2, 3), (0,))))
        at = choices.integer(0, len(rows))
        x = g.fresh(tensor([*rows[:at], inner, *rows[at:]], text))
        numbers = DotDimensions((), (), (at,), (over,))
        g.emit(hlo.DotGeneralOp, x, w, types=(tensor([*rows, columns], text),), dot_dimension_numbers=numbers,
               precision_config=choices.chosen((None, None, ("HIGHEST", "DEFAULT"))))  # fmt: skip
    if near == 5:
        g.keep(g.b.slice(w, (0, 0), [min(2, s) for s in sizes]))
    elif near == 6:
        numbers = DotDimensions((), (), (contracted,), (0,))
        y = g.fresh(tensor((inner, 2), text))
        g.emit(hlo.DotGeneralOp, w, y, types=(tensor((columns, 2), text),), dot_dimension_numbers=numbers)
    elif near == 7:
        numbers = DotDimensions((0,), (1 - contracted,), (1,), (contracted,))
        y = g.fresh(tensor((columns, inner), text))
        g.emit(hlo.DotGeneralOp, y, w, types=(tensor((columns,), text),), dot_dimension_numbers=numbers)
