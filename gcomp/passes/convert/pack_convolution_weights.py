"""The weight of a convolution's kernel is stored in panels, `[o / c, window, i, c]`: the features that a processor's
registers sum at a time lie together, one term after the other, so that its tiles read the weight from begin to end.
Of signed bytes that unsigned ones are multiplied by, four channels lie together, `[o / c, window, i / 4, c, 4]`: words,
whose products processors add at once.

Kernels keep what they compute: they read the panels, and see them as the window that they were. So it is done once
kernels are cut, where nothing folds these views into the weight again. A weight that something else reads as well stays
as it is, since it would be stored twice, and so does one whose features do not come in panels. Where features come in
groups, a panel has features of one group, or all those of several.
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
from gcomp.ir.types import dtype_text, static_shape
from gcomp.passes.base import Pass, PassContext

WORD = 4
"""Bytes that are multiplied together."""


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
    groups = {count for use in uses for count in _groups(use.operation, use.index)}
    if len(shape) < 3 or 0 in shape or len(groups) != 1 or 0 in groups:
        return None
    features = shape[-1] // groups.pop()
    found = (c for c in widths if shape[-1] % c == 0 and shape[-1] > c and 0 in (features % c, c % features))
    return next(found, features if min(widths) < features < shape[-1] else None)


def _groups(op: Operation, index: int) -> set[int]:
    """The numbers of groups of the convolutions with features last whose weight a kernel's operand is; 0 for any other
    reader."""
    if not isinstance(op, LaunchOp):
        return {0}
    return {_groups_of(use.operation) if use.index == 1 else 0 for use in op.block.args[index].uses}


def _groups_of(op: Operation) -> int:
    if not isinstance(op, hlo.ConvolutionOp) or not op.is_channels_last or op.value("batch_group_count") != 1:
        return 0
    return op.value("feature_group_count")


def _pack(weight: WeightOp, shape: Sequence[int], width: int, program: Program) -> None:
    """Store the panels of a weight in its place, and let kernels read these."""
    rank = len(shape)
    words = _is_of_words(weight, shape)
    if words:
        cut = (*shape[:-2], shape[-2] // WORD, WORD, shape[-1] // width, width)
        order = (rank, *range(rank - 1), rank + 1, rank - 1)
    else:
        cut = (*shape[:-1], shape[-1] // width, width)
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
        _see_whole(use.operation, use.index, packed, order, shape, program)
    if weight.result.first_use is None:
        weight.detach()
        weight.erase()


def _is_of_words(weight: WeightOp, shape: Sequence[int]) -> bool:
    """Whether convolutions multiply unsigned bytes by a weight of signed ones, whose channels come in words."""
    if dtype_text(weight.result.type) != "i8" or shape[-2] % WORD:
        return False
    launches = [(use.operation, use.index) for use in weight.result.uses]
    args = [launch.block.args[index] for launch, index in launches if isinstance(launch, LaunchOp)]
    return all(dtype_text(use.operation.operands[0].type) == "ui8" for arg in args for use in arg.uses)


def _see_whole(
    launch: LaunchOp, index: int, packed: SSAValue, order: Sequence[int], shape: Sequence[int], program: Program
) -> None:  # fmt: skip
    """Give a kernel panels as its argument, and what reads the argument the weight that they are of."""
    old = launch.block.args[index]
    argument = launch.block.insert_arg(packed.type, index)
    argument.name_hint = old.name_hint
    first = next(use.operation for use in old.uses)
    b = Builder(program, InsertPoint.at_start(launch.block))
    b.location = getattr(first, "location", b.location)
    back = [order.index(k) for k in range(len(order))]
    whole = b.reshape(b.transpose(argument, back), shape)
    old.replace_all_uses_with(whole)
    launch.block.erase_arg(old)


__all__ = ["PackConvolutionWeights"]
