"""Axes that data determine: what they say of sizes is computed by the program, and read as data-dependent sizes.

Numbers that are no axes, or name one twice, become sizes of -1, which the host step that reads them refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of


def mask_axes(ctx: NodeContext, index: int, rank: int) -> tuple[SSAValue, SSAValue]:
    """Which of `rank` axes each number of an operand is, i1[rank, count]; and whether all of them are, and differ."""
    b, count = ctx.b, _count(ctx, index)
    if count > rank:
        ctx.invalid(f"it has {count} axes", f"the tensor has rank {rank}")
    axes, zero, one = b.convert(b.reshape(ctx[index], (1, count)), "i64"), b.constant(0, "i64"), b.constant(1, "i64")
    axes = b.select(b.compare(axes, zero, "LT"), b.add(axes, b.constant(rank, "i64")), axes)
    hit = b.broadcast(b.compare(b.iota((rank, 1), 0), axes, "EQ"), (rank, count), (0, 1))
    ones = b.convert(hit, "i64")
    found = b.compare(b.reduce(hlo.AddOp, ones, [0]), one, "EQ")
    single = b.compare(b.reduce(hlo.AddOp, ones, [1]), one, "LE")
    return hit, b.emit(hlo.AndOp, b.reduce(hlo.AndOp, found, [0]), b.reduce(hlo.AndOp, single, [0]))


def _count(ctx: NodeContext, index: int) -> int:
    if ctx.rank(index) > 1:
        ctx.invalid(f"its axes have rank {ctx.rank(index)}", "a list is expected")
    return ctx.static(ctx.shape(index)[0] if ctx.rank(index) else 1, "number of axes")


def or_refused(ctx: NodeContext, valid: SSAValue, sizes: SSAValue) -> SSAValue:
    """The sizes where `valid` holds; else -1, which the host step that reads them refuses."""
    b = ctx.b
    return b.select(b.broadcast(valid, shape_of(sizes), ()), sizes, b.constant(-1, "i64"))


def data_dependent_axis(ctx: NodeContext, index: int, rank: int) -> Size:
    """The one axis that an operand names, as a data-dependent size: its users are compiled for each axis met."""
    b = ctx.b
    if dims.product(ctx.shape(index)) != 1:
        ctx.invalid(f"its axis has shape {ctx.shape(index)}", "one number is expected")
    hit, valid = mask_axes(ctx, index, rank)
    axis = b.reduce(hlo.AddOp, b.select(hit, b.iota((rank, 1), 0), b.constant(0, "i64")), [0])
    (found,) = data_dependent_sizes(ctx, or_refused(ctx, valid, axis), "axis", [rank - 1])
    return found


def rows_by_axes(ctx: NodeContext, x: SSAValue, index: int, *, keepdims: bool) -> tuple[SSAValue, list[Size]]:
    """`x` as a matrix whose rows are along the axes that an operand names; and the shape of one number for each row."""
    b, shape = ctx.b, shape_of(x)
    rank = len(shape)
    hit, valid = mask_axes(ctx, index, rank)
    named, one = b.reduce(hlo.OrOp, hit, [1]), b.constant(1, "i64")
    sizes = size_vector(ctx, shape)
    kept, along = b.select(named, one, sizes), b.select(named, sizes, one)
    read = data_dependent_sizes(ctx, or_refused(ctx, valid, b.concatenate([kept, along], 0)), "axes")
    outer, inner = read[:rank], read[rank:]
    result = outer
    if not keepdims:
        result = data_dependent_sizes(ctx, others(ctx, named, sizes, rank - _count(ctx, index)), "axes")
        ctx.require("eq", dims.product(outer), dims.product(result))
    total = dims.product(shape)
    flat = b.reshape(x, (total,))
    if not ctx.at_most(1, total):
        flat = b.pad(flat, ctx.b.scalar_like(x, 0), [0], [1])  # an element to point at, where there are none
    starts, steps = (_offsets(ctx, grid, shape) for grid in (outer, inner))
    matrix = (*shape_of(starts), *shape_of(steps))
    places = b.add(b.broadcast(starts, matrix, (0,)), b.broadcast(steps, matrix, (1,)))
    return take(b, flat, places, 0), result


def along_axis(ctx: NodeContext, x: SSAValue, index: int, compute: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """`compute` of `x` along the one axis, not its last, that an operand names.

    It takes and returns rows [rows, along, parts], of as many rows: the size along the axis and the parts may change.
    """
    b, shape = ctx.b, shape_of(x)[:-1]
    if dims.product(ctx.shape(index)) != 1:
        ctx.invalid(f"its axis has shape {ctx.shape(index)}", "one number is expected")
    rank, zero, one = len(shape), b.constant(0, "i64"), b.constant(1, "i64")
    hit, valid = mask_axes(ctx, index, rank + 1)
    hit = b.reduce(hlo.OrOp, hit, [1])
    named = b.slice_axis(hit, 0, 0, rank)
    valid = b.emit(hlo.AndOp, valid, b.emit(hlo.NotOp, b.reshape(b.slice_axis(hit, 0, rank, rank + 1), ())))
    sizes, strides = size_vector(ctx, shape), size_vector(ctx, [dims.product(shape[i + 1 :]) for i in range(rank)])

    def of_axis(values: SSAValue) -> SSAValue:
        return b.reshape(b.reduce(hlo.AddOp, b.select(named, values, zero), [0]), (1,))

    found = b.concatenate([b.select(named, one, sizes), of_axis(sizes)], 0)
    *outer, along = data_dependent_sizes(ctx, or_refused(ctx, valid, found), "axis", [*shape, None])
    steps = b.multiply(b.iota((along,), 0), b.reshape(of_axis(strides), ()))
    starts = _offsets(ctx, outer, shape)
    rows = (*shape_of(starts), along)
    places = b.add(b.broadcast(starts, rows, (0,)), b.broadcast(steps, rows, (1,)))
    y = compute(_pick(ctx, x, places))
    length = shape_of(y)[1]
    back = b.select(named, b.dim(length), size_vector(ctx, outer))
    result = data_dependent_sizes(ctx, back, "axis")
    kept = b.select(named, zero, size_vector(ctx, [dims.product(outer[i + 1 :]) for i in range(rank)]))
    total = b.full(result, 0, "i64")
    for axis in range(rank):
        row, here = (b.reshape(b.slice_axis(v, 0, axis, axis + 1), ()) for v in (kept, named))
        # The row that an element is in, and its place along the axis there.
        stride = b.select(here, one, b.multiply(row, b.dim(length)))
        total = b.add(total, b.multiply(b.iota(result, axis), stride))
    return _pick(ctx, y, total)


def _pick(ctx: NodeContext, x: SSAValue, places: SSAValue) -> SSAValue:
    """Elements of `x`, whose last dim is their parts, at flat places: [places..., parts]."""
    b, (*shape, parts) = ctx.b, shape_of(x)
    total = dims.product(shape)
    flat = b.reshape(x, (total, parts))
    if not ctx.at_most(1, total):
        flat = b.pad(flat, ctx.b.scalar_like(x, 0), [0, 0], [1, 0])  # an element to point at, where there are none
    return take(b, flat, places, 0)


def size_vector(ctx: NodeContext, sizes: Sequence[Size]) -> SSAValue:
    """Sizes as a tensor, i64[count]."""
    b = ctx.b
    return b.concatenate([b.reshape(b.dim(size), (1,)) for size in sizes], 0)


def _offsets(ctx: NodeContext, grid: Sequence[Size], shape: Sequence[Size]) -> SSAValue:
    """Where the elements of a part of a tensor lie in row-major order: i64[elements of the part]."""
    b = ctx.b
    total = b.full(grid, 0, "i64")
    for axis in range(len(grid)):
        stride = b.dim(dims.product(shape[axis + 1 :]))
        total = b.add(total, b.multiply(b.iota(grid, axis), stride))
    return b.reshape(total, (dims.product(grid),))


def others(ctx: NodeContext, named: SSAValue, values: SSAValue, count: int) -> SSAValue:
    """Those `count` of a vector's numbers that are not named, in order: i64[count]."""
    b, (rank,) = ctx.b, shape_of(named)
    spread = (count, rank)
    # An axis is the i-th that is not named where i others before it are not.
    place = b.broadcast(_before(ctx, named), spread, (1,))
    hit = b.compare(place, b.iota(spread, 0), "EQ")
    hit = b.emit(hlo.AndOp, hit, b.broadcast(b.emit(hlo.NotOp, named), spread, (1,)))
    return b.reduce(hlo.AddOp, b.select(hit, b.broadcast(values, spread, (1,)), b.constant(0, "i64")), [1])


