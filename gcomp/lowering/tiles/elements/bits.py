"""Integers of 2 and 4 bits, which machines do not have: bytes whose value is always in the type's range.

In memory an element is a byte whose upper bits are 0.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.tile import HELD, element


def sign_extend(b: TileBuilder, x: SSAValue, dtype: str) -> SSAValue:
    """A byte's low bits as a number of a type of fewer bits; other types as they are."""
    if dtype not in HELD:
        return x
    if dtype.startswith("ui"):
        return pack(b, x, dtype)
    distance = b.constant(8 - bit_width(dtype), dtype)
    return b.apply("shift_right_arithmetic", b.apply("shift_left", x, distance), distance)


def pack(b: TileBuilder, x: SSAValue, dtype: str) -> SSAValue:
    """A number of a type of fewer than 8 bits as the byte that it is in memory; other types as they are."""
    return own_bits(b, x, dtype) if dtype in HELD else x


def own_bits(b: TileBuilder, x: SSAValue, dtype: str) -> SSAValue:
    """Those bits of an integer that a type has, where it has fewer than 8."""
    if bit_width(dtype) >= 8:
        return x
    return b.apply("and", x, b.constant((1 << bit_width(dtype)) - 1, element(x)))
