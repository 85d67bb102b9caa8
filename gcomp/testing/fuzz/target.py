"""One program of a target's campaign: compiled and run in a process of its own, and compared with the reference.

Where a target's bits are part of the meaning (`cpu`), they are compared with those of its tile programs, too, and with
no tolerance. Half of its programs are given numbers that sums round, so that the order of sums shows.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.targets.base import target_named
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.door import Prepared, words_of
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.fuzz.refusals import xla_may_refuse
from gcomp.testing.fuzz.trial import inputs_of, program_of
from gcomp.testing.plans import keeps_bits
from gcomp.testing.reduce.predicates import TargetCheck

Array = np.ndarray[Any, Any]


_MAY_REFUSE = {"xla:cpu": xla_may_refuse}
"""Targets of which it is known what they may refuse."""


def try_target(number: int, plan: Plan, check: TargetCheck, coverage: Coverage) -> Found | None:
    """Run the program of a number on a target; what goes wrong, if anything does.

    What the target says that it does not take, and where it differs in a known way, is counted.
    """
    program = program_of(number, plan)
    coverage.saw(program.ops())
    try:
        failure = check.failure(program, inputs_for_target(number, program, plan))
    except GcompError:
        coverage.refused += 1
        return None
    if failure is None:
        return None
    if failure.kind == "unsupported":
        if plan.target in _MAY_REFUSE and not _MAY_REFUSE[plan.target](program, failure.message):
            said = f"{plan.target} refuses what it may not: {failure.message}"
            return Found(number, (plan.target, "refused", _reason(failure.message)), said)
        coverage.unsupported[_reason(failure.message)] += 1
        return None
    if failure.kind == "deviation":
        coverage.deviations[failure.fingerprint()[1]] += 1
        return None
    return Found(number, (plan.target or "", *failure.fingerprint()), str(failure))


def inputs_for_target(number: int, program: Program, plan: Plan) -> list[Array]:
    """The inputs of a number: whole numbers, but for every second program of a target whose bits are compared."""
    rounded = number % 2 and keeps_bits(plan.target or "")
    return inputs_of(number, program, Exactness.E1 if rounded else Exactness.E2)


def prepare(number: int, plan: Plan) -> Prepared:
    """Make the program of a number. What is given runs the passes, and lowers what they leave."""
    program, target = program_of(number, plan, keep=True), target_named(plan.target or "")

    def run() -> None:
        for step in plan.fixed():
            step.run(program, PassContext())
        target.lower(program, report=_silent)

    return run, words_of(program)


def _silent(text: str) -> None:
    """Nothing is said of how a program is lowered."""


def _reason(message: str) -> str:
    """The first op or the first words of what a target does not take."""
    why = re.search(r"why: (.*)", message)
    words = why[1] if why is not None else message
    return re.split(r"[;(]| at ", words)[0].strip()[:60]
