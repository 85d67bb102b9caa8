"""Operators whose results' sizes depend on data: a host step finds how many elements there are, and binds the size.

torch has a symbol for each such size (`u0`). What is left to the host is where a mask holds; the rest is computed on
the device. Inside of a loop or a branch these are refused, since a program is cut at its host steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_float, is_integer
from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.frontends.fx.values import size_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ScatterDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import sort_along, take
from gcomp.ir.looping import running
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor


def positions(ctx: NodeContext, mask: SSAValue, count: Size) -> SSAValue:
    """Where a mask holds, i64[rank, count] in row-major order, which binds `count`. A scalar counts as [1]."""
    types = [tensor((max(rank_of(mask), 1), count), "i64")]
    return ctx.host("nonzero", [mask], types)[0]


def places(ctx: NodeContext, mask: SSAValue, count: Size) -> SSAValue:
    """Where a mask holds that is taken as one row: i64[count]."""
    flat = ctx.b.reshape(mask, (dims.product(shape_of(mask)),))
    return ctx.b.reshape(positions(ctx, flat, count), (count,))


def never_empty(ctx: NodeContext, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A tensor with an element more along axes whose size is 0 where data decide so: XLA gathers from no others."""
    high: list[Size] = [0] * rank_of(x)
    for axis in axes:
        size = shape_of(x)[axis]
        if not isinstance(size, int) and ctx.ranges.bounds(size)[0] in (None, 0):
            high[axis] = dims.dmax(size, 1) - size
    return ctx.b.pad(x, ctx.b.scalar_like(x, 0), [0] * rank_of(x), high)


def _is_set(b: Builder, x: SSAValue) -> SSAValue:
    """Which elements are not 0; NaN is not."""
    return x if dtype_text(x.type) == "i1" else b.compare(x, b.full_like(x, 0), "NE")


@imports("nonzero")
def nonzero(ctx: NodeContext) -> Results:
    """The coordinates of elements that are not 0, a row for each."""
    b, x = ctx.b, ctx["self"]
    count, rank = ctx.out_shape()
    found = b.transpose(positions(ctx, _is_set(b, x), count), (1, 0))
    return b.slice_axis(found, 1, 0, rank)


@imports("masked_select")
def masked_select(ctx: NodeContext) -> Results:
    """The elements where a mask holds, in row-major order; both are broadcast.

    UnsupportedError where more than two elements are, and their number is known: torch (2.13) bounds the size of the
    result by it, as if they were not broadcast (`torch._subclasses.fake_impls.masked_select`).
    """
    b = ctx.b
    shape, count = b.broadcast_shape(ctx.shape(), ctx.shape("mask")), dims.product(ctx.shape())
    if shape != ctx.shape() and isinstance(count, int) and count > 2:
        why = "torch takes the result for no greater than self, which mask broadcasts"
        raise UnsupportedError(f"gcomp does not import this {ctx.operator}", where=ctx.where, why=why)
    x, mask = (b.broadcast_to(ctx[name], shape) for name in ("self", "mask"))
    flat = never_empty(ctx, b.reshape(x, (dims.product(shape),)), [0])
    return take(b, flat, places(ctx, mask, ctx.out_shape()[0]), 0)


# ---- distinct elements ----------------------------------------------------------------------------------------------


def _starts(b: Builder, x: SSAValue, axis: int) -> SSAValue:
    """Which slices along an axis differ from the one before; the first one does."""
    count, rank = shape_of(x)[axis], rank_of(x)
    before, after = b.slice_axis(x, axis, 0, count - 1), b.slice_axis(x, axis, 1, count)
    differs = b.compare(before, after, "NE")
    if rank > 1:
        differs = b.reduce(hlo.OrOp, differs, [i for i in range(rank) if i != axis])
    return b.concatenate([b.full((1,), True, "i1"), differs], 0)


def _runs(ctx: NodeContext, x: SSAValue, axis: int) -> list[SSAValue]:
    """Of each run of equal slices the first, then for each slice the number of its run, and the lengths of runs."""
    b, size = ctx.b, shape_of(x)[axis]
    starts = _starts(b, x, axis)
    count = ctx.out_shape()[axis if ctx.arg("dim") is not None else 0]
    first = places(ctx, starts, count)
    number = running(b, b.convert(starts, "i64"), 0, b.add, b.constant(0, "i64"))
    number = b.subtract(number, b.full_like(number, 1))
    ends = b.concatenate([b.slice_axis(first, 0, 1, count), b.reshape(b.dim(size), (1,))], 0)
    return [take(b, never_empty(ctx, x, [axis]), first, axis), number, b.subtract(ends, first)]


def _requested_results(ctx: NodeContext, values: SSAValue, inverse: SSAValue, counts: SSAValue) -> list[SSAValue]:
    """The results of which some are empty unless they are asked for."""
    b = ctx.b
    nothing = b.full((0,), 0, "i64")
    return [
        b.reshape(values, ctx.out_shape()),
        b.reshape(inverse, ctx.out_shape(1)) if ctx.arg("return_inverse", False) else nothing,
        b.reshape(counts, ctx.out_shape(2)) if ctx.arg("return_counts", False) else nothing,
    ]


