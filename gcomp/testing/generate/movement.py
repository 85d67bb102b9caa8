"""Steps of data movement: transpose, reshape, broadcast_in_dim, slice, pad, reverse, concatenate."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor, with_shape
from gcomp.testing.generate.growth import MOST_RANK, Growth, step


@step("transpose", hlo.TransposeOp, weight=5)
def transpose(g: Growth) -> None:
    """Any order of dimensions, the natural one too; often twice."""
    x = g.pick(least=0 if g.choices.flag(0.1) else 2)
    for _ in range(2 if g.choices.flag(0.25) else 1):
        x = g.emit(hlo.TransposeOp, x, permutation=g.choices.permutation(rank_of(x)))


def regroup_shape(g: Growth, shape: Sequence[Size]) -> list[Size]:
    """Another shape of as many elements: neighbours merged or split, ones put in or taken out, all in one, reversed."""
    choices, result = g.choices, list(shape)
    for _ in range(choices.integer(1, 2)):
        kind = choices.integer(0, 5)
        rank = len(result)
        at = choices.integer(0, max(rank - 1, 0))
        if kind == 0 and rank > 1:
            at = min(at, rank - 2)
            result[at : at + 2] = [dims.product(result[at : at + 2])]
        elif kind == 1 and rank < MOST_RANK:
            result.insert(at, 1)
        elif kind == 2 and 1 in result:
            result.remove(1)
        elif kind == 3 and rank and rank < MOST_RANK and isinstance(size := result[at], int) and size > 1:
            divisor = choices.chosen([d for d in range(1, size + 1) if size % d == 0])
            result[at : at + 1] = [divisor, size // divisor]
        elif kind == 4:
            result = [dims.product(result)]
        elif kind == 5:
            result.reverse()
    return result


@step("reshape", hlo.ReshapeOp, weight=5)
def reshape(g: Growth) -> None:
    """The elements under another shape, or the same."""
    x = g.pick()
    shape = shape_of(x) if g.choices.flag(0.05) else regroup_shape(g, shape_of(x))
    g.emit(hlo.ReshapeOp, x, types=(with_shape(x, shape),))


@step("broadcast", hlo.BroadcastInDimOp, weight=6)
def broadcast(g: Growth) -> None:
    """New dimensions anywhere, dimensions of size 1 expanded or not, the order kept or not, or nothing changed."""
    x = g.pick()
    target, dimensions = spread(g, shape_of(x))
    g.emit(hlo.BroadcastInDimOp, x, types=(with_shape(x, target),), broadcast_dimensions=dimensions)


def spread(g: Growth, shape: Sequence[Size]) -> tuple[list[Size], list[int]]:
    """A shape that another broadcasts to, and where its dimensions go."""
    choices = g.choices
    order = choices.permutation(len(shape)) if choices.flag(0.25) else list(range(len(shape)))
    target: list[Size] = [shape[i] for i in order]
    source: list[int | None] = [*order]
    for i, size in enumerate(target):
        if size == 1 and choices.flag(0.6):
            target[i] = _grow_size(g, [*target[:i], *target[i + 1 :]])
    while len(target) < MOST_RANK and choices.flag(0.4):
        at, size = choices.integer(0, len(target)), _grow_size(g, target)
        target.insert(at, size)
        source.insert(at, None)
    return target, [source.index(i) for i in range(len(shape))]


def _grow_size(g: Growth, others: Sequence[Size]) -> Size:
    size: Size = g.choices.chosen((2, 3, 1, 4, 0))
    if g.symbols and g.choices.flag(0.4):
        size = g.symbolic_size()
    return size if g.fits((*others[: MOST_RANK - 1], size)) else 1


@step("slice", hlo.SliceOp, weight=6)
def slice(g: Growth) -> None:
    """Starts, limits and strides anywhere, empty results rarely; symbolic dimensions from their start on."""
    x = g.pick(least=0 if g.choices.flag(0.1) else 1)
    starts, limits, strides = slice_of(g, shape_of(x))
    g.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=strides)


def slice_of(g: Growth, shape: Sequence[Size]) -> tuple[list[Size], list[Size], list[int]]:
    """Starts, limits and strides that fit a shape."""
    choices = g.choices
    starts: list[Size] = []
    limits: list[Size] = []
    strides: list[int] = []
    for size in shape:
        whole = choices.flag(0.35)
        if whole or not isinstance(size, int):
            starts.append(0)
            limits.append(size)
        else:
            start = choices.integer(0, max(size - 1, 0))
            least = start if choices.flag(0.04) else min(start + 1, size)
            starts.append(start)
            limits.append(choices.integer(least, size))
        strides.append(1 if whole else choices.chosen((1, 1, 2, 3)))
    return starts, limits, strides


@step("pad", hlo.PadOp, weight=4)
def pad(g: Growth) -> None:
    """Edges that grow and shrink, gaps between elements, or nothing."""
    choices, x = g.choices, g.pick(least=0 if g.choices.flag(0.1) else 1)
    low, high, gaps = padding_of(g, shape_of(x))
    g.emit(hlo.PadOp, x, g.scalar(dtype_text(x.type)), edge_padding_low=low, edge_padding_high=high,
           interior_padding=gaps)  # fmt: skip
    if choices.flag(0.15):
        padded = g.values[-1]
        g.emit(hlo.SliceOp, padded, start_indices=[0] * len(low), limit_indices=shape_of(padded),
               strides=[choices.integer(1, 2) for _ in low])  # fmt: skip


def padding_of(g: Growth, shape: Sequence[Size]) -> tuple[list[int], list[int], list[int]]:
    """Low and high edges and gaps that leave something of a shape, and not too much."""
    choices, room = g.choices, list(shape)
    low, high, gaps = [0] * len(shape), [0] * len(shape), [0] * len(shape)
    for i, size in enumerate(shape):
        if choices.flag(0.4):
            continue
        gap = choices.chosen((0, 0, 0, 1, 2))
        static = isinstance(size, int)
        inner = size + max(size - 1, 0) * gap if isinstance(size, int) else dims.evaluate(size, g.symbols) * (gap + 1)
        a = choices.chosen((0, 1, 2, -1, -2)) if static else choices.integer(0, 1)
        b = choices.chosen((0, 1, 2, -1, -2)) if static else choices.integer(0, 1)
        total = inner + a + b
        if total >= (0 if choices.flag(0.05) else 1) and g.fits((*room[:i], total, *room[i + 1 :])):
            low[i], high[i], gaps[i] = a, b, gap
            room[i] = total
    return low, high, gaps


@step("reverse", hlo.ReverseOp, weight=2.5)
def reverse(g: Growth) -> None:
    """Any dimensions, none too; often twice."""
    x = g.pick(least=0 if g.choices.flag(0.1) else 1)
    for _ in range(2 if g.choices.flag(0.25) else 1):
        x = g.emit(hlo.ReverseOp, x, types=(x.type,), dimensions=g.choices.some(range(rank_of(x))))


@step("concatenate", hlo.ConcatenateOp, weight=4)
def concatenate(g: Growth) -> None:
    """One, two or three operands, some of them one value, of different sizes along the dimension."""
    choices, x = g.choices, g.pick(least=1)
    axis = choices.integer(0, rank_of(x) - 1)
    parts: list[SSAValue] = [x]
    for _ in range(choices.chosen((1, 2, 0))):
        total = [dims.evaluate(shape_of(p)[axis], g.symbols) for p in parts]
        shape = list(shape_of(x))
        if choices.flag(0.25):
            other = choices.chosen(parts)
        elif choices.flag(0.4):
            shape[axis] = choices.chosen((1, 2, 0, 3))
            other = g.of_type(tensor(shape, dtype_text(x.type)))
        else:
            other = g.like(x)
        joined = sum(total) + dims.evaluate(shape_of(other)[axis], g.symbols)
        if not g.fits((*shape[:axis], joined, *shape[axis + 1 :])):
            break
        parts.insert(choices.integer(0, 1) * len(parts), other)
    g.emit(hlo.ConcatenateOp, *parts, dimension=axis)


@step("split-and-join", hlo.SliceOp, hlo.ConcatenateOp, weight=1.2)
def split_and_join(g: Growth) -> None:
    """Two slices of a value, side by side again, in order or not, with the join where it was cut or elsewhere."""
    choices, x = g.choices, g.pick(least=1, static=True)
    shape = [s for s in shape_of(x) if isinstance(s, int)]
    axis = choices.integer(0, len(shape) - 1)
    cut = choices.integer(0, shape[axis])
    again = cut if choices.flag(0.7) else choices.integer(0, shape[axis])
    if again < cut and not g.fits((*shape[:axis], shape[axis] + cut - again, *shape[axis + 1 :])):
        again = cut
    halves: list[SSAValue] = []
    for start, limit in ((0, cut), (again, shape[axis])):
        starts, limits = [0] * len(shape), list(shape)
        starts[axis], limits[axis] = start, limit
        halves.append(g.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=[1] * len(shape)))
    g.emit(hlo.ConcatenateOp, *(reversed(halves) if choices.flag(0.3) else halves), dimension=axis)


@step("through-view", hlo.TransposeOp, hlo.ReshapeOp, hlo.BroadcastInDimOp, weight=1.5)
def through_view(g: Growth) -> None:
    """An elementwise op between a movement and its inverse."""
    choices, x = g.choices, g.pick(least=1)
    order = choices.permutation(rank_of(x))
    kind = choices.integer(0, 2)
    if kind == 0:
        moved = g.b.emit(hlo.TransposeOp, x, permutation=order)
        y = g.b.emit(hlo.AddOp, moved, g.like(moved), types=(moved.type,))
        g.emit(hlo.TransposeOp, y, permutation=[order.index(i) for i in range(len(order))])
    elif kind == 1:
        moved = g.b.emit(hlo.ReshapeOp, x, types=(with_shape(x, [dims.product(shape_of(x))]),))
        y = g.b.emit(hlo.MaximumOp, moved, g.like(moved), types=(moved.type,))
        g.emit(hlo.ReshapeOp, y, types=(x.type,))
    else:
        axes = choices.some(range(rank_of(x)))
        moved = g.b.emit(hlo.ReverseOp, x, types=(x.type,), dimensions=axes)
        y = g.b.emit(hlo.AddOp, moved, g.like(moved), types=(moved.type,))
        g.emit(hlo.ReverseOp, y, types=(x.type,), dimensions=axes)
