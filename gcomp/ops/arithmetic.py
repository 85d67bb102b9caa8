"""Functions of two elements, with NumPy's broadcasting and promotion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float, is_integer
from gcomp.errors import UsageError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text
from gcomp.ops.elementwise import is_nan, reciprocal, sqrt, square
from gcomp.tensors.lifting import builder_of, cast_value, common_text, is_weak, lift_operands, promote_operands, truth
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import floating, kind_of, require
from gcomp.tensors.tensor import ArrayLike, Tensor

Binary = Callable[[ArrayLike, ArrayLike], Tensor]


def _one_op(name: str, op: type[GraphOp], kinds: tuple[int, ...], doc: str) -> Binary:
    """An operation that is one op on operands of their common type."""

    def run(x: ArrayLike, y: ArrayLike) -> Tensor:
        b, (left, right) = promote_operands(x, y)
        require(name, dtype_text(left.type), *kinds)
        return Tensor(b, b.binary(op, left, right), weak=is_weak(x, y))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


add = _one_op("add", hlo.AddOp, (0, 1, 2, 3), "x + y; of booleans, or.")
subtract = _one_op("subtract", hlo.SubtractOp, (1, 2, 3), "x - y.")
multiply = _one_op("multiply", hlo.MultiplyOp, (0, 1, 2, 3), "x * y; of booleans, and.")
maximum = _one_op("maximum", hlo.MaximumOp, (0, 1, 2), "The larger; NaN where one is NaN.")
minimum = _one_op("minimum", hlo.MinimumOp, (0, 1, 2), "The smaller; NaN where one is NaN.")
bitwise_and = _one_op("bitwise_and", hlo.AndOp, (0, 1), "Bits that both have.")
bitwise_or = _one_op("bitwise_or", hlo.OrOp, (0, 1), "Bits that one has.")
bitwise_xor = _one_op("bitwise_xor", hlo.XorOp, (0, 1), "Bits that exactly one has.")


@operation
def divide(x: ArrayLike, y: ArrayLike) -> Tensor:
    """x / y; integers as float64."""
    b, (left, right) = promote_operands(x, y)
    text = dtype_text(left.type)
    text = text if kind_of(text) >= 2 else "f64"
    return Tensor(b, b.divide(cast_value(b, left, text), cast_value(b, right, text)), weak=is_weak(x, y))


@operation
def floor_divide(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The quotient rounded down; 0 for an integer divided by 0, as in NumPy."""
    b, (left, right) = _whole(x, y, "floor_divide")
    if is_float(dtype_text(left.type)):
        return Tensor(b, _floor_of_floats(b, left, right), weak=is_weak(x, y))
    quotient, rest = b.emit(hlo.DivideOp, left, right), b.emit(hlo.RemainderOp, left, right)
    if dtype_text(left.type)[0] == "i":
        lower = b.subtract(quotient, b.full_like(quotient, 1))
        quotient = b.select(_unlike(b, rest, right), lower, quotient)
    return Tensor(b, _unless_zero(b, right, quotient), weak=is_weak(x, y))


@operation
def remainder(x: ArrayLike, y: ArrayLike) -> Tensor:
    """What is left of x after `floor_divide`: it has the sign of y. 0 for an integer divided by 0."""
    b, (left, right) = _whole(x, y, "remainder")
    rest = b.emit(hlo.RemainderOp, left, right)
    if is_float(dtype_text(left.type)):
        zero = _copysign(b, b.full_like(right, 0), right)
        rest = b.select(_is_zero(b, rest), zero, b.select(_unlike(b, rest, right), b.add(rest, right), rest))
        return Tensor(b, rest, weak=is_weak(x, y))
    if dtype_text(left.type)[0] == "i":
        rest = b.select(_unlike(b, rest, right), b.add(rest, right), rest)
    return Tensor(b, _unless_zero(b, right, rest), weak=is_weak(x, y))


