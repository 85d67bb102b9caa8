"""Ops without operands: constants, weights, counts."""

from __future__ import annotations

from gcomp.analysis.indexing.table import Maps, maps
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.op import GraphOp


@maps(
    hlo.ConstantOp, hlo.IotaOp, hlo.CreateTokenOp, hlo.PartitionIdOp, hlo.ReplicaIdOp, chlo.ConstantOp, DimOp, WeightOp
)
def constant(op: GraphOp) -> list[Maps]:
    """There is nothing to read."""
    return [[]]
