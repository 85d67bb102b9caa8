"""From a failure that fuzzing found to a small case: reduced, and written as a file whose RUN line shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UsageError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.testing.fuzz.kernels import kernel_case
from gcomp.testing.fuzz.plan import TILE, Plan
from gcomp.testing.fuzz.trial import Found, first_broken, inputs_of, program_of
from gcomp.testing.reduce import Predicate, Progress, op_count, reduce_program
from gcomp.testing.reduce.casefile import case_text, write_inputs
from gcomp.testing.reduce.predicates import TargetCheck, keeps_failure
from gcomp.testing.reduce.record import carrier, recorded

Array = np.ndarray[Any, Any]


def write_case(
    found: Found, plan: Plan, folder: Path, *, seconds: float = 60.0, report: Callable[[Progress], object] | None = None
) -> Path:
    """Reduce a failure's program and write `NAME.mlir`, with `NAME.npz` for the inputs that it fails on.

    What cannot be made again in this process (a worker that died) is written as it was generated.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_name(found)}.mlir"
    if plan.target == TILE:
        path.write_text(kernel_case(found, plan, seconds, report), "utf-8")
        return path
    program = program_of(found.number, plan)
    small = program
    if plan.target is not None:
        inputs = inputs_of(found.number, program, Exactness.E2)
        known = recorded(program, inputs)
        run = f"gcomp compile %s --target {plan.target} --verify full"
        with TargetCheck(plan.target, plan.fixed()) as check:
            failure = check.failure(program, inputs)
            if failure is not None:
                small = _reduced(program, check.keeps(failure, carrier(known)), seconds, report)
    else:
        steps = plan.steps(Random(found.number))
        broken, step, before = first_broken(steps, found.number, program)
        spec = str(step.spec()) if broken is not None else ",".join(str(step.spec()) for step in steps)
        run = f'gcomp opt %s -p "{spec}" --check-each'
        before = before.clone()
        known = _recorded(before, inputs_of(found.number, program, step.exactness))
        if broken is not None:
            small = _reduced(before, keeps_failure(step, broken, carrier(known)), seconds, report)
    sizes = f"Number {found.number}: {op_count(program)} ops became {op_count(small)}."
    path.write_text(case_text(small, f"{run} | filecheck %s", [sizes, *found.message.splitlines()]), "utf-8")
    write_inputs(path.with_suffix(".npz"), small, known)
    return path


def _recorded(program: Program, inputs: list[Array]) -> dict[str, Array]:
    try:
        return recorded(program, inputs)
    except GcompError:
        return {port.name: array for port, array in zip(program.inputs(), inputs, strict=True)}


def _reduced(
    program: Program, interesting: Predicate, seconds: float, report: Callable[[Progress], object] | None
) -> Program:
    try:
        return reduce_program(program, interesting, seconds=seconds, report=report)
    except UsageError:
        return program  # it does not fail here as it did in the worker


def _name(found: Found) -> str:
    words = re.sub(r"[^\w]+", "-", "-".join(part for part in found.key if part)).strip("-").lower()
    return f"{words[:80]}-{found.number}"
