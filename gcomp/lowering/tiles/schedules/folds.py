"""One reduction in a reduction kernel: what it carries from chunk to chunk of a row, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.elementwise import accumulator, apply_region, convert
from gcomp.lowering.tiles.elements.folding import ranges_of
from gcomp.lowering.tiles.frames import delinearize
from gcomp.lowering.tiles.schedules.identities import identity_of
from gcomp.lowering.tiles.tile import ConstantOp


@dataclass
class Columns:
    """A coordinate along rows: its number in the frame, its extent, and how many elements are taken at a time."""

    coordinate: int
    extent: Size
    block: int
    looped: bool
    chains: int = 0
    """In how many chains the elements of a whole row are combined, on processors."""


class Fold:
    """A reduction of `rows` rows at a time, whose result's element of a row is at `row`.

    It carries a tile for each operand, and where its region has no identity one more, of flags: which lanes hold
    elements yet.
    """

    def __init__(
        self, elements: Elements, op: hlo.ReduceOp, row: IndexingMap, columns: Columns, rows: int, axis: int = 1
    ) -> None:
        self.elements, self.op, self.row, self.columns = elements, op, row, columns
        self.b, self.frame = elements.b, elements.frame
        self.axis = axis
        """The axis along which a row's elements lie; the other one has the rows."""
        self.shape = (rows, columns.block) if axis else (columns.block, rows)
        self.folded = (rows, 1) if axis else (1, rows)
        self.count = len(op.results)
        self.kinds = [accumulator(op.body.block, dtype_text(r.type)) for r in op.results]
        self.identity = identity_of(op.body.block, self.kinds[0]) if self.count == 1 else None
        self.width = self.count + (self.identity is None)

    def items(self) -> list[SSAValue]:
        """The elements of a block of rows and columns; the identity, or a false flag, where there is none."""
        b = self.b
        ranged = delinearize(d(self.columns.coordinate), ranges_of(self.op, 0, 0))
        found: list[SSAValue] = []
        inside = self.frame.mask((), {d(self.columns.coordinate).text})
        for n in range(self.count):
            read = self.elements.reads(self.op, 0, n, self.row, ranged)
            item = convert(b, self.op, self.elements(self.op.operands[n], read), self.kinds[n])
            item = b.broadcast(item, self.shape)
            if self.identity is not None and inside is not None:
                item = b.apply("select", inside, item, b.constant(self.identity, self.kinds[n]))
            found.append(item)
        if self.identity is None:
            found.append(b.constant(True, "i1", self.shape) if inside is None else b.broadcast(inside, self.shape))
        return found

    def start(self) -> list[SSAValue]:
        """What is carried before the first chunk."""
        if self.identity is not None:
            return [self.b.constant(self.identity, self.kinds[0], self.shape)]
        zeros = [self.b.constant(0, kind, self.shape) for kind in self.kinds]
        return [*zeros, self.b.constant(False, "i1", self.shape)]

    def step(self, tiles: Sequence[SSAValue]) -> list[SSAValue]:
        """What is carried after one more chunk."""
        return self._combine(tiles, self.items())

    def _combine(self, first: Sequence[SSAValue], second: Sequence[SSAValue]) -> list[SSAValue]:
        b, region = self.b, self.op.body.block
        if self.identity is not None:
            return apply_region(b, region, [*first, *second])
        *one, one_there = first
        *other, other_there = second
        both = b.apply("and", one_there, other_there)
        together = apply_region(b, region, [*one, *other])
        alone = [b.apply("select", one_there, x, y) for x, y in zip(one, other, strict=True)]
        picked = [b.apply("select", both, t, x) for t, x in zip(together, alone, strict=True)]
        return [*picked, b.apply("or", one_there, other_there)]

    def whole(self, tiles: Sequence[SSAValue]) -> list[SSAValue]:
        """What is carried, of all lanes in one."""
        return list(self.b.reduce(tiles, self.axis, self._combine, self.columns.chains))

    def finish(self, tiles: Sequence[SSAValue]) -> list[SSAValue]:
        """Make the results of the rows known. They carry nothing on."""
        b, op = self.b, self.op
        found = self.whole(tiles)
        inits = [
            convert(b, op, self.elements(v, self.frame.access((), ())), kind)
            for v, kind in zip(op.operands[self.count :], self.kinds, strict=True)
        ]
        if self.identity is None or not _holds(inits[0], self.identity):
            starts = [b.broadcast(init, self.folded) for init in inits]
            first = starts if self.identity is not None else [*starts, b.constant(True, "i1", self.folded)]
            found = self._combine(first, found)
        for result, tile in zip(op.results, found, strict=False):
            self.elements.know(result, self.row, convert(b, op, tile, dtype_text(result.type)))
        return []


def _holds(value: SSAValue, number: float) -> bool:
    """Whether a value is a number, and a zero of its sign."""
    if not isinstance(value.owner, ConstantOp):
        return False
    found = value.owner.value.splat()
    return bool(found == number and np.signbit(float(found)) == np.signbit(float(number)))


def share_out(
    folds: Sequence[Fold], tiles: Sequence[SSAValue], step: Callable[[Fold, Sequence[SSAValue]], Sequence[SSAValue]]
) -> list[SSAValue]:
    """Each fold's share of the carried tiles, taken a step further."""
    found: list[SSAValue] = []
    taken = 0
    for fold in folds:
        found += step(fold, tiles[taken : taken + fold.width])
        taken += fold.width
    return found
