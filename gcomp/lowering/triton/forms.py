"""What a launch computes, as a key: launches of equal layers have equal forms, and share kernels."""

from __future__ import annotations

from collections.abc import Hashable
from operator import itemgetter

from xdsl.ir import Block, SSAValue

from gcomp.ir.composites import TRUSTED
from gcomp.ir.kernel import LaunchOp


def form_of(launch: LaunchOp) -> Hashable:
    """Kind, types and ops of a launch, without its names and places. Equal forms have equal schedules."""
    return launch.kind_name, launch.label_name, _block(launch.block, {})


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    for argument in block.args:
        numbers[argument] = len(numbers)
    ops: list[Hashable] = []
    for op in block.ops:
        operands = tuple([numbers[v] for v in op.operands])
        # A trusted composite is what its name and attributes say, under whatever name its function goes.
        hidden = {"decomposition"} if TRUSTED in op.attributes else set[str]()
        properties = tuple(sorted([p for p in op.properties.items() if p[0] not in hidden], key=itemgetter(0)))
        regions = tuple([_block(b, numbers) for region in op.regions for b in region.blocks])
        types = tuple([result.type for result in op.results])
        ops.append((op.name, operands, properties, regions, types))
        for result in op.results:
            numbers[result] = len(numbers)
    return tuple([argument.type for argument in block.args]), tuple(ops)
