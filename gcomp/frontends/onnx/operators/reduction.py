"""Reductions, cumulative sums, and positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_axes import data_dependent_axis, rows_by_axes
from gcomp.frontends.onnx.engine.registry import Results, add, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, highest, lowest
from gcomp.ir.looping import running
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor

Reducer = Callable[[Builder, SSAValue, Sequence[int]], SSAValue]
"""Builds a reduction over axes that keeps them as dims of size 1."""


def _fold(op: type[GraphOp]) -> Reducer:
    return lambda b, x, axes: b.reduce(op, x, axes, keepdims=True)


_sum = _fold(hlo.AddOp)


def _square_sum(b: Builder, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    return _sum(b, b.multiply(x, x), axes)


def _absolute(b: Builder, x: SSAValue) -> SSAValue:
    return x if dtype_text(x.type).startswith("ui") else b.emit(hlo.AbsOp, x)


def _in_float(b: Builder, x: SSAValue, function: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """Apply a function on floats; integers are converted to f64 and back."""
    text = dtype_text(x.type)
    return function(x) if is_float(text) else b.convert(function(b.convert(x, "f64")), text)


def _log_sum_exp(b: Builder, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    def run(x: SSAValue) -> SSAValue:
        most = b.reduce(hlo.MaximumOp, x, axes, keepdims=True)
        zero = b.scalar_like(x, 0)
        shift = b.select(b.emit(hlo.IsFiniteOp, most), most, zero)
        total = _sum(b, b.emit(hlo.ExponentialOp, b.subtract(x, shift)), axes)
        return b.add(b.emit(hlo.LogOp, total), shift)

    return _in_float(b, x, run)


REDUCTIONS: dict[str, Reducer] = {
    "ReduceSum": _sum,
    "ReduceProd": _fold(hlo.MultiplyOp),
    "ReduceMax": _fold(hlo.MaximumOp),
    "ReduceMin": _fold(hlo.MinimumOp),
    "ReduceMean": lambda b, x, axes: b.mean(x, axes, keepdims=True),
    "ReduceL1": lambda b, x, axes: _sum(b, _absolute(b, x), axes),
    "ReduceL2": lambda b, x, axes: _in_float(b, _square_sum(b, x, axes), lambda v: b.emit(hlo.SqrtOp, v)),
    "ReduceLogSum": lambda b, x, axes: _in_float(b, _sum(b, x, axes), lambda v: b.emit(hlo.LogOp, v)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": _square_sum,
}
_EXACT = {"ReduceMax", "ReduceMin"}
"""Reductions that need no wider accumulator."""


def _importer(reducer: Reducer) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        x, rank = ctx[0], ctx.rank()
        none = ctx.has(1) and ctx.shape(1) == (0,)
        if ctx.has(1) and not none and ctx.known_value(1) is None:
            return [_by_data_dependent_axes(ctx, reducer)]
        axes = [] if none else ctx.axes("axes", 1, rank)
        if not axes and ctx.flag("noop_with_empty_axes"):
            # Only the elementwise parts before and after the sum remain.
            return [x if ctx.op_type not in _NOT_IDENTITY else reducer(ctx.b, x, [])]
        axes = axes or list(range(rank))

        def reduce(v: SSAValue) -> SSAValue:
            return reducer(ctx.b, v, axes)

        result = reduce(x) if ctx.op_type in _EXACT else ctx.wide(x, reduce)
        kept = [1 if i in axes else s for i, s in enumerate(ctx.shape())]
        if not ctx.flag("keepdims", True):
            kept = [s for i, s in enumerate(ctx.shape()) if i not in axes]
        return [ctx.b.reshape(result, kept)]

    return run


def _by_data_dependent_axes(ctx: NodeContext, reducer: Reducer) -> SSAValue:
    """A reduction over axes that data determine: of the rows of a matrix."""
    rows, shape = rows_by_axes(ctx, ctx[0], 1, keepdims=ctx.flag("keepdims", True))

    def reduce(v: SSAValue) -> SSAValue:
        return reducer(ctx.b, v, [1])

    return ctx.b.reshape(reduce(rows) if ctx.op_type in _EXACT else ctx.wide(rows, reduce), shape)


_NOT_IDENTITY = {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}
for _name, _reducer in REDUCTIONS.items():
    add(_name, _importer(_reducer))


@imports("ArgMax", "ArgMin")
def arg_extremum_node(ctx: NodeContext) -> Results:
    """ArgMax, ArgMin: the first (or last) position of the extremum; NaN counts as extreme."""
    rank = ctx.rank()
    axis = ctx.axis(ctx.integer("axis"), rank)
    if ctx.shape()[axis] == 0:
        ctx.invalid(f"axis {axis} has size 0", "nothing has no extremum")
    if not ctx.at_most(1, ctx.shape()[axis]):
        ctx.require("le", 1, ctx.shape()[axis])
    best = arg_extremum(ctx.b, ctx[0], axis, largest=ctx.op_type == "ArgMax", last=ctx.flag("select_last_index"))
    if ctx.flag("keepdims", True):
        best = ctx.b.reshape(best, [1 if i == axis else s for i, s in enumerate(ctx.shape())])
    return [best]


def arg_extremum(b: Builder, x: SSAValue, axis: int, *, largest: bool, last: bool) -> SSAValue:
    """The position (i64) along `axis` of the first or last extremum; the axis is removed."""
    text, limit = dtype_text(x.type), np.iinfo(np.int64)
    positions = b.iota(shape_of(x), axis)
    start = b.scalar_like(x, (lowest if largest else highest)(text))
    nowhere = b.constant(limit.min if last else limit.max, "i64")

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, at, other, there = args
        better = b.compare(other, value, "GT" if largest else "LT")
        tie = b.compare(other, value, "EQ")
        if is_float(text):
            nan, other_nan = b.compare(value, value, "NE"), b.compare(other, other, "NE")
            better = b.emit(hlo.OrOp, better, b.emit(hlo.AndOp, other_nan, b.emit(hlo.NotOp, nan)))
            tie = b.emit(hlo.OrOp, tie, b.emit(hlo.AndOp, nan, other_nan))
        chosen = b.emit(hlo.OrOp, better, b.emit(hlo.AndOp, tie, b.compare(there, at, "GT" if last else "LT")))
        return [b.select(chosen, other, value), b.select(chosen, there, at)]

    scalars = [tensor((), element_of(x)), tensor((), "i64")] * 2
    region = b.region(scalars, body)
    return b.emit_all(hlo.ReduceOp, x, positions, start, nowhere, regions=(region,), dimensions=[axis])[1]


@imports("CumSum", "CumProd")
def cumulative(ctx: NodeContext) -> Results:
    """CumSum, CumProd: inclusive or exclusive, forward or in reverse."""
    op = hlo.AddOp if ctx.op_type == "CumSum" else hlo.MultiplyOp
    exclusive, backward = ctx.flag("exclusive"), ctx.flag("reverse")

    def along(axis: int) -> SSAValue:
        return scan(ctx.b, op, ctx[0], axis, exclusive=exclusive, backward=backward)

    if ctx.known_value(1) is not None:
        return [along(ctx.axis(int(ctx.scalar(1, "axis")), ctx.rank()))]
    b, axis = ctx.b, ctx.b.convert(ctx.b.dim(data_dependent_axis(ctx, 1, ctx.rank())), "i32")
    x, axes = ctx[0], range(ctx.rank())  # read outside of the branches
    regions = [b.region((), lambda _, axis=axis: [along(axis)]) for axis in axes]
    return [b.emit(hlo.CaseOp, axis, types=(x.type,), regions=regions)]


def scan(
    b: Builder, op: type[GraphOp], x: SSAValue, axis: int, *, exclusive: bool = False, backward: bool = False
) -> SSAValue:
    """The running sum (product) along an axis."""
    unit = b.scalar_like(x, 0 if op is hlo.AddOp else 1)
    if exclusive and shape_of(x)[axis] != 0:
        x = _shift(b, x, unit, axis, backward)
    return running(b, x, axis, lambda left, right: b.binary(op, left, right), unit, reverse=backward)


def _shift(b: Builder, x: SSAValue, unit: SSAValue, axis: int, backward: bool) -> SSAValue:
    """`x` moved by one along the axis, a unit moving in."""
    low: list[Size] = [0] * len(shape_of(x))
    high = list(low)
    low[axis], high[axis] = (-1, 1) if backward else (1, -1)
    return b.pad(x, unit, low, high)
