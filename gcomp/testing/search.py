"""Looking for a program on which a pass is wrong, from a test: `find_counterexample`.

The programs are those of `gcomp fuzz --pass`. What fails is reduced.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcomp.errors import GcompError, UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.judging import Failure
from gcomp.testing.check import Step, passes_of
from gcomp.testing.fuzz import directed
from gcomp.testing.fuzz.directed import showing
from gcomp.testing.reduce import reduce_program
from gcomp.testing.reduce.predicates import keeps_failure
from gcomp.testing.reduce.record import carrier


@dataclass(frozen=True)
class Counterexample:
    """The promise that a pass breaks, on a small program; found on the program of a number."""

    failure: Failure
    program: Program
    number: int

    def __str__(self) -> str:
        return f"{self.failure}\non this program (number {self.number}, reduced):\n{self.program.text()}"


def find_counterexample(
    step: Step, programs: int = 200, *, seed: int = 0, size: int = 15, seconds: float = 30.0
) -> Counterexample | None:
    """The first of so many programs on which a pass, or one of a pipeline, is wrong, reduced within `seconds`.

    The same seed gives the same programs. Programs that the reference cannot run are left out.
    """
    for one in passes_of(step):
        for number in range(seed << 32, (seed << 32) + programs):
            program = directed.program_of(one, number, size)
            try:
                failure = directed.judge_program(one, directed.reference_for(one, program, number))
            except GcompError:
                continue
            if failure is not None:
                return Counterexample(failure, _reduce_failure(one, failure, program, number, seconds), number)
    return None


def _reduce_failure(step: Pass, failure: Failure, program: Program, number: int, seconds: float) -> Program:
    known = showing(program, step, failure, directed.inputs_of(step, program, number))
    try:
        interesting = keeps_failure(step, failure, carrier(known), seeds=(0, 1))
        return reduce_program(program, interesting, seconds=seconds, step=step)
    except UsageError:
        return program
