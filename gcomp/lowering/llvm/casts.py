"""Conversions of elements: floats round to nearest even, once; integers wrap. Narrow floats are their bits here."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

import numpy as np

from gcomp.dtypes import bit_width, dtype_of
from gcomp.lowering.llvm import arithmetic
from gcomp.lowering.llvm.functions import select
from gcomp.lowering.llvm.lanes import Lanes, float_text, uniform, vectorial, whole
from gcomp.lowering.llvm.writer import Writer, type_of, vector
from gcomp.lowering.tiles.functions import kind_of
from gcomp.reference.numpy.dtypes import FloatFormat, float_format


def cast(w: Writer, lanes: Lanes, dtype: str) -> Lanes:
    """The same numbers in another type."""
    if (found := arithmetic.convert_positions(w, lanes, dtype)) is not None:
        return found
    count = 1 if lanes.is_uniform else lanes.count
    value = lanes.base if lanes.is_uniform else whole(w, lanes)
    assert value is not None
    found = _convert(w, value, lanes.dtype, dtype, count)
    return uniform(dtype, found, lanes.count) if lanes.is_uniform else vectorial(dtype, count, found)


def bitcast(w: Writer, lanes: Lanes, dtype: str) -> Lanes:
    """The same bits in another type."""
    count = 1 if lanes.is_uniform else lanes.count
    value = lanes.base if lanes.is_uniform else whole(w, lanes)
    assert value is not None
    one, other = type_of(lanes.dtype, count), type_of(dtype, count)
    found = value if one == other else w.pure(f"bitcast {one} {value} to {other}")
    return uniform(dtype, found, lanes.count) if lanes.is_uniform else vectorial(dtype, count, found)


def _convert(w: Writer, value: str, source: str, dtype: str, count: int) -> str:
    one, other = kind_of(source), kind_of(dtype)
    if source == dtype:
        return value
    if one == "narrow":
        wide = _WIDENED.get(source, _widen)(w, value, source, count)
        return _convert(w, wide, "f32", dtype, count)
    if other == "narrow":
        single = _to_odd(w, value, count) if source == "f64" else _convert(w, value, source, "f32", count)
        return _NARROWED.get(dtype, _narrow)(w, single, dtype, count)
    code = _code(one, other, source, dtype)
    if code is None:
        return value
    found = w.pure(f"{code} {type_of(source, count)} {value} to {type_of(dtype, count)}")
    return found


def _code(one: str, other: str, source: str, dtype: str) -> str | None:
    """The instruction between two types that LLVM has; None where they have the same bits."""
    floats = ("f32", "f64")
    if one in floats and other in floats:
        return "fpext" if other == "f64" else "fptrunc"
    if one in floats:
        return "fptosi" if other == "signed" else "fptoui"
    if other in floats:
        return "sitofp" if one == "signed" else "uitofp"
    width, wanted = bit_width(source), bit_width(dtype)
    if width == wanted:
        return None
    return "trunc" if wanted < width else "sext" if one == "signed" else "zext"


# ---- narrow floats ------------------------------------------------------------------------------------------------


class _Bits:
    """Instructions on i32 and f32, as short names."""

    def __init__(self, w: Writer, count: int) -> None:
        self.w, self.count = w, count
        self.int, self.float, self.bool = type_of("i32", count), type_of("f32", count), vector("i1", count)

    def number(self, value: int) -> str:
        return str(value) if self.count == 1 else f"splat (i32 {value})"

    def real(self, value: float) -> str:
        return float_text(value) if self.count == 1 else f"splat (float {float_text(value)})"

    def op(self, code: str, x: str, y: str | int) -> str:
        return self.w.pure(f"{code} {self.int} {x}, {self.number(y) if isinstance(y, int) else y}")

    def bits(self, x: str) -> str:
        return self.w.pure(f"bitcast {self.float} {x} to {self.int}")

    def bits_of(self, value: float) -> int:
        return int.from_bytes(struct.pack("<f", value), "little")

    def as_float(self, x: str) -> str:
        return self.w.pure(f"bitcast {self.int} {x} to {self.float}")

    def choose(self, test: str, x: str, y: str) -> str:
        return select(self.w, "i32", self.count, test, x, y)


def _widen(w: Writer, value: str, dtype: str, count: int) -> str:
    """Exact: the exponent is moved by a product, which makes subnormal numbers normal; inf and NaN are put right."""
    form, b = float_format(dtype_of(dtype)), _Bits(w, count)
    wide = w.pure(f"zext {type_of(dtype, count)} {value} to {b.int}")
    low = (1 << (form.bits - 1)) - 1
    magnitude = b.op("and", wide, low)
    moved = b.op("shl", magnitude, 23 - form.mantissa_bits)
    found = b.bits(w.pure(f"fmul {b.float} {b.as_float(moved)}, {b.real(2.0 ** (127 - _bias(form)))}"))
    if form.has_infinity or (form.has_nan and form.has_negative_zero):
        # Without infinity all bits but the sign are set where there is no number.
        least = (low >> form.mantissa_bits) << form.mantissa_bits if form.has_infinity else low
        found = b.choose(b.op("icmp uge", magnitude, least), b.op("or", moved, 0x7F800000), found)
    sign = b.op("shl", b.op("and", wide, low + 1), 32 - form.bits)
    found = b.op("or", found, sign)
    if form.has_nan and not form.has_negative_zero:
        found = b.choose(b.op("icmp eq", wide, low + 1), b.number(0xFFC00000), found)
    return b.as_float(found)


def _bf16_widen(w: Writer, value: str, dtype: str, count: int) -> str:
    b = _Bits(w, count)
    return b.as_float(b.op("shl", w.pure(f"zext {type_of(dtype, count)} {value} to {b.int}"), 16))


def _power_widen(w: Writer, value: str, dtype: str, count: int) -> str:
    """Of f8E8M0FNU, whose bits are an exponent: the least is a subnormal number of f32."""
    b = _Bits(w, count)
    wide = w.pure(f"zext {type_of(dtype, count)} {value} to {b.int}")
    found = b.choose(b.op("icmp eq", wide, 0), b.number(1 << 22), b.op("shl", wide, 23))
    return b.as_float(b.choose(b.op("icmp eq", wide, 0xFF), b.number(0x7FC00000), found))


def _bf16_narrow(w: Writer, value: str, dtype: str, count: int) -> str:
    b = _Bits(w, count)
    bits = b.bits(value)
    even = b.op("and", b.op("lshr", bits, 16), 1)
    rounded = b.op("lshr", b.op("add", b.op("add", bits, even), 0x7FFF), 16)
    quiet = b.op("or", b.op("lshr", bits, 16), 0x40)
    nan = w.pure(f"fcmp uno {b.float} {value}, {value}")
    found = b.choose(nan, quiet, rounded)
    return w.pure(f"trunc {b.int} {found} to {type_of(dtype, count)}")


def _power_narrow(w: Writer, value: str, dtype: str, count: int) -> str:
    """To f8E8M0FNU as `ml_dtypes` has it: halves upwards, and what lies between the two least powers, too."""
    b = _Bits(w, count)
    bits = b.bits(value)
    half = b.choose(b.op("icmp ult", bits, 1 << 23), b.number((1 << 22) - 1), b.number(1 << 22))
    found = b.op("lshr", b.op("add", bits, half), 23)
    # Zero, infinities, NaN and all that has a sign are no powers of two: less one, their bits are large ones.
    none = b.op("icmp uge", b.op("sub", bits, 1), 0x7F800000 - 1)
    return w.pure(f"trunc {b.int} {b.choose(none, b.number(0xFF), found)} to {type_of(dtype, count)}")


def _narrow(w: Writer, value: str, dtype: str, count: int) -> str:
    """To nearest even."""
    form, b = float_format(dtype_of(dtype)), _Bits(w, count)
    mantissa, bias, top = form.mantissa_bits, _bias(form), 1 << (form.bits - 1)
    bits = b.bits(value)
    magnitude = b.op("and", bits, 0x7FFFFFFF)
    sign = b.op("and", b.op("lshr", bits, 32 - form.bits), top)
    drop = 23 - mantissa
    # Normal: half a unit is added, a little less where the last bit that stays is 0; then the exponent is moved.
    even = b.op("and", b.op("lshr", magnitude, drop), 1)
    raised = b.op("add", b.op("add", magnitude, even), (1 << (drop - 1)) - 1)
    normal = b.op("sub", b.op("lshr", raised, drop), (127 - bias) << mantissa)
    # Subnormal: the sum with a number whose last place is the least number rounds as it should.
    least = 1 - bias
    magic = 2.0 ** (least - mantissa + 23)
    moved = w.pure(f"fadd {b.float} {b.as_float(magnitude)}, {b.real(magic)}")
    small = b.op("sub", b.bits(moved), b.bits_of(magic))
    found = b.choose(b.op("icmp ult", magnitude, (127 + least) << 23), small, normal)
    special, over = _bits_of(dtype, math.nan), _bits_of(dtype, math.inf)
    large = b.op("icmp ugt", found, _bits_of(dtype, form.max))
    large = w.pure(f"or {b.bool} {large}, {b.op('icmp uge', magnitude, 0x7F800000)}")
    nan = b.op("icmp ugt", magnitude, 0x7F800000)
    if form.has_nan and form.has_negative_zero:
        found = b.choose(nan, b.number(special), b.choose(large, b.number(over), found))
        found = b.op("or", found, sign)
    elif form.has_nan:
        # The one NaN has the bits of a zero with a sign.
        found = b.choose(b.op("icmp eq", found, 0), found, b.op("or", found, sign))
        found = b.choose(w.pure(f"or {b.bool} {large}, {nan}"), b.number(special), found)
    else:
        # Without NaN, it becomes zero, with the other sign.
        found = b.op("or", b.choose(large, b.number(over), found), sign)
        found = b.choose(nan, b.op("xor", sign, top), found)
    return w.pure(f"trunc {b.int} {found} to {type_of(dtype, count)}")


def _bias(form: FloatFormat) -> int:
    """What is added to exponents: the least of normal numbers is stored as 1."""
    return 2 - math.frexp(form.tiny)[1]


def _bits_of(dtype: str, value: float) -> int:
    """The bits of what a number becomes in a type."""
    with np.errstate(all="ignore"):
        return int.from_bytes(np.array(value, np.float32).astype(dtype_of(dtype)).tobytes(), "little")


def _to_odd(w: Writer, value: str, count: int) -> str:
    """An f64 as an f32 whose last bit says that more follows: what is rounded again is then rounded as once."""
    b = _Bits(w, count)
    double = type_of("f64", count)
    near = w.pure(f"fptrunc {double} {value} to {b.float}")
    back = w.pure(f"fpext {b.float} {near} to {double}")
    sizes = [
        w.call(f"llvm.fabs.{'f64' if count == 1 else f'v{count}f64'}", double, [(double, x)]) for x in (back, value)
    ]
    bits = b.bits(near)
    beyond = w.pure(f"fcmp ogt {double} {sizes[0]}, {sizes[1]}")
    below = b.choose(beyond, b.op("sub", bits, 1), bits)
    inexact = w.pure(f"fcmp one {double} {back}, {value}")
    return b.as_float(b.choose(inexact, b.op("or", below, 1), bits))


Conversion = Callable[[Writer, str, str, int], str]

_WIDENED: Mapping[str, Conversion] = {"bf16": _bf16_widen, "f8E8M0FNU": _power_widen}
_NARROWED: Mapping[str, Conversion] = {"bf16": _bf16_narrow, "f8E8M0FNU": _power_narrow}
"""Of types that have ways of their own."""

__all__ = ["bitcast", "cast"]
