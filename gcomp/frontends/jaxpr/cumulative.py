"""Cumulative sums and the like: windows that reach back to the start; XLA computes those as trees.

Along a symbolic size, which no window has, each round adds what stands 1, 2, 4, ... places before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.elementwise import combined, unit
from gcomp.frontends.jaxpr.jax_api import jax
from gcomp.frontends.jaxpr.registry import Results, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import element_of, shape_of, tensor, tensor_of

Fold = Callable[[SSAValue, SSAValue], SSAValue]

_OPS: dict[str, type[GraphOp]] = {
    "cumsum": hlo.AddOp,
    "cumprod": hlo.MultiplyOp,
    "cummax": hlo.MaximumOp,
    "cummin": hlo.MinimumOp,
}


def _by_op(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return _cumulative(ctx, lambda x, y: combined(ctx.b, op, x, y), unit(op, ctx.dtype()))

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
    b, axis, shape = ctx.b, int(ctx.params["axis"]), ctx.shape()
    size = shape[axis]
    start = b.full((), first, element_of(ctx[0]))
    if size == 0:
        return ctx[0]
    if not isinstance(size, int):
        return _by_doubling(ctx, fold, start, size)
    padding = [(0, 0)] * len(shape)
    padding[axis] = (0, size - 1) if ctx.params["reverse"] else (size - 1, 0)
    scalar = tensor((), element_of(ctx[0]))
    body = ctx.region([scalar, scalar], lambda args: [fold(*args)])
    window = [size if i == axis else 1 for i in range(len(shape))]
    return b.emit(hlo.ReduceWindowOp, ctx[0], start, window_dimensions=window, padding=padding, regions=[body])


def _by_doubling(ctx: EqnContext, fold: Fold, start: SSAValue, size: Size) -> SSAValue:
    """Rounds of a loop, each over twice as far a reach."""
    b, x, axis, reverse = ctx.b, ctx[0], ctx.params["axis"], ctx.params["reverse"]
    units = b.broadcast(start, shape_of(x), ())
    types = [tensor((), "i64"), tensor_of(x)]

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.compare(args[0], b.dim(size), "LT")]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        step, made = args
        wide = b.concatenate([made, units] if reverse else [units, made], axis)
        place = step if reverse else b.subtract(b.dim(size), step)
        places = [place if i == axis else b.constant(0, "i64") for i in range(len(shape_of(x)))]
        moved = b.emit(hlo.DynamicSliceOp, wide, *places, slice_sizes=list(shape_of(x)))
        return [b.multiply(step, b.constant(2, "i64")), fold(*((made, moved) if reverse else (moved, made)))]

    regions = [b.region(types, condition), b.region(types, body)]
    return b.emit_all(hlo.WhileOp, b.constant(1, "i64"), x, types=types, regions=regions)[1]
