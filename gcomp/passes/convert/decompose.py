"""Ops that targets have no code for become ops that every target has: by definitions, series and positions.

What each op is made of is in `gcomp.decompositions`. It is for targets without a library of functions, such as GPUs:
XLA decomposes these ops itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.decompositions.amounts import AMOUNTS, resize
from gcomp.decompositions.bodies import vectorize_block
from gcomp.decompositions.broadcasting import broadcasting
from gcomp.decompositions.integers import power
from gcomp.decompositions.legacy import LEGACY, modern
from gcomp.decompositions.normalization import NORMALIZATIONS, normalize
from gcomp.decompositions.special import SPECIAL, special
from gcomp.dtypes import is_float, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.families import PLAIN
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import UNKNOWN, dtype_text, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Legacy(Pattern):
    """An op of old programs is what came after it."""

    name = "decompose-legacy"
    roots = tuple(LEGACY)

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return modern(b, op)


class Broadcasting(Pattern):
    """An op that broadcasts is the plain one, on operands that are broadcast before."""

    name = "decompose-broadcasting"
    roots = tuple(PLAIN)

    def applies(self, op: GraphOp) -> bool:
        return UNKNOWN not in shape_of(op.results[0])

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return broadcasting(b, op)


class Amounts(Pattern):
    """Where the result's sizes are known, amounts that are data say positions only."""

    name = "decompose-amounts"
    roots = tuple(AMOUNTS)

    def applies(self, op: GraphOp) -> bool:
        return all(UNKNOWN not in shape_of(v) for v in (*op.operands, *op.results))

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return resize(b, op)


class RealParts(Pattern):
    """A real number is its own real part and its own conjugate, and has no imaginary part."""

    name = "decompose-real-parts"
    roots = (hlo.RealOp, hlo.ImagOp, chlo.ConjOp)

    def applies(self, op: GraphOp) -> bool:
        return is_float(dtype_text(op.operands[0].type))

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        (x,) = op.operands
        return [b.full_like(x, 0) if isinstance(op, hlo.ImagOp) else x]


class Map(Pattern):
    """A map's ops on scalars are ops on whole tensors."""

    name = "decompose-map"
    roots = (hlo.MapOp,)

    def rewrite(self, op: hlo.MapOp, b: Builder) -> Sequence[SSAValue] | None:
        return vectorize_block(b, op.computation.block, list(op.operands), shape_of(op.result))


class IntegerPower(Pattern):
    """A power of integers is a product of squares."""

    name = "decompose-integer-power"
    roots = (hlo.PowerOp,)

    def applies(self, op: hlo.PowerOp) -> bool:
        return is_integer(dtype_text(op.result.type))

    def rewrite(self, op: hlo.PowerOp, b: Builder) -> Sequence[SSAValue] | None:
        return [power(b, op.lhs, op.rhs)]


class BatchNormalization(Pattern):
    """A batch normalization, or its gradient, is what its definition computes."""

    name = "decompose-batch-norm"
    roots = tuple(NORMALIZATIONS)
    exactness = Exactness.E2

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return normalize(b, op)


class Special(Pattern):
    """A special function of real numbers is its series."""

    name = "decompose-special"
    roots = tuple(SPECIAL)
    exactness = Exactness.E2

    def applies(self, op: GraphOp) -> bool:
        return is_float(dtype_text(op.results[0].type))

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return special(b, op)


REWRITES: tuple[Pattern, ...] = (
    Legacy(), Broadcasting(), Amounts(), RealParts(), Map(), IntegerPower(), BatchNormalization(), Special(),
)  # fmt: skip


@dataclass(frozen=True)
class Decompose(Pass):
    """Write ops that have no code on a target with others."""

    name: ClassVar[str] = "decompose"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
