"""Derivatives of data movement: the ops are linear, and the transpose brings each element back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.autodiff.sweeps import Maybe, Reverse, Row, register
from gcomp.autodiff.table import Linear, Nothing, chooses, expands, linear
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.stopping import stops
from gcomp.ir.types import rank_of, shape_of, with_shape


def restate(b: Builder, x: SSAValue, shape: Sequence[Size]) -> SSAValue:
    """x, whose sizes are those of `shape` by other formulas."""
    return x if shape_of(x) == tuple(shape) else b.emit(hlo.ReshapeOp, x, types=(with_shape(x, shape),))


def zeros(b: Builder, x: SSAValue) -> SSAValue:
    """Zeros of the type of x."""
    return b.full_like(x, 0)


def _broadcast(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """The sum over what was repeated."""
    shape, target = shape_of(op.operand), shape_of(op.result)
    dimensions: Sequence[int] = op.value("broadcast_dimensions")
    for size, place in zip(shape, dimensions, strict=True):
        if size not in (1, target[place]):
            raise UnsupportedError(
                f"{op.name} cannot be differentiated backward", where=where(op),
                why=f"it is not known whether a size {size} is 1, or the {target[place]} that it becomes",
                fix="give the symbols ranges or sizes that say it",
            )  # fmt: skip
    kept = {p: size for p, size in zip(dimensions, shape, strict=True) if size == target[p]}
    repeated = [i for i in range(len(target)) if i not in kept]
    summed = b.reduce(hlo.AddOp, g, repeated) if repeated else g
    # What is left stands in the result's order, and the operand's dimensions may not.
    order = sorted(kept)
    moved = b.transpose(summed, [order.index(p) for p in dimensions if p in kept])
    return b.reshape(moved, shape)


linear(hlo.BroadcastInDimOp, _broadcast, 0)
_RESHAPE = Linear(lambda b, op, g, _: b.emit(hlo.ReshapeOp, g, types=(op.operand.type,)), lambda op: (0,))
_STOP = Nothing("the source says that gradients stop here")


@chooses(hlo.ReshapeOp)
def reshape(op: Any) -> Row:
    """A reshape may be the mark of a constant."""
    return _STOP if stops(op) else _RESHAPE


linear(hlo.ReverseOp, lambda b, op, g, _: b.emit(hlo.ReverseOp, g, dimensions=op.value("dimensions")), 0)


def _transpose(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    permutation: Sequence[int] = op.value("permutation")
    return b.transpose(g, [permutation.index(i) for i in range(len(permutation))])


linear(hlo.TransposeOp, _transpose, 0)


def _part(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    axis: int = op.value("dimension")
    start: Size = 0
    for before in op.operands[:operand]:
        start = start + shape_of(before)[axis]
    return b.slice_axis(g, axis, start, start + shape_of(op.operands[operand])[axis])


linear(hlo.ConcatenateOp, _part, every=True)


def _slice(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """Zeros around and between."""
    low = sizes_of(op.start_indices)
    gaps = [stride - 1 for stride in op.value("strides")]
    high: list[Size] = []
    for size, start, count, gap in zip(shape_of(op.operand), low, shape_of(op.result), gaps, strict=True):
        high.append(size - start - count - (dims.dmax(count - 1, 0) * gap if gap else 0))
    return restate(b, b.pad(g, b.scalar_like(g, 0), low, high, gaps), shape_of(op.operand))


linear(hlo.SliceOp, _slice, 0)


def _unpad(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """What stands where the operand's elements stood, 0 where padding removed them."""
    shape, rank = shape_of(op.operand), rank_of(op.operand)
    if 0 in shape:
        return zeros(b, op.operand)
    low = [-size for size in sizes_of(op.edge_padding_low)]
    high = [-size for size in sizes_of(op.edge_padding_high)]
    spread = b.pad(g, b.scalar_like(g, 0), low, high)
    strides = [gap + 1 for gap in op.value("interior_padding")]
    if all(stride == 1 for stride in strides):
        return restate(b, spread, shape)
    return restate(b, b.slice(spread, [0] * rank, shape_of(spread), strides), shape)


def _pad(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    own = _unpad(b, op, g)
    if operand == 0:
        return own
    everything = range(rank_of(g))
    return b.subtract(b.reduce(hlo.AddOp, g, everything), b.reduce(hlo.AddOp, own, everything))


linear(hlo.PadOp, _pad, 0, 1)


@expands(hlo.BroadcastOp)
def legacy_broadcast(b: Builder, op: Any) -> Sequence[SSAValue]:
    """Repeated along new leading dimensions."""
    rank, result = rank_of(op.operand), rank_of(op.result)
    return [b.broadcast(op.operand, shape_of(op.result), range(result - rank, result))]


# ---- at run-time indices ----


def _dynamic_slice(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return b.emit(hlo.DynamicUpdateSliceOp, zeros(b, op.operand), g, *op.start_indices)


def _dynamic_update(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    if operand == 0:
        return b.emit(hlo.DynamicUpdateSliceOp, g, zeros(b, op.update), *op.start_indices)
    return b.emit(hlo.DynamicSliceOp, g, *op.start_indices, slice_sizes=shape_of(op.update))


class _Slices(Linear):
    """Cotangents of slices are added in place: in a loop, an iteration updates its slice, not the whole tensor."""

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        known, (cotangent,), b = sweep.get(op.operand), cotangents, sweep.b
        if known is None or cotangent is None:
            super().pull(sweep, op, cotangents)
        elif sweep.wants(op.operand):
            part = b.emit(hlo.DynamicSliceOp, known, *op.start_indices, slice_sizes=sizes_of(op.slice_sizes))
            total = b.add(part, cotangent)
            sweep.put(op.operand, b.emit(hlo.DynamicUpdateSliceOp, known, total, *op.start_indices))


register(_Slices(_dynamic_slice, lambda op: (0,)), hlo.DynamicSliceOp)
linear(hlo.DynamicUpdateSliceOp, _dynamic_update, 0, 1)

__all__ = ["restate", "zeros"]
