"""What elementwise ops mean for one element, exactly: integers are bit-vectors, floats IEEE 754 with gcomp's choices.

Elements are bit-vectors of their type's width, as docs/guides/semantics.md compares them; of a complex number, the real
part's bits are the lower half. Each row is the meaning of an op for one kind of element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float, real_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.reference.numpy.dtypes import float_format, imag_part, real_part
from gcomp.reference.numpy.rounding import value_bits
from gcomp.testing.prove.theory import Term, z3


@dataclass(frozen=True)
class Kind:
    """What the solver knows of an element type: `bool`, `int`, `float` or `complex`, and its width."""

    element: str
    name: str
    width: int

    @property
    def signed(self) -> bool:
        """Whether an integer type is signed."""
        return self.element.startswith("i")

    @property
    def part(self) -> Kind:
        """The kind of a complex type's parts."""
        return kind_of(real_of(self.element))


@cache
def kind_of(element: str) -> Kind:
    """The kind of an element type."""
    if is_complex(element):
        return Kind(element, "complex", 2 * bit_width(real_of(element)))
    name = "bool" if element == "i1" else "float" if is_float(element) else "int"
    return Kind(element, name, bit_width(element))


@cache
def is_ieee(element: str) -> bool:
    """Whether the solver's floating-point theory has the type: subnormals, infinities, NaN, both zeros.

    It cannot add where the exponent has more bits than the significand (f8E5M2).
    """
    if not is_float(element):
        return False
    form = float_format(dtype_of(element))
    computes = form.exponent_bits <= form.mantissa_bits + 1
    return computes and form.has_infinity and form.has_negative_zero and form.has_nan


def has_theory(element: str) -> bool:
    """Whether elements of a type have exact terms."""
    kind = kind_of(element)
    return kind.name in ("bool", "int") or is_ieee(real_of(element))


def bits_of(value: Any, element: str) -> int:
    """The bits of one number in an element type, as a constant of a program holds it."""
    array = np.asarray(value).astype(dtype_of(element)).reshape(())
    if is_complex(element):
        part = kind_of(real_of(element))
        return bits_of(real_part(array), part.element) | bits_of(imag_part(array), part.element) << part.width
    return int(value_bits(array))


# ---- floats ------------------------------------------------------------------------------------------------------


@cache
def _sort(element: str) -> Term:
    form = float_format(dtype_of(element))
    return z3.FPSort(form.exponent_bits, form.mantissa_bits + 1)


def _float(bits: Term, kind: Kind) -> Term:
    return z3.fpBVToFP(bits, _sort(kind.element))


@cache
def _nan(element: str) -> int:
    return bits_of(np.float32(np.nan), element)


def _bits(value: Term, kind: Kind) -> Term:
    """The bits of a float; NaN is gcomp's canonical one."""
    return z3.If(z3.fpIsNaN(value), z3.BitVecVal(_nan(kind.element), kind.width), z3.fpToIEEEBV(value))


def is_nan(bits: Term, kind: Kind) -> Term:
    """Whether the bits of a float are a NaN's."""
    return z3.fpIsNaN(_float(bits, kind))


def is_zero(bits: Term, kind: Kind) -> Term:
    """Whether the bits of a float are a zero's."""
    return z3.fpIsZero(_float(bits, kind))


def _sign_bit(kind: Kind) -> Term:
    return z3.BitVecVal(1 << (kind.width - 1), kind.width)


