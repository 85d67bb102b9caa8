"""Ops on the bits of elements: counts, halves of products, conversions of bits, and rounding to fewer of them."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.dims import Size
from gcomp.dtypes import bit_width, dtype_of, is_float, stored_width
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import own_bits, pack, sign_extend
from gcomp.lowering.tiles.elements.elementwise import narrow
from gcomp.lowering.tiles.elements.table import Elements, elements_of, refusal
from gcomp.lowering.tiles.functions import kind_of
from gcomp.lowering.tiles.tile import HELD, element
from gcomp.reference.numpy.dtypes import float_format

WIDTHS = (8, 16, 32, 64)
"""Widths of the integers that kernels compute with."""


def to_unsigned(b: TileBuilder, op: Operation, x: SSAValue) -> SSAValue:
    """The bits of an element as an unsigned integer."""
    kind = element(x)
    if kind_of(kind) == "unsigned":
        return x
    if kind_of(kind) == "complex" or kind == "i1":
        raise refusal(op, f"there are no bits of {kind} in a kernel")
    return b.bitcast(x, f"ui{stored_width(kind)}")


def from_unsigned(b: TileBuilder, op: Operation, bits: SSAValue, kind: str) -> SSAValue:
    """The element of a type with these bits."""
    if kind_of(kind) == "complex" or kind == "i1" or stored_width(kind) != bit_width(element(bits)):
        raise refusal(op, f"there are no bits of {kind} in a kernel")
    held = HELD.get(kind, kind)
    return sign_extend(b, bits if held == element(bits) else b.bitcast(bits, held), kind)


def right(b: TileBuilder, bits: SSAValue, distance: int) -> SSAValue:
    """Unsigned bits moved down."""
    return b.apply("shift_right_logical", bits, b.constant(distance, element(bits)))


def shift_left(b: TileBuilder, bits: SSAValue, distance: int) -> SSAValue:
    """Bits moved up."""
    return b.apply("shift_left", bits, b.constant(distance, element(bits)))


def count_bits(b: TileBuilder, bits: SSAValue) -> SSAValue:
    """How many bits are set: of pairs, of groups of four, of eight, and then of all."""
    width, kind = bit_width(element(bits)), element(bits)

    def every(pattern: int) -> SSAValue:
        return b.constant(int.from_bytes(bytes([pattern]) * (width // 8), "little"), kind)

    def mask(x: SSAValue, pattern: int) -> SSAValue:
        return b.apply("and", x, every(pattern))

    bits = b.apply("subtract", bits, mask(right(b, bits, 1), 0x55))
    bits = b.add(mask(bits, 0x33), mask(right(b, bits, 2), 0x33))
    bits = mask(b.add(bits, right(b, bits, 4)), 0x0F)
    distance = 8
    while distance < width:
        bits = b.add(bits, right(b, bits, distance))
        distance *= 2
    return b.apply("and", bits, b.constant(0x7F, kind))


@elements_of(hlo.PopcntOp)
def popcnt(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The number of set bits."""
    b, kind = elements.b, dtype_text(op.results[0].type)
    x = elements.operand(op, result, 0, access)
    bits = to_unsigned(b, op, pack(b, x, kind))
    return sign_extend(b, from_unsigned(b, op, count_bits(b, bits), element(x)), kind)


