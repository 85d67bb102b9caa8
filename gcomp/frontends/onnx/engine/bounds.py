"""What slices and gathers read lies within their operands: where sizes are symbolic, calls are held to it.

The verifier refuses a slice beyond a known size. Beyond a symbolic one, a call would read what is not there: `Gather`
of element 3 where there are two, or of anything where an axis is empty. So what is not known to hold when a node has
been imported becomes a constraint of the program, with the node's name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from xdsl.ir import Operation

from gcomp.dims import Dim, Size, dmin, product
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of

Bounds = Iterator[tuple[Size, Size]]
"""Pairs of sizes, of which the first must be at most the second."""


def _slice(op: hlo.SliceOp) -> Bounds:
    starts, limits = sizes_of(op.start_indices), sizes_of(op.limit_indices)
    for start, limit, size in zip(starts, limits, shape_of(op.operand), strict=True):
        yield from ((0, start), (start, limit), (limit, size))


def _gather(op: hlo.GatherOp) -> Bounds:
    """Indices are clamped into the operand; if there is one, the operand must have so much."""
    offsets = op.value("dimension_numbers").offset_dims
    count = dmin(1, product(size for i, size in enumerate(shape_of(op.result)) if i not in offsets))
    for read, size in zip(sizes_of(op.slice_sizes), shape_of(op.operand), strict=True):
        yield (read * count, size)


def _dynamic_slice(op: hlo.DynamicSliceOp) -> Bounds:
    yield from zip(sizes_of(op.slice_sizes), shape_of(op.operand), strict=True)


_ROWS: Mapping[type[Operation], Callable[[Any], Bounds]] = {
    hlo.SliceOp: _slice, hlo.GatherOp: _gather, hlo.DynamicSliceOp: _dynamic_slice,
}  # fmt: skip
"""Op class -> what must hold so that it reads only what there is."""


class BoundedBuilder(Builder):
    """A builder that remembers which ops have bounds to keep."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._reading: list[Operation] = []

    def insert(self, op: Operation) -> Operation:
        if type(op) in _ROWS:
            self._reading.append(op)
        return super().insert(op)

    @contextmanager
    def bounding(self, ctx: NodeContext) -> Generator[None]:
        """Note what must hold for the ops that are inserted inside, when all of them are."""
        outer, self._reading = self._reading, []
        try:
            yield
            for op in self._reading:
                _require(ctx, op)
        finally:
            self._reading = outer


def _require(ctx: NodeContext, op: Operation) -> None:
    for least, most in _ROWS[type(op)](op):
        if (isinstance(least, Dim) or isinstance(most, Dim)) and not ctx.at_most(least, most):
            ctx.require("le", least, most)


__all__ = ["BoundedBuilder"]
