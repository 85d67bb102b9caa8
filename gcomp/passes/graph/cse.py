"""Of two pure ops with equal operands, properties and regions, the later one takes the earlier one's results."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.analysis.constants import is_constant
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.locations import UNKNOWN, fuse, where
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext

Scope = dict[Hashable, Operation]


@dataclass(frozen=True)
class CommonSubexpressionElimination(Pass):
    """Merge equal pure ops; an op in a nested region may take the results of one outside it."""

    name: ClassVar[str] = "cse"

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        for function in program.functions():
            changed |= _merge(function.body, (), context)
        return changed


def _merge(region: Region, around: tuple[Scope, ...], context: PassContext) -> bool:
    """Merge the ops of a region with each other and with those of the scopes around it."""
    changed = False
    for block in region.blocks:
        scope: Scope = {}
        scopes = (scope, *around)
        for op in list(block.ops):
            key = _key(op) if op.results and is_side_effect_free(op) else None
            if _merge_into_scopes(op, key, scopes, context):
                changed = True
                continue
            within = [_merge(inner, scopes, context) for inner in op.regions]
            if any(within):
                changed = True
                # What two ops have in their regions may be equal only now.
                key = None if key is None else _key(op)
                if _merge_into_scopes(op, key, scopes, context):
                    continue
            if key is not None:
                scope.setdefault(key, op)
    return changed


def _merge_into_scopes(op: Operation, key: Hashable | None, scopes: Sequence[Scope], context: PassContext) -> bool:
    """Whether an op has become an equal one of these scopes."""
    # A key is hashed anew whenever it is looked up, which takes longer than all else here.
    first = None if key is None else next((found for scope in scopes if (found := scope.get(key)) is not None), None)
    if first is None or [r.type for r in first.results] != [r.type for r in op.results]:
        return False
    if not context.allow("cse", where(op)):
        return False
    _replace(op, first)
    return True


def _replace(op: Operation, first: Operation) -> None:
    # Of a constant the first place is told: it does not come from everywhere that it is used.
    if first.location == UNKNOWN or not is_constant(first):
        first.location = fuse([first.location, op.location])
    for old, new in zip(op.results, first.results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)


def _key(op: Operation, numbering: dict[SSAValue, int] | None = None) -> Hashable:
    """Equal keys mean equal results. Values inside regions are numbered by position."""
    numbers = {} if numbering is None else numbering
    return (
        op.name,
        tuple([numbers.get(v, v) for v in op.operands]) if numbers else tuple(op.operands),
        frozenset(op.properties.items()) if op.properties else None,
        frozenset(op.attributes.items()) if op.attributes else None,
        # Inferred types follow from the rest, up to dimensions that one op declares and the other does not.
        None if isinstance(op, GraphOp) and op.INFERS else tuple([r.type for r in op.results]),
        tuple([_block_key(b, numbers) for r in op.regions for b in r.blocks]),
        len(op.regions),
    )


def _block_key(block: Block, numbers: dict[SSAValue, int]) -> Hashable:
    for arg in block.args:
        numbers[arg] = len(numbers)
    keys: list[Hashable] = [tuple(arg.type for arg in block.args)]
    for op in block.ops:
        keys.append(_key(op, numbers))
        for result in op.results:
            numbers[result] = len(numbers)
    return tuple(keys)
