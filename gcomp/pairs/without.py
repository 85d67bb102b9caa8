"""What has no formula of parts: ops that may hold complex numbers, each with the reason.

Ops that take no complex numbers, and those that other passes write as simpler ones first, need no reason here.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.native import DimOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.roles import BETWEEN_DEVICES
from gcomp.ir.viewing import ViewAsRealOp

_REASONS: dict[str, tuple[type[Operation], ...]] = {
    "it moves data between devices, and a plan is for one": BETWEEN_DEVICES,
    "it orders ops, or ties values together, and computes no number": (
        hlo.AfterAllOp, hlo.CreateTokenOp, hlo.TupleOp, hlo.GetTupleElementOp,
    ),
    "the rule of the op around it rewrites it": (hlo.ReturnOp,),
    "what it gives is never complex": (DimOp, hlo.RngOp, hlo.RngBitGeneratorOp, hlo.UniformQuantizeOp,
                                       hlo.UniformDequantizeOp),
    "a program for GPUs has it at its edges only, where numbers lie in memory as pairs": (ViewAsRealOp,),
    "the lowering refuses it of complex numbers": (
        hlo.SelectAndScatterOp, chlo.TopKOp, hlo.SetDimensionSizeOp, hlo.RemainderOp, hlo.CustomCallOp,
    ),
    "the host computes it, or writes it, as it is": (HostOp, PrintOp, hlo.CholeskyOp, hlo.TriangularSolveOp),
    "composites are inlined before, but for attention, which is of real numbers": (hlo.CompositeOp,),
    "it is an older form of dot_general or gather, which no frontend makes": (
        hlo.EinsumOp, hlo.UnaryEinsumOp, hlo.TorchIndexSelectOp,
    ),
    "no frontend makes it: constants are stablehlo.constant": (chlo.ConstantOp, chlo.ConstantLikeOp),
    "it is a helper within definitions of other functions": (chlo.AsinAcosKernelOp,),
}  # fmt: skip

WITHOUT: Mapping[type[Operation], str] = {op: reason for reason, ops in _REASONS.items() for op in ops}
"""Op class -> why its complex numbers have no pairs."""
