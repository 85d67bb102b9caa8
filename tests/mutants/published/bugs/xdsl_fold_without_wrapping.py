"""xDSL: a sum of constants is folded with Python's integers, which have no width.

https://github.com/xdslproject/xdsl/pull/6042
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, static_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value


class FoldSum(Pattern):
    """Add two constants."""

    name = "fold-sum"
    roots = (hlo.AddOp,)

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        x, y = constant_value(op.lhs), constant_value(op.rhs)
        text, shape = dtype_text(op.results[0].type), static_shape(op.results[0])
        if x is None or y is None or shape is None or not is_integer(text) or bit_width(text) > 32:
            return None
        total = x.astype(np.int64) + y.astype(np.int64)
        limits = np.iinfo(np.int64) if bit_width(text) not in (8, 16, 32) else np.iinfo(x.dtype)
        return [b.constant(np.broadcast_to(np.clip(total, limits.min, limits.max), shape), text)]


REWRITES = (FoldSum(),)


@dataclass(frozen=True)
class XdslFoldWithoutWrapping(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xdsl-fold-without-wrapping"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
