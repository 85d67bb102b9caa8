"""Sorting: several arrays by the first of them, and the k greatest elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.jaxpr.avals import is_key, size_of
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor


@imports("sort")
def sort(ctx: EqnContext) -> Results:
    """Arrays sorted together along a dimension by the first `num_keys` of them, which break ties in order."""
    if any(is_key(ctx.aval(i).dtype) for i in range(len(ctx))):
        ctx.unsupported("random keys have no order", "sort the indices, and gather the keys by them")
    before = _before(ctx.b, ctx.operands, ctx.params["num_keys"])
    return ctx.b.emit_all(
        hlo.SortOp,
        *ctx.operands,
        regions=[before],
        dimension=ctx.params["dimension"],
        is_stable=ctx.params["is_stable"],
    )


def _before(b: Builder, arrays: Sequence[SSAValue], keys: int, *, descending: bool = False) -> Region:
    """The region that says whether elements come before others, by the first `keys` of them."""
    types = [tensor((), element_of(x)) for x in arrays for _ in range(2)]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        pairs = [pair for i in range(0, 2 * keys, 2) for pair in _parts(b, args[i], args[i + 1])]
        found: SSAValue | None = None
        for x, y in reversed(pairs):
            less = _less(b, *((y, x) if descending else (x, y)))
            found = less if found is None else b.emit(hlo.OrOp, less, b.emit(hlo.AndOp, _equal(b, x, y), found))
        assert found is not None
        return [found]

    return b.region(types, body)


def _parts(b: Builder, x: SSAValue, y: SSAValue) -> list[tuple[SSAValue, SSAValue]]:
    """What is compared of two elements: of complex numbers the real parts, then the imaginary ones."""
    if not is_complex(dtype_text(x.type)):
        return [(x, y)]
    return [(b.emit(part, x), b.emit(part, y)) for part in (hlo.RealOp, hlo.ImagOp)]


def _less(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """x < y; NaN is greater than all others. -0 and 0 are equal, and so are NaNs."""
    less = b.compare(x, y, "LT")
    if not is_float(dtype_text(x.type)):
        return less
    return b.emit(hlo.OrOp, less, b.emit(hlo.AndOp, b.compare(x, x, "EQ"), b.compare(y, y, "NE")))


def _equal(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    same = b.compare(x, y, "EQ")
    if not is_float(dtype_text(x.type)):
        return same
    return b.emit(hlo.OrOp, same, b.emit(hlo.AndOp, b.compare(x, x, "NE"), b.compare(y, y, "NE")))


@imports("top_k")
def top_k(ctx: EqnContext) -> Results:
    """The k greatest elements along an axis in descending order, and their indices; NaN is the greatest."""
    b, axis, last, k = ctx.b, ctx.params["axis"], ctx.rank() - 1, size_of(ctx.params["k"])
    if not isinstance(k, int):
        ctx.unsupported("k is a symbolic size", "sort the array, and slice it")
    order = list(range(ctx.rank()))
    order[axis], order[last] = last, axis
    # XLA has no top_k of booleans.
    x = b.convert(ctx[0], "ui8") if ctx.dtype() == "i1" else ctx[0]
    values, indices = b.emit_all(chlo.TopKOp, b.transpose(x, order), k=k)
    return [b.convert(b.transpose(values, order), ctx.dtype()), b.transpose(indices, order)]


@imports("approx_top_k")
def approx_top_k(ctx: EqnContext) -> Results:
    """The k greatest (or least) elements along an axis, and their indices: the true ones, as on any CPU.

    More than k of them where the caller aggregates by itself.
    """
    b, axis = ctx.b, int(ctx.params["reduction_dimension"]) % ctx.rank()
    indices = b.iota(ctx.shape(), axis, "i32")
    before = _before(b, [ctx[0], indices], 1, descending=ctx.params["is_max_k"])
    sorted_ = b.emit_all(hlo.SortOp, ctx[0], indices, regions=[before], dimension=axis, is_stable=True)
    count: Size = shape_of(ctx.out_type())[axis]
    return [b.slice_axis(x, axis, 0, count) for x in sorted_]