def _before(ctx: NodeContext, named: SSAValue) -> SSAValue:
    """How many axes before each are not named: i64[rank]."""
    b, (rank,) = ctx.b, shape_of(named)
    earlier = b.compare(b.iota((rank, rank), 1), b.iota((rank, rank), 0), "LT")
    free = b.broadcast(b.emit(hlo.NotOp, named), (rank, rank), (1,))
    return b.reduce(hlo.AddOp, b.convert(b.emit(hlo.AndOp, earlier, free), "i64"), [1])


def squeezed_shape(ctx: NodeContext, index: int) -> list[Size]:
    """The shape of operand 0 without the axes that an operand names, which must have size 1."""
    b, shape = ctx.b, ctx.shape()
    hit, valid = mask_axes(ctx, index, len(shape))
    named, one, sizes = b.reduce(hlo.OrOp, hit, [1]), b.constant(1, "i64"), size_vector(ctx, shape)
    single = b.compare(b.select(named, sizes, one), one, "EQ")
    valid = b.emit(hlo.AndOp, valid, b.reduce(hlo.AndOp, single, [0]))
    kept = others(ctx, named, sizes, len(shape) - _count(ctx, index))
    return _resize(ctx, shape, data_dependent_sizes(ctx, or_refused(ctx, valid, kept), "axes"))


def unsqueezed_shape(ctx: NodeContext, index: int) -> list[Size]:
    """The shape of operand 0 with dims of size 1 at the axes of the result that an operand names."""
    b, shape = ctx.b, ctx.shape()
    rank = len(shape) + _count(ctx, index)
    hit, valid = mask_axes(ctx, index, rank)
    named, one = b.reduce(hlo.OrOp, hit, [1]), b.constant(1, "i64")
    sizes = b.broadcast(one, (rank,), ())
    if shape:
        spread = (rank, len(shape))
        chosen = b.compare(b.broadcast(_before(ctx, named), spread, (0,)), b.iota(spread, 1), "EQ")
        own = b.broadcast(size_vector(ctx, shape), spread, (1,))
        found = b.reduce(hlo.AddOp, b.select(chosen, own, b.constant(0, "i64")), [1])
        sizes = b.select(named, one, found)
    return _resize(ctx, shape, data_dependent_sizes(ctx, or_refused(ctx, valid, sizes), "axes"))


def _resize(ctx: NodeContext, shape: Sequence[Size], read: list[Size]) -> list[Size]:
    ctx.require("eq", dims.product(shape), dims.product(read))
    return read
