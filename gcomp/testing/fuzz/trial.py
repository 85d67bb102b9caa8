"""One program of a campaign: generated from its number, run through passes or a target, compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UnsupportedError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import same_values
from gcomp.passes.judging import MAX_STEPS, Failure, Reference, beyond, judge
from gcomp.passes.references import Given
from gcomp.reference.planned import runner
from gcomp.testing.fuzz import directed
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.door import Prepared, words_of
from gcomp.testing.fuzz.numbers import base_of, program_at
from gcomp.testing.fuzz.plan import Plan, weakest
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import donate_inputs, seeded_program

Array = np.ndarray[Any, Any]

_THOROUGH = 1 / 16
"""How often a single pass is held to all of its promises, in place of several to the meaning of what they leave."""


def program_of(number: int, plan: Plan, *, keep: bool = False) -> Program:
    """The program of a number; where memory is planned, some inputs may be given away."""
    program = program_at(number, plan.size, lambda base: seeded_program(base, plan.size), keep=keep)
    return donate_inputs(program, Seeded(number)) if plan.in_memory else program


def inputs_of(number: int, program: Program, exactness: Exactness) -> list[Array]:
    """Its inputs: whole numbers where sums may be reassociated, so that every difference is a mistake."""
    return inputs_for(program, number, "whole" if exactness is Exactness.E2 else "edges")


def try_passes(number: int, plan: Plan, coverage: Coverage) -> Found | None:
    """Run the passes that a number stands for over its program; what goes wrong, if anything does."""
    step = plan.single(number)
    return _try_several(number, plan, coverage) if step is None else _try_one(step, number, plan, coverage)


def prepare(number: int, plan: Plan) -> Prepared:
    """Make what a number stands for. What is given runs the passes, without judging them."""
    single = plan.single(number)
    if single is not None:
        steps, program = [single], directed.program_of(single, number, directed_size(plan), keep=True)
    else:
        steps, program = plan.steps(Random(base_of(number))), program_of(number, plan, keep=True)

    def run() -> None:
        for step in steps:
            step.run(program, PassContext())

    return run, words_of(program)


def topic(number: int, plan: Plan) -> str:
    """What the program of a number is around."""
    single = plan.single(number)
    return "" if single is None else f"{single.name}: {directed.topic_of(single, number)}"


def _try_one(step: Pass, number: int, plan: Plan, coverage: Coverage) -> Found | None:
    """Hold a pass to all of its promises on a program made for it."""
    program = directed.program_of(step, number, directed_size(plan))
    coverage.saw(program.ops())
    try:
        failure = directed.judge_program(
            step, directed.reference_for(step, program, number), partial(_count, coverage, step)
        )
    except GcompError:
        coverage.refused += 1
        return None
    return None if failure is None else failure_found(number, failure)


def _count(coverage: Coverage, step: Pass, context: PassContext, changed: bool) -> None:
    coverage.ran(step.name, changed, context)


def directed_size(plan: Plan) -> int:
    """How many ops a program has around what is looked for: few, since there will be more."""
    return max(1, (plan.size + 1) // 2)


def _try_several(number: int, plan: Plan, coverage: Coverage) -> Found | None:
    """Run several passes over a program, and compare what they leave."""
    random = Random(base_of(number))
    steps, program = plan.steps(random), program_of(number, plan)
    coverage.saw(program.ops())
    reference = Reference(program, [inputs_of(number, program, weakest(steps))])
    expected = reference.expected(0)
    if isinstance(expected, GcompError):
        coverage.refused += 1
        return None
    if random.random() < _THOROUGH:
        step = random.choice(steps)
        failure = judge(step, reference, ran=partial(_count, coverage, step))
        return None if failure is None else failure_found(number, failure)
    # The passes work on the very program: making it again where it is needed once more costs less than copies of all.
    if _keep(steps, number, plan, reference, expected, coverage):
        return None
    failure = first_broken(steps, program_of(number, plan), reference.inputs)[0]
    if failure is not None:
        return failure_found(number, failure)
    names = ",".join(str(step.spec()) for step in steps)
    return Found(number, ("together", names), f"{names}: each pass keeps its promises, all together they do not")


def failure_found(number: int, failure: Failure) -> Found:
    """A pass's failure on a program."""
    return Found(number, failure.fingerprint(), str(failure))


def _keep(
    steps: Sequence[Pass],
    number: int,
    plan: Plan,
    reference: Reference,
    expected: list[Array],
    coverage: Coverage,
) -> bool:
    """Whether passes, one after the other, leave a valid program of the same meaning. The program is changed."""
    current, changers = reference.program, list[Pass]()
    try:
        for step in steps:
            context = PassContext()
            changed = step.run(current, context)
            coverage.ran(step.name, changed, context)
            if changed:
                changers.append(step)
        if not changers:
            return True
        current.verify()
        actual = runner(current, max_steps=4 * MAX_STEPS).run(reference.inputs[0])
    except VerificationError:
        return False
    except UnsupportedError:
        # A pass of a later level may leave a program on its level, and say why.
        coverage.refused += 1
        return any(step.level != "graph" for step in steps)
    except Exception:  # what it is, the search for the pass at fault says
        return False
    exactness = weakest(changers)
    if same_values(reference.ports[1], exactness, expected, actual):
        return True
    original = Reference(program_of(number, plan), reference.inputs)
    return beyond(exactness, original, 0, expected, actual) is None


def parts_of_number(number: int, plan: Plan) -> tuple[list[Pass], Program, Sequence[Given]]:
    """What a number stands for: the passes, the program, and the sets of inputs."""
    single = plan.single(number)
    if single is not None:
        program = directed.program_of(single, number, directed_size(plan))
        return [single], program, directed.inputs_of(single, program, number)
    steps, program = plan.steps(Random(base_of(number))), program_of(number, plan)
    return steps, program, [inputs_of(number, program, weakest(steps))]


def first_broken(
    steps: Sequence[Pass], program: Program, inputs: Sequence[Given]
) -> tuple[Failure | None, Pass, Program]:
    """The first promise that is broken, with the pass that breaks it and the program it was given."""
    current = program
    for step in steps:
        failure = directed.judge_program(step, Reference(current, inputs))
        if failure is not None:
            return failure, step, current
        current = current.clone()
        step.run(current, PassContext())
    return None, steps[-1], current
