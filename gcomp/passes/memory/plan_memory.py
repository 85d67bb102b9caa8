"""Every result of a kernel gets a place in one arena; no two that are alive together overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.liveness import Liveness, Storage, liveness
from gcomp.dims import Ranges
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import ALIGNMENT, arena, donors, has_place, places, set_arena, set_places
from gcomp.ir.kernel import blocks_of_kernels, launch
from gcomp.ir.program import Program
from gcomp.ir.walking import walk
from gcomp.memory.assign import assign
from gcomp.memory.problem import Assignment, Buffer, Problem
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Place results for the largest sizes of the symbols' ranges; search for at most `seconds` past the heuristics."""

    name: ClassVar[str] = "plan-memory"
    level: ClassVar[str] = "buffer"

    seconds: float = 10.0
    method: str = "auto"

    def run(self, program: Program, context: PassContext) -> bool:
        moved = separate_carried(program)
        found = liveness(program)
        assignment = assign(problem_of(found, program.ranges), seconds=self.seconds, method=self.method)
        return write(program, found, assignment) or moved


def problem_of(found: Liveness, ranges: Ranges) -> Problem:
    """The storages as buffers, of the greatest size that each can have. UnsupportedError where there is none."""
    return Problem(
        [
            Buffer(s.name, s.lower, s.upper, -(-greatest(s, ranges) // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
            for s in found.planned
        ]
    )


def greatest(storage: Storage, ranges: Ranges) -> int:
    """The most bytes that a storage takes for any sizes in range."""
    high = ranges.bounds(storage.size)[1]
    if high is None:
        raise UnsupportedError(
            f"the memory of {storage.name} has no bound",
            why=f"it takes {storage.size} bytes, and a symbol in it has no upper limit",
            fix="give the symbol a range, as in --dim batch=1..64",
        )
    return high


def write(program: Program, found: Liveness, assignment: Assignment) -> bool:
    """Put an assignment into the program; whether that changed anything."""
    offset = dict.fromkeys(found.storages, 0) | dict(zip(found.planned, assignment.offsets, strict=True))
    changed = arena(program.module) != assignment.peak
    set_arena(program.module, assignment.peak)
    for op in planned_ops(program):
        storages = [found.storage.get(r) for r in op.results]
        offsets = tuple([0 if s is None else offset[s] for s in storages])
        given = tuple([-1 if s is None or s.donor is None else s.donor for s in storages])
        changed |= places(op) != offsets or donors(op) != given
        set_places(op, offsets, given)
    return changed


def planned_ops(program: Program) -> list[Operation]:
    """The ops between kernels whose results have places."""
    return [op for block in blocks_of_kernels(program.block) for op in block.ops if op.results and has_place(op)]


def separate_carried(program: Program) -> bool:
    """Copy what a loop's body returns in another position than it took it in: one move would destroy the next one's."""
    changed = False
    for op in list(walk(program.module)):
        if isinstance(op, hlo.WhileOp):
            last = cast(Operation, op.body.block.last_op)
            for i, value in enumerate(list(last.operands)):
                if _is_other_argument(value, i, op):
                    copy = launch("loop", "copy", [value], [], [value])
                    op.body.block.insert_op_before(copy, last)
                    last.operands[i] = copy.results[0]
                    changed = True
    return changed


def _is_other_argument(value: SSAValue, position: int, op: hlo.WhileOp) -> bool:
    while isinstance(value.owner, hlo.ReshapeOp):
        value = value.owner.operand
    return value in op.body.block.args and value is not op.body.block.args[position]
