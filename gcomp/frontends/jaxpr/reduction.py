"""Folding dimensions: by an op, by a function of the user's, to the place of the greatest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex
from gcomp.frontends.jaxpr.avals import element_text
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.devices import all_reduce
from gcomp.frontends.jaxpr.elementwise import combine, unit
from gcomp.frontends.jaxpr.registry import Results, imports, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor

_OPS: dict[str, type[GraphOp]] = {
    "reduce_sum": hlo.AddOp,
    "reduce_prod": hlo.MultiplyOp,
    "reduce_max": hlo.MaximumOp,
    "reduce_min": hlo.MinimumOp,
    "reduce_and": hlo.AndOp,
    "reduce_or": hlo.OrOp,
    "reduce_xor": hlo.XorOp,
}


def _fold(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    return lambda ctx: _folded(ctx, op, ctx[0], ctx.params["axes"])


def _folded(ctx: EqnContext, op: type[GraphOp], x: SSAValue, axes: Sequence[int]) -> SSAValue:
    b, element = ctx.b, element_of(x)
    start, scalar = b.full((), unit(op, dtype_text(x.type)), element), tensor((), element)
    body = ctx.region([scalar, scalar], lambda args: [combine(b, op, args[0], args[1])])
    return b.emit(hlo.ReduceOp, x, start, regions=[body], dimensions=sorted(axes))


imports_table({name: _fold(op) for name, op in _OPS.items()})

_MAPPED: dict[str, type[GraphOp]] = {"pmax": hlo.MaximumOp, "pmin": hlo.MinimumOp, "psum": hlo.AddOp}


def _mapped(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    """A fold over axes that functions are mapped over: `vmap` has made its own dimensions, others are of a mesh."""

    def run(ctx: EqnContext) -> Results:
        given: Sequence[Any] = ctx.params["axes"]
        places = [axis for axis in given if isinstance(axis, int)]
        results = [_folded(ctx, op, x, places) if places else x for x in ctx.operands]
        return results if len(places) == len(given) else [all_reduce(ctx, x) for x in results]

    return run


imports_table({name: _mapped(op) for name, op in _MAPPED.items()})


@imports("reduce")
def reduce(ctx: EqnContext) -> Results:
    """Several arrays folded together by a function of the user's."""
    count = len(ctx) // 2
    values, inits = ctx.operands[:count], ctx.operands[count:]
    types = [tensor((), element_of(v)) for v in values]
    body = ctx.region([*types, *types], lambda args: ctx.inline(ctx.params["jaxpr"], args))
    return ctx.b.emit_all(hlo.ReduceOp, *values, *inits, regions=[body], dimensions=sorted(ctx.params["dimensions"]))


def _arg(direction: str) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return _place(ctx, direction)

    return run


def _place(ctx: EqnContext, direction: str) -> Results:
    """The first index of the greatest (or least) along an axis; the first NaN where there is one."""
    b, x = ctx.b, ctx[0]
    (axis,), index = ctx.params["axes"], element_text(ctx.params["index_dtype"])
    places = b.iota(shape_of(x), axis, index)
    text = ctx.dtype()
    worst = b.full((), identity(hlo.MaximumOp if direction == "GT" else hlo.MinimumOp, text), text)
    types = [tensor((), text), tensor((), index)]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        value, place, other, other_place = args
        better = b.compare(value, other, direction)
        if not is_complex(text):
            # NaN beats all others; of two, the earlier.
            better = b.emit(hlo.OrOp, better, b.compare(value, value, "NE"))
        earlier = b.emit(hlo.AndOp, b.compare(value, other, "EQ"), b.compare(place, other_place, "LT"))
        own = b.emit(hlo.OrOp, better, earlier)
        return [b.select(better, value, other), b.select(own, place, other_place)]

    region = ctx.region([*types, *types], body)
    zero = b.full((), 0, index)
    return b.emit_all(hlo.ReduceOp, x, places, worst, zero, regions=[region], dimensions=[axis])[1]


imports_table({"argmax": _arg("GT"), "argmin": _arg("LT")})
