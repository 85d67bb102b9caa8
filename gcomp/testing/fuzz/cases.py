"""From a failure that fuzzing found to a small case: reduced, and written as a file whose RUN line shows it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.registry import load_options, pipeline_option
from gcomp.testing.fuzz.coverage import Found
from gcomp.testing.fuzz.directed import showing
from gcomp.testing.fuzz.doors import PASSES, door_of
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.fuzz.target import inputs_for_target
from gcomp.testing.fuzz.trial import first_broken, parts_of_number, program_of
from gcomp.testing.reduce import Predicate, Progress, op_count, reduce_program
from gcomp.testing.reduce.casefile import case_text, write_inputs
from gcomp.testing.reduce.predicates import keeps_failure
from gcomp.testing.reduce.record import carrier, record_values
from gcomp.testing.reduce.showing import inputs_option, inputs_to_show
from gcomp.testing.targets import TargetCheck, command_showing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Case:
    """A program of a number made small, the line that shows its failure, and the values of a run on failing inputs."""

    number: int
    before: int
    """How many ops it had."""
    small: Program
    run: str
    known: dict[str, Array]
    inputs: str = ""
    """The option that takes the file of these inputs, where the line shows nothing without them."""


_SEEDS = (0, 1)
"""Inputs that are made while a program is reduced."""
_FEW = 5
"""A program of so many ops is read at once."""


def write_case(
    found: Found, plan: Plan, folder: Path, *, seconds: float = 60.0, report: Callable[[Progress], object] | None = None
) -> Path:
    """Reduce a failure's program and write `NAME.mlir`, with `NAME.npz` for the inputs that it fails on.

    Where more than a few ops are left and there is time, other programs that show the failure are reduced, too, and
    the smallest is written. What cannot be made again in this process (a worker that died) is written as it was
    generated.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_name(found)}.mlir"
    if plan.what != PASSES:
        return door_of(plan.what).write(found, plan.size, path, seconds, report)
    make, end = _pass_case if plan.target is None else _target_case, time.monotonic() + seconds
    case = make(found.number, plan, seconds, report)
    for number in found.others:
        if op_count(case.small) <= _FEW or time.monotonic() >= end:
            break
        other = make(number, plan, end - time.monotonic(), report)
        case = min(case, other, key=lambda c: op_count(c.small))
    sizes = f"Number {case.number}: {case.before} ops became {op_count(case.small)}."
    beside = path.with_suffix(".npz")
    written = write_inputs(beside, case.small, case.known)
    run = case.run + (inputs_option(case.inputs, beside) if written and case.inputs else "")
    path.write_text(case_text(case.small, f"{run} | filecheck %s", [sizes, *found.message.splitlines()]), "utf-8")
    return path


def _target_case(number: int, plan: Plan, seconds: float, report: Callable[[Progress], object] | None) -> _Case:
    program, target = program_of(number, plan), plan.target or ""
    small, inputs = program, inputs_for_target(number, program, plan)
    known = record_values(program, inputs)
    with TargetCheck(target, plan.fixed()) as check:
        failure = check.failure(program, inputs)
        if failure is not None:
            small = _reduce_program(program, check.keeps(failure, carrier(known)), seconds, report)
    steps = plan.fixed()
    passes = "" if plan.pipeline is None else f" {pipeline_option(steps)}{load_options(steps)}"
    run, option = command_showing(target, "" if failure is None else failure.kind, passes)
    return _Case(number, op_count(program), small, run, known, option)


def _pass_case(number: int, plan: Plan, seconds: float, report: Callable[[Progress], object] | None) -> _Case:
    steps, program, sets = parts_of_number(number, plan)
    small = program
    broken, step, before = first_broken(steps, program, sets)
    shown = [step] if broken is not None else steps
    before = before.clone()
    known, needed = showing(before, step, broken, sets), None
    if broken is not None:
        small = _reduce_program(
            before, keeps_failure(step, broken, carrier(known), seeds=_SEEDS), seconds, report, step
        )
        needed = inputs_to_show(step, small, broken, carrier(known), seeds=_SEEDS)
    if needed is not None:
        known = {port.name: array for port, array in zip(small.inputs(), needed, strict=True)}
    run = f"gcomp opt %s {pipeline_option(shown)} --check-each{load_options(shown)}"
    return _Case(number, op_count(program), small, run, known, "--inputs" if needed is not None else "")


def _reduce_program(
    program: Program, interesting: Predicate, seconds: float, report: Callable[[Progress], object] | None,
    step: Pass | None = None,
) -> Program:  # fmt: skip
    try:
        return reduce_program(program, interesting, seconds=seconds, report=report, step=step)
    except UsageError:
        return program  # it does not fail here as it did in the worker


def _name(found: Found) -> str:
    words = re.sub(r"[^\w]+", "-", "-".join(part for part in found.key if part)).strip("-").lower()
    return f"{words[:80]}-{found.number}"
