"""A convolution reads padding that is written around its input, so that its loops ask for none.

The elements of a row of the window are neighbours in memory, which a processor takes as one run of terms where no
element of it can be padding. Whoever computes the input writes it so (`gcomp/lowering/tiles/schedules/borders.py`), or
it is copied. Where a convolution has many channels and few features, a copy could cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

FEW = 8
"""Channels of which a copy of the input is little, at most."""
MANY = 16
"""Features for which a copy of any input is little beside the sums, at least."""


class ConvPaddingApart(Pattern):
    """The positive padding of a convolution with channels last becomes a pad of its input."""

    name = "conv-padding-apart"
    roots = (hlo.ConvolutionOp,)

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        pairs, channels, features = op.window()["padding"], shape_of(op.lhs)[-1], shape_of(op.result)[-1]
        if not op.is_channels_last or not isinstance(channels, int) or not isinstance(features, int):
            return None
        if channels > FEW and features < MANY:
            return None
        if not any(pair != (0, 0) for pair in pairs) or any(p < 0 for pair in pairs for p in pair):
            return None
        if op.dilates_input:
            return None
        low, high = ([0, *[pair[side] for pair in pairs], 0] for side in (0, 1))
        padded = b.pad(op.lhs, b.scalar_like(op.lhs, 0), low, high)
        properties: dict[str, Any] = {**op.properties, "padding": [(0, 0)] * len(pairs)}
        return [b.emit(hlo.ConvolutionOp, padded, op.rhs, types=(op.result.type,), **properties)]


@dataclass(frozen=True)
class ConvPaddingApartPass(Pass):
    """Write the padding of convolutions around their inputs."""

    name: ClassVar[str] = "conv-padding-apart"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (ConvPaddingApart(),), context)
