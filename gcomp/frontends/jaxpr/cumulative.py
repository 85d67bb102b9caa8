"""Cumulative sums and the like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.elementwise import combine, unit
from gcomp.frontends.jaxpr.jax_api import jax
from gcomp.frontends.jaxpr.registry import Results, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.looping import Fold, running
from gcomp.ir.op import GraphOp
from gcomp.ir.types import shape_of

_OPS: dict[str, type[GraphOp]] = {
    "cumsum": hlo.AddOp,
    "cumprod": hlo.MultiplyOp,
    "cummax": hlo.MaximumOp,
    "cummin": hlo.MinimumOp,
}


def _by_op(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return _cumulative(ctx, lambda x, y: combine(ctx.b, op, x, y), unit(op, ctx.dtype()))

    return run


imports_table({name: _by_op(op) for name, op in _OPS.items()})


def _cumlogsumexp(ctx: EqnContext) -> Results:
    def fold(x: SSAValue, y: SSAValue) -> SSAValue:
        shape = ctx.aval().shape if shape_of(x) else ()
        one = jax.ShapeDtypeStruct(shape, ctx.aval().dtype)
        return ctx.inline(jax.make_jaxpr(jax.numpy.logaddexp)(one, one), [x, y])[0]

    return _cumulative(ctx, fold, -np.inf)


imports_table({"cumlogsumexp": _cumlogsumexp})


def _cumulative(ctx: EqnContext, fold: Fold, first: object) -> SSAValue:
    """The fold of all elements up to each along an axis, or (in reverse) from each on."""
    start = ctx.b.scalar_like(ctx[0], first)
    return running(ctx.b, ctx[0], int(ctx.params["axis"]), fold, start, reverse=ctx.params["reverse"])
