"""Imports every module that registers padding rules."""

from __future__ import annotations

from xdsl.dialects.func import ReturnOp as FuncReturnOp

from gcomp.ir import stablehlo as hlo
from gcomp.ir.chlo import CHLO
from gcomp.ir.native import GCOMP
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.padding import contraction, control, independent, indexing, movement, reduction, rest, sorting
from gcomp.padding.table import ROWS

_ENDS = (hlo.ReturnOp, FuncReturnOp)
"""What ends a block is no op of it."""


def audit() -> list[str]:
    """The ops of StableHLO, CHLO and gcomp that have no row."""
    ops = [op for dialect in (STABLEHLO, CHLO, GCOMP) for op in dialect.operations]
    return [op.name for op in ops if op not in ROWS and op not in _ENDS]


__all__ = ["audit", "contraction", "control", "independent", "indexing", "movement", "reduction", "rest", "sorting"]