def _round(function: Callable[..., Term], args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """An IEEE operation, rounded once to nearest even."""
    return _bits(function(z3.RNE(), *[_float(a, kind) for a in args]), kind)


def _integral(mode: Callable[[], Term], args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    return _bits(z3.fpRoundToIntegral(mode(), _float(args[0], kind)), kind)


def _float_extremum(greatest: bool, args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """IEEE 754-2019's: NaN if either is, -0 < +0."""
    a, b = (_float(x, kind) for x in args)
    better = z3.fpGT(a, b) if greatest else z3.fpLT(a, b)
    # Equal numbers differ at most in the sign of zero.
    equal = args[0] & args[1] if greatest else args[0] | args[1]
    nan = z3.BitVecVal(_nan(kind.element), kind.width)
    either = z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b))
    return z3.If(either, nan, z3.If(better, args[0], z3.If(z3.fpEQ(a, b), equal, args[1])))


def _float_sign(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    x = _float(args[0], kind)
    one = z3.If(z3.fpIsNegative(x), z3.FPVal(-1.0, x.sort()), z3.FPVal(1.0, x.sort()))
    return z3.If(z3.fpIsZero(x), args[0], _bits(z3.If(z3.fpIsNaN(x), x, one), kind))


def _is_finite(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    x = _float(args[0], kind)
    return truth(z3.Not(z3.Or(z3.fpIsNaN(x), z3.fpIsInf(x))))


def truth(condition: Term) -> Term:
    """A condition as an `i1`."""
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


_FLOAT_ORDER: dict[str, Callable[[Term, Term], Term]] = {
    "EQ": z3.fpEQ, "NE": lambda a, b: z3.Not(z3.fpEQ(a, b)), "GE": z3.fpGEQ, "GT": z3.fpGT, "LE": z3.fpLEQ,
    "LT": z3.fpLT,
}  # fmt: skip
_ORDER: dict[str, Callable[[Term, Term], Term]] = {
    "EQ": operator.eq, "NE": operator.ne, "GE": operator.ge, "GT": operator.gt, "LE": operator.le, "LT": operator.lt,
}  # fmt: skip
_UNSIGNED_ORDER: dict[str, Callable[[Term, Term], Term]] = {
    **_ORDER, "GE": z3.UGE, "GT": z3.UGT, "LE": z3.ULE, "LT": z3.ULT,
}  # fmt: skip


def _float_compare(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    direction = op.value("comparison_direction")
    if op.value("compare_type") == "TOTALORDER":
        keys = [z3.If(a < 0, ~(a & ~_sign_bit(kind)), a) for a in args]
        return truth(_ORDER[direction](*keys))
    return truth(_FLOAT_ORDER[direction](*[_float(a, kind) for a in args]))


# ---- integers and booleans ---------------------------------------------------------------------------------------


def _divide(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """Truncated; x / 0 is all ones, INT_MIN / -1 wraps."""
    a, b = args
    quotient = a / b if kind.signed else z3.UDiv(a, b)
    return z3.If(b == 0, z3.BitVecVal(-1, kind.width), quotient)


def _remainder(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """With the dividend's sign; x rem 0 is x."""
    a, b = args
    return z3.If(b == 0, a, z3.SRem(a, b) if kind.signed else z3.URem(a, b))


def _integer_extremum(greatest: bool, args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    a, b = args
    above = a >= b if kind.signed else z3.UGE(a, b)
    return z3.If(above, a, b) if greatest else z3.If(above, b, a)


def _integer_sign(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    one = z3.BitVecVal(1, kind.width)
    return z3.If(args[0] == 0, args[0], z3.If(args[0] < 0, -one, one))


def _integer_compare(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    order = _ORDER if kind.signed and kind.name == "int" else _UNSIGNED_ORDER
    return truth(order[op.value("comparison_direction")](*args))


def _popcnt(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    width = kind.width
    return sum((z3.ZeroExt(width - 1, z3.Extract(i, i, args[0])) for i in range(width)), z3.BitVecVal(0, width))


# ---- complex numbers ---------------------------------------------------------------------------------------------


def parts(bits: Term, kind: Kind) -> tuple[Term, Term]:
    """The real and the imaginary part's bits."""
    half = kind.width // 2
    return z3.Extract(half - 1, 0, bits), z3.Extract(kind.width - 1, half, bits)


def _by_parts(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """The real op on both parts."""
    real, imag = zip(*[parts(a, kind) for a in args], strict=True)
    function = SCALARS[type(op), "float"]
    return z3.Concat(function(imag, kind.part, op), function(real, kind.part, op))


def _complex_extremum(greatest: bool, args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """Lexicographic; comparisons with NaN are false, so the second operand then."""
    (a, b), (c, d) = ([_float(x, kind.part) for x in parts(arg, kind)] for arg in args)
    better = z3.fpGT if greatest else z3.fpLT
    return z3.If(z3.If(z3.fpEQ(a, c), better(b, d), better(a, c)), args[0], args[1])


def _complex_product(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """(ac - bd) + i(ad + bc), each step rounded."""
    part = kind.part
    (a, b), (c, d) = (parts(arg, kind) for arg in args)

    def step(of: type[GraphOp], x: Term, y: Term) -> Term:
        return SCALARS[of, "float"]((x, y), part, op)

    def times(x: Term, y: Term) -> Term:
        return step(hlo.MultiplyOp, x, y)

    real = step(hlo.SubtractOp, times(a, c), times(b, d))
    return z3.Concat(step(hlo.AddOp, times(a, d), times(b, c)), real)


def _complex_compare(args: Sequence[Term], kind: Kind, op: GraphOp) -> Term:
    """Equal where both parts are; else in the order of real parts, and then of imaginary ones."""
    (a, b), (c, d) = ([_float(x, kind.part) for x in parts(arg, kind)] for arg in args)
    direction: str = op.value("comparison_direction")
    if direction == "NE":
        return truth(z3.Or(z3.Not(z3.fpEQ(a, c)), z3.Not(z3.fpEQ(b, d))))
    same = z3.And(z3.fpEQ(a, c), _FLOAT_ORDER[direction](b, d))
    strict = {"GE": z3.fpGT, "GT": z3.fpGT, "LE": z3.fpLT, "LT": z3.fpLT}
    return truth(same if direction == "EQ" else z3.Or(strict[direction](a, c), same))


# ---- the table ---------------------------------------------------------------------------------------------------

Scalar = Callable[[Sequence[Term], Kind, GraphOp], Term]


_BITS: dict[type[GraphOp], Scalar] = {
    hlo.OrOp: lambda args, kind, op: args[0] | args[1],
    hlo.AndOp: lambda args, kind, op: args[0] & args[1],
    hlo.XorOp: lambda args, kind, op: args[0] ^ args[1],
    hlo.NotOp: lambda args, kind, op: ~args[0],
    hlo.CompareOp: _integer_compare,
}
_BOOLEANS: dict[type[GraphOp], Scalar] = {
    **_BITS,
    hlo.AddOp: _BITS[hlo.OrOp],
    hlo.MaximumOp: _BITS[hlo.OrOp],
    hlo.MultiplyOp: _BITS[hlo.AndOp],
    hlo.MinimumOp: _BITS[hlo.AndOp],
}
_INTEGERS: dict[type[GraphOp], Scalar] = {
    **_BITS,
    hlo.AddOp: lambda args, kind, op: args[0] + args[1],
    hlo.SubtractOp: lambda args, kind, op: args[0] - args[1],
    hlo.MultiplyOp: lambda args, kind, op: args[0] * args[1],
    hlo.NegateOp: lambda args, kind, op: -args[0],
    hlo.AbsOp: lambda args, kind, op: z3.If(args[0] < 0, -args[0], args[0]),
    hlo.DivideOp: _divide,
    hlo.RemainderOp: _remainder,
    hlo.MaximumOp: partial(_integer_extremum, True),
    hlo.MinimumOp: partial(_integer_extremum, False),
    hlo.SignOp: _integer_sign,
    hlo.ShiftLeftOp: lambda args, kind, op: args[0] << args[1],
    hlo.ShiftRightArithmeticOp: lambda args, kind, op: args[0] >> args[1],
    hlo.ShiftRightLogicalOp: lambda args, kind, op: z3.LShR(*args),
    hlo.PopcntOp: _popcnt,
}
_FLOATS: dict[type[GraphOp], Scalar] = {
    hlo.AddOp: partial(_round, z3.fpAdd),
    hlo.SubtractOp: partial(_round, z3.fpSub),
    hlo.MultiplyOp: partial(_round, z3.fpMul),
    hlo.DivideOp: partial(_round, z3.fpDiv),
    hlo.SqrtOp: partial(_round, z3.fpSqrt),
    hlo.NegateOp: lambda args, kind, op: args[0] ^ _sign_bit(kind),
    hlo.AbsOp: lambda args, kind, op: args[0] & ~_sign_bit(kind),
    hlo.MaximumOp: partial(_float_extremum, True),
    hlo.MinimumOp: partial(_float_extremum, False),
    hlo.SignOp: _float_sign,
    hlo.FloorOp: partial(_integral, z3.RTN),
    hlo.CeilOp: partial(_integral, z3.RTP),
    hlo.RoundNearestEvenOp: partial(_integral, z3.RNE),
    hlo.RoundNearestAfzOp: partial(_integral, z3.RNA),
    hlo.IsFiniteOp: _is_finite,
    hlo.CompareOp: _float_compare,
    hlo.RealOp: lambda args, kind, op: args[0],
    hlo.ImagOp: lambda args, kind, op: z3.BitVecVal(0, kind.width),
    hlo.ComplexOp: lambda args, kind, op: z3.Concat(args[1], args[0]),
}
_COMPLEX: dict[type[GraphOp], Scalar] = {
    hlo.AddOp: _by_parts,
    hlo.SubtractOp: _by_parts,
    hlo.NegateOp: _by_parts,
    hlo.MultiplyOp: _complex_product,
    hlo.CompareOp: _complex_compare,
    hlo.MaximumOp: partial(_complex_extremum, True),
    hlo.MinimumOp: partial(_complex_extremum, False),
    hlo.RealOp: lambda args, kind, op: parts(args[0], kind)[0],
    hlo.ImagOp: lambda args, kind, op: parts(args[0], kind)[1],
}
SCALARS: dict[tuple[type[GraphOp], str], Scalar] = {
    (op, kind): meaning
    for kind, rows in (("bool", _BOOLEANS), ("int", _INTEGERS), ("float", _FLOATS), ("complex", _COMPLEX))
    for op, meaning in rows.items()
}
"""(op, kind of the first operand) -> the bits of the result."""


# ---- conversions -------------------------------------------------------------------------------------------------


def convert(x: Term, source: Kind, target: Kind) -> Term | None:
    """The same number in another type; None where the theory does not say it. The same type keeps every bit."""
    if source.element == target.element:
        return x
    if any(kind.name == "float" and not is_ieee(kind.element) for kind in (source, target)):
        return None
    if source.name == "complex" and target.name == "complex":
        halves = [convert(part, source.part, target.part) for part in parts(x, source)]
        return None if None in halves else z3.Concat(halves[1], halves[0])
    if source.name == "complex":
        return convert(parts(x, source)[0], source.part, target)
    if target.name == "complex":
        real = convert(x, source, target.part)
        return None if real is None else z3.Concat(z3.BitVecVal(0, target.part.width), real)
    if target.name == "bool":
        return truth(z3.Not(is_zero(x, source)) if source.name == "float" else x != 0)
    if source.name == "float":
        return (
            _bits(z3.fpFPToFP(z3.RNE(), _float(x, source), _sort(target.element)), target)
            if (target.name == "float")
            else _saturate(_float(x, source), target)
        )
    signed = source.signed and source.name == "int"
    if target.name == "float":
        make = z3.fpSignedToFP if signed else z3.fpUnsignedToFP
        return _bits(make(z3.RNE(), x, _sort(target.element)), target)
    if target.width <= source.width:
        return z3.Extract(target.width - 1, 0, x)
    return (z3.SignExt if signed else z3.ZeroExt)(target.width - source.width, x)


def _saturate(x: Term, target: Kind) -> Term:
    """A float truncated to an integer type; out of range is the nearest limit, NaN is 0."""
    width = target.width
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if target.signed else (0, (1 << width) - 1)
    whole = z3.fpRoundToIntegral(z3.RTZ(), x)
    # In a format that holds both limits and everything between the two that x can be.
    wide = z3.FPSort(15, 113)
    value = z3.fpFPToFP(z3.RNE(), whole, wide)
    inside = (z3.fpToSBV if target.signed else z3.fpToUBV)(z3.RTZ(), value, z3.BitVecSort(width))
    above, below = z3.fpGEQ(value, z3.FPVal(high, wide)), z3.fpLEQ(value, z3.FPVal(low, wide))
    limited = z3.If(above, z3.BitVecVal(high, width), z3.If(below, z3.BitVecVal(low, width), inside))
    return z3.If(z3.fpIsNaN(x), z3.BitVecVal(0, width), limited)
