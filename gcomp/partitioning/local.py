"""An op on the parts that a device has: what it needs besides the op itself, where elements are told by their place.

A part of an iota counts from where it begins; a lookup gives 0 for what another device has, and updates of elements of
others are left out; of the devices that add parts of updates, one has the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.ir import Operation, Region, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_integer
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import COMMUTATIVE
from gcomp.ir.structures import GatherDimensions, ScatterDimensions
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of
from gcomp.partitioning.exchange import Exchange
from gcomp.partitioning.lookup import looked_up, put
from gcomp.partitioning.part import Part
from gcomp.partitioning.rule import Kind, ShardingRule

Finish = Callable[[SSAValue], SSAValue]


@dataclass(frozen=True)
class Local:
    """An op of which each axis cuts one factor of its rule, or none."""

    op: Any
    rule: ShardingRule
    chosen: Mapping[str, int]
    """Axis -> the factor that it cuts; the axes in the mesh's order."""
    exchange: Exchange

    @property
    def part(self) -> Part:
        """The op's part, of which all devices have one of the same shape."""
        mesh = self.exchange.mesh
        factors = dict.fromkeys(self.chosen.values())
        return Part(self.op, self.rule, {f: prod(map(mesh.axis_size, self.axes(f))) for f in factors})

    def axes(self, factor: int) -> list[str]:
        """The axes that cut a factor."""
        return [axis for axis, f in self.chosen.items() if f == factor]

    def offset(self, tensor: int, dim: int) -> SSAValue:
        """The index of the first element of a dimension that the device has (i64)."""
        b, size = self.exchange.b, self.part.shape(tensor)[dim]
        return b.multiply(self.exchange.place(self.axes(self.rule.tensors[tensor][dim][0])), b.constant(size, "i64"))

    def run(self, operands: Sequence[SSAValue], regions: Sequence[Region]) -> list[SSAValue]:
        """The results on a device, of its parts of the operands; parts of sums are not combined yet."""
        op, given = cast(GraphOp, self.op), list(operands)
        row = _ROWS.get(type(op))
        finish = _same if row is None else row(self, given)
        made = self.part.made(given, regions)
        made.location = op.location
        self.exchange.b.insert(made)
        return [finish(result) for result in made.results]


def _same(result: SSAValue) -> SSAValue:
    return result


def _iota(local: Local, given: list[SSAValue]) -> Finish:
    dimension: int = local.op.value("iota_dimension")
    if not local.part.is_cut(0, dimension):
        return _same
    b = local.exchange.b

    def finish(result: SSAValue) -> SSAValue:
        # Floats hold some indices only: they are counted in integers, and then rounded once.
        shape, element = shape_of(result), element_of(result)
        counts = result if is_integer(dtype_text(result.type)) else b.iota(shape, dimension)
        offset = b.convert(local.offset(0, dimension), element_of(counts))
        return b.convert(b.add(counts, b.broadcast(offset, shape, ())), element)

    return finish


def _gather(local: Local, given: list[SSAValue]) -> Finish:
    n: GatherDimensions = local.op.dimensions
    b, inside = local.exchange.b, None
    for k in (k for k in n.collapsed_slice_dims if local.part.is_cut(0, k)):
        at, whole = n.start_index_map.index(k), shape_of(local.op.operands[0])[k]
        index = _component(b, given[1], n.index_vector_dim, at)
        on, begin = _Indices(b, index), b.broadcast(local.offset(0, k), shape_of(index), ())
        fits, here = looked_up(on, index, begin, whole, local.part.shape(0)[k])
        given[1] = _with_component(b, given[1], n.index_vector_dim, at, here)
        inside = fits if inside is None else b.emit(hlo.AndOp, inside, fits)
    if inside is None:
        return _same
    mask = inside

    def finish(result: SSAValue) -> SSAValue:
        sides = [dim for dim in range(rank_of(result)) if dim not in n.offset_dims]
        return b.select(b.broadcast(mask, shape_of(result), sides), result, b.full_like(result, 0))

    return finish


