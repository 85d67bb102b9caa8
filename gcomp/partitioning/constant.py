"""Ops without operands: each device makes its own part."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(hlo.ConstantOp, hlo.IotaOp, chlo.ConstantOp, DimOp, WeightOp)
def made(op: Operation, draft: Draft) -> None:
    """A part of a constant, or of a file."""
    draft.spreads = True


@rules(hlo.GetDimensionSizeOp)
def get_dimension_size(op: hlo.GetDimensionSizeOp, draft: Draft) -> None:
    """A part has other sizes only along which it is cut."""
    for dim in range(len(draft.shapes[0])):
        draft.tie([(0, dim)], Kind.NEED_REPLICATION if dim == op.value("dimension") else Kind.PASS_THROUGH)


@rules(hlo.RngOp, hlo.RngBitGeneratorOp)
def random(op: Operation, draft: Draft) -> None:
    """Which bits an element gets depends on its place among all."""
