"""Derivatives of folds over windows. Of a maximum's ties, the first one in a window has it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Region, SSAValue

from gcomp import dims
from gcomp.autodiff.indexing import flat, read
from gcomp.autodiff.movement import restate, zeros
from gcomp.autodiff.reduction import fold, is_identity
from gcomp.autodiff.sweeps import Forward, Maybe, Reverse, Row
from gcomp.autodiff.table import ByTangents, Expanded, Linear, chooses, expands
from gcomp.decompositions.bodies import inline_block
from gcomp.dims import Size
from gcomp.dtypes import is_complex
from gcomp.ir import gathering
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ScatterDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.stablehlo.contraction import dilated_size
from gcomp.ir.stablehlo.reduction import applied_op, scalar_region
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor

Window = dict[str, tuple[Any, ...]]

# ---- sums ----


def _sum(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """Each element gets the sum of the windows that it is in."""
    w, x = op.window(), op.operands[0]
    if 0 in shape_of(x) or 0 in shape_of(g):
        return zeros(b, x)
    low: list[Size] = []
    high: list[Size] = []
    for i, size in enumerate(shape_of(x)):
        reach = dilated_size(w["window_dimensions"][i], w["window_dilations"][i])
        low.append(reach - 1 - w["padding"][i][0])
        out = dilated_size(shape_of(g)[i], w["window_strides"][i])
        high.append(dilated_size(size, w["base_dilations"][i]) + reach - 1 - out - low[-1])
    spread = b.pad(g, b.scalar_like(g, 0), low, high, [stride - 1 for stride in w["window_strides"]])
    summed = b.emit(
        hlo.ReduceWindowOp, spread, b.scalar_like(g, 0), regions=(scalar_region(hlo.AddOp, element_of(g)),),
        window_dimensions=w["window_dimensions"], window_strides=w["base_dilations"],
        window_dilations=w["window_dilations"],
    )  # fmt: skip
    return restate(b, summed, shape_of(x))


# ---- maxima and minima: the element that is chosen ----


def choose_elements(b: Builder, x: SSAValue, window: Window, select: Region) -> SSAValue:
    """For each window, the number (row by row) of the element that `select` keeps; -1 where there is none."""
    numbers = b.reshape(b.iota((dims.product(shape_of(x)),), 0), shape_of(x))
    scalar, place = tensor((), element_of(x)), tensor((), "i64")

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        left, i, right, j = args
        none, other = (b.compare(v, b.constant(0, "i64"), "LT") for v in (i, j))
        (keeps,) = inline_block(b, select.block, [left, right])
        first = b.emit(hlo.OrOp, other, b.emit(hlo.AndOp, b.emit(hlo.NotOp, none), keeps))
        return [b.select(first, left, right), b.select(first, i, j)]

    region = b.region([scalar, place, scalar, place], body)
    start = b.scalar_like(x, 0)
    return b.emit_all(hlo.ReduceWindowOp, x, numbers, start, b.constant(-1, "i64"), regions=(region,), **window)[1]


def _comparator(b: Builder, kind: Any, x: SSAValue) -> Region:
    """Whether the left one of two is the maximum (or minimum), or both are."""
    scalar = tensor((), element_of(x))
    if is_complex(dtype_text(x.type)):
        return b.region([scalar, scalar], lambda args: [b.compare(b.emit(kind, *args), args[0], "EQ")])
    return b.region([scalar, scalar], lambda args: [b.compare(args[0], args[1], _DIRECTIONS[kind])])


_DIRECTIONS: dict[Any, str] = {hlo.MaximumOp: "GE", hlo.MinimumOp: "LE"}


def _pick(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    tangent, x = tangents[0], op.operands[0]
    if tangent is None:
        return [None]
    places = choose_elements(b, x, op.window(), _comparator(b, applied_op(op.body), x))
    return [read(b, tangent, places, b.compare(places, b.full_like(places, 0), "GE"))]


class _Pooling(ByTangents):
    """Maxima and minima over windows; backward, by the op that is made for it where it can say the window."""

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        w, x, b = op.window(), op.operands[0], sweep.b
        dilated = any(d != 1 for name in ("base_dilations", "window_dilations") for d in w[name])
        if dilated or any(p < 0 for pair in w["padding"] for p in pair) or cotangents[0] is None:
            super().pull(sweep, op, cotangents)
        elif sweep.wants(x):
            regions = (_comparator(b, applied_op(op.body), x), scalar_region(hlo.AddOp, element_of(x)))
            properties = {k: w[k] for k in ("window_dimensions", "window_strides", "padding")}
            zero = b.scalar_like(x, 0)
            sweep.add(x, b.emit(hlo.SelectAndScatterOp, x, cotangents[0], zero, regions=regions, **properties))


@expands(hlo.SelectAndScatterOp)
def select_and_scatter(b: Builder, op: Any) -> Sequence[SSAValue]:
    """A scatter to the elements that are chosen."""
    places = choose_elements(b, op.operand, {**op.window()}, op.select)
    count, sources = dims.product(shape_of(op.operand)), dims.product(shape_of(op.source))
    region = op.scatter.clone()
    element = element_of(region.block.args[0])
    start = b.broadcast(b.convert(op.init_value, element), (count,), ())
    numbers = ScatterDimensions((), (0,), (), (), (0,), 1)
    # A window without elements has place -1, where nothing is.
    made = b.emit(
        hlo.ScatterOp, start, b.reshape(places, (sources, 1)), flat(b, b.convert(op.source, element)),
        scatter_dimension_numbers=numbers, regions=(region,),
    )  # fmt: skip
    return [b.reshape(made, shape_of(op.operand))]


# ---- any fold ----


def _runs(op: Any) -> tuple[int, bool] | None:
    """The axis along which each window reaches from the start to its element, or (True) from there to the end."""
    w, shape = op.window(), shape_of(op.inputs[0])
    moved = [i for i, n in enumerate(w["window_dimensions"]) if n != 1]
    plain = all(v == 1 for k in ("window_strides", "base_dilations", "window_dilations") for v in w[k])
    if len(moved) != 1 or not plain:
        return None
    (axis,) = moved
    if any(pair != (0, 0) for i, pair in enumerate(w["padding"]) if i != axis):
        return None
    size = shape[axis]
    if w["window_dimensions"][axis] != size or w["padding"][axis] not in ((size - 1, 0), (0, size - 1)):
        return None
    return axis, w["padding"][axis][0] == 0


def _double(b: Builder, op: Any, kind: Any, axis: int, backward: bool) -> SSAValue:
    """Running folds: each round folds in what stands 1, 2, 4, ... places before."""
    x, unit = op.inputs[0], op.init_values[0]
    rank, size = rank_of(x), shape_of(x)[axis]
    assert isinstance(size, int)
    step = 1
    while step < size:
        low, high = [0] * rank, [0] * rank
        low[axis], high[axis] = (-step, step) if backward else (step, -step)
        x = b.emit(kind, x, b.pad(x, unit, low, high))
        step *= 2
    return x


def _windows(b: Builder, op: Any) -> Sequence[SSAValue]:
    """All windows as dims of their own, folded."""
    w, count = op.window(), len(op.inputs)
    if 0 in shape_of(op.results[0]):
        return [b.full_like(result, 0) for result in op.results]
    kind = applied_op(op.body) if count == 1 else None
    runs = _runs(op)
    if runs is not None and kind is not None and is_identity(op.init_values[0], kind):
        return [_double(b, op, kind, *runs)]
    spread: list[SSAValue] = []
    shape: list[Size] = []
    for x, start in zip(op.inputs, op.init_values, strict=True):
        low, high = ([pair[side] for pair in w["padding"]] for side in (0, 1))
        padded = b.pad(x, start, low, high, [d - 1 for d in w["base_dilations"]])
        shape = list(shape_of(padded))
        for i in reversed(range(len(shape))):
            # Dimension i becomes (windows, places in a window), the latter at the end.
            windows, reach = shape_of(op.results[0])[i], w["window_dimensions"][i]
            first = b.multiply(b.iota((windows, reach), 0), b.constant(w["window_strides"][i], "i64"))
            inner = b.multiply(b.iota((windows, reach), 1), b.constant(w["window_dilations"][i], "i64"))
            taken = gathering.take(b, padded, b.add(first, inner), i)
            order = [d for d in range(rank_of(taken)) if d != i + 1]
            padded = b.transpose(taken, [*order, i + 1])
        spread.append(padded)
    # The last dimension was cut first: from the end on, the places in a window are in row-major order.
    places = range(2 * len(shape) - 1, len(shape) - 1, -1)
    return fold(b, op.body, spread, list(op.init_values), places)


def _from_nothing(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """Tangents of sums start from 0."""
    tangent = tangents[0]
    if tangent is None:
        return [None]
    region = scalar_region(hlo.AddOp, element_of(tangent))
    return [b.emit(hlo.ReduceWindowOp, tangent, b.scalar_like(tangent, 0), regions=(region,), **op.window())]


class _Sums(Row):
    """Sums over windows; where their start has a derivative, which padding repeats, window by window."""

    def push(self, sweep: Forward, op: Any) -> None:
        started = sweep.get(op.operands[1]) is not None
        (_WINDOWS if started else ByTangents(_from_nothing)).push(sweep, op)

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        (_WINDOWS if sweep.wants(op.operands[1]) else _SUM).pull(sweep, op, cotangents)


_SUM, _POOL, _WINDOWS, _SUMS = Linear(_sum, lambda op: (0,)), _Pooling(_pick), Expanded(_windows), _Sums()


@chooses(hlo.ReduceWindowOp)
def reduce_window(op: Any) -> Row:
    """By what the body applies."""
    kind = applied_op(op.body) if len(op.inputs) == 1 else None
    same = op.body.block.args[0].type == tensor((), element_of(op.inputs[0]))
    if kind is hlo.AddOp and same:
        return _SUMS
    if kind is not None and kind in _DIRECTIONS and same and is_identity(op.operands[1], kind):
        return _POOL
    return _WINDOWS
