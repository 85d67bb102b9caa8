"""When a check of an op fails, as a value of the program: NaN and infinities that come up, indices out of range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, reduce
from typing import Any, cast

import numpy as np
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.dims import Size
from gcomp.dtypes import dtype_of, is_complex, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.checks import MARKED, is_marked, unmark
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor, rank_of, shape_of
from gcomp.ir.walking import captures

Flag = SSAValue | bool
"""Whether something holds: known now, or a value of type i1."""

_MOVES = (
    hlo.BroadcastInDimOp, hlo.ConcatenateOp, hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp, hlo.GatherOp,
    hlo.OptimizationBarrierOp, hlo.PadOp, hlo.ReshapeOp, hlo.ReverseOp, hlo.SelectOp, hlo.SliceOp, hlo.SortOp,
    hlo.TransposeOp,
)  # fmt: skip
_KEEP = (hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.TransposeOp)
"""Ops whose results hold what their operands hold."""
_BOUNDED = (hlo.AbsOp, hlo.ClampOp, hlo.MaximumOp, hlo.MinimumOp, hlo.NegateOp, hlo.TanhOp, hlo.LogisticOp)
HARMLESS: Mapping[str, tuple[type[Operation], ...]] = {
    "nan": (*_MOVES, *_BOUNDED, hlo.CeilOp, hlo.FloorOp, hlo.ExponentialOp, hlo.SignOp),
    "inf": (*_MOVES, *_BOUNDED[1:], hlo.CeilOp, hlo.FloorOp),
}
"""Kind -> ops of real numbers whose results have none where no operand has one: these need no check."""


class Watch:
    """Builds the conditions under which checks of a program fail. What a value holds is computed once."""

    def __init__(self, program: Program, kinds: Sequence[str]) -> None:
        self._program, self._kinds = program, kinds
        self._flags: dict[tuple[str, SSAValue], Flag] = {}

    def inputs(self) -> Iterator[tuple[str, Flag]]:
        """For each input, its name and whether it has a NaN."""
        if "nan" in self._kinds:
            for port, value in zip(self._program.inputs(), self._program.block.args, strict=True):
                yield port.name, self._has("nan", value)

    def failures(self, op: Operation) -> Iterator[tuple[str, Flag]]:
        """The kinds of checks of an op that may fail, and whether they do."""
        b = Builder(self._program, InsertPoint.after(op))
        with b.at(op.location):
            watched = "index" in self._kinds or (MARKED in self._kinds and is_marked(op))
            unmark(op)
            if watched and (limits := _LIMITS.get(type(op))) is not None:
                yield "index", _outside(b, *limits(op))
            for kind in ("nan", "inf"):
                if kind in self._kinds and (flag := self._makes(b, kind, op)) is not False:
                    yield kind, flag

    def _makes(self, b: Builder, kind: str, op: Operation) -> Flag:
        """Whether a result has a NaN (or infinity), and no operand has."""
        if isinstance(op, hlo.ConstantOp) or (isinstance(op, WeightOp) and kind == "inf"):
            return False
        real = not any(is_tensor(v.type) and is_complex(dtype_text(v.type)) for v in (*op.operands, *op.results))
        if real and isinstance(op, HARMLESS[kind]):
            return False
        made = _any(b, [self._has(kind, result) for result in op.results])
        if made is False:
            return False
        had = _any(b, [self._has(kind, value) for value in dict.fromkeys((*op.operands, *captures(op)))])
        if isinstance(had, bool):
            return False if had else made
        return b.emit(hlo.AndOp, b.constant(True) if made is True else made, b.emit(hlo.NotOp, had))

    def _has(self, kind: str, value: SSAValue) -> Flag:
        key = kind, value
        if key not in self._flags:
            self._flags[key] = self._computed(kind, value)
        return self._flags[key]

    def _computed(self, kind: str, value: SSAValue) -> Flag:
        if not is_tensor(value.type) or not _can_have(kind, dtype_text(value.type)):
            return False
        owner = value.op if isinstance(value, OpResult) else None
        if isinstance(owner, _KEEP):
            return self._has(kind, owner.operands[0])
        known = _known_value(owner, self._program)
        if known is not None:
            wide = known.astype(np.complex128)
            return bool((np.isnan(wide) if kind == "nan" else np.isinf(wide)).any())
        if owner is not None:
            b = Builder(self._program, InsertPoint.after(owner))
        else:
            b = Builder(self._program, InsertPoint.at_start(cast(BlockArgument, value).block))
        with b.at(owner.location if owner is not None else b.location):
            return _every_way(b, _is_nan(b, value) if kind == "nan" else _is_infinite(b, value))


def _known_value(op: Operation | None, program: Program) -> np.ndarray[Any, Any] | None:
    if isinstance(op, hlo.ConstantOp):
        return op.elements_attr.array()
    return program.weights[op.symbol] if isinstance(op, WeightOp) else None


@cache
def _can_have(kind: str, text: str) -> bool:
    """Whether an element type has NaN, or infinities."""
    if is_complex(text):
        return True
    if not is_float(text):
        return False
    extreme = np.asarray(np.nan if kind == "nan" else np.inf).astype(dtype_of(text)).astype(np.float64)
    return bool(np.isnan(extreme) if kind == "nan" else np.isinf(extreme))


def _is_nan(b: Builder, x: SSAValue) -> SSAValue:
    return b.compare(x, x, "NE")


def _is_infinite(b: Builder, x: SSAValue) -> SSAValue:
    if is_complex(dtype_text(x.type)):
        return b.emit(hlo.OrOp, *(_is_infinite(b, b.emit(part, x)) for part in (hlo.RealOp, hlo.ImagOp)))
    return b.compare(b.emit(hlo.AbsOp, x), b.full_like(x, np.inf), "EQ")


def _every_way(b: Builder, x: SSAValue) -> SSAValue:
    """Whether any element holds."""
    return b.reduce(hlo.OrOp, x, range(rank_of(x))) if rank_of(x) else x


def _any(b: Builder, flags: Sequence[Flag]) -> Flag:
    """Whether any of the flags holds."""
    if any(flag is True for flag in flags):
        return True
    values = [flag for flag in flags if not isinstance(flag, bool)]
    return reduce(lambda x, y: b.emit(hlo.OrOp, x, y), values) if values else False


# ---- indices --------------------------------------------------------------------------------------------------------


def _outside(b: Builder, indices: Sequence[SSAValue], limits: Sequence[Size], axis: int | None) -> SSAValue:
    """Whether any index is below 0 or above its limit: one of several scalars, or of a tensor with the limits' axis."""
    wide = [b.convert(x, "ui64" if dtype_text(x.type) == "ui64" else "i64") for x in indices]
    if axis is None:
        pairs = zip(wide, limits, strict=True)
        most = [b.broadcast(b.dim(limit, dtype_text(x.type)), shape_of(x), ()) for x, limit in pairs]
    else:
        each = [b.reshape(b.dim(limit, dtype_text(wide[0].type)), (1,)) for limit in limits]
        most = [b.broadcast(b.concatenate(each, 0), shape_of(wide[0]), (axis,))] if each else []
    found: list[Flag] = []
    for x, limit in zip(wide, most, strict=False):
        found.append(_every_way(b, b.compare(x, limit, "GT")))
        if dtype_text(x.type) == "i64":
            found.append(_every_way(b, b.compare(x, b.full_like(x, 0), "LT")))
    flag = _any(b, found)
    return b.constant(False) if isinstance(flag, bool) else flag


