"""Conversions of elements: floats round to nearest even, once; integers wrap. Narrow floats are their bits here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from gcomp.dtypes import bit_width
from gcomp.lowering.llvm import arithmetic
from gcomp.lowering.llvm.functions import select
from gcomp.lowering.llvm.lanes import Lanes, float_text, uniform, vectorial, whole
from gcomp.lowering.llvm.writer import Writer, type_of, vector
from gcomp.lowering.tiles.functions import kind_of


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
        return _convert(w, _WIDENED[source](w, value, count), "f32", dtype, count)
    if other == "narrow":
        if source == "f64":
            return _NARROWED[dtype](w, _to_odd(w, value, count), count)
        return _NARROWED[dtype](w, _convert(w, value, source, "f32", count), count)
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


def _f16_widened(w: Writer, value: str, count: int) -> str:
    """Exact: the exponent is moved by a product, which makes subnormal numbers normal; inf and NaN are put right."""
    return _widen(w, value, count, width=16, mantissa=10, bias=15, infinite=True)


def _f8e5m2_widened(w: Writer, value: str, count: int) -> str:
    return _widen(w, value, count, width=8, mantissa=2, bias=15, infinite=True)


def _f8e4m3fn_widened(w: Writer, value: str, count: int) -> str:
    """All bits set but the sign is NaN; there is no infinity."""
    return _widen(w, value, count, width=8, mantissa=3, bias=7, infinite=False)


def _widen(w: Writer, value: str, count: int, *, width: int, mantissa: int, bias: int, infinite: bool) -> str:
    b = _Bits(w, count)
    wide = w.pure(f"zext {vector(f'i{width}', count)} {value} to {b.int}")
    low = (1 << (width - 1)) - 1
    magnitude = b.op("and", wide, low)
    moved = b.as_float(b.op("shl", magnitude, 23 - mantissa))
    scaled = w.pure(f"fmul {b.float} {moved}, {b.real(2.0 ** (127 - bias))}")
    found = b.bits(scaled)
    least = (low >> mantissa) << mantissa if infinite else low
    special = b.op("or", b.op("shl", magnitude, 23 - mantissa), 0x7F800000)
    found = b.choose(b.op("icmp uge", magnitude, least), special, found)
    sign = b.op("shl", b.op("and", wide, low + 1), 32 - width)
    return b.as_float(b.op("or", found, sign))


def _bf16_widened(w: Writer, value: str, count: int) -> str:
    b = _Bits(w, count)
    return b.as_float(b.op("shl", w.pure(f"zext {vector('i16', count)} {value} to {b.int}"), 16))


def _bf16_narrowed(w: Writer, value: str, count: int) -> str:
    b = _Bits(w, count)
    bits = b.bits(value)
    even = b.op("and", b.op("lshr", bits, 16), 1)
    rounded = b.op("lshr", b.op("add", b.op("add", bits, even), 0x7FFF), 16)
    quiet = b.op("or", b.op("lshr", bits, 16), 0x40)
    nan = w.pure(f"fcmp uno {b.float} {value}, {value}")
    found = b.choose(nan, quiet, rounded)
    return w.pure(f"trunc {b.int} {found} to {vector('i16', count)}")


def _narrow(w: Writer, value: str, count: int, *, width: int, mantissa: int, bias: int, over: int, nan: int) -> str:
    """To nearest even. `over` is what numbers become that are beyond the greatest, `nan` what NaN becomes."""
    b = _Bits(w, count)
    bits = b.bits(value)
    magnitude = b.op("and", bits, 0x7FFFFFFF)
    sign = b.op("and", b.op("lshr", bits, 32 - width), 1 << (width - 1))
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
    found = b.choose(b.op("icmp ugt", found, _greatest(width, mantissa, nan)), b.number(over), found)
    infinite = b.op("icmp uge", magnitude, 0x7F800000)
    found = b.choose(infinite, b.number(over), found)
    found = b.choose(b.op("icmp ugt", magnitude, 0x7F800000), b.number(nan), found)
    found = b.op("or", found, sign)
    return w.pure(f"trunc {b.int} {found} to {vector(f'i{width}', count)}")


def _greatest(width: int, mantissa: int, nan: int) -> int:
    """The bits of the greatest finite number."""
    top = (1 << (width - 1)) - 1
    return top - 1 if nan == top and mantissa == 3 else ((top >> mantissa) << mantissa) - 1


def _f16_narrowed(w: Writer, value: str, count: int) -> str:
    return _narrow(w, value, count, width=16, mantissa=10, bias=15, over=0x7C00, nan=0x7E00)


def _f8e5m2_narrowed(w: Writer, value: str, count: int) -> str:
    return _narrow(w, value, count, width=8, mantissa=2, bias=15, over=0x7C, nan=0x7E)


def _f8e4m3fn_narrowed(w: Writer, value: str, count: int) -> str:
    return _narrow(w, value, count, width=8, mantissa=3, bias=7, over=0x7F, nan=0x7F)


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


Conversion = Callable[[Writer, str, int], str]

_WIDENED: Mapping[str, Conversion] = {
    "bf16": _bf16_widened, "f16": _f16_widened, "f8E5M2": _f8e5m2_widened, "f8E4M3FN": _f8e4m3fn_widened,
}  # fmt: skip
_NARROWED: Mapping[str, Conversion] = {
    "bf16": _bf16_narrowed, "f16": _f16_narrowed, "f8E5M2": _f8e5m2_narrowed, "f8E4M3FN": _f8e4m3fn_narrowed,
}  # fmt: skip

__all__ = ["bitcast", "cast"]
