"""Cotangents of parts side by side: one concatenation, where each would be padded with zeros and all of them added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import OpResult, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, shape_of


@dataclass(frozen=True)
class Part:
    """A value that stands along one axis from `start` up to `stop`, and zeros around it."""

    padded: SSAValue
    value: SSAValue
    axis: int
    start: int
    stop: int

    @staticmethod
    def of(padded: SSAValue) -> Part | None:
        """What a value shows of another, padded along one axis by known sizes; None where it is no such thing."""
        if not isinstance(padded, OpResult) or not isinstance(op := padded.op, hlo.PadOp):
            return None
        value: SSAValue = op.operands[0]
        low, high = sizes_of(op.edge_padding_low), sizes_of(op.edge_padding_high)
        if any(sizes_of(op.interior_padding)) or not _is_zero(op.operands[1]):
            return None
        axes = [i for i, (before, after) in enumerate(zip(low, high, strict=True)) if before != 0 or after != 0]
        if len(axes) != 1:
            return None
        (axis,) = axes
        start, size, after = low[axis], shape_of(value)[axis], high[axis]
        if not (isinstance(start, int) and isinstance(size, int) and isinstance(after, int)) or min(start, after) < 0:
            return None
        return Part(padded, value, axis, start, start + size)


def join(b: Builder, parts: Sequence[Part]) -> SSAValue:
    """The sum of parts: side by side where they do not meet."""
    ordered = sorted(parts, key=lambda part: part.start)
    pairs = list(pairwise(ordered))
    axis = ordered[0].axis
    if len(parts) == 1 or any(one.stop > other.start or other.axis != axis for one, other in pairs):
        total = parts[0].padded
        for part in parts[1:]:
            total = b.add(total, part.padded)
        return total
    shape, end = shape_of(parts[0].padded), 0
    pieces: list[SSAValue] = []
    for part in ordered:
        pieces += _zeros(b, part.padded, axis, part.start - end)
        pieces.append(part.value)
        end = part.stop
    whole = shape[axis]
    pieces += _zeros(b, parts[0].padded, axis, whole - end if isinstance(whole, int) else 0)
    return b.concatenate(pieces, axis)


def _is_zero(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp) and value.op.value("value") == 0


def _zeros(b: Builder, like: SSAValue, axis: int, size: int) -> list[SSAValue]:
    """Zeros between parts, or behind them."""
    shape = [size if i == axis else n for i, n in enumerate(shape_of(like))]
    return [b.full(shape, 0, element_of(like))] if size else []