def _flat(ctx: NodeContext) -> SSAValue:
    return ctx.b.reshape(ctx["self"], (dims.product(ctx.shape()),))


def _empty(ctx: NodeContext) -> list[SSAValue]:
    """The results for a tensor without elements."""
    return [ctx.b.full(ctx.out_shape(i), 0, ctx.out_dtype(i)) for i in range(3)]


@imports("_unique2")
def unique(ctx: NodeContext) -> Results:
    """The distinct elements in ascending order, which of them each element is, and how often each is there."""
    b, x = ctx.b, _flat(ctx)
    if shape_of(x) == (0,):
        return _empty(ctx)
    kept = dtype_text(x.type)
    values, order = sort_along(b, b.convert(x, "ui8") if kept == "i1" else x, 0, descending=False)
    values, number, counts = _runs(ctx, values, 0)
    # The order of the order puts the numbers back to where their elements were.
    back = sort_along(b, order, 0, descending=False)[1]
    return _requested_results(ctx, b.convert(values, kept), take(b, number, back, 0), counts)


@imports("unique_consecutive")
def unique_consecutive(ctx: NodeContext) -> Results:
    """The elements, or slices along an axis, that differ from the one before, with numbers and lengths of the runs."""
    flat = ctx.arg("dim") is None
    x, axis = (_flat(ctx), 0) if flat else (ctx["self"], ctx.axis())
    return _empty(ctx) if 0 in shape_of(x) else _requested_results(ctx, *_runs(ctx, x, axis))


@imports("unique_dim")
def unique_dim(ctx: NodeContext) -> Results:
    """The distinct slices along an axis in lexicographic order, which of them each one is, and how often each is."""
    x, axis = ctx["self"], ctx.axis()
    if 0 in shape_of(x):
        return _empty(ctx)
    if is_float(ctx.dtype()) and ctx.dtype() not in ("f32", "f64"):
        ctx.unsupported(f"its elements are {ctx.dtype()}", "convert to float32")
    shape, size = list(shape_of(x)), shape_of(x)[axis]
    shape[axis] = count = ctx.out_shape()[axis]
    types = [tensor(shape, element_of(x)), tensor((count,), "i64"), tensor((size,), "i64"), tensor((count,), "i64")]
    values, _, inverse, counts = ctx.host("unique", [x], types, axis=axis, sorted=True)
    return _requested_results(ctx, values, inverse, counts)


# ---- counts ---------------------------------------------------------------------------------------------------------


@imports("repeat_interleave.Tensor")
def repeat_interleave(ctx: NodeContext) -> Results:
    """Each number as often as `repeats` says at its place: which stretch each place of the result lies in."""
    b, repeats = ctx.b, ctx.b.convert(ctx["repeats"], "i64")
    size, count = shape_of(repeats)[0], ctx.out_shape()[0]
    ends = running(b, repeats, 0, b.add, b.constant(0, "i64"))
    if not isinstance(count, int) and not ctx.has("output_size"):
        total = b.reduce(hlo.AddOp, repeats, [0])
        ctx.importer.numbers.read(count, total, ctx.where)
    shape = (count, size)
    passed = b.compare(b.broadcast(b.iota((count,), 0), shape, (0,)), b.broadcast(ends, shape, (1,)), "GE")
    return b.convert(b.reduce(hlo.AddOp, b.convert(passed, "i64"), [1]), ctx.out_dtype())


@imports("bincount")
def bincount(ctx: NodeContext) -> Results:
    """How often each number is there, or the sum of the weights where it is; at least `minlength` numbers."""
    b, x, least = ctx.b, ctx.b.convert(ctx["self"], "i64"), int(ctx.arg("minlength", 0))
    (count,), element = ctx.out_shape(), ctx.out_dtype()
    if shape_of(x) == (0,):
        return b.full((count,), 0, element)
    if not isinstance(count, int):
        most = b.add(b.reduce(hlo.MaximumOp, x, [0]), b.constant(1, "i64"))
        ctx.importer.numbers.read(count, b.maximum(most, b.constant(least, "i64")), ctx.where)
    each = b.convert(ctx["weights"], element) if ctx.has("weights") else b.full(shape_of(x), 1, element)
    scalar = tensor((), element)
    combine = b.region([scalar, scalar], lambda args: [b.add(*args)])
    found = b.emit(
        hlo.ScatterOp, b.full((count,), 0, element), b.reshape(x, (*shape_of(x), 1)), each, regions=[combine],
        scatter_dimension_numbers=ScatterDimensions((), (0,), (), (), (0,), 1), indices_are_sorted=False,
        unique_indices=False,
    )  # fmt: skip
    return ctx.raising(found)


# ---- numbers --------------------------------------------------------------------------------------------------------


@imports("_local_scalar_dense", "item")
def item(ctx: NodeContext) -> Results:
    """The only element of a tensor as a number: an integer is a symbol, which may be a size."""
    b, value = ctx.b, ctx.val()
    x = b.reshape(ctx["self"], ())
    if is_integer(ctx.dtype()) and ctx.dtype() != "i1":
        x = b.convert(x, "i64")
        ctx.importer.numbers.read(size_of(value), x, ctx.where)
        return x
    return x if ctx.dtype() == "i1" else b.convert(x, "f64")


__all__ = ["never_empty", "places", "positions"]
