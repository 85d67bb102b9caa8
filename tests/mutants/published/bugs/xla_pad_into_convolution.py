"""XLA: a pad, one that crops too, is added to the padding of the convolution that reads it.

https://github.com/openxla/xla/issues/48715
https://github.com/microsoft/onnxscript/issues/2838
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value


class PadIntoConvolution(Pattern):
    """Add the pad of spatial dimensions to the convolution's own."""

    name = "pad-into-convolution"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        pad, numbers = op.lhs.owner, op.value("dimension_numbers")
        if not isinstance(pad, hlo.PadOp) or any(pad.value("interior_padding")) or op.value("lhs_dilation"):
            return None
        value, low, high = (
            constant_value(pad.padding_value),
            pad.value("edge_padding_low"),
            pad.value("edge_padding_high"),
        )
        spatial = numbers.input_spatial_dimensions
        if value is None or value.item() != 0 or not all(isinstance(n, int) for n in (*low, *high)):
            return None
        if any(low[d] or high[d] for d in range(len(low)) if d not in spatial):
            return None
        own = op.value("padding")
        padding = np.zeros((len(spatial), 2), np.int64) if own is None else np.asarray(own, np.int64)
        padding = padding + np.asarray([[low[d], high[d]] for d in spatial], np.int64)
        properties = {**op.attributes_dict(), "padding": padding}
        return [b.emit(hlo.ConvolutionOp, pad.operand, op.rhs, types=[op.results[0].type], **properties)]


REWRITES = (PadIntoConvolution(),)


@dataclass(frozen=True)
class XlaPadIntoConvolution(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-pad-into-convolution"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
