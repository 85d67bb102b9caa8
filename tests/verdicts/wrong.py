"""Passes that are wrong where judges used not to look: `--load` takes them from this file.

Each is right on ordinary inputs of ordinary sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import DimOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, is_tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value

x, y = Var("x"), Var("y")

SUBTRACT_SELF = Rule("subtract-self", Op(hlo.SubtractOp, x, x), Const(value=0))
"""Not bit for bit: inf - inf and NaN - NaN are NaN."""

SWAPPED = Rule(
    "atan2-swapped",
    Op(hlo.Atan2Op, Op(hlo.SineOp, Op(hlo.CbrtOp, x)), Op(hlo.CosineOp, Op(hlo.CbrtOp, y))),
    Op(hlo.Atan2Op, Op(hlo.CosineOp, Op(hlo.CbrtOp, y)), Op(hlo.SineOp, Op(hlo.CbrtOp, x))),
)
"""Plainly wrong, but no program has this left side by chance."""


class AtLeastTwo(Pattern):
    """min(n, 2) is 2: wrong for n = 1."""

    name = "minimum-with-two"
    roots = (DimOp,)

    def rewrite(self, op: DimOp, b: Builder) -> Sequence[SSAValue] | None:
        symbols = sorted(dims.symbols_of(op.formula))
        if len(symbols) != 1 or op.formula != dims.dmin(dims.symbol(symbols[0]), 2):
            return None
        return [b.constant(2, dtype_text(op.result.type))]


class Forgetful(Pattern):
    """The greatest of a row's elements, whatever the initial value is: wrong for a row without elements."""

    name = "maximum-without-init"
    roots = (hlo.ReduceOp,)
    exactness = Exactness.E1

    def rewrite(self, op: hlo.ReduceOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = [one.name for one in op.body.walk() if one.results]
        if inner != ["stablehlo.maximum"] or len(op.results) != 1 or not is_tensor(op.results[0].type):
            return None
        init = constant_value(op.init_values[0])
        if init is None or not -np.inf < float(np.asarray(init).astype(np.float64).max(initial=-np.inf)) < -1e30:
            return None
        return [b.reduce(hlo.MaximumOp, op.inputs[0], op.value("dimensions"))]


@dataclass(frozen=True)
class Subtraction(Pass):
    """x - x is 0."""

    name: ClassVar[str] = "subtract-self"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (SUBTRACT_SELF,), context)


@dataclass(frozen=True)
class Minimum(Pass):
    """Simplifies sizes."""

    name: ClassVar[str] = "minimum-with-two"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (AtLeastTwo(),), context)


@dataclass(frozen=True)
class Maximum(Pass):
    """Simplifies maxima."""

    name: ClassVar[str] = "maximum-without-init"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (Forgetful(),), context)


@dataclass(frozen=True)
class Rare(Pass):
    """Swaps the operands of an arctangent of certain operands."""

    name: ClassVar[str] = "atan2-swapped"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (SWAPPED,), context)


class AtMost(Pattern):
    """min(n, k) is n where n may be at most k: it takes "not known" for "yes"."""

    name = "size-at-most"
    roots = (hlo.MinimumOp,)

    def rewrite(self, op: hlo.MinimumOp, b: Builder) -> Sequence[SSAValue] | None:
        limit = constant_value(op.rhs)
        if limit is None or limit.shape or not isinstance(op.lhs, OpResult) or not isinstance(op.lhs.op, DimOp):
            return None
        if b.program.ranges.less_equal(op.lhs.op.formula, int(limit)) is False:
            return None
        return [op.lhs]


@dataclass(frozen=True)
class Compares(Pass):
    """Simplifies minima of sizes."""

    name: ClassVar[str] = "size-at-most"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (AtMost(),), context)
