"""What no step makes: ops that random programs do not have, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.roles import BETWEEN_DEVICES
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp

_REASONS: dict[str, tuple[type[Operation], ...]] = {
    "it has no meaning on one device": BETWEEN_DEVICES,
    "it has no meaning in the reference, which judges the programs": (
        hlo.CustomCallOp, hlo.EinsumOp, hlo.SetDimensionSizeOp, hlo.TorchIndexSelectOp, hlo.UnaryEinsumOp,
        hlo.UniformDequantizeOp, hlo.UniformQuantizeOp, chlo.AsinAcosKernelOp,
    ),
    "the steps of ops with regions end those with it": (hlo.ReturnOp,),
    "stablehlo.constant is the same": (chlo.ConstantOp,),
    "programs for expand-chlo have it, which no target takes": (chlo.RaggedDotOp,),
    "a program leaves the device there: tests of the frontends' operators judge it": (HostOp,),
    "it writes lines, which are no outputs to compare: the tests of printing judge it": (PrintOp,),
    "view-as-real makes it at the edges of programs for GPUs": (ViewAsRealOp, ViewAsComplexOp),
}  # fmt: skip

WITHOUT: Mapping[type[Operation], str] = {op: reason for reason, ops in _REASONS.items() for op in ops}
"""Op class -> why no step of random programs makes it."""
