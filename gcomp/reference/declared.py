"""Ops without an executable meaning on one device, and why."""

from __future__ import annotations

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.reference.table import declare_unmodelled

declare_unmodelled(
    "it names code outside of the program, of which the IR knows nothing",
    hlo.CustomCallOp,
)
declare_unmodelled(
    "it only lets a backend overlap the op in its body with others; that op alone means the same",
    hlo.AsyncDoneOp,
    hlo.AsyncStartOp,
)
declare_unmodelled(
    "it moves data between the program and its host while it runs",
    hlo.InfeedOp,
    hlo.OutfeedOp,
    hlo.RecvOp,
    hlo.SendOp,
)
declare_unmodelled(
    "quantized element types are not element types of the graph level; importers expand them to integer arithmetic",
    hlo.UniformDequantizeOp,
    hlo.UniformQuantizeOp,
)
declare_unmodelled(
    "it makes a tensor whose size is below its declared bound; gcomp has symbolic dims instead",
    hlo.SetDimensionSizeOp,
)
declare_unmodelled(
    "it is no longer in the specification; all_reduce, dot_general, reduce and gather say the same",
    hlo.CrossReplicaSumOp,
    hlo.EinsumOp,
    hlo.TorchIndexSelectOp,
    hlo.UnaryEinsumOp,
)
declare_unmodelled(
    "it is a step of the expansion of asin and acos inside XLA, which defines it by that use",
    chlo.AsinAcosKernelOp,
)
