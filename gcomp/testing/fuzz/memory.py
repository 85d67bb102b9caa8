"""Memory: orders, what runs again, and places, of programs that run in one real arena, and laws of what is behind them.

A program is cut into kernels or not, some of its inputs are given away, and passes that plan its memory run over it;
the planned executor then runs it where bytes that are dead hold a pattern. The problems of numbers and intervals that
the passes solve (`packings`) have a turn each besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation

from gcomp.analysis.liveness import block_peak, donations, liveness
from gcomp.errors import GcompError, VerificationError
from gcomp.ir.buffer import arena
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.memory.plan_memory import problem_of
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.reference.inputs import KINDS, InputSet
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import PlannedExecutor
from gcomp.reference.sizes import size_choices
from gcomp.testing.fuzz.door import MAX_STEPS, Seen, Undefined, Wrong, wrong_step
from gcomp.testing.fuzz.laws import Law, LawDoor
from gcomp.testing.fuzz.packings import LAWS
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.passes import program_for
from gcomp.testing.generate.program import donate_inputs as given_away
from gcomp.testing.generate.program import seeded_program

Array = np.ndarray[Any, Any]

PASSES = ("order-for-memory", "rematerialize", "plan-memory")
_PROGRAMS = 2
"""Every so many-th number is a program, the others are laws."""


class Memory(LawDoor):
    """Plans of memory."""

    name: ClassVar[str] = "memory"
    summary: ClassVar[str] = "orders, places and what runs again, in a real arena; the laws of offsets and orders"
    components: ClassVar[str] = "passes and laws of memory"

    def expected(self) -> Sequence[str]:
        return [*PASSES, *dict.fromkeys(law.about for law in LAWS.values())]

    def laws(self) -> Mapping[str, Law]:
        return LAWS

    def law_of(self, number: int) -> str:
        return "" if number % _PROGRAMS == 0 else [*LAWS][number // _PROGRAMS % len(LAWS)]

    def program(self, number: int, size: int) -> Program:
        turn = number // _PROGRAMS
        if turn % (len(PASSES) + 1) == len(PASSES):
            return given_away(seeded_program(number, size), Seeded(number))
        return program_for(all_passes()[PASSES[turn % (len(PASSES) + 1)]](), Seeded(number), size)

    def topic(self, number: int) -> str:
        return self.law_of(number) or str(number // _PROGRAMS % (len(PASSES) + 1))

    def transform(self, program: Program, number: int) -> object:
        for step in _steps(program, number):
            step.run(program, PassContext())
        return program

    def inputs(self, number: int, program: Program) -> list[Array]:
        sizes = Seeded(number).chosen(size_choices(program))
        return InputSet(KINDS[number % len(KINDS)], sizes, tuple(program.inputs()), number).arrays

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        expected = interpret(program, inputs, max_steps=MAX_STEPS)
        current = program.clone()
        for step in _steps(program, number):
            before = current.clone()
            if wrong := wrong_step(step, current):
                return wrong
            if step.name in PASSES and (wrong := _flaw(step, before, current, inputs, expected)):
                return wrong
            if step.name in PASSES:
                seen.components[step.name] += 1
        return None

    def component(self, op: Operation) -> str:
        return ""


def _steps(program: Program, number: int) -> list[Pass]:
    """The passes of a number: some of those that come before places, and the places, by one of the methods."""
    choices = Seeded(number)
    fused = any(isinstance(op, LaunchOp) for op in program.block.ops)
    first = ["inline", "fuse"] if choices.flag(0.6) and not fused else []
    order = ["order-for-memory"] if choices.flag(0.6) else []
    again = ["rematerialize"] if choices.flag(0.5) else []
    method = choices.chosen(("auto", "auto", "greedy", "search"))
    return parse_pipeline(",".join([*first, *order, *again, f"plan-memory{{method={method}}}"]))


def _flaw(
    step: Pass, before: Program, after: Program, inputs: Sequence[Array], expected: Sequence[Array]
) -> Wrong | None:
    """What is wrong with a program after a pass: what it computes, and what it takes."""
    planned = arena(after.module) is not None
    executor: PlannedExecutor | None = PlannedExecutor(after, max_steps=4 * MAX_STEPS) if planned else None
    try:
        found = executor.run(inputs) if executor is not None else interpret(after, inputs, max_steps=4 * MAX_STEPS)
    except VerificationError as error:
        return Wrong("fault", str(error), error.what, step.name)
    except GcompError as error:
        return Wrong("crash", str(error), type(error).__name__, step.name)
    for port, want, got in zip(after.outputs(), expected, found, strict=True):
        if want.shape != got.shape or want.tobytes() != got.tobytes():
            return Wrong("meaning", f"after {step.name}, {port.name}: expected {want!r}, got {got!r}", blamed=step.name)
    if executor is None:
        peaks = [block_peak(p.block, p.ranges, donations(p)) for p in (before, after)]
        more = peaks[1] > peaks[0]
        return Wrong("worse", f"{step.name} makes {peaks[1]} bytes of {peaks[0]}", blamed=step.name) if more else None
    taken, least = arena(after.module) or 0, executor.peak
    most = sum(buffer.size for buffer in problem_of(liveness(before).planned, before.ranges).buffers)
    if not least <= taken:
        return Wrong("meaning", f"the arena has {taken} bytes, and {least} are written", blamed=step.name)
    if taken > most and not _moves(before, after):
        return Wrong("worse", f"the arena has {taken} bytes, and all results have {most}", blamed=step.name)
    return None


def _moves(before: Program, after: Program) -> bool:
    """Whether the places needed copies."""
    return sum(1 for _ in after.ops()) > sum(1 for _ in before.ops())


__all__ = ["Memory", "Undefined"]
