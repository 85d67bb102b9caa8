"""What has no row: ops whose elements no kernel computes one by one, each with the reason."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.native import WeightOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.lowering.tiles.elements.table import RUN_BY_XLA, WITHOUT

_REASONS: dict[str, tuple[type[Operation], ...]] = {
    "it moves data between devices, and a plan is for one": (
        hlo.AllGatherOp, hlo.AllReduceOp, hlo.ReduceScatterOp, hlo.AllToAllOp, hlo.CollectiveBroadcastOp,
        hlo.CollectivePermuteOp, hlo.CrossReplicaSumOp, hlo.PartitionIdOp, hlo.ReplicaIdOp, hlo.SendOp, hlo.RecvOp,
        hlo.AsyncStartOp, hlo.AsyncDoneOp, hlo.InfeedOp, hlo.OutfeedOp, sdy.ShardingConstraintOp, sdy.ReshardOp,
        sdy.ShardingGroupOp, sdy.ManualComputationOp, sdy.ReturnOp,
    ),
    "it orders ops, and computes no element": (
        hlo.AfterAllOp, hlo.CreateTokenOp, hlo.OptimizationBarrierOp, hlo.TupleOp, hlo.GetTupleElementOp, hlo.ReturnOp,
    ),
    "memory shows it so, between kernels": (ViewAsRealOp, ViewAsComplexOp),
    "it lies in memory when kernels start": (WeightOp,),
    "the host computes it, between kernels; on processors within branches and loops, too": (HostOp,),
    "the host writes it, as a host step (thread-prints, library-to-host)": (PrintOp,),
    "its regions hold kernels of their own": (hlo.IfOp, hlo.CaseOp, hlo.WhileOp),
    "its schedule computes whole results: it cannot be part of another kernel": (
        hlo.ScatterOp, hlo.SelectAndScatterOp, hlo.SortOp, chlo.TopKOp, chlo.ScanOp,
    ),
    "it is inlined before kernels are made, but for attention, which has a schedule": (hlo.CompositeOp,),
    "expand-chlo writes it as products before kernels are made": (chlo.RaggedDotOp,),
    "complex numbers have no type in a kernel: complex-to-pairs computes with their parts": (
        hlo.ComplexOp, hlo.RealOp, hlo.ImagOp, chlo.ConjOp, chlo.BroadcastComplexOp,
    ),
    "its factorization is a library's work: a host step (library-to-host)": (hlo.CholeskyOp, hlo.TriangularSolveOp),
    "complex-to-pairs makes products of it, where its lengths are static": (hlo.FftOp,),
    "only its own target knows what it does; calls of LAPACK become host steps (library-to-host)": (hlo.CustomCallOp,),
    "decompose writes it as its definition says": (
        hlo.BatchNormInferenceOp, hlo.BatchNormTrainingOp, hlo.BatchNormGradOp,
    ),
    "its generator is left open: rng_bit_generator is not": (hlo.RngOp,),
    "its numbers are quantized types, which have no storage in a kernel: dequantize before": (
        hlo.UniformQuantizeOp, hlo.UniformDequantizeOp,
    ),
    "its sizes are data: decompose makes a gather of it where those of its result are known": (
        hlo.DynamicConvOp, hlo.DynamicPadOp, hlo.RealDynamicSliceOp, hlo.DynamicGatherOp, hlo.SetDimensionSizeOp,
    ),
    "it is an older form of dot_general or gather, which no frontend makes": (
        hlo.EinsumOp, hlo.UnaryEinsumOp, hlo.TorchIndexSelectOp,
    ),
    "decompose takes its region for all elements at once": (hlo.MapOp,),
    "decompose writes its series in f64": (
        chlo.BesselI1eOp, chlo.DigammaOp, chlo.PolygammaOp, chlo.ZetaOp, chlo.BroadcastPolygammaOp,
        chlo.BroadcastZetaOp,
    ),
    "it is a helper within definitions of other functions": (chlo.AsinAcosKernelOp,),
}  # fmt: skip

WITHOUT.update({op: reason for reason, ops in _REASONS.items() for op in ops})
RUN_BY_XLA.update((
    PrintOp, hlo.ScatterOp, hlo.SelectAndScatterOp, hlo.SortOp, chlo.TopKOp, chlo.ScanOp, hlo.CholeskyOp,
    hlo.TriangularSolveOp, hlo.FftOp, hlo.CustomCallOp, hlo.RngOp,
))  # fmt: skip

__all__: list[str] = []