@elements_of(hlo.CountLeadingZerosOp)
def count_leading_zeros(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """What the highest set bit, smeared downwards, does not cover."""
    b, own = elements.b, dtype_text(op.results[0].type)
    x = elements.operand(op, result, 0, access)
    bits = to_unsigned(b, op, pack(b, x, own))
    width = bit_width(element(bits))
    distance = 1
    while distance < width:
        bits = b.apply("or", bits, right(b, bits, distance))
        distance *= 2
    count = b.apply("subtract", b.constant(bit_width(own), element(bits)), count_bits(b, bits))
    return sign_extend(b, from_unsigned(b, op, count, element(x)), own)


@elements_of(chlo.MulhiOp)
def mulhi(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The upper half of the double-width product."""
    b = elements.b
    x, y = elements.operands(op, result, access)
    kind, width = element(x), bit_width(element(x))
    if width not in WIDTHS:
        raise refusal(op, f"there are no bits of {kind} in a kernel")
    if (own := dtype_text(op.operands[0].type)) in HELD:
        # The whole product fits the byte that holds a factor.
        shift = "shift_right_logical" if own.startswith("ui") else "shift_right_arithmetic"
        return b.apply(shift, b.multiply(x, y), b.constant(bit_width(own), kind))
    if width < 64:
        wide = "ui64" if kind_of(kind) == "unsigned" else "i64"
        product = b.multiply(b.cast(x, wide), b.cast(y, wide))
        return from_unsigned(b, op, b.cast(right(b, b.bitcast(product, "ui64") if wide == "i64" else product, width),
                                      f"ui{width}"), kind)  # fmt: skip
    high = _upper(b, to_unsigned(b, op, x), to_unsigned(b, op, y))
    if kind_of(kind) == "signed":
        # A negative factor is 2**64 more when read as unsigned, which adds the other one to the upper half.
        zero, nothing = b.constant(0, kind), b.constant(0, "ui64")
        for one, other in ((x, y), (y, x)):
            extra = b.apply("select", b.apply("lt", one, zero), to_unsigned(b, op, other), nothing)
            high = b.apply("subtract", high, extra)
    return from_unsigned(b, op, high, kind)


def _upper(b: TileBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The upper half of a product of 64-bit numbers, by halves."""
    low = b.constant(0xFFFFFFFF, "ui64")
    (x0, x1), (y0, y1) = ((b.apply("and", v, low), right(b, v, 32)) for v in (x, y))
    middle = b.add(b.multiply(x1, y0), right(b, b.multiply(x0, y0), 32))
    other = b.add(b.multiply(x0, y1), b.apply("and", middle, low))
    return b.add(b.add(b.multiply(x1, y1), right(b, middle, 32)), right(b, other, 32))


@elements_of(hlo.BitcastConvertOp)
def bitcast_convert(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The bits in another type; of several narrow elements the first holds the lowest."""
    b, frame = elements.b, elements.frame
    value, kind = op.operands[0], dtype_text(op.results[0].type)
    source = dtype_text(value.type)
    if source == kind:
        return elements.operand(op, result, 0, access)
    if "complex" in (kind_of(source), kind_of(kind)):
        raise refusal(op, "complex numbers have no elements of their own in a kernel")
    old, new = bit_width(source), bit_width(kind)

    def at(indices: tuple[Size, ...]) -> SSAValue:
        read = replace(frame.access(shape_of(value), indices), conditions=access.conditions)
        return own_bits(b, to_unsigned(b, op, elements(value, read)), source)

    if old == new:
        return from_unsigned(b, op, at(access.indices), kind)
    whole = f"ui{stored_width(kind)}"
    if new < old:
        bits = at(access.indices[:-1])
        width = stored_width(source)
        part = b.bitcast(b.cast(frame.position(access.indices[-1] * new), f"i{width}"), f"ui{width}")
        found = own_bits(b, b.cast(b.apply("shift_right_logical", bits, part), whole), kind)
        return from_unsigned(b, op, found, kind)
    found: SSAValue | None = None
    for n in range(new // old):
        bits = shift_left(b, b.cast(at((*access.indices, n)), whole), n * old)
        found = bits if found is None else b.apply("or", found, bits)
    assert found is not None
    return from_unsigned(b, op, found, kind)


@elements_of(hlo.ReducePrecisionOp)
def reduce_precision(elements: Elements, op: hlo.ReducePrecisionOp, result: int, access: IndexingMap) -> SSAValue:
    """Rounded to nearest even in fewer bits; what is too large is infinite, and what is too small a zero."""
    b = elements.b
    x = elements.operand(op, result, 0, access)
    if is_float(element(x)) and not float_format(dtype_of(element(x))).has_infinity:
        # It is rounded as an f32, whose infinities become what the type has for them.
        return narrow(b, _reduce_precision(b, op, b.cast(x, "f32")), element(x))
    return _reduce_precision(b, op, x)


def _reduce_precision(b: TileBuilder, op: hlo.ReducePrecisionOp, x: SSAValue) -> SSAValue:
    if not is_float(element(x)):
        raise refusal(op, f"it rounds {element(x)}")
    form = float_format(dtype_of(element(x)))
    exponent, mantissa = form.exponent_bits, form.mantissa_bits
    bits = to_unsigned(b, op, x)
    kind, width = element(bits), bit_width(element(bits))

    def number(value: int) -> SSAValue:
        return b.constant(value & ((1 << width) - 1), kind)

    infinity = ((1 << exponent) - 1) << mantissa
    is_nan = b.apply("gt", b.apply("and", bits, number((1 << (width - 1)) - 1)), number(infinity))
    original = bits
    dropped = mantissa - int(op.value("mantissa_bits"))
    if dropped > 0:
        last = b.apply("and", right(b, bits, dropped), number(1))
        bits = b.add(b.add(bits, last), number((1 << (dropped - 1)) - 1))
        bits = b.apply("and", bits, number(-(1 << dropped)))
    target = int(op.value("exponent_bits"))
    if target < exponent:
        bias, new_bias = (1 << (exponent - 1)) - 1, (1 << (target - 1)) - 1
        part, zero = b.apply("and", bits, number(infinity)), b.apply("and", bits, number(1 << (width - 1)))
        over = b.apply("gt", part, number((bias + new_bias) << mantissa))
        under = b.apply("le", part, number((bias - new_bias) << mantissa))
        bits = b.apply("select", over, b.apply("or", zero, number(infinity)), bits)
        bits = b.apply("select", under, zero, bits)
    return from_unsigned(b, op, b.apply("select", is_nan, original, bits), element(x))


__all__ = ["count_bits", "to_unsigned"]
