"""The table of expansions: function and element type -> how it is computed from basic functions, and its error."""

from __future__ import annotations

from collections.abc import Callable

from gcomp.lowering.tiles.expanding.numbers import Number
from gcomp.records import record

Compute = Callable[..., Number]


@record
class Expansion:
    """A function's program, and by how many units in the last place it may be wrong."""

    compute: Compute
    ulps: float


EXPANSIONS: dict[tuple[str, str], Expansion] = {}
"""(Function, f32 or f64) -> its expansion."""


def expands(name: str, dtype: str, ulps: float) -> Callable[[Compute], Compute]:
    """Register the program of a function on f32 or f64."""

    def register(compute: Compute) -> Compute:
        assert (name, dtype) not in EXPANSIONS, (name, dtype)
        EXPANSIONS[name, dtype] = Expansion(compute, ulps)
        return compute

    return register


def in_double(name: str) -> None:
    """Register the function on f32: the one on f64, rounded once more."""
    inner = EXPANSIONS[name, "f64"].compute

    def compute(*operands: Number) -> Number:
        return inner(*(x.cast("f64") for x in operands)).cast("f32")

    EXPANSIONS[name, "f32"] = Expansion(compute, 0.51)
