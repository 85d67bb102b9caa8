"""Parts of results: what a loop computes of each, and where that lies.

A result with padding around it is written by several kernels, and so is one that is made of pieces: along a
concatenation each kernel computes what one operand gives, and asks no element which operand that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.fusion.kernels import PIECES
from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.dims import Size, product
from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.indexing import updated_place
from gcomp.lowering.tiles.frames import Frame
from gcomp.lowering.tiles.schedules.borders import LEAST, pads_of

MOST_PIECES = 8
"""Kernels that a result is cut into, at most."""


@dataclass(frozen=True)
class Part:
    """Elements of a value from `first` on, so many in each dimension; the value begins at `low` of a result."""

    value: SSAValue
    shape: tuple[Size, ...]
    first: tuple[Size, ...]
    result: SSAValue
    low: tuple[Size, ...]

    def access(self, frame: Frame, indices: Sequence[Size]) -> IndexingMap:
        """The element of the value at indices of the part."""
        return frame.access(shape_of(self.value), [i + n for i, n in zip(indices, self.first, strict=True)])

    def place(self, elements: Elements, indices: Sequence[Size]) -> IndexingMap:
        """The element of the result at indices of the part."""
        begins = zip(indices, self.first, self.low, strict=True)
        return elements.frame.access(shape_of(self.result), [i + n + low for i, n, low in begins])


@dataclass(frozen=True)
class Slice(Part):
    """What a dynamic_update_slice writes, from where data say."""

    update: hlo.DynamicUpdateSliceOp

    def place(self, elements: Elements, indices: Sequence[Size]) -> IndexingMap:
        return updated_place(elements, self.update, indices)


Parts = Mapping[int, Part]
"""What is computed of results of a launch, by their numbers."""


def wholes(launch: LaunchOp) -> Parts:
    """All results, whole."""
    return {j: whole(value) for j, value in enumerate(launch.returned.operands)}


def by_shape(parts: Parts) -> list[Parts]:
    """The parts in groups of one shape."""
    found: dict[tuple[Size, ...], dict[int, Part]] = {}
    for j, part in parts.items():
        found.setdefault(part.shape, {})[j] = part
    return list(found.values())


def shape_of_all(parts: Parts) -> tuple[Size, ...]:
    """The shape of parts that have one."""
    return next(iter(parts.values())).shape


def whole(value: SSAValue, result: SSAValue | None = None) -> Part:
    """All of a value, which begins where a result of its shape does: the result that it is, if no other is named."""
    shape = shape_of(value)
    return Part(value, shape, (0,) * len(shape), result or value, (0,) * len(shape))


def slice_of(update: hlo.DynamicUpdateSliceOp) -> Slice:
    """The update of a dynamic_update_slice."""
    _, value, *_ = update.operands
    zeros = (0,) * len(shape_of(value))
    return Slice(value, shape_of(value), zeros, update.results[0], zeros, update)


def insides(launch: LaunchOp) -> Parts | None:
    """Results without what pads them, where others write that: whole rows are around what is computed, or its rows are
    whole vectors at least."""
    pads = pads_of(launch)
    if not pads or not all(_has_rows(shape_of(op.operand), shape_of(op.result)) for op in pads.values()):
        return None
    results = enumerate(launch.returned.operands)
    return {j: _inside(pads[j]) if j in pads else whole(value) for j, value in results}


def _has_rows(inner: Sequence[Size], padded: Sequence[Size]) -> bool:
    """Whether what is computed of a padded value are rows that are worth to be written apart."""
    return inner[-1] == padded[-1] or (isinstance(inner[-1], int) and inner[-1] >= LEAST)


def _inside(pad: hlo.PadOp) -> Part:
    return Part(
        pad.operand, shape_of(pad.operand), (0,) * len(shape_of(pad.operand)), pad.result,
        tuple(sizes_of(pad.edge_padding_low)),
    )  # fmt: skip


def pieces(launch: LaunchOp) -> Sequence[Parts]:
    """Results in pieces, cut where the operands of a concatenation meet that they are computed from; none if there is
    no such concatenation, or nothing gained."""
    values = list(launch.returned.operands)
    shape = shape_of(values[0])
    size = product(shape)
    if any(shape_of(v) != shape or bit_width(dtype_text(v.type)) < 8 for v in values):
        return []
    if isinstance(size, int) and size < PIECES:
        return []
    seen = set[SSAValue]()
    found = next((cut for v in values if (cut := _concatenation(v, seen)) is not None), None)
    if found is None or not 1 < len(found[1]) <= MOST_PIECES:
        return []
    axis, counts = found
    cuts: list[Parts] = []
    first: Size = 0
    for count in counts:
        own = (*shape[:axis], count, *shape[axis + 1 :])
        begin = tuple(first if k == axis else 0 for k in range(len(shape)))
        cuts.append({j: Part(v, own, begin, v, (0,) * len(shape)) for j, v in enumerate(values)})
        first = first + count
    return cuts


def _concatenation(value: SSAValue, seen: set[SSAValue]) -> tuple[int, list[Size]] | None:
    """The dimension of a value along which pieces meet, and how long each is."""
    op = value.owner
    if value in seen or not isinstance(op, Operation):
        return None
    seen.add(value)
    if isinstance(op, hlo.ConcatenateOp):
        axis: int = op.value("dimension")
        return axis, [n for v in op.operands if (n := shape_of(v)[axis]) != 0]
    if isinstance(op, hlo.TransposeOp):
        found = _concatenation(op.operand, seen)
        return None if found is None else (list(op.value("permutation")).index(found[0]), found[1])
    if role_of(op) is not Role.ELEMENTWISE:
        return None
    same = [v for v in op.operands if shape_of(v) == shape_of(value)]
    return next((found for v in same if (found := _concatenation(v, seen)) is not None), None)


__all__ = ["Part", "Parts", "Slice", "by_shape", "insides", "pieces", "shape_of_all", "slice_of", "whole", "wholes"]
