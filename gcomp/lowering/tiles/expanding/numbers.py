"""Values of a tile program as Python numbers, and pairs of them: unevaluated sums that hold twice the bits.

Pairs are computed with fma, by the algorithms of Dekker, Knuth, and Joldes, Muller and Popescu ("Tight and rigorous
error bounds for basic building blocks of double-word arithmetic", 2017).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.tile import element
from gcomp.records import record

INF, NAN = float("inf"), float("nan")


class Number:
    """A tile of floats, integers or conditions. Operands that are Python numbers are constants of its type."""

    def __init__(self, b: TileBuilder, value: SSAValue) -> None:
        self.b, self.value = b, value

    @property
    def dtype(self) -> str:
        """The element type."""
        return element(self.value)

    def of(self, x: Number | float) -> Number:
        """A constant of this one's type; a number as it is."""
        return x if isinstance(x, Number) else Number(self.b, self.b.constant(x, self.dtype))

    def apply(self, function: str, *others: Number | float) -> Number:
        """A basic function of this and others."""
        operands = [self.value, *[self.of(x).value for x in others]]
        return Number(self.b, self.b.apply(function, *operands))

    def cast(self, dtype: str) -> Number:
        """The same numbers in another type."""
        return Number(self.b, self.b.cast(self.value, dtype))

    def bitcast(self, dtype: str) -> Number:
        """The same bits in another type."""
        return Number(self.b, self.b.bitcast(self.value, dtype))

    # ---- arithmetic ----

    def __add__(self, other: Number | float) -> Number:
        return self.apply("add", other)

    def __sub__(self, other: Number | float) -> Number:
        return self.apply("subtract", other)

    def __rsub__(self, other: float) -> Number:
        return self.of(other).apply("subtract", self)

    def __mul__(self, other: Number | float) -> Number:
        return self.apply("multiply", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self.apply("divide", other)

    def __rtruediv__(self, other: float) -> Number:
        return self.of(other).apply("divide", self)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Number:
        return self.apply("negate")

    def __abs__(self) -> Number:
        return self.apply("abs")

    def fma(self, factor: Number | float, addend: Number | float) -> Number:
        """self * factor + addend, rounded once."""
        return self.apply("fma", factor, addend)

    def sqrt(self) -> Number:
        """The square root."""
        return self.apply("sqrt")

    def nearest(self) -> Number:
        """The nearest whole number, of two the even one."""
        return self.apply("round_nearest_even")

    # ---- bits ----

    def __and__(self, other: Number | int) -> Number:
        return self.apply("and", other)

    def __or__(self, other: Number | int) -> Number:
        return self.apply("or", other)

    def __xor__(self, other: Number | int) -> Number:
        return self.apply("xor", other)

    def __invert__(self) -> Number:
        return self.apply("not")

    def __lshift__(self, distance: int) -> Number:
        return self.apply("shift_left", distance)

    def __rshift__(self, distance: int) -> Number:
        return self.apply("shift_right_arithmetic", distance)

    # ---- conditions ----

    def __lt__(self, other: Number | float) -> Number:
        return self.apply("lt", other)

    def __le__(self, other: Number | float) -> Number:
        return self.apply("le", other)

    def __gt__(self, other: Number | float) -> Number:
        return self.apply("gt", other)

    def __ge__(self, other: Number | float) -> Number:
        return self.apply("ge", other)

    def equals(self, other: Number | float) -> Number:
        """Where both are the same number."""
        return self.apply("eq", other)

    @property
    def is_nan(self) -> Number:
        """Where it is no number."""
        return self.apply("ne", self)

    def choose(self, yes: Number, no: Number | float) -> Number:
        """`yes` where this condition holds, else `no`."""
        return self.apply("select", yes, yes.of(no))

    def at_most(self, bound: float) -> Number:
        """The smaller of it and a bound; NaN stays."""
        return (self > bound).choose(self.of(bound), self)

    def at_least(self, bound: float) -> Number:
        """The larger of it and a bound; NaN stays."""
        return (self < bound).choose(self.of(bound), self)

    # ---- parts ----

    @property
    def form(self) -> Form:
        """How its bits are laid out."""
        return FORMS[self.dtype]

    @property
    def bits(self) -> Number:
        """The bits as a signed integer."""
        return self.bitcast(self.form.integer)

    def with_sign_of(self, other: Number) -> Number:
        """It, which is not negative, with another's sign."""
        sign = other.bits & self.form.sign
        return (self.bits | sign).bitcast(self.dtype)


@record
class Form:
    """A float type: the integers of its width, bits of its mantissa and the bias of its exponent."""

    name: str
    integer: str
    mantissa: int
    bias: int

    @property
    def sign(self) -> int:
        """The integer whose only bit is the sign's."""
        return -(1 << (self.mantissa + (8 if self.integer == "i32" else 11)))

    @property
    def magic(self) -> float:
        """1.5 times the power of two whose neighbours are whole numbers: a sum with it holds a rounded one."""
        return 1.5 * 2.0**self.mantissa


FORMS = {"f32": Form("f32", "i32", 23, 127), "f64": Form("f64", "i64", 52, 1023)}


@record
class Whole:
    """A whole number: as a float, and in the low bits of an integer, which hold the exponents of two and no more."""

    value: Number
    bits: Number

    def power(self, times: Number | float = 1.0) -> Number:
        """2 ** n * times, where that and its exponent are of normal numbers."""
        return power_of_two(self.bits, self.value.form, times)

    def scale(self, x: Number, times: float = 1.0) -> Number:
        """x * 2 ** n * times, rounded once where it is subnormal or infinite.

        x and times are near 1, and n is at most a little beyond where that is 0 or infinite.
        """
        near = 2.0 ** (x.form.mantissa + 2)  # so that nothing between is subnormal or infinite
        below = self.value < 0.0
        power = self.power(below.choose(x.of(near * times), times / near))
        return x * power * below.choose(x.of(1.0 / near), near)


def round_product(x: Number, factor: float) -> Whole:
    """The whole number that is nearest to x * factor, which is small, or not used."""
    shifted = x.fma(factor, x.form.magic)
    return Whole(shifted - x.form.magic, shifted.bits)


def power_of_two(n: Number, form: Form, times: Number | float = 1.0) -> Number:
    """2 ** n * times, for an integer whose low bits are n's, where that is a normal number."""
    if not isinstance(times, Number):
        times = Number(n.b, n.b.constant(times, form.name))
    return ((n << form.mantissa) + times.bits).bitcast(form.name)


def scale(x: Number, n: Number) -> Number:
    """x * 2 ** n, rounded once where it is subnormal; n is within twice the exponents of normal numbers."""
    half = n >> 1
    return x * power_of_two(half, x.form) * power_of_two(n - half, x.form)


def polynomial(coefficients: Sequence[float], x: Number) -> Number:
    """The sum of coefficients[k] * x ** k, from the last one."""
    total = x.of(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.fma(x, coefficient)
    return total


@record
class Pair:
    """The sum of two floats, of which the second is at most half a unit in the last place of the first."""

    high: Number
    low: Number

    @staticmethod
    def of(x: Number) -> Pair:
        """A number as a pair."""
        return Pair(x, x.of(0.0))

    @staticmethod
    def constant(x: Number, high: float, low: float) -> Pair:
        """A constant of the type of `x`."""
        return Pair(x.of(high), x.of(low))

    @staticmethod
    def product(a: Number, b: Number | float) -> Pair:
        """a * b, exactly."""
        high = a * b
        return Pair(high, a.fma(b, -high))

    @staticmethod
    def sum(a: Number, b: Number | float) -> Pair:
        """a + b, exactly."""
        b = a.of(b)
        high = a + b
        part = high - a
        return Pair(high, (a - (high - part)) + (b - part))

    @staticmethod
    def fast_two_sum(a: Number, b: Number) -> Pair:
        """a + b, exactly, where |a| >= |b| or a is 0."""
        high = a + b
        return Pair(high, b - (high - a))

    def __add__(self, other: Pair) -> Pair:
        first, second = Pair.sum(self.high, other.high), Pair.sum(self.low, other.low)
        first = Pair.fast_two_sum(first.high, first.low + second.high)
        return Pair.fast_two_sum(first.high, first.low + second.low)

    def plus(self, other: Number | float) -> Pair:
        """The sum with a float."""
        first = Pair.sum(self.high, other)
        return Pair.fast_two_sum(first.high, first.low + self.low)

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def __mul__(self, other: Pair) -> Pair:
        first = Pair.product(self.high, other.high)
        rest = self.high.fma(other.low, self.low * other.high) + first.low
        return Pair.fast_two_sum(first.high, rest)

    def times(self, other: Number | float) -> Pair:
        """The product with a float."""
        first = Pair.product(self.high, other)
        return Pair.fast_two_sum(first.high, self.low.fma(other, first.low))

    def scale(self, factor: Number | float) -> Pair:
        """The product with a power of two."""
        return Pair(self.high * factor, self.low * factor)

    def __truediv__(self, other: Pair) -> Pair:
        quotient = self.high / other.high
        rest = (-quotient).fma(other.high, self.high)
        rest = (-quotient).fma(other.low, rest + self.low)
        return Pair.fast_two_sum(quotient, rest / other.high)

    def sqrt(self) -> Pair:
        """The square root of a pair that is not negative."""
        root = self.high.sqrt()
        rest = (-root).fma(root, self.high) + self.low
        return Pair.fast_two_sum(root, root.equals(0.0).choose(root, rest / (root + root)))

    @property
    def value(self) -> Number:
        """The nearest float."""
        return self.high + self.low

    def choose(self, where: Number, other: Pair) -> Pair:
        """It where a condition holds, else another."""
        return Pair(where.choose(self.high, other.high), where.choose(self.low, other.low))
