"""Convolutions run with channels last (`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`), between transposes.

The transposes sink through what follows until they meet their inverses (`sink-transposes`). Data movement only, but
the compiler below may sum in another order: E2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class ChannelsLast(Pattern):
    """Transpose a convolution's operands and result so that channels come last."""

    name = "conv-channels-last"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        d = op.dimensions
        target = ConvDimensions.channels_last(len(d.input_spatial_dimensions))
        if d == target:
            return None
        lhs = b.transpose(op.lhs, (d.input_batch_dimension, *d.input_spatial_dimensions, d.input_feature_dimension))
        kernel = (*d.kernel_spatial_dimensions, d.kernel_input_feature_dimension, d.kernel_output_feature_dimension)
        rhs = b.transpose(op.rhs, kernel)
        order = (d.output_batch_dimension, *d.output_spatial_dimensions, d.output_feature_dimension)
        shape = shape_of(op.result)
        properties: dict[str, Any] = {**op.properties, "dimension_numbers": target}
        type = with_shape(op.result, [shape[i] for i in order])
        result = b.emit(hlo.ConvolutionOp, lhs, rhs, types=(type,), **properties)
        return [b.transpose(result, [order.index(i) for i in range(len(order))])]


@dataclass(frozen=True)
class ConvChannelsLast(Pass):
    """Give every convolution channels-last dimension numbers."""

    name: ClassVar[str] = "conv-channels-last"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (ChannelsLast(),), context)
