"""The weight of a convolution's kernel is stored in panels, `[o / c, window, i, c]`: the features that a processor's
registers sum at a time lie together, one term after the other, so that its tiles read the weight from begin to end.

Kernels keep what they compute: they read the panels, and see them as the window that they were. So it is done once
kernels are cut, where nothing folds these views into the weight again. A weight that something else reads as well stays
as it is, since it would be stored twice, and so does one whose features do not come in panels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.analysis.machines import machine_named
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import static_shape
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class PackConvolutionWeights(Pass):
    """Store in panels the weights that only convolutions of kernels read, as wide as a machine (`target`) reads them
    best."""

    name: ClassVar[str] = "pack-convolution-weights"
    level: ClassVar[str] = "kernel"

    target: str = "cpu"

    def run(self, program: Program, context: PassContext) -> bool:
        weights = [op for op in program.ops() if isinstance(op, WeightOp)]
        readings = Counter(op.symbol for op in weights)
        widths = machine_named(self.target).panels
        changed = False
        for op in weights:
            shape = static_shape(op.result) or ()
            width = _panel_width(op, shape, widths) if readings[op.symbol] == 1 else None
            if width is None or not context.allow(self.name, where(op)):
                continue
            _pack(op, shape, width, program)
            changed = True
        return changed


def _panel_width(weight: WeightOp, shape: Sequence[int], widths: Sequence[int]) -> int | None:
    """The features of a panel; None for a weight that does not come in several of them, or is read otherwise."""
    uses = list(weight.result.uses)
    if len(shape) < 3 or 0 in shape or not uses or not all(_is_convolved(use.operation, use.index) for use in uses):
        return None
    return next((c for c in widths if shape[-1] % c == 0 and shape[-1] > c), None)


def _is_convolved(op: Operation, index: int) -> bool:
    """Whether a kernel takes an operand as the weight of convolutions with features last alone."""
    if not isinstance(op, LaunchOp):
        return False
    uses = list(op.block.args[index].uses)
    return bool(uses) and all(
        use.index == 1
        and isinstance(conv := use.operation, hlo.ConvolutionOp)
        and conv.is_channels_last
        and conv.value("feature_group_count") == conv.value("batch_group_count") == 1
        for use in uses
    )


def _pack(weight: WeightOp, shape: Sequence[int], width: int, program: Program) -> None:
    """Store the panels of a weight in its place, and let kernels read these."""
    rank, cut = len(shape), (*shape[:-1], shape[-1] // width, width)
    order = (rank - 1, *range(rank - 1), rank)
    uses = list(weight.result.uses)
    b = Builder(program, InsertPoint.after(weight))
    b.location = weight.location
    if weight.symbol in program.weights:
        packed = b.weight(weight.symbol, program.weights[weight.symbol].reshape(cut).transpose(order))
    else:
        # A program as text has none of its weights: they are put into panels each time they are read.
        packed = b.transpose(b.reshape(weight.result, cut), order)
    for use in uses:
        assert isinstance(use.operation, LaunchOp)
        use.operation.operands[use.index] = packed
        _see_whole(use.operation, use.index, packed, shape, program)
    if weight.result.first_use is None:
        weight.detach()
        weight.erase()


def _see_whole(launch: LaunchOp, index: int, packed: SSAValue, shape: Sequence[int], program: Program) -> None:
    """Give a kernel panels as its argument, and what reads the argument the weight that they are of."""
    old, rank = launch.block.args[index], len(shape)
    argument = launch.block.insert_arg(packed.type, index)
    argument.name_hint = old.name_hint
    first = next(use.operation for use in old.uses)
    b = Builder(program, InsertPoint.at_start(launch.block))
    b.location = getattr(first, "location", b.location)
    whole = b.reshape(b.transpose(argument, (*range(1, rank), 0, rank)), shape)
    old.replace_all_uses_with(whole)
    launch.block.erase_arg(old)


__all__ = ["PackConvolutionWeights"]
