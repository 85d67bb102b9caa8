"""How large sums of products of quantized tensors can be, and whether f32 holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.analysis.constants import stored_array
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of

Array = np.ndarray[Any, Any]

LIMITS: Mapping[str, tuple[int, int]] = {
    "i2": (-2, 1), "ui2": (0, 3), "i4": (-8, 7), "ui4": (0, 15), "i8": (-128, 127), "ui8": (0, 255),
}  # fmt: skip
"""Element types that fit 8 bits, and their least and greatest values."""

EXACT = 2**24
"""Integers up to this one are numbers of f32."""

_WORDS = -(2**31), 2**31 - 1
"""What a zero point of 32 bits may be, of which nothing else is known."""


def source_integer(value: SSAValue, element: str) -> SSAValue | None:
    """The integer of at most 8 bits that a tensor of another element type was converted from."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConvertOp) and dtype_text(value.type) == element):
        return None
    return value.op.operand if dtype_text(value.op.operand.type) in LIMITS else None


def stored_integers(value: SSAValue, program: Program) -> Array | None:
    """The integers of a constant or a weight, or of some of it in another order."""
    array = _moved(value, program)
    return None if array is None else array.astype(np.int64)


def _moved(value: SSAValue, program: Program) -> Array | None:
    """What is stored, seen through reshapes, transpositions and slices."""
    if (array := stored_array(value, program)) is not None or not isinstance(value, OpResult):
        return array
    op = value.op
    if not isinstance(op, hlo.ReshapeOp | hlo.TransposeOp | hlo.SliceOp):
        return None
    sizes = shape_of(value)
    if not all(isinstance(n, int) for n in sizes) or (array := _moved(op.operand, program)) is None:
        return None
    if isinstance(op, hlo.TransposeOp):
        return array.transpose(op.value("permutation"))
    if isinstance(op, hlo.ReshapeOp):
        return array.reshape(cast("tuple[int, ...]", sizes))
    ends = zip(sizes_of(op.start_indices), sizes_of(op.limit_indices), op.value("strides"), strict=True)
    return array[tuple([slice(*cast("tuple[int, int, int]", end)) for end in ends])]


def known_integers(value: SSAValue, program: Program) -> Array | None:
    """The integers that there are in a constant seen through widening, reshapes and broadcasts, in any order."""
    return stored_integers(_narrowest(value), program)


def _narrowest(value: SSAValue) -> SSAValue:
    """What widening, reshapes and broadcasts lead to."""
    while isinstance(value, OpResult) and (
        isinstance(value.op, hlo.ReshapeOp | hlo.BroadcastInDimOp) or source_integer(value, "i32") is not None
    ):
        value = value.op.operands[0]
    return value


@dataclass(frozen=True)
class Differences:
    """Quantized values less a zero point (None: less nothing)."""

    quantized: SSAValue
    zero: SSAValue | None
    program: Program

    def greatest(self) -> int:
        """A bound of their magnitudes."""
        low, high = LIMITS[dtype_text(self.quantized.type)]
        least, greatest = self._points()
        return max(high - least, greatest - low)

    def _points(self) -> tuple[int, int]:
        """The least and the greatest zero point that there may be: its own type says, not that of the values."""
        if self.zero is None:
            return 0, 0
        points = known_integers(self.zero, self.program)
        if points is not None and points.size:
            return int(points.min()), int(points.max())
        return LIMITS.get(dtype_text(_narrowest(self.zero).type), _WORDS)

    def greatest_sum(self, axes: Sequence[int], count: int) -> int:
        """A bound of the sums of their magnitudes over some dims, which hold `count` elements."""
        quantized = stored_integers(self.quantized, self.program)
        points = np.zeros(1, np.int64) if self.zero is None else known_integers(self.zero, self.program)
        if quantized is None or points is None or points.size != 1:
            return count * self.greatest()
        sums = np.abs(quantized - points.reshape(())).sum(axis=tuple(axes))
        return int(sums.max()) if sums.size else 0


def f32_holds(
    left: Differences, right: Differences, summed: Sequence[int], sizes: Sequence[Size], added: int = 0
) -> bool:
    """Whether f32 holds every partial sum of products, and each sum with as much as `added` added to it.

    `summed` are the dims of the right operand that are summed over, `sizes` their sizes.
    """
    count = dims.product(sizes)
    if not isinstance(count, int):
        return False
    return left.greatest() * right.greatest_sum(summed, count) + added < EXACT


def words_hold(left: Differences, right: Differences, sizes: Sequence[Size]) -> bool:
    """Whether 32 bits hold every sum of products over dims of these sizes, whatever the quantized values are."""
    count = dims.product(sizes)
    return isinstance(count, int) and count * left.greatest() * right.greatest() < 2**31
