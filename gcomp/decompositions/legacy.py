"""Ops that StableHLO keeps for old programs, as those that came after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import rank_of, shape_of, tensor_of


def _dot(b: Builder, op: hlo.DotOp) -> SSAValue:
    properties: dict[str, Any] = {"precision_config": op.precision_config} if op.precision_config else {}
    numbers = DotDimensions((), (), (rank_of(op.lhs) - 1,), (0,))
    types = (tensor_of(op.result),)
    return b.emit(hlo.DotGeneralOp, op.lhs, op.rhs, types=types, dot_dimension_numbers=numbers, **properties)


def _broadcast(b: Builder, op: hlo.BroadcastOp) -> SSAValue:
    return b.broadcast_to(op.operand, shape_of(op.result))


LEGACY: Mapping[type[Any], Callable[[Builder, Any], SSAValue]] = {hlo.DotOp: _dot, hlo.BroadcastOp: _broadcast}
"""Op class -> its modern form."""


def modern(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The op that says the same."""
    return [LEGACY[type(op)](b, op)]
