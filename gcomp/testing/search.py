"""Looking for a program on which a pass is wrong, from a test: `find_counterexample`.

Random programs, and programs that contain the left sides of the pass's own rules, are judged as `check_pass` does. What
fails is reduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcomp.errors import GcompError, UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.judging import Failure, judge
from gcomp.testing.check import Step, passes_of, reference_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.directed import random_matching
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.prove.catalog import rewrites_of
from gcomp.testing.reduce import reduce_program
from gcomp.testing.reduce.predicates import keeps_failure

_DIRECTED = 3
"""One program in so many is directed at a rule."""


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
        for number, program in _programs(one, programs, seed, size):
            try:
                failure = judge(one, reference_of(one, program, None, number))
            except GcompError:
                continue
            if failure is not None:
                small = _reduced(one, failure, program, seconds)
                return Counterexample(failure, small, number)
    return None


def _programs(step: Pass, count: int, seed: int, size: int) -> Iterator[tuple[int, Program]]:
    rules = rewrites_of(type(step))[0]
    for number in range(seed << 32, (seed << 32) + count):
        if rules and number % _DIRECTED == 0:
            try:
                yield number, random_matching(rules[number // _DIRECTED % len(rules)], Seeded(number), size)
                continue
            except UsageError:
                pass  # nothing was found that this rule matches
        yield number, seeded_program(number, size)


def _reduced(step: Pass, failure: Failure, program: Program, seconds: float) -> Program:
    try:
        return reduce_program(program, keeps_failure(step, failure), seconds=seconds, step=step)
    except UsageError:
        return program
