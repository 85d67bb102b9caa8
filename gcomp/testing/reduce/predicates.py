"""What makes a candidate interesting: the failure of a pass, of a command, or of a target, each kept from slipping."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UsageError
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.judging.targets import TargetFailure
from gcomp.passes.base import Pass
from gcomp.passes.judging import MAX_STEPS, Failure
from gcomp.testing.check import Inputs, check_pass
from gcomp.testing.reduce.reducer import Predicate
from gcomp.testing.targets import TargetCheck

Array = np.ndarray[Any, Any]


def keeps_failure(
    step: Pass,
    failure: Failure,
    inputs: Inputs | None = None,
    *,
    seeds: Sequence[int] = (0,),
    deadline: Deadline | None = None,
) -> Predicate:
    """Whether a pass breaks the same promise in the same rewrite on the same kind of op as in `failure`.

    A candidate is tried on inputs made from each of the seeds, and on those that `inputs` has for it, if any. The first
    is the program that is reduced: one that takes far more steps, such as a loop that does not end, is no smaller.
    """
    bound: list[int] = []

    def shown(program: Program, steps: int) -> bool:
        made = any(_shows(step, program, failure, None, seed, steps, deadline) for seed in seeds)
        return made or (inputs is not None and _shows(step, program, failure, inputs, seeds[0], steps, deadline))

    def interesting(program: Program) -> bool:
        if not bound:
            bound.append(next((steps for steps in _STEPS if shown(program, steps)), MAX_STEPS))
        return shown(program, bound[0])

    return interesting


_STEPS = (10_000, MAX_STEPS, 100 * MAX_STEPS)
"""Ops of one run; the first that the failure is shown within is the bound."""


def _shows(
    step: Pass,
    program: Program,
    failure: Failure,
    inputs: Inputs | None,
    seed: int,
    steps: int,
    deadline: Deadline | None,
) -> bool:
    if deadline is not None and deadline.is_over:
        return False
    try:
        found = check_pass(step, program, inputs, seed=seed, max_steps=steps, deadline=deadline)
    except GcompError:
        return False  # The reference cannot run it: no failure of the pass.
    return found is not None and found.fingerprint() == failure.fingerprint()


# ---- any command ----


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit status (negative for a signal), None when it ran out of time."""

    status: int | None
    output: str


def run_command(command: str, program: Program, timeout: float) -> Outcome:
    """Run a command on a file of a program's IR text, whose name replaces `{}`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.mlir"
        path.write_text(program.text(), "utf-8")
        words = [word.replace("{}", str(path)) for word in shlex.split(command)]
        try:
            done = subprocess.run(words, capture_output=True, timeout=timeout, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            return Outcome(None, "")
        except OSError as error:
            raise UsageError(f"cannot run {words[0]!r}", why=error.strerror or str(error)) from None
    return Outcome(done.returncode, done.stdout + done.stderr)


def fails_alike(
    command: str,
    program: Program,
    *,
    match: str | None = None,
    timeout: float = 60.0,
    deadline: Deadline | None = None,
) -> Predicate:
    """Whether a command ends on a program as it does on this one: with the same exit status, which is not 0.

    `match` is a regular expression that its output must contain besides. UsageError where the command succeeds on
    `program`, or its output does not contain it, or there is no `{}` in the command.
    """
    if "{}" not in command:
        raise UsageError("the command has no {}", fix="write {} where the program's file goes: 'my-tool --flag {}'")
    pattern = re.compile(match) if match is not None else None
    first = run_command(command, program, timeout)
    if first.status == 0:
        raise UsageError("the command succeeds on the program", fix="a failing command ends with another status than 0")
    if pattern is not None and not pattern.search(first.output):
        raise UsageError(f"the command's output does not contain {match!r}", why=first.output[-300:].strip() or None)

    def interesting(candidate: Program) -> bool:
        limit = timeout if deadline is None else min(timeout, deadline.left)
        found = run_command(command, candidate, limit)
        if found.status is None and limit < timeout:
            return False  # the time ended: whether it fails alike is not known
        return found.status == first.status and (pattern is None or bool(pattern.search(found.output)))

    return interesting


__all__ = ["Outcome", "TargetCheck", "TargetFailure", "fails_alike", "keeps_failure", "run_command"]
