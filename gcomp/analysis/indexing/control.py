"""Control flow, calls, composites and kernels, and ops on other devices or outside of the program."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from gcomp.analysis.indexing.maps import Condition, coordinates, identity, whole
from gcomp.analysis.indexing.paths import through
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps, opaque, without
from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.native import HostOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp

without("it ends a region, and has no results", FuncReturnOp, hlo.ReturnOp, sdy.ReturnOp)
without("it has no results", sdy.ShardingGroupOp)
without("its elements are parts of others, which no kernel computes", ViewAsRealOp, ViewAsComplexOp)


MOST_OPS = 64
"""Of longer functions nothing is said."""


@maps(
    hlo.CaseOp, hlo.IfOp, hlo.WhileOp,
    hlo.AfterAllOp, hlo.GetTupleElementOp, hlo.TupleOp, hlo.AsyncDoneOp, hlo.AsyncStartOp,
    hlo.CustomCallOp, HostOp, PrintOp, hlo.EinsumOp, hlo.TorchIndexSelectOp, hlo.UnaryEinsumOp,
    hlo.AllGatherOp, hlo.AllReduceOp, hlo.AllToAllOp, hlo.CollectiveBroadcastOp, hlo.CollectivePermuteOp,
    hlo.CrossReplicaSumOp, hlo.InfeedOp, hlo.OutfeedOp, hlo.RecvOp, hlo.ReduceScatterOp, hlo.SendOp,
    sdy.ManualComputationOp,
)  # fmt: skip
def unknown(op: Operation) -> list[Maps]:
    """Any result may read all of any operand."""
    return opaque(op)


@maps(LaunchOp)
def launch(op: LaunchOp) -> list[Maps]:
    """What the paths through the kernel's body read, taken together."""
    return through(op.block)


@maps(hlo.CompositeOp)
def composite(op: hlo.CompositeOp) -> list[Maps]:
    """What the paths through the decomposition read, taken together."""
    return _call_maps(op, op.function())


@maps(CallOp)
def call(op: CallOp) -> list[Maps]:
    """What the paths through the function read, taken together."""
    return _call_maps(op, SymbolTable.lookup_symbol(op, op.callee))


def _call_maps(op: Operation, function: Operation | None) -> list[Maps]:
    if not isinstance(function, FuncOp) or function.body.blocks.first is None:
        return opaque(op)
    block = function.body.block
    return opaque(op) if len(block.ops) > MOST_OPS else through(block)


@maps(chlo.ScanOp)
def scan(op: chlo.ScanOp) -> list[Maps]:
    """A slice of an output, and a carry, depend on the inputs' slices so far, whose other elements the body may mix."""
    dimension: int = op.value("dimension")
    count = op.scan_size()
    rows: list[Maps] = []
    for i, result in enumerate(op.results):
        domain = shape_of(result)
        row = [whole(domain, shape_of(v), exact=False) for v in op.operands]
        if i < len(op.outputs):
            own = coordinates(domain)[dimension]
            for k in range(len(op.inputs)):
                at = row[k].indices[dimension]
                order = Condition(at - own if op.value("is_reverse") else own - at, 0, count)
                row[k] = simplify(replace(row[k], conditions=(order,)))
        rows.append([*row])
    return rows


@maps(hlo.OptimizationBarrierOp, sdy.ShardingConstraintOp, sdy.ReshardOp)
def unchanged(op: Operation) -> list[Maps]:
    """Each result is its own operand."""
    return [
        [identity(shape_of(v)) if i == k and is_tensor(v.type) else None for k, v in enumerate(op.operands)]
        for i in range(len(op.results))
    ]
