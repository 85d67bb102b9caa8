"""Sizes as numbers, calls and composites, ops that are others, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Operation

from gcomp.decompositions.scan import scan_by_loop
from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.types import dtype_text, is_tensor, shape_of
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.padding.layouts import extent
from gcomp.padding.sweep import Padded, Sweep, refuse
from gcomp.padding.table import ROWS, pads, refuses

# ---- sizes ----


@pads("sized", DimOp)
def dim(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """The true size."""
    value = sweep.lengths.true(op.formula, dtype_text(op.result.type))
    return [Padded(value, ())]


@pads("sized", hlo.GetDimensionSizeOp)
def get_dimension_size(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """The true size."""
    dimension: int = op.value("dimension")
    return [Padded(sweep.lengths.true(extent(operands[0].layout[dimension]), "i32"), ())]


@pads("independent", hlo.ConstantOp, chlo.ConstantOp, WeightOp)
def constant(sweep: Sweep, op: Operation, operands: Sequence[Padded]) -> list[Padded]:
    """Its sizes are numbers."""
    return sweep.copied(op, operands)


# ---- functions ----


@pads("expanded", hlo.CompositeOp)
def composite(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> Sequence[Padded]:
    """What its decomposition computes; it stays a composite where that is independent of what is padded."""
    function = sweep.called(op)
    if function is None:
        refuse(sweep, op, "its decomposition is not there")
    if _stays(sweep, function):
        layouts = sweep.carried(op, operands)
        if all(layout is not None for layout in layouts):
            values = sweep.clone(op, [x.value for x in operands])
            return [Padded(v, layout) for v, layout in zip(values, layouts, strict=True) if layout is not None]
    return sweep.block(function.body.block, operands)


def _stays(sweep: Sweep, function: FuncOp) -> bool:
    """Whether no op of a decomposition does anything about padding: all are independent along what is padded."""
    for inner in function.body.block.ops:
        values = [v for v in (*inner.operands, *inner.results) if is_tensor(v.type)]
        touched = any(sweep.sizes.touches(size) for v in values for size in shape_of(v))
        if isinstance(inner, FuncReturnOp) or not (touched or sweep.sizes.padded & sweep.mentioned(inner)):
            continue
        row = ROWS.get(type(inner))
        if row is None or row.kind not in ("independent", "neutral"):
            return False
        operands = [Padded(v, sweep.plain(v)) for v in inner.operands]
        if any(layout is None for layout in sweep.carried(inner, operands)):
            return False
    return True


@pads("expanded", CallOp)
def call(sweep: Sweep, op: Operation, operands: Sequence[Padded]) -> Sequence[Padded]:
    """What the function computes."""
    function = sweep.called(op)
    if function is None:
        refuse(sweep, op, "the function that it calls is not there")
    return sweep.block(function.body.block, operands)


# ---- ops that are other ops ----


@pads("expanded", chlo.ScanOp)
def scan(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> Sequence[Padded]:
    """A loop over the slices along the dimension, as many as there are true ones."""
    return sweep.expanded(op, operands, lambda b, values: scan_by_loop(b, op, values))


# ---- what is refused ----

refuses(
    "random numbers depend on how many are drawn", hlo.RngOp, hlo.RngBitGeneratorOp,
    fix="draw them outside of the program, as an input",
)  # fmt: skip
refuses("the host computes it from all elements", HostOp)
refuses("only the pipelines of GPUs make it", ViewAsRealOp, ViewAsComplexOp, fix="use real and imag")
refuses("it would print padding", PrintOp, fix="print while developing, without buckets")
refuses("what it calls is not known to gcomp", hlo.CustomCallOp)
refuses("its size is data", hlo.SetDimensionSizeOp, fix="use a mask in place of a size that is data")
refuses(
    "its amounts are run-time values", hlo.DynamicPadOp, hlo.RealDynamicSliceOp, hlo.DynamicConvOp,
    fix="run the pass canonicalize first: it makes ops of fixed amounts of those whose amounts it knows",
)  # fmt: skip
refuses(
    "it takes part in a computation on several devices", hlo.AllGatherOp, hlo.AllReduceOp, hlo.ReduceScatterOp,
    hlo.AllToAllOp, hlo.CollectiveBroadcastOp, hlo.CollectivePermuteOp, hlo.CrossReplicaSumOp, hlo.AsyncStartOp,
    hlo.AsyncDoneOp, hlo.PartitionIdOp, hlo.ReplicaIdOp, sdy.ShardingConstraintOp, sdy.ReshardOp, sdy.ShardingGroupOp,
    sdy.ManualComputationOp,
)  # fmt: skip
refuses(
    "it exchanges data with the host or another device", hlo.SendOp, hlo.RecvOp, hlo.InfeedOp, hlo.OutfeedOp,
)  # fmt: skip
refuses(
    "gcomp reads it only", hlo.EinsumOp, hlo.UnaryEinsumOp, hlo.TorchIndexSelectOp,
    fix="write it as dot_general or gather",
)  # fmt: skip
refuses(
    "padding inside of a tuple is not followed", hlo.TupleOp, hlo.GetTupleElementOp, hlo.AfterAllOp, hlo.CreateTokenOp,
    fix="flatten tuples",
)  # fmt: skip
