"""Random bits as numbers of a distribution: what every frontend builds of the bits that it draws."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text


def unit_interval(b: Builder, bits: SSAValue, digits: int, element: str) -> SSAValue:
    """Uniform numbers in [0, 1) of a float type: multiples of 2**-digits, from the upper bits of ui32 or ui64."""
    kept = b.emit(hlo.ShiftRightLogicalOp, bits, b.full_like(bits, bit_width(dtype_text(bits.type)) - digits))
    return b.scale(b.convert(kept, element), 2.0**-digits)


def standard_normal(b: Builder, unit: SSAValue, digits: int) -> SSAValue:
    """Standard normal numbers: the quantiles at the middles of the intervals of uniform numbers of `digits` bits.

    The middles are never 0 or 1, whose quantiles are infinite.
    """
    middle = b.add(b.scale(unit, 2.0), b.scalar_like(unit, 2.0**-digits - 1.0))
    return b.scale(b.emit(chlo.ErfInvOp, middle), math.sqrt(2.0))
