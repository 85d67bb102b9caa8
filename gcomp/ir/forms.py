"""What ops compute, as keys: equal forms compute the same of equal inputs, whatever they are called and come from."""

from __future__ import annotations

from collections.abc import Hashable
from operator import itemgetter

from xdsl.ir import Block, Operation, SSAValue

from gcomp.ir.composites import TRUSTED


def op_form(op: Operation) -> Hashable:
    """An op apart from which values it reads: its name, properties, regions and types."""
    return _op(op, {}), tuple([value.type for value in op.operands])


def block_form(block: Block) -> Hashable:
    """The types of a block's arguments, and its ops, with values numbered by where they are defined in it."""
    return _block(block, {})


def _block(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    for argument in block.args:
        numbers[argument] = len(numbers)
    ops: list[Hashable] = []
    for op in block.ops:
        ops.append(_op(op, numbers))
        for result in op.results:
            numbers[result] = len(numbers)
    return tuple([argument.type for argument in block.args]), tuple(ops)


def _op(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple([numbers.get(value, -1) for value in op.operands])
    # A trusted composite is what its name and attributes say, under whatever name its function goes.
    hidden = "decomposition" if TRUSTED in op.attributes else None
    properties = tuple(sorted([p for p in op.properties.items() if p[0] != hidden], key=itemgetter(0)))
    regions = tuple([_block(block, numbers) for region in op.regions for block in region.blocks])
    return op.name, operands, properties, regions, tuple([result.type for result in op.results])


__all__ = ["block_form", "op_form"]
