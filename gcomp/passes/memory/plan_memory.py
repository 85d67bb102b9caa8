"""Every result of a kernel gets a place in one arena; no two that are alive together overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar, cast

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.liveness import Liveness, Storage, liveness
from gcomp.dims import Dim, Ranges, Size, symbols_of
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import (
    ALIGNMENT,
    BEYOND,
    arena,
    donors,
    has_place,
    is_loose,
    places,
    set_arena,
    set_places,
    set_slots,
)
from gcomp.ir.host import HostOp, symbols_in
from gcomp.ir.kernel import blocks_of_kernels, launch
from gcomp.ir.program import Program
from gcomp.ir.walking import walk
from gcomp.memory.assign import assign
from gcomp.memory.problem import Buffer, Problem
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Place results for the largest sizes of the symbols' ranges; search for at most `seconds` past the heuristics.

    With `slots`, what has no bound, or one that says little, has a slot: memory that is sized at the call. Results
    that are not alive together share one.
    """

    name: ClassVar[str] = "plan-memory"
    level: ClassVar[str] = "buffer"

    seconds: float = 10.0
    method: str = "auto"
    slots: bool = False

    def run(self, program: Program, context: PassContext) -> bool:
        moved = separate_carried(program)
        found = liveness(program)
        slots = share_slots(sized_at_call(found.planned, program.ranges), program) if self.slots else Slots()
        bounded = [s for s in found.planned if s not in slots.of]
        assignment = assign(problem_of(bounded, program.ranges), seconds=self.seconds, method=self.method)
        offsets = dict(zip(bounded, assignment.offsets, strict=True))
        return write(program, found, offsets, assignment.peak, slots) or moved


def sized_at_call(storages: Sequence[Storage], ranges: Ranges) -> list[Storage]:
    """The storages whose memory is sized at the call: those without a bound that memory has, and all of symbolic size
    where one arena for all sizes would be much larger than what some of them need."""
    bounds = {s: ranges.bounds(s.size) for s in storages}
    bounded = {s: (low or 0, high) for s, (low, high) in bounds.items() if high is not None and high < BEYOND}
    least, most = (_live_bytes({s: ends[k] for s, ends in bounded.items()}) for k in (0, 1))
    return [s for s in storages if s not in bounded or (isinstance(s.size, Dim) and is_loose(least, most))]


def _live_bytes(sizes: Mapping[Storage, int]) -> int:
    """The most bytes that are alive at one step."""
    changes = [(s.lower, size) for s, size in sizes.items()] + [(s.upper, -size) for s, size in sizes.items()]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


@dataclass
class Slots:
    """Memory that is sized at the call, and which of it each storage has."""

    sizes: list[Size] = field(default_factory=list[Size])
    of: dict[Storage, int] = field(default_factory=dict[Storage, int])


def share_slots(storages: Sequence[Storage], program: Program) -> Slots:
    """A slot for each storage: as large as all that share it, one after the other.

    What is sized by a symbol that the host finds meanwhile shares no slot with what lives before that.
    """
    slots, free_from, ranges = Slots(), list[int](), program.ranges
    late = frozenset[str]().union(*[op.symbols for op in walk(program.module) if isinstance(op, HostOp)])
    late -= symbols_in([arg.type for arg in program.block.args])
    for storage in sorted(storages, key=lambda s: s.lower):
        free = [k for k, end in enumerate(free_from) if end <= storage.lower]
        late_ones = late & symbols_of(storage.size)
        free = [k for k in free if late & symbols_of(slots.sizes[k]) == late_ones]
        k = next((k for k in free if _one_holds(k, slots, storage, ranges)), len(free_from))
        if k == len(free_from):
            slots.sizes.append(storage.size)
            free_from.append(0)
        elif not ranges.less_equal(storage.size, slots.sizes[k]):
            slots.sizes[k] = storage.size
        slots.of[storage], free_from[k] = k, storage.upper
    return slots


def _one_holds(k: int, slots: Slots, storage: Storage, ranges: Ranges) -> bool:
    """Whether either of a slot's size and a storage's is known to be at least the other."""
    size = slots.sizes[k]
    return bool(ranges.less_equal(storage.size, size) or ranges.less_equal(size, storage.size))


def problem_of(storages: Sequence[Storage], ranges: Ranges) -> Problem:
    """The storages as buffers, of the greatest size that each can have. UnsupportedError where there is none."""
    return Problem(
        [
            Buffer(s.name, s.lower, s.upper, -(-greatest(s, ranges) // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
            for s in storages
        ]
    )


def greatest(storage: Storage, ranges: Ranges) -> int:
    """The most bytes that a storage takes for any sizes in range."""
    high = ranges.bounds(storage.size)[1]
    if high is None:
        open_ones = sorted(name for name in symbols_of(storage.size) if ranges[name].hi is None)
        raise UnsupportedError(
            f"the memory of {storage.name} has no bound",
            why=f"it takes {storage.size} bytes, and there is no upper limit to {', '.join(open_ones)}",
            fix=f"give ranges, as in {' '.join(f'--dim {name}=1..64' for name in open_ones)}",
        )
    return high


def write(program: Program, found: Liveness, offsets_of: Mapping[Storage, int], peak: int, slots: Slots) -> bool:
    """Put an assignment into the program; whether that changed anything."""
    offset = dict.fromkeys(found.storages, 0) | dict(offsets_of)
    changed = arena(program.module) != peak
    set_arena(program.module, peak)
    set_slots(program.module, slots.sizes)
    lies = {s: s.donor for s in found.storages if s.donor is not None} | {s: -2 - k for s, k in slots.of.items()}
    for op in planned_ops(program):
        storages = [found.storage.get(r) for r in op.results]
        offsets = tuple([0 if s is None else offset[s] for s in storages])
        given = tuple([-1 if s is None else lies.get(s, -1) for s in storages])
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
