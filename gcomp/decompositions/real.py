"""Formulas on real tensors: values of f64 with Python's operators."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import with_element
from gcomp.records import record

INF = float("inf")
NAN = float("nan")


@record
class Test:
    """A tensor of booleans."""

    b: Builder
    value: SSAValue

    def __and__(self, other: Test) -> Test:
        return Test(self.b, self.b.emit(hlo.AndOp, self.value, other.value))

    def __or__(self, other: Test) -> Test:
        return Test(self.b, self.b.emit(hlo.OrOp, self.value, other.value))

    def __invert__(self) -> Test:
        return Test(self.b, self.b.emit(hlo.NotOp, self.value))

    def choose(self, x: Real, y: Real | float) -> Real:
        """`x` where it holds, else `y`."""
        return Real(self.b, self.b.emit(hlo.SelectOp, self.value, x.value, x.of(y).value))


@record
class Real:
    """A tensor of f64. A number beside it stands for a tensor filled with it."""

    b: Builder
    value: SSAValue

    def of(self, other: Real | float) -> Real:
        """A tensor of this one's shape."""
        return other if isinstance(other, Real) else Real(self.b, self.b.full_like(self.value, other))

    def to(self, op: type[GraphOp], *others: Real | float) -> Real:
        """An op on this tensor and others."""
        return Real(self.b, self.b.emit(op, self.value, *[self.of(v).value for v in others]))

    def __add__(self, other: Real | float) -> Real:
        return self.to(hlo.AddOp, other)

    def __sub__(self, other: Real | float) -> Real:
        return self.to(hlo.SubtractOp, other)

    def __mul__(self, other: Real | float) -> Real:
        return self.to(hlo.MultiplyOp, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.to(hlo.DivideOp, other)

    def __neg__(self) -> Real:
        return self.to(hlo.NegateOp)

    def __abs__(self) -> Real:
        return self.to(hlo.AbsOp)

    def _test(self, other: Real | float, direction: str) -> Test:
        return Test(self.b, self.b.compare(self.value, self.of(other).value, direction))

    def equals(self, other: Real | float) -> Test:
        """Where both are the same number."""
        return self._test(other, "EQ")

    def __gt__(self, other: Real | float) -> Test:
        return self._test(other, "GT")

    def __ge__(self, other: Real | float) -> Test:
        return self._test(other, "GE")

    def __lt__(self, other: Real | float) -> Test:
        return self._test(other, "LT")

    @property
    def is_nan(self) -> Test:
        """Where it is NaN."""
        return self._test(self, "NE")

    @property
    def is_infinite(self) -> Test:
        """Where it is an infinity."""
        return abs(self).equals(INF)

    @property
    def is_finite(self) -> Test:
        """Where it is a number."""
        return Test(self.b, self.b.emit(hlo.IsFiniteOp, self.value))

    def _bits(self) -> SSAValue:
        return self.b.emit(hlo.BitcastConvertOp, self.value, types=(with_element(self.value, "i64"),))

    def with_sign(self, sign: Real) -> Real:
        """Its magnitude, with another's sign (of a zero, too)."""
        bits = sign._bits()
        negative = Test(self.b, self.b.compare(bits, self.b.full_like(bits, 0), "LT"))
        size = abs(self)
        return negative.choose(-size, size)

    def scale(self) -> Real:
        """Of a magnitude: a power of two that brings it near 1, or as near as powers of two reach."""
        b, bits = self.b, self._bits()
        exponent = b.emit(hlo.ShiftRightLogicalOp, bits, b.full_like(bits, _FRACTION))
        inverse = b.subtract(b.full_like(bits, 2 * _BIAS), exponent)
        inverse = b.maximum(b.minimum(inverse, b.full_like(bits, 2 * _BIAS - 1)), b.full_like(bits, 1))
        shifted = b.emit(hlo.ShiftLeftOp, inverse, b.full_like(bits, _FRACTION))
        return Real(b, b.emit(hlo.BitcastConvertOp, shifted, types=(self.value.type,)))


_FRACTION, _BIAS = 52, 1023
