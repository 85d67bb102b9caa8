"""Softmax, log-softmax and log-sum-exp, written with primitives, become composites.

All three must subtract the maximum along the same dimension: without it, an exponential overflows where the composite's
does not. The composites compute in f32 or wider, and round once: E2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.analysis.spreads import Read, match_fold, same
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.composing import Raising, narrow_composite, skip_conversions
from gcomp.passes.rewriting import apply_rewrites


def match_shift(exponent: Read) -> tuple[Read, Read, frozenset[int]] | None:
    """Of `x - max(x)`: x, the maximum, and the dimensions along which it is the maximum."""
    sides = exponent.operands(hlo.SubtractOp)
    if sides is None:
        return None
    x, highest = sides
    found = _maximum(highest)
    if found is None or not same(found[0], x):
        return None
    return x, highest, found[1]


def _maximum(read: Read) -> tuple[Read, frozenset[int]] | None:
    """What the maximum is taken of; also where it is joined with -inf, or made 0 where it is not finite."""
    for low, rest in read.orders(hlo.MaximumOp):
        if low.number() == float("-inf"):
            return _maximum(rest)
    choice = read.operands(hlo.SelectOp)
    if choice is not None:
        finite, highest, zero = choice
        tested = finite.operand(hlo.IsFiniteOp)
        if tested is not None and zero.number() == 0 and same(tested, highest):
            return _maximum(highest)
    return read.folded_read(hlo.MaximumOp)


class RaiseSoftmax(Raising):
    """exp(x - max(x)) / sum(exp(x - max(x)))."""

    name = "raise-softmax"
    roots = (hlo.DivideOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.DivideOp, b: Builder) -> Sequence[SSAValue] | None:
        top, bottom = Read.of(op.lhs), Read.of(op.rhs)
        exponent = top.operand(hlo.ExponentialOp)
        if exponent is None or (found := match_shift(exponent)) is None or len(found[2]) != 1 or not found[0].whole:
            return None
        total = skip_conversions(bottom).folded_read(hlo.AddOp)
        if total is None or total[1] != found[2] or not same(skip_conversions(total[0]), top):
            return None
        return composite(b, "gcomp.softmax", [found[0].value], {"axis": min(found[2])})


class RaiseLogSoftmax(Raising):
    """x - max(x) - log(sum(exp(x - max(x))))."""

    name = "raise-log-softmax"
    roots = (hlo.SubtractOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.SubtractOp, b: Builder) -> Sequence[SSAValue] | None:
        left, right = Read.of(op.lhs), Read.of(op.rhs)
        sums = right.operand(hlo.LogOp)
        if sums is None or (found := match_shift(left)) is None or len(found[2]) != 1 or not found[0].whole:
            return None
        total = skip_conversions(sums).folded_read(hlo.AddOp)
        exponent = None if total is None else skip_conversions(total[0]).operand(hlo.ExponentialOp)
        if total is None or exponent is None or total[1] != found[2] or not same(exponent, left):
            return None
        return composite(b, "gcomp.log_softmax", [found[0].value], {"axis": min(found[2])})


class RaiseLogSumExp(Raising):
    """log(sum(exp(x - max(x)))) + max(x), the maximum made 0 where it is infinite."""

    name = "raise-logsumexp"
    roots = (hlo.AddOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        for logarithm, shift in Read.of(op.result).orders(hlo.AddOp):
            sums = logarithm.operand(hlo.LogOp)
            if sums is None:
                continue
            # A sum of exponentials is positive.
            total = (sums.operand(hlo.AbsOp) or sums).bare()
            fold = match_fold(total.value)
            if fold is None or fold[0] is not hlo.AddOp:
                continue
            exponent = Read.of(fold[1]).operand(hlo.ExponentialOp)
            found = None if exponent is None else match_shift(exponent)
            if found is None or len(fold[2]) != 1 or found[2] != fold[2] or not _is_guarded(found[1]):
                continue
            if not found[0].whole or not total.ordered:
                continue
            # What is added again is the maximum that was subtracted, and lies as the sum does.
            kept, highest = shift.bare(), found[1].bare()
            if kept.value is not highest.value or kept.places != total.places or not highest.ordered:
                continue
            (kept,) = composite(b, "gcomp.logsumexp", [found[0].value], {"axis": min(found[2])})
            return [b.reshape(kept, shape_of(op.result))]
        return None


def _is_guarded(highest: Read) -> bool:
    """Whether a maximum is made 0 where it is not finite: else infinities give NaN."""
    return highest.operands(hlo.SelectOp) is not None


class RaiseNarrowSoftmax(Raising):
    """A softmax of x in f32, converted back to the narrow type of x: the composite does that by itself."""

    name = "raise-narrow-softmax"
    roots = (hlo.ConvertOp,)
    exactness = Exactness.E0

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        if (found := narrow_composite(op, b, "gcomp.softmax", "gcomp.log_softmax")) is None:
            return None
        inner, source, attributes = found
        return composite(b, inner.composite_name, [source], attributes)


@dataclass(frozen=True)
class RaiseSoftmaxPass(Pass):
    """Find softmax, log-softmax and log-sum-exp."""

    name: ClassVar[str] = "raise-softmax"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        patterns = (RaiseSoftmax(), RaiseLogSoftmax(), RaiseLogSumExp(), RaiseNarrowSoftmax())
        return apply_rewrites(program, patterns, context)
