"""Importing this fills the table of derivatives."""

from __future__ import annotations

from gcomp.autodiff import (
    calls,
    collectives,
    contraction,
    control,
    elementwise,
    functions,
    indexing,
    linalg,
    loops,
    movement,
    normalization,
    products,
    reduction,
    rest,
    windows,
)
from gcomp.autodiff.sweeps import ROWS
from gcomp.ir.chlo import CHLO
from gcomp.ir.stablehlo import STABLEHLO


def audit() -> list[str]:
    """The ops of StableHLO and CHLO that have neither a rule nor a reason why there is none."""
    return [op.name for dialect in (STABLEHLO, CHLO) for op in dialect.operations if op not in ROWS]


__all__ = [
    "audit",
    "calls",
    "collectives",
    "contraction",
    "control",
    "elementwise",
    "functions",
    "indexing",
    "linalg",
    "loops",
    "movement",
    "normalization",
    "products",
    "reduction",
    "rest",
    "windows",
]
