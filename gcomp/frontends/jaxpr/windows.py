"""Windows: folds over them, and their gradients, which select one element of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Region, SSAValue

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.elementwise import combine, unit
from gcomp.frontends.jaxpr.registry import Results, imports, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import highest, lowest
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import element_of, rank_of, shape_of, tensor


def _window(ctx: EqnContext) -> dict[str, Any]:
    """The properties of a window, per dimension."""
    names = {
        "window_dimensions": "window_dimensions",
        "window_strides": "window_strides",
        "base_dilation": "base_dilations",
        "window_dilation": "window_dilations",
    }
    given = {
        ours: [_static(ctx, n) for n in ctx.params[theirs]] for theirs, ours in names.items() if theirs in ctx.params
    }
    return {**given, "padding": [(_static(ctx, low), _static(ctx, high)) for low, high in ctx.params["padding"]]}


def _static(ctx: EqnContext, size: Any) -> int:
    if not isinstance(size, int):
        ctx.unsupported(f"its window has a symbolic size: {size}", "give that dimension a size")
    return size


# ---- folds ----------------------------------------------------------------------------------------------------------

_OPS: dict[str, type[GraphOp]] = {
    "reduce_window_sum": hlo.AddOp,
    "reduce_window_max": hlo.MaximumOp,
    "reduce_window_min": hlo.MinimumOp,
}


def _fold(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        b, scalar = ctx.b, tensor((), element_of(ctx[0]))
        start = b.full((), unit(op, ctx.dtype()), ctx.dtype())
        body = ctx.region([scalar, scalar], lambda args: [combine(b, op, args[0], args[1])])
        return ctx.b.emit(hlo.ReduceWindowOp, ctx[0], start, regions=[body], **_window(ctx))

    return run


imports_table({name: _fold(op) for name, op in _OPS.items()})


@imports("reduce_window")
def reduce_window(ctx: EqnContext) -> Results:
    """Windows of several arrays folded together by a function of the user's."""
    values = ctx.operands[: len(ctx) // 2]
    types = [tensor((), element_of(v)) for v in values]
    jaxpr, consts = ctx.params["jaxpr"], ctx.params["consts"]
    body = ctx.region([*types, *types], lambda args: ctx.inline(jaxpr, args, consts))
    return ctx.b.emit_all(hlo.ReduceWindowOp, *ctx.operands, regions=[body], **_window(ctx))


# ---- one element of each window -------------------------------------------------------------------------------------


@imports("select_and_scatter")
def select_and_scatter(ctx: EqnContext) -> Results:
    """What each window has in `source` goes to the element that a function selects there."""
    scalar, params = tensor((), element_of(ctx[0])), ctx.params
    regions = [
        ctx.region(
            [scalar, scalar],
            lambda args, part=part: ctx.inline(params[f"{part}_jaxpr"], args, params[f"{part}_consts"]),
        )
        for part in ("select", "scatter")
    ]
    x, source, start = ctx.operands
    return _scatter(ctx, x, source, start, regions, _window(ctx))


def _scatter(
    ctx: EqnContext, x: SSAValue, source: SSAValue, start: SSAValue, regions: Sequence[Region], window: dict[str, Any]
) -> SSAValue:
    """select_and_scatter; JAX may write the number of windows in another way than the op, which has it of `x`."""
    sizes = [
        window_size(size, window["window_dimensions"][i], window["window_strides"][i], pads, 1, 1)
        for i, (size, pads) in enumerate(zip(shape_of(x), window.get("padding", [(0, 0)] * rank_of(x)), strict=True))
    ]
    source = ctx.as_shape(source, sizes)
    return ctx.b.emit(hlo.SelectAndScatterOp, x, source, start, regions=regions, **window)


@imports("select_and_scatter_add")
def select_and_scatter_add(ctx: EqnContext) -> Results:
    """The gradient of max pooling (or min pooling): each window's goes to its greatest element.

    The padding never is: it is added before, and cut off after.
    """
    b, (source, x), window = ctx.b, ctx.operands, _window(ctx)
    low, high = zip(*window.pop("padding"), strict=True) if ctx.rank() else ((), ())
    padded = b.pad(x, b.full((), _worst(ctx), ctx.dtype()), low, high)
    zero = b.full((), 0, ctx.dtype())
    regions = [_better(ctx), scalar_region(hlo.OrOp if ctx.dtype() == "i1" else hlo.AddOp, element_of(x))]
    found = _scatter(ctx, padded, source, zero, regions, window)
    return b.pad(found, zero, [-n for n in low], [-n for n in high])


@imports("select_and_gather_add")
def select_and_gather_add(ctx: EqnContext) -> Results:
    """The JVP of max (or min) pooling: the tangent at each window's greatest (or least) element."""
    b, (tangents, x) = ctx.b, ctx.operands
    types = [tensor((), element_of(x)), tensor((), element_of(tangents))]
    starts = [b.full((), _worst(ctx), ctx.dtype()), b.full((), 0, ctx.dtype())]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        value, beside, other, other_beside = args
        own = b.compare(value, other, _direction(ctx))
        return [b.select(own, value, other), b.select(own, beside, other_beside)]

    region = ctx.region([*types, *types], body)
    return b.emit_all(hlo.ReduceWindowOp, x, tangents, *starts, regions=[region], **_window(ctx))[1]


def _direction(ctx: EqnContext) -> str:
    return {"ge": "GE", "le": "LE"}[ctx.params["select_prim"].name]


def _worst(ctx: EqnContext) -> Any:
    """What no window selects."""
    return (lowest if _direction(ctx) == "GE" else highest)(ctx.dtype())


def _better(ctx: EqnContext) -> Any:
    scalar = tensor((), element_of(ctx[0]))
    return ctx.region([scalar, scalar], lambda args: [ctx.b.compare(args[0], args[1], _direction(ctx))])
