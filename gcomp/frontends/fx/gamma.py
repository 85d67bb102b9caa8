"""The incomplete gamma functions, regularized: P(a, x) and Q(a, x) = 1 - P(a, x).

Below x = a + 1 the series of P (DLMF 8.11.4) is summed, above it the continued fraction of Q (DLMF 8.9.2) is evaluated
as quotients of successive convergents. Both are computed in f64, until nothing changes any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports_table
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor

_TURNS = 20_000
"""More terms than a series has that converges: about 6 * sqrt(a) where x is near a."""
_EPSILON = 2.0**-53
_LARGE = 2.0**60
"""Convergents are scaled down beyond this."""


def _until(
    b: Builder, start: Sequence[SSAValue], active: SSAValue,
    step: Callable[[Sequence[SSAValue], SSAValue], tuple[Sequence[SSAValue], SSAValue]],
) -> Sequence[SSAValue]:  # fmt: skip
    """Values after as many steps as it takes until no element goes on; those that do not stay as they are.

    `step` gets the values and the number of the iteration (f64, from 1); it gives values and which elements go on.
    """
    iteration, types = b.constant(0, "i64"), [value.type for value in start]
    argument_types = [tensor((), "i64"), active.type, *types]

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        going = b.reduce(hlo.OrOp, args[1], range(rank_of(args[1]))) if rank_of(args[1]) else args[1]
        return [b.emit(hlo.AndOp, going, b.compare(args[0], b.constant(_TURNS, "i64"), "LT"))]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        count, going, *values = args
        count = b.add(count, b.constant(1, "i64"))
        after, more = step(values, b.convert(count, "f64"))
        kept = [b.select(going, new, old) for new, old in zip(after, values, strict=True)]
        return [count, b.emit(hlo.AndOp, going, more), *kept]

    regions = [b.region(argument_types, condition), b.region(argument_types, body)]
    return b.emit_all(hlo.WhileOp, iteration, active, *start, regions=regions)[2:]


def _series(b: Builder, a: SSAValue, x: SSAValue, active: SSAValue) -> SSAValue:
    """The sum of x ** k / ((a + 1) ... (a + k)) over all k from 0 on."""
    one = b.full_like(x, 1)

    def step(values: Sequence[SSAValue], iteration: SSAValue) -> tuple[Sequence[SSAValue], SSAValue]:
        term, total = values
        term = b.multiply(term, b.divide(x, b.add(a, iteration)))
        return [term, b.add(total, term)], b.compare(term, b.multiply(total, b.full((), _EPSILON, "f64")), "GT")

    return _until(b, [one, one], active, step)[1]


def _fraction(b: Builder, a: SSAValue, x: SSAValue, active: SSAValue) -> SSAValue:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))) as quotients of convergents."""
    one, zero = b.full_like(x, 1), b.full_like(x, 0)
    first = b.add(b.subtract(x, a), one)

    def step(values: Sequence[SSAValue], iteration: SSAValue) -> tuple[Sequence[SSAValue], SSAValue]:
        above, below, above_before, below_before, value = values
        factor = b.multiply(iteration, b.subtract(a, iteration))
        level = b.add(first, b.scale(iteration, 2.0))
        next_above = b.add(b.multiply(level, above), b.multiply(factor, above_before))
        next_below = b.add(b.multiply(level, below), b.multiply(factor, below_before))
        new = b.divide(next_above, next_below)
        change = b.emit(hlo.AbsOp, b.subtract(new, value))
        going = b.compare(change, b.scale(b.emit(hlo.AbsOp, new), _EPSILON), "GT")
        large = b.compare(b.emit(hlo.AbsOp, next_below), b.full((), _LARGE, "f64"), "GT")
        scale = b.select(large, b.full((), 1 / _LARGE, "f64"), one)
        parts = [b.multiply(part, scale) for part in (next_above, next_below, above, below)]
        return [*parts, new], going

    start = [one, first, zero, one, b.divide(one, first)]
    return _until(b, start, active, step)[4]


def _incomplete(b: Builder, a: SSAValue, x: SSAValue, *, upper: bool) -> SSAValue:
    """P(a, x), or with `upper` Q(a, x), for a >= 0 and x >= 0; NaN elsewhere, and where both are 0 or infinite."""
    zero, one, infinity = b.full_like(x, 0), b.full_like(x, 1), b.full_like(x, math.inf)

    def both(left: SSAValue, right: SSAValue) -> SSAValue:
        return b.emit(hlo.AndOp, left, right)

    def either(left: SSAValue, right: SSAValue) -> SSAValue:
        return b.emit(hlo.OrOp, left, right)

    inner = both(both(b.compare(a, zero, "GT"), b.compare(x, zero, "GT")),
                 both(b.compare(a, infinity, "LT"), b.compare(x, infinity, "LT")))  # fmt: skip
    safe_a, safe_x = b.select(inner, a, one), b.select(inner, x, one)
    # x ** a * e ** -x / gamma(a + 1)
    power = b.subtract(b.multiply(safe_a, b.emit(hlo.LogOp, safe_x)), safe_x)
    scale = b.emit(hlo.ExponentialOp, b.subtract(power, b.emit(chlo.LgammaOp, b.add(safe_a, one))))
    by_fraction = both(inner, b.compare(safe_x, b.add(safe_a, one), "GT"))
    by_series = both(inner, b.emit(hlo.NotOp, by_fraction))
    low = b.multiply(scale, _series(b, safe_a, b.select(by_series, safe_x, zero), by_series))
    high = b.multiply(
        b.multiply(scale, safe_a), _fraction(b, safe_a, b.select(by_fraction, safe_x, infinity), by_fraction)
    )
    if upper:
        found, ends = b.select(by_fraction, high, b.subtract(one, low)), (one, zero)
    else:
        found, ends = b.select(by_fraction, b.subtract(one, high), low), (zero, one)
    at_least, at_most = ends
    # P rises from 0 at x = 0 to 1; it is 1 everywhere for a = 0, and 0 for an infinite a.
    least = either(b.compare(x, zero, "EQ"), b.compare(a, infinity, "EQ"))
    most = either(b.compare(a, zero, "EQ"), b.compare(x, infinity, "EQ"))
    found = b.select(least, at_least, b.select(most, at_most, found))
    known = both(b.compare(a, zero, "GE"), b.compare(x, zero, "GE"))
    unknown = either(both(least, most), b.emit(hlo.NotOp, known))
    return b.select(unknown, b.full_like(x, math.nan), found)


def _gamma(*, upper: bool) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b, (a, x) = ctx.b, ctx.promote("self", "other", kind="INT_TO_FLOAT")
        if 0 in shape_of(x):
            return x
        found = _incomplete(b, b.convert(a, "f64"), b.convert(x, "f64"), upper=upper)
        return b.convert(found, dtype_text(x.type))

    return run


imports_table(
    {
        "igamma": _gamma(upper=False),
        "special_gammainc": _gamma(upper=False),
        "igammac": _gamma(upper=True),
        "special_gammaincc": _gamma(upper=True),
    }
)
