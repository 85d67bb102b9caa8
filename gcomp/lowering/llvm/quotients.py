"""Positions divided in many lanes by one size: by its reciprocal in f64, which is computed once.

Processors divide integers one by one, in some ten cycles, and of what a known divisor is turned into, the upper halves
of products of 64 bits, they compute one by one as well. A
position n is below 2^50 (memory has fewer elements), so that f64 holds it, and n times the rounded reciprocal of d
is less than 1/2 away from n / d: rounded to an integer, it is the quotient or the one above it, which a remainder
below 0 tells. Integers below 2^52 are moved to f64 and back by the bits of 2^52, which any vector unit can do.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.lowering.llvm import functions
from gcomp.lowering.llvm.lanes import Lanes, float_text, splat, vectorial, whole
from gcomp.lowering.llvm.writer import Writer, suffix, type_of, vector

BITS = 0x4330_0000_0000_0000
"""The bits of 2^52 in f64, whose last digit is 1: added to these, an integer is the digits."""
BASE = f"0x{BITS:016X}"
DIVISIONS = ("divide_positive", "modulo_positive")


def is_fast(function: str, operands: Sequence[Lanes]) -> bool:
    """Whether operands are lanes of positions and a size, the same for all of them. The processor divides a single
    position as fast, and by powers of two all of them."""
    if function not in DIVISIONS or operands[0].dtype != "i64" or operands[0].count == 1:
        return False
    number = operands[1].number
    return operands[1].is_uniform and (number is None or (number > 0 and number & (number - 1) != 0))


def divide(w: Writer, function: str, operands: Sequence[Lanes]) -> Lanes:
    """The quotient of what is not negative, or its remainder."""
    number, divisor = operands
    count = number.count
    if divisor.number is not None:
        size, reciprocal = float_text(float(divisor.number)), float_text(1.0 / divisor.number)
    else:
        size = _to_float(w, 1, functions.at_least_one(w, str(divisor.base)))
        reciprocal = w.pure(f"fdiv double {float_text(1.0)}, {size}")
    wide, i64 = vector("double", count), vector("i64", count)
    size, reciprocal = (splat(w, "double", value, count) for value in (size, reciprocal))
    base = f"splat (double {BASE})"
    of = _to_float(w, count, whole(w, number))
    near = w.pure(f"fadd {wide} {w.pure(f'fmul {wide} {of}, {reciprocal}')}, {base}")
    minus = w.pure(f"fneg {wide} {w.pure(f'fsub {wide} {near}, {base}')}")
    rest = w.call(f"llvm.fma.{suffix('f64', count)}", wide, [(wide, minus), (wide, size), (wide, of)])
    above = w.pure(f"fcmp olt {wide} {rest}, zeroinitializer")
    if function == "divide_positive":
        one = w.pure(f"sext {vector('i1', count)} {above} to {i64}")
        return vectorial("i64", count, w.pure(f"add {i64} {_to_integer(w, count, near)}, {one}"))
    more = w.pure(f"fadd {wide} {rest}, {size}")
    rest = w.pure(f"select {vector('i1', count)} {above}, {wide} {more}, {wide} {rest}")
    return vectorial("i64", count, _to_integer(w, count, w.pure(f"fadd {wide} {rest}, {base}")))


def _to_float(w: Writer, count: int, value: str) -> str:
    """Integers below 2^52 in f64."""
    i64, wide = type_of("i64", count), vector("double", count)
    bits, base = (str(BITS), BASE) if count == 1 else (f"splat (i64 {BITS})", f"splat (double {BASE})")
    digits = w.pure(f"or {i64} {value}, {bits}")
    return w.pure(f"fsub {wide} {w.pure(f'bitcast {i64} {digits} to {wide}')}, {base}")


def _to_integer(w: Writer, count: int, value: str) -> str:
    """The integers of which f64 holds the sums with 2^52."""
    i64, wide = type_of("i64", count), vector("double", count)
    return w.pure(f"xor {i64} {w.pure(f'bitcast {wide} {value} to {i64}')}, splat (i64 {BITS})")


__all__ = ["divide", "is_fast"]
