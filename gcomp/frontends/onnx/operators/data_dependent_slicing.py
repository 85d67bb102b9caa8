"""Slices whose axes or steps depend on data: every dim is a gather of places that are counted from these."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_axes import mask_axes, or_refused, size_vector
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of

_LONGEST_STEP = 1 << 40
_END = (1 << 63) - 1


def slice_by_data(ctx: NodeContext) -> SSAValue:
    """Slice-10 with starts, ends, axes and steps from operands 1 to 4, of which any may depend on data."""
    b, x, rank = ctx.b, ctx[0], ctx.rank()
    zero, one, minus = (b.constant(n, "i64") for n in (0, 1, -1))
    count = _count(ctx)
    if ctx.has(3):
        hit, valid = mask_axes(ctx, 3, rank)
    else:
        hit = b.compare(b.iota((rank, count), 0), b.iota((rank, count), 1), "EQ")
        valid = b.constant(True)
    starts, ends = _of_each_dim(ctx, hit, 1, 0), _of_each_dim(ctx, hit, 2, _END)
    steps = _of_each_dim(ctx, hit, 4, 1) if ctx.has(4) else b.full((rank,), 1, "i64")
    valid = b.emit(hlo.AndOp, valid, b.reduce(hlo.AndOp, b.compare(steps, zero, "NE"), [0]))
    longest = b.constant(_LONGEST_STEP, "i64")
    steps = b.maximum(b.minimum(steps, longest), b.subtract(zero, longest))
    # Bounds count from the end when negative. A backward slice starts at most at the last, and ends before the first.
    whole, forward = size_vector(ctx, shape_of(x)), b.compare(steps, zero, "GT")
    most = b.select(forward, whole, b.subtract(whole, one))
    first = b.minimum(b.maximum(_count_from_front(ctx, starts, whole), zero), most)
    last = b.minimum(b.maximum(_count_from_front(ctx, ends, whole), b.select(forward, zero, minus)), most)
    distance = b.select(forward, b.subtract(last, first), b.subtract(first, last))
    length = b.maximum(b.emit(hlo.AbsOp, steps), one)
    counts = b.divide(b.maximum(b.add(distance, b.subtract(length, one)), zero), length)
    read = data_dependent_sizes(ctx, or_refused(ctx, valid, counts), "lengths", shape_of(x))
    for axis, size in enumerate(read):
        if shape_of(x)[axis] == 0:
            continue
        start, step = (b.reshape(b.slice_axis(v, 0, axis, axis + 1), ()) for v in (first, steps))
        x = take(b, x, b.add(b.multiply(b.iota((size,), 0), step), start), axis)
    return x


def _count(ctx: NodeContext) -> int:
    counts = [ctx.static(ctx.shape(i)[0], "number of axes") for i in range(1, 5) if ctx.has(i) and ctx.rank(i) == 1]
    if len(counts) != sum(ctx.has(i) for i in range(1, 5)) or len(set(counts)) != 1 or counts[0] > ctx.rank():
        ctx.invalid("its starts, ends, axes and steps do not fit together", "lists of one length, that of its axes")
    return counts[0]


def _of_each_dim(ctx: NodeContext, hit: SSAValue, index: int, other: int) -> SSAValue:
    """The numbers of an operand at the dims that they are for, and `other` elsewhere: i64[rank]."""
    b = ctx.b
    spread = b.broadcast(b.convert(ctx[index], "i64"), shape_of(hit), (1,))
    found = b.reduce(hlo.AddOp, b.select(hit, spread, b.constant(0, "i64")), [1])
    return b.select(b.reduce(hlo.OrOp, hit, [1]), found, b.constant(other, "i64"))


def _count_from_front(ctx: NodeContext, bounds: SSAValue, whole: SSAValue) -> SSAValue:
    b = ctx.b
    return b.select(b.compare(bounds, b.constant(0, "i64"), "LT"), b.add(bounds, whole), bounds)
