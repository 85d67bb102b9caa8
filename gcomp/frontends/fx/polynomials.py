"""Orthogonal polynomials of a degree that is data: their recurrences, as long as an element's degree asks for.

The cases are those of torch's own (ATen/native/Math.h): closed forms at the ends of the interval, and, for high degrees
within it, trigonometric ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports_table
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, rank_of, tensor

Step = Callable[["_Terms", SSAValue, SSAValue, SSAValue], SSAValue]


class _Terms:
    """Arithmetic on tensors of one type."""

    def __init__(self, b: Builder, x: SSAValue) -> None:
        self.b, self.x = b, x

    def number(self, value: float) -> SSAValue:
        return self.b.full_like(self.x, value)

    def times(self, value: float, x: SSAValue) -> SSAValue:
        return self.b.multiply(self.number(value), x)

    def plus(self, x: SSAValue, value: float) -> SSAValue:
        return self.b.add(x, self.number(value))


def _double_argument(t: _Terms, k: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
    """Chebyshev's: 2 x q - p."""
    return t.b.subtract(t.b.multiply(t.times(2, t.x), q), p)


def _hermite(t: _Terms, k: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
    b = t.b
    return b.subtract(b.multiply(t.times(2, t.x), q), b.multiply(t.times(2, k), p))


def _hermite_e(t: _Terms, k: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
    return t.b.subtract(t.b.multiply(t.x, q), t.b.multiply(k, p))


def _laguerre(t: _Terms, k: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
    b = t.b
    first = b.add(t.times(2, k), b.subtract(t.number(1), t.x))
    return b.divide(b.subtract(b.multiply(first, q), b.multiply(k, p)), t.plus(k, 1))


def _legendre(t: _Terms, k: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
    b = t.b
    first = b.multiply(t.plus(t.times(2, k), 1), t.x)
    return b.divide(b.subtract(b.multiply(first, q), b.multiply(k, p)), t.plus(k, 1))


@dataclass(frozen=True)
class Family:
    """A family: the polynomial of degree 1 as (slope, constant), the recurrence, and the forms at 1 and -1.

    The value at 1 is 1, n + 1 or 2 n + 1 (`right`: 0, 1, 2), that at -1 the same with the sign of (-1)^n (`left`).
    `closed` gives the trigonometric form of the degree and the angle, for degrees greater than `above`.
    """

    first: tuple[float, float]
    step: Step
    right: int | None = None
    left: int | None = None
    closed: Callable[[_Terms, SSAValue, SSAValue], SSAValue] | None = None
    above: int = 0
    limited: bool = False


def _cosines(t: _Terms, n: SSAValue, angle: SSAValue) -> SSAValue:
    return t.b.emit(hlo.CosineOp, t.b.multiply(n, angle))


def _quotient(op: type, shift: float, part: float) -> Callable[[_Terms, SSAValue, SSAValue], SSAValue]:
    """f((n + shift) angle) / f(part angle)."""

    def form(t: _Terms, n: SSAValue, angle: SSAValue) -> SSAValue:
        b = t.b
        return b.divide(b.emit(op, b.multiply(t.plus(n, shift), angle)), b.emit(op, t.times(part, angle)))

    return form


def _chebyshev(above: int) -> dict[str, Family]:
    forms = {
        "t": ((1.0, 0.0), 0, 0, _cosines),
        "u": ((2.0, 0.0), 1, 1, _quotient(hlo.SineOp, 1, 1)),
        "v": ((2.0, -1.0), 0, 2, _quotient(hlo.CosineOp, 0.5, 0.5)),
        "w": ((2.0, 1.0), 2, 0, _quotient(hlo.SineOp, 0.5, 0.5)),
    }
    return {
        kind: Family(first, _double_argument, right, left, closed, 6 if kind == "t" else above)
        for kind, (first, right, left, closed) in forms.items()
    }


FAMILIES: dict[str, Family] = {
    **{f"special_chebyshev_polynomial_{kind}": family for kind, family in _chebyshev(8).items()},
    **{f"special_shifted_chebyshev_polynomial_{kind}": family for kind, family in _chebyshev(6).items()},
    "special_hermite_polynomial_h": Family((2.0, 0.0), _hermite, limited=True),
    "special_hermite_polynomial_he": Family((1.0, 0.0), _hermite_e, limited=True),
    "special_laguerre_polynomial_l": Family((-1.0, 1.0), _laguerre),
    "special_legendre_polynomial_p": Family((1.0, 0.0), _legendre, right=0, left=0),
}


def _polynomial(family: Family, *, shifted: bool) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b, (x, degree) = ctx.b, ctx.promote("x", "n", kind="INT_TO_FLOAT")
        n = b.convert(b.convert(degree, "i64"), element_of(x))
        t = _Terms(b, b.subtract(b.add(x, x), b.full_like(x, 1)) if shifted else x)
        inside = b.compare(b.emit(hlo.AbsOp, t.x), t.number(1), "LT")
        direct = b.full_like(inside, False)
        if family.closed is not None:
            direct = b.emit(hlo.AndOp, inside, b.compare(n, t.number(family.above), "GT"))
        wanted = b.select(direct, t.number(0), n)
        limit = t.number(512 if dtype_text(x.type) == "f64" else 128)
        beyond = b.compare(n, limit, "GT") if family.limited else b.full_like(inside, False)
        found = _recurrence(t, family, b.select(beyond, t.number(0), wanted))
        found = b.select(beyond, t.number(math.nan), found)
        if family.closed is not None:
            found = b.select(direct, family.closed(t, n, b.emit(chlo.AcosOp, t.x)), found)
        found = _at_ends(t, family, n, found)
        return b.select(b.compare(n, t.number(0), "LT"), t.number(0), found)

    return run


def _recurrence(t: _Terms, family: Family, n: SSAValue) -> SSAValue:
    """The polynomials of degree n, by rounds of a loop for the greatest of them."""
    b, scalar = t.b, tensor((), element_of(t.x))
    slope, constant = family.first
    one = t.number(1)
    start = t.plus(t.times(slope, t.x), constant)

    def active(k: SSAValue, q: SSAValue) -> SSAValue:
        return b.emit(hlo.AndOp, b.compare(k, n, "LT"), b.compare(q, q, "EQ"))

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        k, _, q = args
        going = active(k, q)
        return [b.reduce(hlo.OrOp, going, range(rank_of(going)))]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        k, p, q = args
        going = active(k, q)
        wide = b.add(k, t.number(0))
        return [
            b.add(k, b.scalar_like(k, 1)),
            b.select(going, q, p),
            b.select(going, family.step(t, wide, p, q), q),
        ]

    types = [scalar, t.x.type, t.x.type]
    regions = [b.region(types, condition), b.region(types, body)]
    found = b.emit_all(hlo.WhileOp, b.scalar_like(t.x, 1), one, start, regions=regions)[2]
    return b.select(b.compare(n, t.number(1), "LT"), one, found)


def _at_ends(t: _Terms, family: Family, n: SSAValue, found: SSAValue) -> SSAValue:
    b = t.b
    sizes = [t.number(1), t.plus(n, 1), t.plus(t.times(2, n), 1)]
    odd = b.compare(b.emit(hlo.RemainderOp, n, t.number(2)), t.number(0), "NE")
    if family.left is not None:
        size = sizes[family.left]
        signed = b.select(odd, b.emit(hlo.NegateOp, size), size)
        found = b.select(b.compare(t.x, t.number(-1), "EQ"), signed, found)
    if family.right is not None:
        found = b.select(b.compare(t.x, t.number(1), "EQ"), sizes[family.right], found)
    return found


imports_table({name: _polynomial(family, shifted="shifted" in name) for name, family in FAMILIES.items()})
