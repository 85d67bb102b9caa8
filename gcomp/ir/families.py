"""Families of ops, found by the ops' classes: tables that say the same of all ops of a kind are derived from here.

A new op that derives from one of these classes is in those tables without being named in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.chlo import CHLO
from gcomp.ir.chlo.broadcasting import BroadcastingOp
from gcomp.ir.chlo.elementwise import BinaryFunctionOp, FunctionOp, PredicateOp
from gcomp.ir.definitions import derives
from gcomp.ir.native import GCOMP
from gcomp.ir.op import GraphOp
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.ir.stablehlo.elementwise import BinaryOp, TranscendentalOp, UnaryOp

Ops = tuple[type[GraphOp], ...]

GRAPH_OPS: Ops = tuple(
    cast("type[GraphOp]", op) for d in (STABLEHLO, CHLO, GCOMP, SDY) for op in d.operations if derives(op, GraphOp)
)
"""Every op of the graph level, dialect by dialect."""


@cache
def ops_of(*bases: type[GraphOp]) -> Ops:
    """The ops whose class derives from one of these, in the order of `GRAPH_OPS`."""
    return tuple(op for op in GRAPH_OPS if derives(op, *bases))


def _plain() -> Mapping[type[GraphOp], type[GraphOp]]:
    named = {op.name: op for op in GRAPH_OPS}
    words = {op: op.name.removeprefix("chlo.broadcast_") for op in ops_of(BroadcastingOp, chlo.BroadcastSelectOp)}
    return {op: named.get(f"chlo.{word}") or named[f"stablehlo.{word}"] for op, word in words.items()}


PLAIN: Mapping[type[GraphOp], type[GraphOp]] = _plain()
"""CHLO's op that broadcasts -> the op that does the same to operands of one shape."""

_EXACT_FUNCTIONS: Ops = (chlo.ConjOp, chlo.SquareOp, chlo.NextAfterOp, chlo.MulhiOp)
APPROXIMATED: Ops = (
    hlo.Atan2Op, hlo.PowerOp, *ops_of(TranscendentalOp),
    *(op for op in ops_of(FunctionOp, BinaryFunctionOp)
      if op not in (*_EXACT_FUNCTIONS, *ops_of(PredicateOp), chlo.AsinAcosKernelOp)),
)  # fmt: skip
"""Functions that backends compute by polynomials and iterations, within some ulps."""

SIMPLE: Ops = (
    *(op for op in ops_of(UnaryOp, BinaryOp, FunctionOp, BinaryFunctionOp) if op not in APPROXIMATED),
    hlo.BitcastConvertOp, hlo.ClampOp, hlo.CompareOp, hlo.ComplexOp, hlo.ConvertOp, hlo.IsFiniteOp,
    hlo.ReducePrecisionOp, hlo.SelectOp, hlo.UniformDequantizeOp, hlo.UniformQuantizeOp,
)  # fmt: skip
"""Ops of single elements that are one operation of a processor, or a few: all others of these classes."""

POINTWISE: Ops = tuple(op for op in (*SIMPLE, *APPROXIMATED) if op is not hlo.BitcastConvertOp)
"""Ops each of whose elements is of the elements at its own place, or of scalars; a bitcast may change the shape."""
