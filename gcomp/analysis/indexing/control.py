"""Control flow, calls, and what ops on other devices or outside of the program read: nothing is known of it."""

from __future__ import annotations

from xdsl.dialects.func import CallOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Operation

from gcomp.analysis.indexing.maps import identity
from gcomp.analysis.indexing.table import Maps, maps, opaque, without
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import HostOp
from gcomp.ir.types import is_tensor, shape_of

without("it ends a region, and has no results", FuncReturnOp, hlo.ReturnOp)


@maps(hlo.CaseOp, hlo.IfOp, hlo.WhileOp)
@maps(hlo.AfterAllOp, hlo.GetTupleElementOp, hlo.TupleOp)
@maps(hlo.CompositeOp, hlo.CustomCallOp, HostOp, CallOp, chlo.ScanOp)
@maps(hlo.EinsumOp, hlo.TorchIndexSelectOp, hlo.UnaryEinsumOp)
@maps(
    hlo.AllGatherOp, hlo.AllReduceOp, hlo.AllToAllOp, hlo.AsyncDoneOp, hlo.AsyncStartOp, hlo.CollectiveBroadcastOp,
    hlo.CollectivePermuteOp, hlo.CrossReplicaSumOp, hlo.InfeedOp, hlo.OutfeedOp, hlo.RecvOp, hlo.ReduceScatterOp,
    hlo.SendOp,
)  # fmt: skip
def unknown(op: Operation) -> list[Maps]:
    """Any result may read all of any operand."""
    return opaque(op)


@maps(hlo.OptimizationBarrierOp)
def optimization_barrier(op: hlo.OptimizationBarrierOp) -> list[Maps]:
    """Each result is its own operand."""
    return [
        [identity(shape_of(v)) if i == k and is_tensor(v.type) else None for k, v in enumerate(op.operands)]
        for i in range(len(op.results))
    ]
