"""Passes that are wrong where judges used not to look: `--load` takes them from this file.

Each is right on ordinary inputs of ordinary sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue, Use

from gcomp import dims
from gcomp.dtypes import bit_width, is_float, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import DimOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, is_tensor, rank_of, shape_of
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


LOG_OF_EXP = Rule("log-of-exp", Op(hlo.LogOp, Op(hlo.ExponentialOp, x)), x, exactness=Exactness.E2)
"""Not where the exponential overflows."""


class Cancel(Pattern):
    """x + (y - x) is y: wrong for an infinite x."""

    name = "cancel"
    roots = (hlo.AddOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.rhs)
        return [inner.lhs] if isinstance(inner, hlo.SubtractOp) and inner.rhs is op.lhs else None


class ThereAndBack(Pattern):
    """An integer converted to a float as wide, and back, is the integer: wrong between the floats."""

    name = "convert-back"
    roots = (hlo.ConvertOp,)

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = maker_of(op.operand)
        if not isinstance(inner, hlo.ConvertOp) or inner.operand.type != op.result.type:
            return None
        here, there = dtype_text(op.result.type), dtype_text(inner.result.type)
        return [inner.operand] if is_integer(here) and is_float(there) and bit_width(there) >= bit_width(here) else None


class HalfTwice(Pattern):
    """Twice half of a size is the size: wrong for odd ones."""

    name = "half-size"
    roots = (DimOp,)

    def rewrite(self, op: DimOp, b: Builder) -> Sequence[SSAValue] | None:
        for symbol in map(dims.symbol, sorted(dims.symbols_of(op.formula))):
            if op.formula == dims.floordiv(symbol, 2) * 2:
                return [b.dim(symbol, dtype_text(op.result.type))]
        return None


class KnownBranch(Pattern):
    """A case of a constant is that branch: wrong for negative ones, which take the last."""

    name = "known-branch"
    roots = (hlo.CaseOp,)

    def rewrite(self, op: hlo.CaseOp, b: Builder) -> Sequence[SSAValue] | None:
        index = constant_value(op.index)
        if index is None:
            return None
        branch = op.branches[min(max(int(index), 0), len(op.branches) - 1)].block
        returned = branch.last_op
        return [*returned.operands] if returned is not None and branch.first_op is returned else None


class Invariant(Pattern):
    """What a loop carries and hands on unchanged is what it began with: wrong where two are exchanged."""

    name = "invariant-carry"
    roots = (hlo.WhileOp,)

    def rewrite(self, op: hlo.WhileOp, b: Builder) -> Sequence[SSAValue] | None:
        if not self._uses(op):
            return None
        copy = op.clone()
        b.insert(copy)
        for use, start in self._uses(copy):
            use.operation.operands[use.index] = start
        return [*copy.results]

    def _uses(self, op: hlo.WhileOp) -> list[tuple[Use, SSAValue]]:
        """Reads of what is taken for invariant, and what that began with."""
        body = op.body.block
        returned = body.last_op
        assert returned is not None
        same = [i for i, value in enumerate(returned.operands) if value in body.args]
        reads = [(use, i) for i in same for block in (body, op.cond.block) for use in block.args[i].uses]
        return [(use, op.operands[i]) for use, i in reads if not isinstance(use.operation, hlo.ReturnOp)]


class OneWindow(Pattern):
    """A maximum over windows of one element is its operand: wrong where padding moves them."""

    name = "window-of-one"
    roots = (hlo.ReduceWindowOp,)
    exactness = Exactness.E1

    def rewrite(self, op: hlo.ReduceWindowOp, b: Builder) -> Sequence[SSAValue] | None:
        window = op.window()
        ones = ("window_dimensions", "window_strides", "base_dilations")
        if (
            len(op.inputs) != 1
            or op.inputs[0].type != op.results[0].type
            or any(n != 1 for k in ones for n in window[k])
        ):
            return None
        init = constant_value(op.init_values[0])
        if not isinstance(op.body.block.first_op, hlo.MaximumOp) or init is None or init.dtype.kind != "f":
            return None
        return [op.inputs[0]] if np.isneginf(init).all() else None


class OneUpdate(Pattern):
    """A scatter of one element puts it there: wrong out of bounds, where scatter leaves it out."""

    name = "scatter-one"
    roots = (hlo.ScatterOp,)

    def rewrite(self, op: hlo.ScatterOp, b: Builder) -> Sequence[SSAValue] | None:
        body = op.update_computation.block
        if len(op.inputs) != 1 or rank_of(op.inputs[0]) != 1 or rank_of(op.updates[0]):
            return None
        if shape_of(op.scatter_indices) != (1,) or op.dimensions.index_vector_dim or body.first_op is not body.last_op:
            return None
        if body.last_op is None or body.last_op.operands[0] is not body.args[1]:
            return None
        place, new = b.reshape(op.scatter_indices, ()), b.reshape(op.updates[0], (1,))
        return [b.emit(hlo.DynamicUpdateSliceOp, op.inputs[0], new, place, types=(op.inputs[0].type,))]


def maker_of(value: SSAValue) -> Operation | None:
    """The op whose result a value is."""
    return value.op if isinstance(value, OpResult) else None


def pass_of(rewrite: Rule | Pattern) -> type[Pass]:
    """The pass that applies one rewrite, and has its name."""

    @dataclass(frozen=True)
    class Only(Pass):
        name: ClassVar[str] = rewrite.name
        exactness: ClassVar[Exactness] = rewrite.exactness

        def run(self, program: Program, context: PassContext) -> bool:
            return apply_rewrites(program, (rewrite,), context)

    return Only


LOG_OF_EXP_PASS, CANCEL, CONVERT_BACK = pass_of(LOG_OF_EXP), pass_of(Cancel()), pass_of(ThereAndBack())
HALF_SIZE, KNOWN_BRANCH, INVARIANT = pass_of(HalfTwice()), pass_of(KnownBranch()), pass_of(Invariant())
WINDOW_OF_ONE, SCATTER_ONE = pass_of(OneWindow()), pass_of(OneUpdate())


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
