"""Ops that have no rule: control flow, calls, ops of single devices, and what becomes other ops before."""

from __future__ import annotations

from xdsl.dialects.func import CallOp

from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.roles import BETWEEN_DEVICES
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.partitioning.table import without

without(
    "what it hands on is cut as what it got: propagation ties operands, arguments of regions, what these return, and "
    "results",
    hlo.IfOp, hlo.CaseOp, hlo.WhileOp, hlo.ReturnOp,
)  # fmt: skip
without("it says how a value lies, and hands it on: propagation takes it so",
        sdy.ShardingConstraintOp, sdy.ReshardOp, sdy.ShardingGroupOp)  # fmt: skip
without("it is written for one device: its operands and results lie as it says",
        sdy.ManualComputationOp, sdy.ReturnOp)  # fmt: skip
without("it is of programs of single devices, which nothing cuts further", *BETWEEN_DEVICES)
without("a composite or call is its function's ops: inline-composites and inline put them in its place",
        hlo.CompositeOp, CallOp)  # fmt: skip
without("expand-chlo writes it as a loop before", chlo.ScanOp)
without("it is an old spelling: decompose writes it as other ops before",
        hlo.EinsumOp, hlo.UnaryEinsumOp, hlo.TorchIndexSelectOp)  # fmt: skip
without(
    "an operand holds sizes of the whole, and parts have others: the op with static sizes, that canonicalize makes of "
    "it, has a rule",
    hlo.DynamicBroadcastInDimOp, hlo.DynamicConvOp, hlo.DynamicIotaOp, hlo.DynamicPadOp, hlo.DynamicReshapeOp,
    hlo.RealDynamicSliceOp, hlo.SetDimensionSizeOp, hlo.DynamicGatherOp,
)  # fmt: skip
without("it orders effects, or packs values of several types", hlo.AfterAllOp, hlo.CreateTokenOp, hlo.TupleOp,
        hlo.GetTupleElementOp)  # fmt: skip
without("nothing is known of what it computes", hlo.CustomCallOp)
without("it runs on the host, on whole values", HostOp, PrintOp)
without("it is for kernels of one GPU", ViewAsRealOp, ViewAsComplexOp)
