"""Steps about how ops hang together: duplicates, near-duplicates, dead code, joins, barriers, tuples."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import INTEGERS, dtype_text, is_tensor, shape_of, tensor_of
from gcomp.testing.generate.elementwise import BINARY, DIRECTIONS, taking
from gcomp.testing.generate.growth import Growth, step

_SIZED = frozenset({
    hlo.DynamicPadOp, hlo.RealDynamicSliceOp, hlo.DynamicGatherOp, hlo.DynamicReshapeOp, hlo.DynamicIotaOp,
    hlo.DynamicBroadcastInDimOp, hlo.DynamicConvOp, hlo.RngOp,
})  # fmt: skip
"""Ops with operands that must be certain sizes."""


def _earlier(g: Growth, *, changed: bool) -> GraphOp | None:
    """An op of the block that can be made again; `changed` asks for one that has something to change."""
    op = g.b.block.last_op
    found: list[GraphOp] = []
    while op is not None and len(found) < 8:
        if isinstance(op, GraphOp) and _plain(op) and (not changed or _variants(op)):
            found.append(op)
        op = op.prev_op
    return g.choices.chosen(found) if found else None


def _plain(op: GraphOp) -> bool:
    return not op.regions and bool(op.results) and all(is_tensor(t) for t in op.result_types)


def _copy(g: Growth, op: Operation) -> Operation:
    copy = op.clone()
    g.b.insert(copy)
    for result in copy.results:
        g.keep(result)
    return copy


@step("duplicate", weight=2)
def duplicate(g: Growth) -> None:
    """An op again: the same operands and properties."""
    op = _earlier(g, changed=False)
    if op is None:
        g.emit(hlo.NotOp, g.pick(INTEGERS))
        return
    _copy(g, op)


def _variants(op: GraphOp) -> list[str]:
    """What may be changed in a copy of an op without changing its type."""
    kinds: list[str] = []
    if type(op) not in _SIZED and len(op.operands) >= 2 and op.operands[-1].type is op.operands[-2].type:
        kinds.append("swap")
    if isinstance(op, hlo.CompareOp):
        kinds.append("direction")
    if type(op) in BINARY:
        kinds.append("op")
    if isinstance(op, hlo.TransposeOp | hlo.ReverseOp | hlo.IotaOp) and len(shape_of(op.results[0])) > 1:
        kinds.append("axes")
    if isinstance(op, hlo.ConstantOp) and op.elements_attr.is_splat:
        kinds.append("value")
    return kinds


@step("near-duplicate", weight=2)
def near_duplicate(g: Growth) -> None:
    """An op almost again: operands swapped, another direction, op, axis or constant."""
    op = _earlier(g, changed=True)
    if op is None:
        duplicate(g)
        return
    kind = g.choices.chosen(_variants(op))
    if kind == "op":
        others = taking(BINARY, dtype_text(op.results[0].type))
        g.emit(g.choices.chosen(others), *op.operands, types=op.result_types)
        return
    if kind == "value":
        g.keep(g.constant(tensor_of(op.results[0])))
        return
    properties: dict[str, Any] = dict(op.properties)
    operands = list(op.operands)
    if kind == "swap":
        operands[-1], operands[-2] = operands[-2], operands[-1]
    elif kind == "direction":
        complex_ = "complex" in dtype_text(op.operands[0].type)
        properties["comparison_direction"] = g.choices.chosen(DIRECTIONS[:2] if complex_ else DIRECTIONS)
    else:
        _change_axes(g, op, properties)
    types = None if kind == "axes" and isinstance(op, hlo.TransposeOp) else op.result_types
    g.emit(type(op), *operands, types=types, **properties)


def _change_axes(g: Growth, op: GraphOp, properties: dict[str, Any]) -> None:
    rank = len(shape_of(op.results[0]))
    if isinstance(op, hlo.TransposeOp):
        properties["permutation"] = g.choices.permutation(rank)
    elif isinstance(op, hlo.ReverseOp):
        properties["dimensions"] = g.choices.some(range(rank))
    else:
        properties["iota_dimension"] = g.choices.integer(0, rank - 1)


@step("join", weight=3)
def join(g: Growth) -> None:
    """The latest value together with an earlier one of another type, made to fit."""
    x = g.pick()
    other = g.coerced(g.values[g.choices.integer(0, len(g.values) - 1)], tensor_of(x))
    op = g.choices.chosen(taking(BINARY, dtype_text(x.type)))
    g.emit(op, *((other, x) if g.choices.flag() else (x, other)), types=(x.type,))


@step("back", weight=2)
def back(g: Growth) -> None:
    """An earlier value becomes the latest, so that another chain goes on from it."""
    if g.values:
        g.keep(g.values[g.choices.integer(0, len(g.values) - 1)])
    else:
        g.pick()


@step("barrier", hlo.OptimizationBarrierOp, weight=0.5)
def barrier(g: Growth) -> None:
    """One or two values through an optimization barrier."""
    values = [g.pick() for _ in range(g.choices.integer(1, 2))]
    for result in g.b.emit_all(hlo.OptimizationBarrierOp, *values, types=[v.type for v in values]):
        g.keep(result)


@step("tuple", hlo.TupleOp, hlo.GetTupleElementOp, weight=0.3)
def tuple_(g: Growth) -> None:
    """Two values through a tuple."""
    values = [g.pick(), g.pick()]
    made = g.b.emit(hlo.TupleOp, *values)
    for index in g.choices.permutation(2):
        g.emit(hlo.GetTupleElementOp, made, index=index)