Limits = tuple[Sequence[SSAValue], Sequence[Size], "int | None"]
"""Indices, the greatest that fits for each coordinate, and the axis of the coordinates (None: each is a scalar)."""


def _of_gather(op: hlo.GatherOp) -> Limits:
    d: GatherDimensions = op.value("dimension_numbers")
    sizes = sizes_of(op.slice_sizes)
    limits = [shape_of(op.operand)[k] - sizes[k] for k in d.start_index_map]
    return _coordinates(op.start_indices, limits, d.index_vector_dim)


def _of_scatter(op: hlo.ScatterOp) -> Limits:
    d: ScatterDimensions = op.value("scatter_dimension_numbers")
    shape = shape_of(op.inputs[0])
    inner = [k for k in range(len(shape)) if k not in (*d.inserted_window_dims, *d.input_batching_dims)]
    windows = dict(zip(inner, (shape_of(op.updates[0])[k] for k in d.update_window_dims), strict=True))
    limits = [shape[k] - windows.get(k, 1) for k in d.scatter_dims_to_operand_dims]
    return _coordinates(op.scatter_indices, limits, d.index_vector_dim)


def _coordinates(indices: SSAValue, limits: Sequence[Size], axis: int) -> Limits:
    return [indices], limits, axis if axis < rank_of(indices) else None


def _of_slice(op: hlo.DynamicSliceOp) -> Limits:
    sizes = [n - size for n, size in zip(shape_of(op.operand), sizes_of(op.slice_sizes), strict=True)]
    return op.start_indices, sizes, None


def _of_update(op: hlo.DynamicUpdateSliceOp) -> Limits:
    sizes = [n - size for n, size in zip(shape_of(op.operand), shape_of(op.update), strict=True)]
    return op.start_indices, sizes, None


_LIMITS: Mapping[type[Operation], Callable[[Any], Limits]] = {
    hlo.GatherOp: _of_gather,
    hlo.ScatterOp: _of_scatter,
    hlo.DynamicSliceOp: _of_slice,
    hlo.DynamicUpdateSliceOp: _of_update,
}
"""Ops that take indices -> where these end."""