def _scatter(local: Local, given: list[SSAValue]) -> Finish:
    op, b = local.op, local.exchange.b
    count, n = len(op.inputs), local.op.dimensions
    assert isinstance(n, ScatterDimensions)
    for k in (k for k in n.scatter_dims_to_operand_dims if local.part.is_cut(0, k)):
        at = n.scatter_dims_to_operand_dims.index(k)
        index = _component(b, given[count], n.index_vector_dim, at)
        begin = b.broadcast(local.offset(0, k), shape_of(index), ())
        placed = put(_Indices(b, index), index, begin, local.part.shape(0)[k])
        given[count] = _with_component(b, given[count], n.index_vector_dim, at, placed)
    summed = [axis for axis, f in local.chosen.items() if local.rule.factors[f].kind is Kind.REDUCTION]
    if summed:
        combine = local.rule.factors[local.chosen[summed[0]]].combine
        unit = identity(COMMUTATIVE[f"stablehlo.{combine}"], dtype_text(given[0].type))
        first = _less(b, local.exchange.place(summed), 1)
        given[0] = b.select(first, given[0], b.full_like(given[0], unit))
    return _same


def _reduce(local: Local, given: list[SSAValue]) -> Finish:
    """One device begins with the init value, where it counts as often as it is folded; the others with what changes
    nothing."""
    b, count = local.exchange.b, len(local.op.inputs)
    axes = [axis for axis, f in local.chosen.items() if local.rule.factors[f].kind is Kind.REDUCTION]
    combine = local.rule.factors[local.chosen[axes[0]]].combine if axes else None
    if combine in COUNTING:
        unit = identity(COMMUTATIVE[f"stablehlo.{combine}"], dtype_text(given[count].type))
        if not _is(local.op.operands[count], unit):
            first = _less(b, local.exchange.place(axes), 1)
            given[count] = b.select(first, given[count], b.full_like(given[count], unit))
    return _same


COUNTING = frozenset({"add", "multiply", "xor"})
"""Reducers of which it matters how often they take a value."""


def _is(value: SSAValue, number: Any) -> bool:
    """Whether a value is a constant of this number."""
    op = value.owner
    data = op.properties.get("value") if isinstance(op, hlo.ConstantOp) else None
    return isinstance(data, ElementsAttr) and data.is_splat and bool(data.splat() == number)


_ROWS: dict[type[Operation], Callable[[Local, list[SSAValue]], Finish]] = {
    hlo.IotaOp: _iota,
    hlo.GatherOp: _gather,
    hlo.ScatterOp: _scatter,
    hlo.ReduceOp: _reduce,
}
"""Op class -> what is done with the operands of a part, and with its results."""

# ---- indices --------------------------------------------------------------------------------------------------------


def _component(b: Builder, indices: SSAValue, vector: int, at: int) -> SSAValue:
    """One number of each index (i64)."""
    wide = b.convert(indices, "i64")
    if vector == rank_of(indices):
        return wide
    shape = [s for k, s in enumerate(shape_of(indices)) if k != vector]
    return b.reshape(b.slice_axis(wide, vector, at, at + 1), shape)


def _with_component(b: Builder, indices: SSAValue, vector: int, at: int, numbers: SSAValue) -> SSAValue:
    """The indices (i64) with one number of each in place of what it was."""
    if vector == rank_of(indices):
        return numbers
    wide, count = b.convert(indices, "i64"), int(str(shape_of(indices)[vector]))
    shape = [1 if k == vector else s for k, s in enumerate(shape_of(indices))]
    parts = [b.slice_axis(wide, vector, k, k + 1) for k in range(count)]
    parts[at] = b.reshape(numbers, shape)
    return b.concatenate(parts, vector)


@dataclass(frozen=True)
class _Indices:
    """Arithmetic on tensors of indices, all of the shape of one."""

    b: Builder
    like: SSAValue

    def number(self, size: Size) -> SSAValue:
        assert isinstance(size, int), "only numbers are cut"
        return self.b.full_like(self.like, size)

    def minus(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.subtract(x, y)

    def clamped(self, x: SSAValue, least: SSAValue, most: SSAValue) -> SSAValue:
        return self.b.minimum(self.b.maximum(x, least), most)

    def within(self, x: SSAValue, least: SSAValue, end: SSAValue) -> SSAValue:
        return self.b.emit(hlo.AndOp, self.b.compare(x, least, "GE"), self.b.compare(x, end, "LT"))

    def chosen(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.select(condition, x, y)


def _less(b: Builder, x: SSAValue, high: int) -> SSAValue:
    return b.compare(x, b.full_like(x, high), "LT")


__all__ = ["Local"]
