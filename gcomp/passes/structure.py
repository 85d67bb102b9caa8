"""Fingerprints of programs, to tell whether a pass changed one."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.graph.dce import DeadCodeElimination


def structure(program: Program) -> tuple[object, ...]:
    """All that makes a program what it is, but names and locations: equal for programs that are the same."""
    numbers: dict[SSAValue, int] = {}
    parts: list[object] = []
    for op in program.ops():
        regions: list[object] = []
        for region in op.regions:
            for block in region.blocks:
                for arg in block.args:
                    numbers[arg] = len(numbers)
                # How many ops a block has tells where it ends in the walk.
                regions.append((tuple(block.arg_types), sum(1 for _ in block.ops)))
        operands = tuple([numbers.get(v, -1) for v in op.operands])
        for result in op.results:
            numbers[result] = len(numbers)
        properties = tuple(op.properties.items()) if op.properties else ()
        attributes = tuple(op.attributes.items()) if op.attributes else ()
        types = () if isinstance(op, ModuleOp | FuncOp) else tuple(op.result_types)
        parts.append((op.name, operands, properties, attributes, types, tuple(regions)))
        if isinstance(op, WeightOp) and op.symbol in program.weights:
            parts.append(id(program.weights[op.symbol]))
    return tuple(parts)


def computes_otherwise(step: Pass, before: Program, after: Program) -> bool:
    """Whether a pass that counts no rewrites did more than drop what is dead, or annotate ops.

    Passes that are there to do just that always did.
    """
    if step.level != "graph" or isinstance(step, DeadCodeElimination):
        return True
    return _computed_structure(before) != _computed_structure(after)


def _computed_structure(program: Program) -> tuple[object, ...]:
    copy = program.clone()
    DeadCodeElimination().run(copy, PassContext())
    for op in copy.ops():
        for name in [name for name in op.attributes if not name.startswith("gcomp.")]:
            del op.attributes[name]
    return structure(copy)
