"""Rotary position embedding, written with primitives, becomes a composite.

Where each half is computed by itself, the cosines and sines of the halves are joined: the same products and sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.analysis.spreads import Read, same
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.composing import Raising, compact
from gcomp.passes.rewriting import apply_rewrites


def half(read: Read) -> tuple[SSAValue, int] | None:
    """Of which value a slice is the first or the second half, along its last dimension."""
    op = read.value.owner
    if not isinstance(op, hlo.SliceOp):
        return None
    shape, size = shape_of(op.operand), shape_of(op.operand)[-1:]
    starts, limits, strides = (sizes_of(op.properties[n]) for n in ("start_indices", "limit_indices", "strides"))
    if not size or not isinstance(size[0], int) or size[0] % 2 or any(s != 1 for s in strides):
        return None
    if any(s != 0 for s in starts[:-1]) or tuple(limits[:-1]) != tuple(shape[:-1]):
        return None
    middle, bounds = size[0] // 2, (starts[-1], limits[-1])
    if bounds not in ((0, middle), (middle, size[0])):
        return None
    return op.operand, int(bounds[0] != 0)


def products(read: Read, x: SSAValue, number: int) -> Iterator[Read]:
    """The factors by which a half of x is multiplied, if a value is such a product."""
    for part, factor in read.orders(hlo.MultiplyOp):
        if part.whole and half(part) == (x, number):
            yield factor


class RaiseRotary(Raising):
    """x * cos + concatenate(-x2, x1) * sin."""

    name = "raise-rotary"
    roots = (hlo.AddOp,)
    exactness = Exactness.E1

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        for straight, turned in Read.of(op.result).orders(hlo.AddOp):
            for joined, sine in turned.orders(hlo.MultiplyOp):
                x = self._turned(joined)
                for source, cosine in straight.orders(hlo.MultiplyOp):
                    if x is None or source.value is not x or not source.whole:
                        continue
                    if (tables := compact([cosine, sine], b)) is not None:
                        return composite(b, "gcomp.rotary", [x, *tables])
        return None

    def _turned(self, read: Read) -> SSAValue | None:
        """The x of which a value is `concatenate(-x2, x1)`."""
        op = read.value.owner
        if not isinstance(op, hlo.ConcatenateOp) or len(op.operands) != 2 or not read.whole:
            return None
        if op.value("dimension") != rank_of(op.results[0]) - 1:
            return None
        negated = Read.of(op.operands[0]).op(hlo.NegateOp)
        if negated is None:
            return None
        second, first = half(Read.of(negated.operands[0])), half(Read.of(op.operands[1]))
        if second is None or first is None or second[0] is not first[0] or (first[1], second[1]) != (0, 1):
            return None
        return first[0]


class RaiseRotaryHalves(Raising):
    """concatenate(x1 * cos - x2 * sin, x2 * cos + x1 * sin)."""

    name = "raise-rotary-halves"
    roots = (hlo.ConcatenateOp,)
    exactness = Exactness.E1

    def rewrite(self, op: hlo.ConcatenateOp, b: Builder) -> Sequence[SSAValue] | None:
        if len(op.operands) != 2 or op.value("dimension") != rank_of(op.results[0]) - 1:
            return None
        sides = Read.of(op.operands[0]).operands(hlo.SubtractOp)
        x = None if sides is None else self._source(sides[0])
        if sides is None or x is None or x.type != op.results[0].type:
            return None
        for cosine in products(sides[0], x, 0):
            for sine in products(sides[1], x, 1):
                if not self._adds(Read.of(op.operands[1]), x, cosine, sine):
                    continue
                if (tables := compact([cosine, sine], b)) is not None:
                    return composite(b, "gcomp.rotary", [x, *[self._twice(b, table) for table in tables]])
        return None

    def _source(self, product: Read) -> SSAValue | None:
        for part, _ in product.orders(hlo.MultiplyOp):
            found = half(part)
            if found is not None and found[1] == 0:
                return found[0]
        return None

    def _adds(self, read: Read, x: SSAValue, cosine: Read, sine: Read) -> bool:
        return any(
            any(same(c, cosine) for c in products(left, x, 1)) and any(same(s, sine) for s in products(right, x, 0))
            for left, right in read.orders(hlo.AddOp)
        )

    def _twice(self, b: Builder, table: SSAValue) -> SSAValue:
        last = rank_of(table) - 1
        return table if shape_of(table)[last] == 1 else b.concatenate([table, table], last)


@dataclass(frozen=True)
class RaiseRotaryPass(Pass):
    """Find rotary position embeddings."""

    name: ClassVar[str] = "raise-rotary"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (RaiseRotary(), RaiseRotaryHalves()), context)
