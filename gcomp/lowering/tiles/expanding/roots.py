"""Roots that are no operation of IEEE 754."""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.numbers import Number
from gcomp.lowering.tiles.expanding.table import expands


@expands("rsqrt", "f32", 1.5)
@expands("rsqrt", "f64", 1.5)
def rsqrt(x: Number) -> Number:
    """1 / sqrt(x), each rounded."""
    return 1.0 / x.sqrt()
