"""Masks of attention scores, and what they say of which keys a query sees.

A causal mask is a comparison of positions, or a constant that holds its values: then whole blocks of keys are left out,
and the mask is compared where it is needed, not read. A key that is left out adds nothing to a query's result, not even
the NaN that 0 times an infinite value would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import BlockArgument, Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.analysis.indexing.table import operand_maps
from gcomp.dims import Ranges, Size, symbols_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import DimOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.frames import Frame
from gcomp.records import record

EXCLUDING = -1e30
"""A score that is no greater than this has the weight 0 beside any other that is."""

READ = 1 << 26
"""Constants of up to so many elements are looked at."""

Array = np.ndarray[Any, Any]

Place = tuple[Size, Size]
"""The coordinates of the query and of the key, as formulas."""


@record
class Mask:
    """A mask of scores: `value` is added to them, or (`keeps`) picks them where it is true, or `fill` otherwise.

    With `causal`, query q sees no key beyond q + causal; `exact`: it sees all others.
    """

    value: SSAValue
    keeps: bool
    fill: float
    causal: Size | None = None
    exact: bool = False


def mask_of(
    launch: LaunchOp, frame: Frame, value: SSAValue, indices: Sequence[Size], place: Place, keeps: bool, fill: float,
    ranges: Ranges,
) -> Mask:  # fmt: skip
    """A mask by what is read of it at `indices`, formulas of the coordinates of a query and a key."""
    access = frame.access(shape_of(value), indices)
    if keeps:
        causal, exact = _boolean_mask(launch, frame, value, access, place)
    else:
        causal, exact, fill = _additive_mask(launch, frame, value, access, place)
    if causal is not None and fill > float("-inf"):
        # A query that sees no key weighs all of them by this fill: none is left out unless each query sees some.
        low = ranges.bounds(causal)[0]
        if fill > EXCLUDING or low is None or low < 0:
            causal = None
    return Mask(value, keeps, fill, causal, exact and causal is not None)


def _boolean_mask(
    launch: LaunchOp, frame: Frame, value: SSAValue, access: IndexingMap, place: Place
) -> tuple[Size | None, bool]:
    """What a boolean mask lets through."""
    value, access = _copy_source(frame, value, access)
    op = value.owner
    if isinstance(op, hlo.AndOp):
        for side in op.operands:
            causal, _ = _boolean_mask(launch, frame, side, access, place)
            if causal is not None:
                return causal, False
    if isinstance(op, hlo.CompareOp):
        return _causal_offset(frame, op, access, place), True
    data = _data(launch, value)
    if data is None or data.dtype != np.bool_ or not _is_plain(access, place, shape_of(value)):
        return None, False
    causal = _diagonal(data.reshape(data.shape[-2:]))
    return causal, causal is not None


def _additive_mask(
    launch: LaunchOp, frame: Frame, value: SSAValue, access: IndexingMap, place: Place
) -> tuple[Size | None, bool, float]:
    """What a mask that is added lets through: 0 there, and some number elsewhere."""
    value, access = _copy_source(frame, value, access)
    op = value.owner
    if isinstance(op, hlo.SelectOp):
        kept, other = (_splat(v) for v in op.operands[1:])
        if kept == 0 and other is not None:
            causal, exact = _boolean_mask(launch, frame, op.operands[0], access, place)
            return causal, exact, other
    data = _data(launch, value)
    if data is None or not _is_plain(access, place, shape_of(value)):
        return None, False, 0.0
    table = np.asarray(data).astype(np.float64).reshape(data.shape[-2:])
    others = np.unique(table[table != 0])
    if len(others) != 1:
        return None, False, 0.0
    causal = _diagonal(table == 0)
    return causal, causal is not None, float(others[0])


def _copy_source(frame: Frame, value: SSAValue, access: IndexingMap) -> tuple[SSAValue, IndexingMap]:
    """What a value is a copy of, in other places."""
    op = value.owner
    while isinstance(op, Operation) and role_of(op) in (Role.MOVEMENT, Role.VIEW) and len(op.operands) == 1:
        m = operand_maps(op)[0][0]
        if m is None or m.conditions or m.ranges or not m.exact:
            break
        value, access = op.operands[0], frame.through(access, m)
        op = value.owner
    return value, access


def _splat(value: SSAValue) -> float | None:
    op = value.owner
    while isinstance(op, hlo.BroadcastInDimOp | hlo.ReshapeOp | hlo.ConvertOp):
        op = op.operands[0].owner
    return float(op.elements_attr.splat()) if isinstance(op, hlo.ConstantOp) and op.elements_attr.is_splat else None


def _data(launch: LaunchOp, value: SSAValue) -> Array | None:
    """The numbers of a constant that the kernel reads."""
    if not isinstance(value, BlockArgument) or value not in launch.block.args:
        return None
    op = launch.operands[value.index].owner
    if not isinstance(op, hlo.ConstantOp) or op.elements_attr.is_splat:
        return None
    shape = op.elements_attr.shape
    if len(shape) < 2 or any(n != 1 for n in shape[:-2]) or 0 in shape or shape[-1] * shape[-2] > READ:
        return None
    return op.elements_attr.array()


def _is_plain(access: IndexingMap, place: Place, shape: tuple[Size, ...]) -> bool:
    """Whether the last two dimensions are those of queries and keys."""
    wanted = tuple([0 if n == 1 else p for n, p in zip(shape[-2:], place, strict=True)])
    return access.indices[-2:] == wanted and all(n != 1 for n, p in zip(shape[-2:], place, strict=True) if p != 0)


def _diagonal(table: Array) -> int | None:
    """c, where a table is true exactly where its column is at most its row plus c."""
    rows, columns = np.ogrid[: table.shape[0], : table.shape[1]]
    causal = int(table[0].sum()) - 1
    return causal if np.array_equal(table, columns <= rows + causal) else None


# ---- comparisons of positions ---------------------------------------------------------------------------------------


def _causal_offset(frame: Frame, op: hlo.CompareOp, access: IndexingMap, place: Place) -> Size | None:
    """c, where a comparison holds exactly where the key is at most the query plus c."""
    lhs, rhs = (_formula(frame, v, access) for v in (op.lhs, op.rhs))
    if lhs is None or rhs is None:
        return None
    word: str = op.value("comparison_direction")
    # It holds where the difference is at least 0, which is to be query + c - key.
    difference = {"GE": lhs - rhs, "GT": lhs - rhs - 1, "LE": rhs - lhs, "LT": rhs - lhs - 1}.get(word)
    if difference is None:
        return None
    query, key = place
    causal = difference - query + key
    return None if any(name.startswith("$") for name in symbols_of(causal)) or key == 0 else causal


def _formula(frame: Frame, value: SSAValue, access: IndexingMap) -> Size | None:
    """An integer as a formula of coordinates. Narrow ones might wrap."""
    if dtype_text(value.type) not in ("i32", "i64"):
        return None
    value, access = _copy_source(frame, value, access)
    op = value.owner
    if isinstance(op, hlo.IotaOp):
        dimension: int = op.value("iota_dimension")
        return access.indices[dimension]
    if isinstance(op, DimOp):
        return op.formula
    if isinstance(op, hlo.ConstantOp) and op.elements_attr.is_splat and op.elements_attr.dtype.kind in "iu":
        return int(op.elements_attr.splat())
    if isinstance(op, hlo.AddOp | hlo.SubtractOp):
        lhs, rhs = (_formula(frame, v, access) for v in op.operands)
        if lhs is None or rhs is None:
            return None
        return lhs + rhs if isinstance(op, hlo.AddOp) else lhs - rhs
    return None


__all__ = ["Mask", "mask_of"]
