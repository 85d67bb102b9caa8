"""XLA: a pad, one that crops too, is added to the padding of the window that reads it.

https://github.com/openxla/xla/issues/48715
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

Ints = tuple[int, ...]


def added(low: Ints, high: Ints, p: Any) -> np.ndarray[Any, Any]:
    own = np.zeros((len(low), 2), np.int64) if p is None else np.asarray(p, np.int64)
    return own + np.asarray([*zip(low, high, strict=True)], np.int64)


def no_gaps(gap: Ints, root: SSAValue) -> bool:
    return not any(gap) and root.owner.value("base_dilations") is None


REWRITES = (
    Rule(
        "xla-pad-into-reduce-window",
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
            v,
            padding=Attr("p"),
        ),
        Op(hlo.ReduceWindowOp, x, v, like="root", padding=Calc(added)),
        where=Calc(no_gaps),
    ),
)


@dataclass(frozen=True)
class XlaPadIntoReduceWindow(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-pad-into-reduce-window"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
