"""Tiles of operands that the GPU's copy unit brings (TMA, of sm_90 and up): boxes of tensors that lie as it needs them.

The unit reads tensors of up to five dimensions, whose last is contiguous and whose other strides are multiples of 16
bytes, and gives 0 beyond their sizes. Whether the elements that a tile is computed from lie so is what their place
says, as a formula: a sum of coordinates times strides. Other elements are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.dims import Ranges, Size, product, symbols_of
from gcomp.dims.algebra import atom_size, terms_of
from gcomp.dtypes import bit_width
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.descriptors import DescribeOp
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.frames import Frame

_LARGEST = 1 << 31
"""Sizes of described tensors, and indices into them, are below this."""


class Span(NamedTuple):
    """What a coordinate's tile holds: the numbers from `first` on, along an axis of the tile of elements."""

    first: SSAValue
    lanes: int
    axis: int


class BoxElements(Elements):
    """Elements in a frame whose coordinates' tiles are spans: those that lie in boxes are loaded as boxes."""

    def __init__(self, frame: Frame, buffers: Mapping[SSAValue, SSAValue]) -> None:
        super().__init__(frame, buffers)
        self.spans: dict[int, Span] = {}
        """What coordinates' tiles hold. Two of them have an axis, others are single numbers, whose axis is -1."""

    def _load(self, value: SSAValue, access: IndexingMap) -> SSAValue:
        found = None if access.conditions else self._box(value, access)
        return super()._load(value, access) if found is None else found

    def _box(self, value: SSAValue, access: IndexingMap) -> SSAValue | None:
        """The tile as a box; None where its elements do not lie so."""
        b, frame = self.b, self.frame
        strides = strides_of(frame.place(access.shape, access.indices))
        if strides is None or not set(strides) <= set(self.spans):
            return None
        lanes = sorted((c for c in strides if self.spans[c].axis >= 0), key=lambda c: self.spans[c].axis)
        inner = next((c for c in reversed(lanes) if strides[c] == 1), None)
        if len(lanes) != 2 or inner is None:
            return None
        outer = [c for c in strides if c not in lanes] + [c for c in lanes if c != inner]
        order = [*outer, inner]
        if len(order) > 5 or not self._fits(dtype_text(value.type), strides, order):
            return None
        with b.outermost():
            sizes = [frame.position(frame.extents[c]) for c in order]
            apart = [frame.position(strides[c]) for c in order]
            box = [self.spans[c].lanes for c in order]
            described = b.describe(self.buffers[value], sizes, apart, box)
        found = b.load_box(described, [self.spans[c].first for c in order])
        found = b.reshape(found, box[-2:])
        return found if inner == lanes[1] else b.transpose(found)

    def _fits(self, dtype: str, strides: Mapping[int, Size], order: list[int]) -> bool:
        """Whether the copy unit takes a tensor of these strides and extents, the last coordinate innermost."""
        ranges, width = self.frame.ranges, bit_width(dtype)
        if dtype not in tile.MEMORY or self.spans[order[-1]].lanes * width < 8 * DescribeOp.ALIGNMENT:
            return False
        elements = 8 * DescribeOp.ALIGNMENT // width
        return all(_is_below(ranges, self.frame.extents[c], _LARGEST) for c in order) and all(
            ranges.divisible(strides[c], elements) is True for c in order[:-1]
        )


def _is_below(ranges: Ranges, size: Size, limit: int) -> bool:
    high = ranges.bounds(size)[1]
    return high is not None and high < limit


def strides_of(place: Size) -> dict[int, Size] | None:
    """The stride of each coordinate in a place that is a sum of coordinates times strides; None for another one."""
    found: dict[int, Size] = {}
    for monomial, coefficient in terms_of(place):
        coordinates = [atom for atom, _ in monomial if atom.head.startswith("$d")]
        others = [(atom, power) for atom, power in monomial if atom not in coordinates]
        if len(coordinates) != 1 or any(name.startswith("$d") for a, _ in others for name in symbols_of(atom_size(a))):
            return None
        if (coordinates[0], 1) not in monomial:
            return None
        stride = product([coefficient, *(atom_size(atom) for atom, power in others for _ in range(power))])
        coordinate = int(coordinates[0].head[2:])
        found[coordinate] = found.get(coordinate, 0) + stride
    return found


__all__ = ["BoxElements", "Span", "strides_of"]
