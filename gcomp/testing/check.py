"""`check_pass`: is a pass right on a program?

    failure = check_pass(MyPass(), program)
    assert failure is None, failure

It must not crash, must leave a valid program, must say whether it changed anything, must keep the signature, must keep
the meaning within its class (E0 to E3, see docs/guides/semantics.md), and must find nothing to do on its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import named_inputs
from gcomp.passes.judging import MAX_STEPS, Failure, Reference, judge, sets_for
from gcomp.passes.references import Budget
from gcomp.passes.registry import parse_pipeline

Array = np.ndarray[Any, Any]
Inputs = Sequence[Array] | Mapping[str, Array] | Callable[[Program], Sequence[Array] | None]
"""One set of inputs, in order or by name, or a function that makes one for a program (None: made from the seed)."""

Step = Pass | str

_SECONDS = 30.0
"""So long may all sets of inputs but the first take; those of generated programs take a few milliseconds."""


def check_pass(
    step: Step,
    program: Program,
    inputs: Inputs | None = None,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    deadline: Deadline | None = None,
) -> Failure | None:
    """The first promise that a pass breaks on a program, with the rewrite and the op that break it; None if none.

    `step` is a pass, a pass's name, or a pipeline's text, of which each pass is held to its promises on what those
    before it left. Results are compared with the NumPy reference, those of reassociating (E2) passes also with an
    evaluation in wider precision, on `inputs`, or on sets of inputs of all kinds and sizes made from `seed`
    (`gcomp.reference.inputs`). The program stays as it is. `max_steps` bounds the ops of one run: 200,000 where it is
    not given, and none on `inputs`. Past a deadline no more sets of inputs are tried. Raises GcompError where the
    reference cannot run it.
    """
    found = first_failure(step, program, inputs, seed=seed, max_steps=max_steps, deadline=deadline)
    return None if found is None else found[0]


def first_failure(
    step: Step,
    program: Program,
    inputs: Inputs | None = None,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    deadline: Deadline | None = None,
) -> tuple[Failure, Pass, Program] | None:
    """As `check_pass`; the failure comes with its pass and the program that the pass was given."""
    current = program
    steps = passes_of(step)
    for position, one in enumerate(steps):
        failure = judge(one, reference_of(one, current, inputs, seed, max_steps, deadline))
        if failure is not None:
            return failure, one, current
        if position + 1 < len(steps):
            current = current.clone()
            one.run(current, PassContext())
    return None


def passes_of(step: Step) -> list[Pass]:
    """The passes that a step stands for. UsageError for text that is no pipeline."""
    return [step] if isinstance(step, Pass) else parse_pipeline(step)


def reference_of(
    step: Pass,
    program: Program,
    inputs: Inputs | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    deadline: Deadline | None = None,
) -> Reference:
    """What to hold a pass against on a program. It may serve any number of checks of passes of the same class."""
    given = inputs(program) if callable(inputs) else inputs
    if given is None:
        budget = Budget(_SECONDS, None if deadline is None else deadline.end)
        sets = partial(sets_for, step, program, seed)
        return Reference(program, sets, max_steps=max_steps or MAX_STEPS, budget=budget)
    return Reference(program, [named_inputs(program, given)], max_steps=max_steps)


__all__ = ["Failure", "check_pass", "first_failure", "passes_of", "reference_of"]
