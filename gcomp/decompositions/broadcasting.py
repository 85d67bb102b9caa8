"""CHLO's ops that broadcast, as the plain op on operands that are broadcast before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import rank_of, shape_of

PLAIN: Mapping[type[GraphOp], type[GraphOp]] = {
    chlo.BroadcastAddOp: hlo.AddOp,
    chlo.BroadcastAndOp: hlo.AndOp,
    chlo.BroadcastAtan2Op: hlo.Atan2Op,
    chlo.BroadcastCompareOp: hlo.CompareOp,
    chlo.BroadcastComplexOp: hlo.ComplexOp,
    chlo.BroadcastDivideOp: hlo.DivideOp,
    chlo.BroadcastMaximumOp: hlo.MaximumOp,
    chlo.BroadcastMinimumOp: hlo.MinimumOp,
    chlo.BroadcastMultiplyOp: hlo.MultiplyOp,
    chlo.BroadcastNextAfterOp: chlo.NextAfterOp,
    chlo.BroadcastOrOp: hlo.OrOp,
    chlo.BroadcastPolygammaOp: chlo.PolygammaOp,
    chlo.BroadcastPowerOp: hlo.PowerOp,
    chlo.BroadcastRemainderOp: hlo.RemainderOp,
    chlo.BroadcastSelectOp: hlo.SelectOp,
    chlo.BroadcastShiftLeftOp: hlo.ShiftLeftOp,
    chlo.BroadcastShiftRightArithmeticOp: hlo.ShiftRightArithmeticOp,
    chlo.BroadcastShiftRightLogicalOp: hlo.ShiftRightLogicalOp,
    chlo.BroadcastSubtractOp: hlo.SubtractOp,
    chlo.BroadcastXorOp: hlo.XorOp,
    chlo.BroadcastZetaOp: chlo.ZetaOp,
}
"""Op that broadcasts -> the op that does the same to operands of one shape."""


def broadcasting(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The plain op on operands of the result's shape; a smaller one stands at `broadcast_dimensions`, or at the end."""
    target = shape_of(op.result)
    # As plain values: the two dialects have an attribute each for the direction of a comparison.
    properties: dict[str, Any] = op.attributes_dict()
    dimensions: Sequence[int] | None = properties.pop("broadcast_dimensions", None)
    wide: list[SSAValue] = []
    for x in op.operands:
        last = range(len(target) - rank_of(x), len(target))
        wide.append(b.broadcast(x, target, last if dimensions is None or rank_of(x) == len(target) else dimensions))
    return b.emit_all(PLAIN[type(op)], *wide, types=op.result_types, **properties)
