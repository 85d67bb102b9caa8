"""A channels-first view of channels-last data is taken as late as possible: its transpose moves below its users.

Only transposes from channels-last to channels-first move, through elementwise ops, pads, slices, concatenations,
windows and reductions, where every other tensor operand is such a transpose too or costs nothing to transpose (a
constant, a weight, or a broadcast). They end where they meet their inverse, or a user that needs the order: a fold over
channels and space together is one, since it would round in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from typing_extensions import TypeIs
from xdsl.ir import OpResult, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.types import rank_of, shape_of, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, Rewrite, apply_rewrites


def _first_from_last(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _source(value: SSAValue) -> SSAValue | None:
    """The channels-last tensor of which `value` is the channels-first view."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.TransposeOp)):
        return None
    permutation = value.op.value("permutation")
    return value.op.operand if len(permutation) > 2 and permutation == _first_from_last(len(permutation)) else None


def _is_free(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp | WeightOp | hlo.BroadcastInDimOp)


def _inverse(permutation: Sequence[int]) -> list[int]:
    return [permutation.index(i) for i in range(len(permutation))]


def sunk(values: Sequence[SSAValue], b: Builder) -> list[SSAValue] | None:
    """Channels-last forms of all values: at least one view, others views or free; rank 0 stays. None if not so."""
    rank = max(rank_of(v) for v in values)
    if not any(_source(v) is not None for v in values):
        return None
    if not all(_source(v) is not None or rank_of(v) == 0 or (_is_free(v) and rank_of(v) == rank) for v in values):
        return None
    last = _inverse(_first_from_last(rank))
    return [source if (source := _source(v)) is not None else v if rank_of(v) == 0 else b.transpose(v, last)
            for v in values]  # fmt: skip


def _raised(result: SSAValue, b: Builder) -> list[SSAValue]:
    return [b.transpose(result, _first_from_last(rank_of(result)))]


def _to_last(values: Sequence[Any]) -> list[Any]:
    """A per-dimension list in channels-first order, in channels-last order."""
    return [values[i] for i in _inverse(_first_from_last(len(values)))]


def _keeps_order(dimensions: Sequence[int]) -> bool:
    """Whether channels-first dimensions come in the same order in channels-last: a fold over them is the same."""
    return not (1 in dimensions and any(d > 1 for d in dimensions))


def _is_elementwise(op: object) -> TypeIs[type[GraphOp]]:
    return isinstance(op, type) and issubclass(op, UnaryOp | BinaryOp) and hasattr(op, "name")


class SinkElementwise(Pattern):
    """Through elementwise ops."""

    name = "sink-transpose-elementwise"
    roots = (
        *filter(_is_elementwise, vars(hlo).values()),
        hlo.ClampOp, hlo.SelectOp, hlo.CompareOp, hlo.ConvertOp, hlo.IsFiniteOp,
    )  # fmt: skip

    def rewrite(self, op: Any, b: Builder) -> Sequence[SSAValue] | None:
        operands = sunk(op.operands, b)
        if operands is None:
            return None
        shape = _to_last(shape_of(op.results[0]))
        properties: dict[str, Any] = dict(op.properties)
        types = (with_shape(op.results[0], shape),)
        same = cast("type[GraphOp]", type(op))
        return _raised(b.emit(same, *operands, types=types, **properties), b)


class SinkPad(Pattern):
    """Through pads."""

    name = "sink-transpose-pad"
    roots = (hlo.PadOp,)

    def rewrite(self, op: hlo.PadOp, b: Builder) -> Sequence[SSAValue] | None:
        if (source := _source(op.operand)) is None:
            return None
        low, high = sizes_of(op.edge_padding_low), sizes_of(op.edge_padding_high)
        interior = op.value("interior_padding")
        return _raised(b.pad(source, op.padding_value, _to_last(low), _to_last(high), _to_last(interior)), b)


class SinkSlice(Pattern):
    """Through slices."""

    name = "sink-transpose-slice"
    roots = (hlo.SliceOp,)

    def rewrite(self, op: hlo.SliceOp, b: Builder) -> Sequence[SSAValue] | None:
        if (source := _source(op.operand)) is None:
            return None
        ranges = (sizes_of(op.start_indices), sizes_of(op.limit_indices), op.value("strides"))
        return _raised(b.slice(source, *[_to_last(r) for r in ranges]), b)


class SinkConcatenate(Pattern):
    """Through concatenations of views."""

    name = "sink-transpose-concatenate"
    roots = (hlo.ConcatenateOp,)

    def rewrite(self, op: hlo.ConcatenateOp, b: Builder) -> Sequence[SSAValue] | None:
        sources = [s for v in op.operands if (s := _source(v)) is not None]
        if len(sources) < len(op.operands):
            return None
        dimension: int = op.value("dimension")
        axis = _first_from_last(rank_of(op.result))[dimension]
        return _raised(b.concatenate(sources, axis), b)


class SinkReduceWindow(Pattern):
    """Through windows over one tensor."""

    name = "sink-transpose-reduce-window"
    roots = (hlo.ReduceWindowOp,)

    def rewrite(self, op: hlo.ReduceWindowOp, b: Builder) -> Sequence[SSAValue] | None:
        if len(op.operands) != 2 or (source := _source(op.operands[0])) is None:
            return None
        if not _keeps_order([i for i, size in enumerate(op.value("window_dimensions")) if size != 1]):
            return None
        window: dict[str, Any] = {name: _to_last(values) for name, values in op.window().items()}
        region = op.body.clone()
        return _raised(b.emit(hlo.ReduceWindowOp, source, op.operands[1], regions=(region,), **window), b)


class SinkReduce(Pattern):
    """Through reductions of one tensor; what remains keeps its order when the channels go, or the space does."""

    name = "sink-transpose-reduce"
    roots = (hlo.ReduceOp,)

    def rewrite(self, op: hlo.ReduceOp, b: Builder) -> Sequence[SSAValue] | None:
        if len(op.operands) != 2 or (source := _source(op.operands[0])) is None:
            return None
        rank = rank_of(source)
        permutation = _first_from_last(rank)
        reduced: tuple[int, ...] = op.value("dimensions")
        if not _keeps_order(reduced):
            return None
        kept = [permutation[i] for i in range(rank) if i not in reduced]
        folded = b.emit(
            hlo.ReduceOp, source, op.operands[1], regions=(op.body.clone(),),
            dimensions=sorted(permutation[i] for i in reduced),
        )  # fmt: skip
        order = sorted(kept)
        return [b.transpose(folded, [order.index(k) for k in kept])]


class SinkBroadcast(Pattern):
    """A broadcast that keeps all dimensions of a view (a reduced one, say) in place."""

    name = "sink-transpose-broadcast"
    roots = (hlo.BroadcastInDimOp,)

    def rewrite(self, op: hlo.BroadcastInDimOp, b: Builder) -> Sequence[SSAValue] | None:
        rank = rank_of(op.result)
        source = _source(op.operand)
        if source is None or list(op.value("broadcast_dimensions")) != list(range(rank)):
            return None
        return _raised(b.broadcast(source, _to_last(shape_of(op.result)), range(rank)), b)


PATTERNS: tuple[Rewrite, ...] = (
    SinkElementwise(), SinkPad(), SinkSlice(), SinkConcatenate(), SinkReduceWindow(), SinkReduce(), SinkBroadcast(),
)  # fmt: skip


@dataclass(frozen=True)
class SinkTransposes(Pass):
    """Move channels-first views below their users."""

    name: ClassVar[str] = "sink-transposes"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, PATTERNS, context)
