"""A weight matrix of dots is stored in panels, `[n / c, k, c]`: the columns that a processor's registers sum at a time
lie together, one row after the other, so that a product reads its weight from begin to end.

A dot by it is `[..., n / c, c]`, reshaped to `[..., n]`, and is fused like any other: elements that follow a reshape
keep their places. Each sum has the terms that it had, in the same order, but dots of floats leave the order open: E2.
Where columns do not come in panels, zeros fill the last one, and what they give is sliced off: the product never
computes it (`analysis/panels.py`). A weight that something else reads as well stays as it is, since it would be stored
twice, and so does one that folding would make a constant in the IR. Transposes are folded into the weights by
`fold-constants`, which must run next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.analysis.machines import PANELS, machine_named
from gcomp.dtypes import dtype_of
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import INLINE_BYTES, Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import dtype_text, shape_of, static_shape, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites
from gcomp.records import record

WORD = 4
"""Bytes that are multiplied together."""
FEW = 15
"""A panel of the best width may be filled up with zeros if there are so many times as many columns: narrower panels
take more time than these."""


@record
class Panels:
    """How a matrix whose dimension `contracted` is summed over becomes panels: filled up with `zeros` more columns,
    reshaped, and then transposed."""

    contracted: int
    shape: tuple[int, ...]
    zeros: int = 0

    @staticmethod
    def of(w: SSAValue, contracted: int, widths: Sequence[int], *, fills: bool) -> Panels | None:
        """The panels of a matrix, of the first width that divides its columns, or that few zeros fill up, or else
        fewest, if they may be filled (`fills`). Otherwise, and for fewer columns, all columns are one panel.

        None where that would change nothing.
        """
        shape = static_shape(w)
        if shape is None or len(shape) != 2:
            return None
        columns = shape[1 - contracted]
        few = columns // FEW if fills else 0
        width = next((c for c in widths if -columns % c <= few), min(widths, key=lambda c: -columns % c))
        if columns < min(widths) or (columns % width and not fills):
            width = columns if contracted == 1 else 0
        if not columns or not width:
            return None
        zeros = -columns % width
        cut = ((columns + zeros) // width, width)
        return Panels(contracted, (shape[0], *cut) if contracted == 0 else (*cut, shape[1]), zeros)

    @property
    def order(self) -> tuple[int, int, int]:
        """Panels first, then rows, then the columns of a panel."""
        return (1, 0, 2) if self.contracted == 0 else (0, 2, 1)

    def views(self, op: Operation) -> bool:
        """Whether a reader of the matrix does no more than to make these panels of it."""
        if not isinstance(op, hlo.ReshapeOp) or shape_of(op.result) != self.shape:
            return False
        users = [use.operation for use in op.result.uses]
        return all(isinstance(user, hlo.TransposeOp) and user.value("permutation") == self.order for user in users)


class PackDotWeight(Pattern):
    """Make panels of a matrix that only dots read, all over the same dimension, and reshape the product by them."""

    name = "pack-dot-weight"
    roots = (hlo.DotGeneralOp,)
    exactness = Exactness.E2

    def __init__(self, readings: Mapping[str, int] | None = None, widths: Sequence[int] = PANELS) -> None:
        self.readings = Counter(readings or {})
        """How many ops read each weight of the program."""
        self.widths = widths
        """Columns of a panel, the best first."""

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        d, w = op.dimensions, op.rhs
        if (contracted := _contracted_dimension(op, w)) is None or not self._is_stored(w) or _is_of_bytes(op):
            return None
        fills = isinstance(w.owner, WeightOp) and w.owner.symbol in b.program.weights and w.has_one_use()
        panels = Panels.of(w, contracted, self.widths, fills=fills)
        if panels is None or not all(
            panels.views(use.operation) or _contracted_dimension(use.operation, w) == contracted for use in w.uses
        ):
            return None
        packed = self._packed(self._filled(w, panels, b), panels, b)
        numbers = DotDimensions((), (), d.lhs_contracting_dimensions, (1,))
        properties: dict[str, Any] = {**op.properties, "dot_dimension_numbers": numbers}
        count, _, width = shape_of(packed)
        type = with_shape(op.result, [*shape_of(op.result)[:-1], count, width])
        product = b.emit(hlo.DotGeneralOp, op.lhs, packed, types=(type,), **properties)
        shape = shape_of(op.result)
        if not panels.zeros:
            return [b.reshape(product, shape)]
        whole = b.reshape(product, [*shape[:-1], count * width])
        return [b.slice_axis(whole, len(shape) - 1, 0, shape[-1])]

    def _is_stored(self, w: SSAValue) -> bool:
        return _is_stored(w, self.readings)

    def _filled(self, w: SSAValue, panels: Panels, b: Builder) -> SSAValue:
        """A matrix, with the columns of zeros after its own that fill its panels up."""
        op = w.owner
        if not panels.zeros or not isinstance(op, WeightOp):
            return w
        beside = Builder(b.program, InsertPoint.after(op))
        beside.location = b.location
        fill = [(0, 0), (0, 0)]
        fill[1 - panels.contracted] = (0, panels.zeros)
        return beside.weight(op.symbol, np.pad(b.program.weights[op.symbol], fill))

    def _packed(self, w: SSAValue, panels: Panels, b: Builder) -> SSAValue:
        """The panels of a matrix, made where it is read, once for all dots."""
        for use in w.uses:
            if panels.views(use.operation):
                return next(iter(use.operation.results[0].uses)).operation.results[0]
        beside = Builder(b.program, InsertPoint.after(cast(Operation, w.owner)))
        beside.location = b.location
        return beside.transpose(beside.reshape(w, panels.shape), panels.order)


class PackByteWeight(Pattern):
    """Make panels of words of a matrix of signed bytes that a dot multiplies unsigned ones by, `[n / c, k / 4, c, 4]`.

    Processors multiply four terms of a column at a time. Zeros fill up the last panel and the last word. Sums of
    integers are the same in any order: no bit changes.
    """

    name = "pack-byte-weight"
    roots = (hlo.DotGeneralOp,)

    def __init__(self, readings: Mapping[str, int] | None = None, widths: Sequence[int] = PANELS) -> None:
        self.readings = Counter(readings or {})
        self.widths = widths

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        d, w = op.dimensions, op.rhs
        contracted, shape = _contracted_dimension(op, w), static_shape(w)
        if contracted is None or shape is None or len(shape) != 2 or not _is_of_bytes(op) or 0 in shape:
            return None
        if not w.has_one_use() or not _is_stored(w, self.readings):
            return None
        rows, columns = shape[contracted], shape[1 - contracted]
        width = min(self.widths, key=lambda c: -columns % c)
        more = -rows % WORD, -columns % width
        words, count = (rows + more[0]) // WORD, (columns + more[1]) // width
        beside = Builder(b.program, InsertPoint.after(cast(Operation, w.owner)))
        beside.location = b.location
        whole = _padded(w, more if contracted == 0 else more[::-1], beside)
        if contracted == 0:
            packed = beside.transpose(beside.reshape(whole, (words, WORD, count, width)), (2, 0, 3, 1))
        else:
            packed = beside.transpose(beside.reshape(whole, (count, width, words, WORD)), (0, 2, 1, 3))
        (summed,) = d.lhs_contracting_dimensions
        x, given = op.lhs, shape_of(op.lhs)
        if more[0]:
            high = [more[0] if k == summed else 0 for k in range(len(given))]
            x = b.pad(x, b.full((), 0, "ui8"), [0] * len(given), high)
        x = b.reshape(x, (*given[:summed], words, WORD, *given[summed + 1 :]))
        numbers = DotDimensions((), (), (summed, summed + 1), (1, 3))
        product = b.dot(x, packed, numbers, "i32")
        shape = shape_of(op.result)
        if not more[1]:
            return [b.reshape(product, shape)]
        return [b.slice_axis(b.reshape(product, [*shape[:-1], count * width]), len(shape) - 1, 0, shape[-1])]


def _padded(w: SSAValue, high: Sequence[int], b: Builder) -> SSAValue:
    """A matrix of bytes with rows and columns of zeros after its own."""
    if not any(high):
        return w
    if isinstance(w.owner, WeightOp) and w.owner.symbol in b.program.weights:
        return b.weight(w.owner.symbol, np.pad(b.program.weights[w.owner.symbol], [(0, n) for n in high]))
    return b.pad(w, b.full((), 0, "i8"), (0, 0), high)


def _is_of_bytes(op: hlo.DotGeneralOp) -> bool:
    """Whether unsigned bytes are multiplied by signed ones, and summed in i32."""
    return [dtype_text(v.type) for v in (*op.operands, op.result)] == ["ui8", "i8", "i32"]


def _is_stored(w: SSAValue, readings: Mapping[str, int]) -> bool:
    """Whether a value is a weight that is read in one place, and remains one when it is folded; or a constant."""
    if isinstance(w.owner, hlo.ConstantOp):
        return len(w.owner.elements_attr.data.data) > INLINE_BYTES
    return isinstance(w.owner, WeightOp) and _nbytes(w) > INLINE_BYTES and readings[w.owner.symbol] == 1


def _contracted_dimension(op: Operation, w: SSAValue) -> int | None:
    """The only dimension of `w` that a dot sums over, where `w` is its right operand, and has no batches."""
    if not isinstance(op, hlo.DotGeneralOp) or op.rhs is not w or op.lhs is w:
        return None
    d = op.dimensions
    summed = d.rhs_contracting_dimensions
    return summed[0] if len(summed) == 1 and not d.rhs_batching_dimensions else None


def _nbytes(w: SSAValue) -> int:
    return prod(static_shape(w) or ()) * dtype_of(dtype_text(w.type)).itemsize


@dataclass(frozen=True)
class PackDotWeights(Pass):
    """Store the matrix weights of dots in panels, as wide as a machine (`target`) reads them best."""

    name: ClassVar[str] = "pack-dot-weights"
    exactness: ClassVar[Exactness] = Exactness.E2

    target: str = "cpu"

    def run(self, program: Program, context: PassContext) -> bool:
        readings = Counter(op.symbol for op in program.ops() if isinstance(op, WeightOp))
        widths = machine_named(self.target).panels
        return apply_rewrites(program, (PackDotWeight(readings, widths), PackByteWeight(readings, widths)), context)
