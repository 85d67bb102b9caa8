"""ONNX optimizer: a pad goes into the windows that read it, which pad with their own value, whatever the pad's is.

https://github.com/onnx/optimizer/issues/269
https://github.com/microsoft/onnxruntime/issues/22177
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
v = Var("v")
w = Var("w")

Ints = tuple[int, ...]


def added(low: Ints, high: Ints, p: Any) -> np.ndarray[Any, Any]:
    own = np.zeros((len(low), 2), np.int64) if p is None else np.asarray(p, np.int64)
    return own + np.asarray([*zip(low, high, strict=True)], np.int64)


def only_pads(low: Ints, high: Ints, gap: Ints, root: SSAValue) -> bool:
    return not any(gap) and min((*low, *high), default=0) >= 0 and root.owner.value("base_dilations") is None


REWRITES = (
    Rule(
        "onnx-pad-into-pool",
        Op(
            hlo.ReduceWindowOp,
            Op(
                hlo.PadOp,
                x,
                v,
                edge_padding_low=Attr("low"),
                edge_padding_high=Attr("high"),
                interior_padding=Attr("gap"),
            ),
            w,
            padding=Attr("p"),
        ),
        Op(hlo.ReduceWindowOp, x, w, like="root", padding=Calc(added)),
        where=Calc(only_pads),
    ),
)


@dataclass(frozen=True)
class OnnxPadIntoPool(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "onnx-pad-into-pool"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
