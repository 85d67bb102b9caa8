"""One program of a campaign of kernels: cut into kernels, each held to what the graph means as tile programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UnsupportedError
from gcomp.exactness import Exactness
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.triton.printing import printed
from gcomp.lowering.triton.schedules import Scheduled, schedule
from gcomp.passes.base import PassContext
from gcomp.passes.judging import MAX_STEPS
from gcomp.reference.contract import Mismatch
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.fuzz.trial import Found, inputs_of, program_of
from gcomp.testing.reduce import Progress, op_count, reduce_program
from gcomp.testing.reduce.record import carried, recorded
from gcomp.testing.tiles import TileChecker, alone, as_kernel, settings_for, verified, with_sizes

Array = np.ndarray[Any, Any]

_SMALL = 0.75
"""How many kernels are scheduled in blocks so small that they take several."""
_THOROUGH = 0.25
"""How many are held to being well formed, and printed."""


class _Kernels(TileChecker):
    """Counts kernels, and keeps the first that is wrong, with what it was given."""

    def __init__(self, program: Program, number: int, coverage: Coverage) -> None:
        super().__init__(program, self._differs, self._schedule, max_steps=MAX_STEPS)
        self.number, self.coverage = number, coverage
        self.random = Random(number)
        self.found: Found | None = None
        self.given: tuple[LaunchOp, Sequence[Array], Mapping[str, int]] | None = None

    def _schedule(self, op: LaunchOp) -> Scheduled:
        """What a schedule makes of a kernel, in small blocks mostly; some are verified and printed."""
        small, thorough = self.random.random() < _SMALL, self.random.random() < _THOROUGH
        settings = settings_for(op, self.random, 16 if thorough else 1) if small else None
        found = schedule(op, "kernel", self.ranges, settings)
        if thorough:
            for step in verified(found).steps:
                compile(printed(step).text, "<kernel>", "exec")
        return found

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        if self.found is not None:
            return
        if op not in self._scheduled:
            self.coverage.saw(op.block.ops)
        self.given = op, args, sizes
        try:
            super().check(op, args, sizes, expected)
        except UnsupportedError as error:
            self.coverage.unsupported[_reason(error)] += 1
        except Exception as error:  # what a schedule or the evaluator says is about the kernel
            self._fails(op, "crash", type(error).__name__, str(error))

    def _differs(self, op: LaunchOp, mismatches: Sequence[Mismatch]) -> None:
        if mismatches:
            self._fails(op, "meaning", mismatches[0].reason.partition(" ")[0], "; ".join(map(str, mismatches)))

    def _fails(self, op: LaunchOp, kind: str, detail: str, message: str) -> None:
        key = ("tile", kind, op.kind_name, detail)
        self.found = Found(self.number, key, f"the {op.kind_name} kernel {op.label_name}: {message}")


def _reason(error: UnsupportedError) -> str:
    why = str(error.why or error).partition(";")[0]
    plain = why.startswith(("there is no schedule", "the tile level has no row")) or error.why is None
    return str(error).splitlines()[0] if plain else why


@dataclass(frozen=True)
class Cut:
    """The program of a number, cut into kernels, and its inputs."""

    number: int
    program: Program
    inputs: Sequence[Array]


def cut(number: int, plan: Plan, program: Program | None = None) -> Cut:
    """Cut the program of a number, or another one, into kernels. Raises GcompError for one that the passes refuse."""
    program = program_of(number, plan) if program is None else program
    inputs = inputs_of(number, program, Exactness.E0)
    for step in plan.fixed():
        step.run(program, PassContext())
    return Cut(number, program, inputs)


def try_kernels(number: int, plan: Plan, coverage: Coverage) -> Found | None:
    """Cut the program of a number into kernels and run each; what goes wrong, if anything does."""
    try:
        return run_kernels(cut(number, plan), coverage).found
    except GcompError:
        coverage.refused += 1
        return None


def run_kernels(made: Cut, coverage: Coverage) -> _Kernels:
    """Run each kernel. Raises GcompError for what the reference refuses."""
    checker = _Kernels(made.program, made.number, coverage)
    checker.run(made.inputs)
    return checker


def kernel_case(
    found: Found, plan: Plan, seconds: float = 60.0, report: Callable[[Progress], object] | None = None
) -> str:
    """The kernel that fails, reduced, as the text of a program, with the inputs that show it."""
    made = cut(found.number, plan)
    given = run_kernels(made, Coverage()).given
    if given is None:
        return made.program.text()
    op, args, sizes = given
    kind, small = op.kind_name, alone(op, made.program.ranges)
    before = op_count(small)
    known = recorded(small, with_sizes(op, args, sizes))

    def inputs_for(candidate: Program) -> list[Array] | None:
        return carried(candidate, known)

    def interesting(candidate: Program) -> bool:
        inputs = inputs_for(candidate)
        if inputs is None:
            return False
        try:
            checker = _Kernels(as_kernel(candidate, kind), found.number, Coverage())
            checker.run(inputs)
        except GcompError:
            return False
        return checker.found is not None and checker.found.key == found.key

    if interesting(small):
        small = reduce_program(small, interesting, seconds=seconds, report=report)
    inputs = inputs_for(small) or []
    shown = [f"{port.name} = {a!r}" for port, a in zip(small.inputs(), inputs, strict=False)]
    said = [f"As a {kind} kernel. Number {found.number}: {before} ops became {op_count(small)}.",
            *found.message.splitlines(), *"\n".join(shown).split("\n")]  # fmt: skip
    return "".join(f"// {line}\n" for line in said) + small.text()
