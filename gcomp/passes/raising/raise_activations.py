"""GELU, SiLU and SwiGLU, written with primitives, become composites.

Constants count as those of the definition where they agree with it as far as their element type can say: E2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.analysis.spreads import MOST_FACTORS, Read, close, factors, same
from gcomp.exactness import Exactness
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, match_composite
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.composing import Raising
from gcomp.passes.rewriting import apply_rewrites

_TANH = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def monomial(read: Read) -> tuple[float, list[Read]]:
    """A product as a number and the factors that are none; powers and negations are written out.

    The product itself, where it has more than `MOST_FACTORS`.
    """
    number, rest = 1.0, list[Read]()
    left = [(read, 1)]
    steps = 0
    while left:
        whole, times = left.pop()
        for factor in factors(whole):
            power, negated, divided = (
                factor.operands(hlo.PowerOp), factor.operand(hlo.NegateOp), factor.operands(hlo.DivideOp),
            )  # fmt: skip
            steps += times
            if steps > MOST_FACTORS:
                return 1.0, [read]
            if (constant := factor.number()) is not None:
                for _ in range(times):
                    number *= constant
            elif power is not None and power[1].number() in (2.0, 3.0):
                left.append((power[0], times * int(power[1].number() or 0)))
            elif negated is not None:
                number *= (-1) ** times
                left.append((negated, times))
            elif divided is not None and (divisor := divided[1].number()):
                for _ in range(times):
                    number /= divisor
                left.append((divided[0], times))
            else:
                rest += [factor] * times
    return number, rest


def _is_power(found: tuple[float, list[Read]], number: float, x: Read, times: int) -> bool:
    return close(found[0], number, x.element) and len(found[1]) == times and all(same(factor, x) for factor in found[1])


def _is_cubic(read: Read, x: Read) -> bool:
    """Whether a value is `sqrt(2 / pi) * (x + 0.044715 * x**3)`, however it is factored."""
    number, rest = monomial(read)
    for i, part in enumerate(rest):
        others = [*rest[:i], *rest[i + 1 :]]
        for a, b in part.orders(hlo.AddOp):
            if not others and close(number, _TANH, x.element) and _is_power(monomial(a), 1, x, 1):
                return _is_power(monomial(b), _CUBIC, x, 3)
            if len(others) == 1 and same(others[0], x) and close(number, _TANH, x.element) and a.number() == 1:
                return _is_power(monomial(b), _CUBIC, x, 2)
    return False


def gate(read: Read, x: Read) -> str | None:
    """Which approximation of twice the normal distribution of x a value is, if it is one."""
    complement = read.operand(chlo.ErfcOp)
    if complement is not None and _is_power(monomial(complement), -math.sqrt(0.5), x, 1):
        return "erfc"
    for one, rest in read.orders(hlo.AddOp):
        if one.number() != 1:
            continue
        exact, cubic = rest.operand(chlo.ErfOp), rest.operand(hlo.TanhOp)
        if exact is not None and _is_power(monomial(exact), math.sqrt(0.5), x, 1):
            return "none"
        if cubic is not None and _is_cubic(cubic, x):
            return "tanh"
    return None


class RaiseGelu(Raising):
    """x * Phi(x), by erf, by erfc or by tanh."""

    name = "raise-gelu"
    roots = (hlo.MultiplyOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp, b: Builder) -> Sequence[SSAValue] | None:
        number, rest = monomial(Read.of(op.result))
        if len(rest) != 2 or number != 0.5:
            return None
        for x, other in (rest, rest[::-1]):
            kind = gate(other, x)
            if kind is not None and x.whole:
                return composite(b, "gcomp.gelu", [x.value], {"approximate": kind})
        return None


class RaiseSilu(Raising):
    """x * logistic(x), or x / (1 + exp(-x))."""

    name = "raise-silu"
    roots = (hlo.MultiplyOp, hlo.DivideOp)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp | hlo.DivideOp, b: Builder) -> Sequence[SSAValue] | None:
        x = self._gated(op)
        return None if x is None else composite(b, "gcomp.silu", [x])

    def _gated(self, op: hlo.MultiplyOp | hlo.DivideOp) -> SSAValue | None:
        if isinstance(op, hlo.DivideOp):
            for one, rest in Read.of(op.rhs).orders(hlo.AddOp):
                exponent = rest.operand(hlo.ExponentialOp)
                negated = None if exponent is None else exponent.operand(hlo.NegateOp)
                if one.number() == 1 and negated is not None and same(negated, Read.of(op.lhs)):
                    return op.lhs
            return None
        for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if isinstance(other.owner, hlo.LogisticOp) and other.owner.operand is x:
                return x
        return None


class RaiseSwiglu(Raising):
    """silu(gate) * x."""

    name = "raise-swiglu"
    roots = (hlo.MultiplyOp,)
    exactness = Exactness.E0

    def rewrite(self, op: hlo.MultiplyOp, b: Builder) -> Sequence[SSAValue] | None:
        for left, right in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            found = match_composite(b.program, left, "gcomp.silu")
            if found is not None and left.has_one_use():
                return composite(b, "gcomp.swiglu", [found[0].operands[0], right])
        return None


@dataclass(frozen=True)
class RaiseActivations(Pass):
    """Find GELU, SiLU and SwiGLU."""

    name: ClassVar[str] = "raise-activations"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (RaiseGelu(), RaiseSilu(), RaiseSwiglu()), context)
