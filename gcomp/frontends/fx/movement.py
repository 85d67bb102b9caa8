"""Moving elements: views, slices, concatenations, gathers along axes. Views are values like others: nothing aliases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_complex
from gcomp.frontends.fx import guards
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.data_dependent import never_empty
from gcomp.frontends.fx.registry import Results, imports
from gcomp.frontends.fx.values import size_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import rank_of, shape_of, tensor

Array = np.ndarray[Any, Any]
_END = 2**63 - 1
"""What slices without an end have as their end."""


@imports("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "_reshape_copy", "flatten", "unflatten")
def reshape(ctx: NodeContext) -> Results:
    """The elements in row-major order in another shape."""
    return ctx.b.reshape(ctx["self"], ctx.out_shape())


@imports("view.dtype", "view_copy.dtype")
def view_bits(ctx: NodeContext) -> Results:
    """The same bytes as elements of another type: narrower ones lengthen the last dimension, wider ones shorten it."""
    b, x, before, after = ctx.b, ctx["self"], ctx.dtype(), ctx.out_dtype()
    if "i1" in (before, after):
        # A byte of torch's, of which 0 is False.
        if {before, after} <= {"i1", "ui8", "i8"}:
            return b.convert(x, after)
        ctx.unsupported("it views booleans as numbers of more than a byte, or those as booleans", "convert with .to()")
    if before != after and (is_complex(before) or is_complex(after)):
        ctx.unsupported("it views complex numbers as others", "use torch.view_as_real or torch.view_as_complex")
    old, new = ctx.fake("self").element_size(), ctx.val().element_size()
    shape: list[Size] = list(ctx.out_shape())
    if new > old:
        x = b.reshape(x, (*shape, new // old))
    elif old > new:
        shape = [*ctx.shape(), old // new]
    return b.reshape(b.emit(hlo.BitcastConvertOp, x, types=(tensor(shape, after),)), ctx.out_shape())


@imports("permute")
def permute(ctx: NodeContext) -> Results:
    """Dimensions in another order."""
    rank = ctx.rank()
    return ctx.b.transpose(ctx["self"], [d % max(1, rank) for d in ctx.arg("dims")])


@imports("transpose", "t", "mT")
def transpose(ctx: NodeContext) -> Results:
    """Two dimensions exchanged; of `t` and `mT` the last two."""
    rank = ctx.rank()
    order = list(range(rank))
    if rank >= 2:
        first, second = (ctx.arg("dim0", -2), ctx.arg("dim1", -1))
        order[first], order[second] = order[second], order[first]
    return ctx.b.transpose(ctx["self"], order)


@imports("expand", "broadcast_to")
def expand(ctx: NodeContext) -> Results:
    """Broadcast to a shape."""
    return ctx.b.broadcast_to(ctx["self"], ctx.out_shape())


@imports("slice")
def slice_(ctx: NodeContext) -> Results:
    """From start to end by step along an axis; bounds count from the end where they are negative, and are clamped."""
    axis, size = ctx.axis(), ctx.shape()[ctx.axis()]
    start, end = _bound(ctx, ctx.arg("start", 0), size), _bound(ctx, ctx.arg("end", _END), size)
    start = ctx.ranges.lesser(start, end)
    found = ctx.b.slice_axis(ctx["self"], axis, start, end, ctx.integer("step", 1))
    # Where bounds are read from data, torch has symbols for the size and for where the view starts.
    own, out = ctx.fake("self"), ctx.val()
    guards.current().define(size_of(out.shape[axis]), shape_of(found)[axis])
    offset = size_of(own.storage_offset()) + start * size_of(own.stride()[axis])
    guards.current().define(size_of(out.storage_offset()), offset)
    return found


def _bound(ctx: NodeContext, bound: Size, size: Size) -> Size:
    """A bound of a slice within an axis: counted from the end where it is negative."""
    if isinstance(bound, int) and bound >= _END:
        return size
    low, high = ctx.ranges.bounds(bound)
    if high is not None and high < 0:
        return ctx.ranges.greater(0, size + bound)
    if low is None or low < 0:
        ctx.unsupported(f"whether its bound {bound} counts from the end depends on a symbolic size")
    return ctx.ranges.lesser(bound, size)


@imports("select")
def select(ctx: NodeContext) -> Results:
    """One index along an axis."""
    axis, size, index = ctx.axis(), ctx.shape()[ctx.axis()], ctx.arg("index")
    if isinstance(index, int) and index < 0:
        index = size + index
    return ctx.b.reshape(ctx.b.slice_axis(ctx["self"], axis, index, index + 1), ctx.out_shape())


@imports("slice_scatter")
def slice_scatter(ctx: NodeContext) -> Results:
    """A tensor with a slice of it replaced."""
    b, x, axis, size, step = ctx.b, ctx["self"], ctx.axis(), ctx.shape()[ctx.axis()], ctx.integer("step", 1)
    start, end = _bound(ctx, ctx.arg("start", 0), size), _bound(ctx, ctx.arg("end", _END), size)
    start = ctx.ranges.lesser(start, end)
    count = dims.ceildiv(end - start, step)
    part = b.broadcast_to(ctx["src"], [count if i == axis else s for i, s in enumerate(ctx.shape())])
    if step == 1:
        return _place(ctx, part, axis, start)
    if count == 0:
        return x
    low: list[Size] = [0] * ctx.rank()
    high, gaps = list(low), [0] * ctx.rank()
    spread = count + dims.dmax(count - 1, 0) * (step - 1)
    low[axis], high[axis], gaps[axis] = start, size - start - spread, step - 1
    own = b.pad(b.full(shape_of(part), True, "i1"), b.constant(False, "i1"), low, high, gaps)
    return b.select(own, b.pad(part, b.full((), 0, ctx.dtype()), low, high, gaps), x)


@imports("select_scatter")
def select_scatter(ctx: NodeContext) -> Results:
    """A tensor with what stands at one index along an axis replaced."""
    axis, index = ctx.axis(), ctx.arg("index")
    if isinstance(index, int) and index < 0:
        index = ctx.shape()[axis] + index
    part = ctx.b.reshape(ctx["src"], [1 if i == axis else s for i, s in enumerate(ctx.shape())])
    return _place(ctx, part, axis, index)


def _place(ctx: NodeContext, part: SSAValue, axis: int, start: Size) -> SSAValue:
    """`self` with a part of it replaced, from `start` on along an axis."""
    starts = [ctx.b.dim(start if i == axis else 0) for i in range(ctx.rank())]
    return ctx.b.emit(hlo.DynamicUpdateSliceOp, ctx["self"], part, *starts)


@imports("split_with_sizes", "split", "chunk", "unbind")
def split(ctx: NodeContext) -> Results:
    """Consecutive parts along an axis; `unbind` drops the axis."""
    axis = ctx.axis()
    parts: list[SSAValue] = []
    start: Size = 0
    for index in range(len(ctx.node.meta["val"])):
        shape = ctx.out_shape(index)
        count = shape[axis] if len(shape) == ctx.rank() else 1
        parts.append(ctx.b.reshape(ctx.b.slice_axis(ctx["self"], axis, start, start + count), shape))
        start = start + count
    return parts


@imports("cat")
def concatenate(ctx: NodeContext) -> Results:
    """One after the other along an axis, in their common type. Empty vectors are left out, as torch does."""
    text = ctx.out_dtype()
    values = [ctx.b.convert(v, text) for v in ctx.arg("tensors")]
    rank = len(ctx.out_shape())
    kept = [v for v in values if rank_of(v) == rank and not (rank == 1 and shape_of(v) == (0,))]
    return ctx.b.concatenate(kept or values[:1], ctx.axis(rank=rank))


@imports("stack")
def stack(ctx: NodeContext) -> Results:
    """Tensors of one shape along a new axis."""
    axis = ctx.axis(rank=len(ctx.out_shape()))
    shape = [1 if i == axis else s for i, s in enumerate(ctx.out_shape())]
    values = [ctx.b.convert(v, ctx.out_dtype()) for v in ctx.arg("tensors")]
    return ctx.b.concatenate([ctx.b.reshape(v, shape) for v in values], axis)


@imports("flip")
def flip(ctx: NodeContext) -> Results:
    """In reverse order along axes."""
    axes = ctx.axes("dims") if ctx.arg("dims") else []
    return ctx.b.emit(hlo.ReverseOp, ctx["self"], dimensions=axes) if axes else ctx["self"]


@imports("repeat")
def repeat(ctx: NodeContext) -> Results:
    """Repeated along each dimension; further counts make new leading ones."""
    counts, b = ctx.sizes("repeats"), ctx.b
    x = b.reshape(ctx["self"], (*[1] * (len(counts) - ctx.rank()), *ctx.shape()))
    wide = [s for pair in zip(counts, shape_of(x), strict=True) for s in pair]
    return b.reshape(b.broadcast(x, wide, range(1, 2 * len(counts), 2)), ctx.out_shape())


@imports("constant_pad_nd")
def constant_pad(ctx: NodeContext) -> Results:
    """Padded with a number; the pairs of amounts begin with the last dimension. Negative ones cut."""
    pads: Sequence[Size] = ctx.arg("pad")
    rank = ctx.rank()
    low: list[Size] = [0] * rank
    high: list[Size] = [0] * rank
    for i in range(len(pads) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    value = ctx.scalar(ctx.arg("value", 0), ctx.dtype())
    return ctx.b.pad(ctx["self"], value, low, high)


@imports("roll")
def roll(ctx: NodeContext) -> Results:
    """Elements rotated along axes; along the flattened tensor where no axis is given."""
    b, x, shifts, axes = ctx.b, ctx["self"], ctx.arg("shifts"), ctx.arg("dims")
    flat = not axes
    if flat:
        total: Size = 1
        for size in ctx.shape():
            total = total * size
        x, axes = b.reshape(x, (total,)), [0]
    for shift, axis in zip(shifts, axes, strict=True):
        size = shape_of(x)[axis]
        if size == 0:
            continue
        cut = (size - shift) % b.program.ranges.greater(1, size)
        x = b.concatenate([b.slice_axis(x, axis, cut, size), b.slice_axis(x, axis, 0, cut)], axis % rank_of(x))
    return b.reshape(x, ctx.shape()) if flat else x


@imports("index_select")
def index_select(ctx: NodeContext) -> Results:
    """The elements at indices along an axis."""
    if not ctx.rank():
        return ctx["self"]
    x, axis = ctx["self"], ctx.axis()
    return ctx.raising(take(ctx.b, never_empty(ctx, x, [axis]), ctx["index"], axis))


@imports("embedding")
def embedding(ctx: NodeContext) -> Results:
    """The rows of a table at indices."""
    return ctx.raising(take(ctx.b, ctx["weight"], ctx["indices"], 0))


@imports("copy")
def copy(ctx: NodeContext) -> Results:
    """Another tensor's values, in the shape and element type of self."""
    return ctx.b.broadcast_to(ctx.b.convert(ctx["src"], ctx.dtype()), ctx.shape())


_OF_CLASSES = "one_hot:"


@imports("_assert_async")
def assertion_of_data(ctx: NodeContext) -> Results:
    """What torch asserts of indices is checked as indices are: here of classes, before they become comparisons.

    The check is of an element taken from one, at 0 where the assertion holds. Others are not checked at run time.
    """
    b = ctx.b
    if ctx.importer.checked and str(ctx.arg("assert_msg", "")).startswith(_OF_CLASSES):
        place = b.select(b.reshape(ctx["self"], ()), b.constant(0, "i64"), b.constant(1, "i64"))
        ctx.raising(take(b, b.full((1,), 0, "i64"), b.reshape(place, (1,)), 0))
    return []


@imports("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size")
def assertion(ctx: NodeContext) -> Results:
    """What torch asserts of types holds here by construction; what it asserts of numbers is not checked at run time."""
    return []