@operation
def fmod(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The remainder of the truncated quotient: it has the sign of x. 0 for an integer divided by 0."""
    b, (left, right) = _whole(x, y, "fmod")
    rest = b.emit(hlo.RemainderOp, left, right)
    return Tensor(b, rest if is_float(dtype_text(left.type)) else _unless_zero(b, right, rest))


def _whole(x: ArrayLike, y: ArrayLike, name: str) -> tuple[Builder, list[SSAValue]]:
    """Operands of one shape for a division: booleans as int8."""
    b, values = promote_operands(x, y)
    require(name, dtype_text(values[0].type), 0, 1, 2)
    return b, alike(b, [b.convert(v, "i8") if dtype_text(v.type) == "i1" else v for v in values])


def alike(b: Builder, values: list[SSAValue]) -> list[SSAValue]:
    """Values broadcast to one shape."""
    shape = b.broadcast_shape(*(Tensor(b, v).shape for v in values))
    return [b.broadcast_to(v, shape) for v in values]


def _is_zero(b: Builder, x: SSAValue) -> SSAValue:
    return b.compare(x, b.full_like(x, 0), "EQ")


def _unless_zero(b: Builder, divisor: SSAValue, result: SSAValue) -> SSAValue:
    return b.select(_is_zero(b, divisor), b.full_like(result, 0), result)


def _unlike(b: Builder, rest: SSAValue, divisor: SSAValue) -> SSAValue:
    """Whether a remainder is not 0, and has another sign than the divisor."""
    zero = b.full_like(rest, 0)
    signs = b.compare(b.compare(rest, zero, "LT"), b.compare(divisor, zero, "LT"), "NE")
    return b.emit(hlo.AndOp, b.compare(rest, zero, "NE"), signs)


def _floor_of_floats(b: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
    """NumPy's floor division of floats, step by step."""
    one = b.full_like(left, 1)
    rest = b.emit(hlo.RemainderOp, left, right)
    quotient = b.divide(b.subtract(left, rest), right)
    quotient = b.select(_unlike(b, rest, right), b.subtract(quotient, one), quotient)
    floor = b.emit(hlo.FloorOp, quotient)
    off = b.compare(b.subtract(quotient, floor), b.full_like(left, 0.5), "GT")
    whole = b.select(off, b.add(floor, one), floor)
    exact = b.divide(left, right)
    whole = b.select(_is_zero(b, quotient), _copysign(b, b.full_like(left, 0), exact), whole)
    return b.select(_is_zero(b, right), exact, whole)


def _copysign(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The magnitude of x with the sign of y; -0 counts as negative."""
    negative = b.binary(hlo.CompareOp, y, b.full_like(y, 0), comparison_direction="LT", compare_type="TOTALORDER")
    size = b.emit(hlo.AbsOp, x)
    return b.select(negative, b.emit(hlo.NegateOp, size), size)


# ---- powers ---------------------------------------------------------------------------------------------------------


@operation
def power(x: ArrayLike, y: ArrayLike) -> Tensor:
    """x ** y. Of integers an integer: 1 / x ** -y truncated for negative exponents in a tensor."""
    text = common_text(x, y)
    if isinstance(y, int | float) and not isinstance(y, bool):
        if is_integer(text) and y < 0:
            raise UsageError("integers to negative integer powers are not allowed", fix="convert x to a float type")
        special = {2: square, 0.5: sqrt, -1: reciprocal}.get(y)
        if special is not None and kind_of(text) >= 2:
            b, (value, _) = promote_operands(x, y)
            return special(Tensor(b, value, weak=is_weak(x)))
    b, values = promote_operands(x, y)
    if text == "i1":
        values = [b.convert(v, "i8") for v in values]
    return Tensor(b, b.binary(hlo.PowerOp, *values), weak=is_weak(x, y))


# ---- functions of floats --------------------------------------------------------------------------------------------


def _floats(x: ArrayLike, y: ArrayLike, name: str) -> tuple[Builder, list[SSAValue]]:
    """Operands of one float type and shape."""
    b, values = promote_operands(x, y)
    text = floating(dtype_text(values[0].type))
    require(name, text, 2)
    return b, alike(b, [cast_value(b, v, text) for v in values])


@operation
def arctan2(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The angle of the point (y, x)."""
    b, values = _floats(x, y, "arctan2")
    return Tensor(b, b.emit(hlo.Atan2Op, *values))


@operation
def hypot(x: ArrayLike, y: ArrayLike) -> Tensor:
    """sqrt(x**2 + y**2) without overflow."""
    b, values = _floats(x, y, "hypot")
    sizes = [b.emit(hlo.AbsOp, v) for v in values]
    large, small = b.emit(hlo.MaximumOp, *sizes), b.emit(hlo.MinimumOp, *sizes)
    ratio = b.divide(small, large)
    found = b.multiply(large, b.emit(hlo.SqrtOp, b.add(b.multiply(ratio, ratio), b.full_like(ratio, 1))))
    infinite = b.full_like(large, np.inf)
    # An infinite side beats one that is NaN.
    either = b.emit(hlo.OrOp, *[b.compare(size, infinite, "EQ") for size in sizes])
    return Tensor(b, b.select(either, infinite, b.select(_is_zero(b, large), large, found)))


@operation
def logaddexp(x: ArrayLike, y: ArrayLike) -> Tensor:
    """log(e**x + e**y) without overflow."""
    b, (left, right) = _floats(x, y, "logaddexp")
    distance = b.emit(hlo.NegateOp, b.emit(hlo.AbsOp, b.subtract(left, right)))
    found = b.add(b.maximum(left, right), b.emit(hlo.LogPlusOneOp, b.emit(hlo.ExponentialOp, distance)))
    # Equal infinities have no distance; and each of two equal numbers has half of the derivative.
    same = b.add(b.add(b.scale(left, 0.5), b.scale(right, 0.5)), b.full_like(left, np.log(2.0)))
    return Tensor(b, b.select(b.compare(left, right, "EQ"), same, found))


@operation
def copysign(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The size of x with the sign of y."""
    b, values = _floats(x, y, "copysign")
    return Tensor(b, _copysign(b, *values))


@operation
def nextafter(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The float next to x towards y."""
    b, values = _floats(x, y, "nextafter")
    return Tensor(b, b.emit(chlo.NextAfterOp, *values))


def _ignoring_nan(name: str, op: type[GraphOp], doc: str) -> Binary:
    def run(x: ArrayLike, y: ArrayLike) -> Tensor:
        b, values = promote_operands(x, y)
        text = dtype_text(values[0].type)
        require(name, text, 0, 1, 2)
        left, right = alike(b, values)
        found = b.emit(op, left, right)
        if is_float(text):
            found = b.select(is_nan(b, left), right, b.select(is_nan(b, right), left, found))
        return Tensor(b, found)

    run.__name__, run.__doc__ = name, doc
    return operation(run)


fmax = _ignoring_nan("fmax", hlo.MaximumOp, "The larger; the other one where one is NaN.")
fmin = _ignoring_nan("fmin", hlo.MinimumOp, "The smaller; the other one where one is NaN.")


# ---- bits -----------------------------------------------------------------------------------------------------------


@operation
def invert(x: ArrayLike) -> Tensor:
    """The complement of each bit."""
    b, (value,) = lift_operands(x)
    require("invert", dtype_text(value.type), 0, 1)
    return Tensor(b, b.emit(hlo.NotOp, value))


def _shift(name: str, left: bool, doc: str) -> Binary:
    def run(x: ArrayLike, y: ArrayLike) -> Tensor:
        b, values = promote_operands(x, y)
        require(name, dtype_text(values[0].type), 0, 1)
        values = [b.convert(v, "i8") if dtype_text(v.type) == "i1" else v for v in values]
        signed = dtype_text(values[0].type)[0] == "i"
        op = hlo.ShiftLeftOp if left else hlo.ShiftRightArithmeticOp if signed else hlo.ShiftRightLogicalOp
        return Tensor(b, b.binary(op, *values))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


left_shift = _shift("left_shift", True, "x << y; 0 past the width.")
right_shift = _shift("right_shift", False, "x >> y; copies of the sign past the width.")


@operation
def clip(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """The larger of x and min, and then the smaller of that and max. None is no limit."""
    result = x
    if min is not None:
        result = maximum(result, min)
    if max is not None:
        result = minimum(result, max)
    b, (value,) = lift_operands(result)
    return Tensor(b, value)


# ---- comparisons and logic ------------------------------------------------------------------------------------------


def _comparison(name: str, direction: str, doc: str) -> Binary:
    def run(x: ArrayLike, y: ArrayLike) -> Tensor:
        texts = {_strong_text(one) for one in (x, y)}
        if texts & {"ui64"} and any(t is not None and t[0] == "i" and t != "i1" for t in texts):
            return _exactly(x, y, direction)
        b, (left, right) = promote_operands(x, y)
        if is_complex(dtype_text(left.type)) and direction not in ("EQ", "NE"):
            require(name, dtype_text(left.type), 0, 1, 2)
        return Tensor(b, b.compare(left, right, direction))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


def _strong_text(x: ArrayLike) -> str | None:
    return None if isinstance(x, bool | int | float | complex) else common_text(x)


def _exactly(x: ArrayLike, y: ArrayLike, direction: str) -> Tensor:
    """uint64 beside a signed type has no common integer type: compared as numbers all the same, as NumPy does."""
    b, values = lift_operands(x, y)
    unsigned_right = dtype_text(values[1].type) == "ui64"
    signed = values[0] if unsigned_right else values[1]
    below = b.compare(signed, b.full_like(signed, 0), "LT")
    left, right = (b.convert(v, "ui64") for v in values)
    found = b.compare(left, right, direction)
    # A negative number is less than any unsigned one.
    outcome = direction == "NE" or direction[0] == ("L" if unsigned_right else "G")
    return Tensor(b, b.select(below, b.full((), outcome, "i1"), found))


equal = _comparison("equal", "EQ", "x == y.")
not_equal = _comparison("not_equal", "NE", "x != y.")
less = _comparison("less", "LT", "x < y.")
less_equal = _comparison("less_equal", "LE", "x <= y.")
greater = _comparison("greater", "GT", "x > y.")
greater_equal = _comparison("greater_equal", "GE", "x >= y.")


def _logical(name: str, op: type[GraphOp], doc: str) -> Binary:
    def run(x: ArrayLike, y: ArrayLike) -> Tensor:
        b, values = lift_operands(x, y)
        return Tensor(b, b.binary(op, *(truth(b, v) for v in values)))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


logical_and = _logical("logical_and", hlo.AndOp, "Whether both are not 0.")
logical_or = _logical("logical_or", hlo.OrOp, "Whether one is not 0.")
logical_xor = _logical("logical_xor", hlo.XorOp, "Whether exactly one is not 0.")


@operation
def logical_not(x: ArrayLike) -> Tensor:
    """Whether x is 0."""
    b, (value,) = lift_operands(x)
    return Tensor(b, b.emit(hlo.NotOp, truth(b, value)))


@operation
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Tensor:
    """x where the condition holds (is not 0), else y; all three broadcast."""
    b, (chosen,) = lift_operands(condition, b=builder_of(condition, x, y))
    _, values = promote_operands(x, y, b=b)
    return Tensor(b, b.select(truth(b, chosen), *values), weak=is_weak(x, y))


__all__ = ["add", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "clip", "copysign", "divide", "equal",
           "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "hypot", "invert", "left_shift",
           "less", "less_equal", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
           "minimum", "multiply", "nextafter", "not_equal", "power", "remainder", "right_shift", "subtract",
           "where"]  # fmt: skip
