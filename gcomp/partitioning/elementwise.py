"""Ops of which the maps say all: elementwise ones, and those that put elements elsewhere by whole dimensions."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.table import rules, without

_QUANTIZED = (hlo.UniformQuantizeOp, hlo.UniformDequantizeOp)
without("scales along an axis are part of its types, of which a part is another type", *_QUANTIZED)


@rules(*(op for op in POINTWISE if op not in _QUANTIZED), hlo.MapOp, hlo.TransposeOp, hlo.OptimizationBarrierOp)
def mapped(op: Operation, draft: Draft) -> None:
    """As the maps show."""


@rules(*PLAIN, hlo.BroadcastOp, hlo.BroadcastInDimOp, chlo.ConstantLikeOp)
def spread(op: Operation, draft: Draft) -> None:
    """As the maps show, and each device repeats what it has along its part of a new dimension."""
    draft.spreads = True
