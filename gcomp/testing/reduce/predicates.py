"""What makes a candidate interesting: the failure of a pass, of a command, or of a target, each kept from slipping."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import TARGET_ROUNDINGS, Difference, difference
from gcomp.passes.judging import MAX_STEPS, Failure
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.reference.noise import rounded_otherwise
from gcomp.reference.wider import interpret_wider
from gcomp.testing.check import Inputs, check_pass
from gcomp.testing.oracles import OracleFailure, WorkerOracle
from gcomp.testing.oracles.compiled import CompiledOracle
from gcomp.testing.oracles.excuses import ill_conditioned, reached
from gcomp.testing.reduce.reducer import Predicate
from gcomp.testing.reduce.weights import weights_as_inputs

Array = np.ndarray[Any, Any]


def keeps_failure(
    step: Pass, failure: Failure, inputs: Inputs | None = None, *, seeds: Sequence[int] = (0,)
) -> Predicate:
    """Whether a pass breaks the same promise in the same rewrite on the same kind of op as in `failure`.

    A candidate is tried on inputs made from each of the seeds, and on those that `inputs` has for it, if any. The first
    is the program that is reduced: one that takes far more steps, such as a loop that does not end, is no smaller.
    """
    bound: list[int] = []

    def shown(program: Program, steps: int) -> bool:
        made = any(_shows(step, program, failure, None, seed, steps) for seed in seeds)
        return made or (inputs is not None and _shows(step, program, failure, inputs, seeds[0], steps))

    def interesting(program: Program) -> bool:
        if not bound:
            bound.append(next((steps for steps in _STEPS if shown(program, steps)), MAX_STEPS))
        return shown(program, bound[0])

    return interesting


_STEPS = (10_000, MAX_STEPS, 100 * MAX_STEPS)
"""Ops of one run; the first that the failure is shown within is the bound."""


def _shows(step: Pass, program: Program, failure: Failure, inputs: Inputs | None, seed: int, steps: int) -> bool:
    try:
        found = check_pass(step, program, inputs, seed=seed, max_steps=steps)
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


def fails_alike(command: str, program: Program, *, match: str | None = None, timeout: float = 60.0) -> Predicate:
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
        found = run_command(command, candidate, timeout)
        return found.status == first.status and (pattern is None or bool(pattern.search(found.output)))

    return interesting


# ---- a target ----


def _sort(number: str) -> str:
    """What sort of number a text is."""
    return "NaN" if "nan" in number else "infinity" if "inf" in number else "a number"


@dataclass(frozen=True)
class TargetFailure:
    """What a target did: `refused`, `crashed`, `timeout`, or `meaning` (its answer is not the reference's).

    Two are its right: to say that it does not have something (`unsupported`), and to differ in a way that is known
    (`deviation`; see `gcomp.testing.oracles.deviations`).
    """

    kind: str
    message: str

    @property
    def allowed(self) -> bool:
        """Whether it is no mistake."""
        return self.kind in ("unsupported", "deviation")

    def fingerprint(self) -> tuple[str, str]:
        """Kind, and the reason without its numbers; for a wrong answer, in what way it is wrong."""
        if self.kind == "deviation":
            return (self.kind, self.message.partition(":")[0])
        if self.kind != "meaning":
            return (self.kind, re.sub(r"\d+|0x[0-9a-f]+|%\w+|'[^']*'", "#", self.message)[:60])
        way = re.search(r": ([A-Za-z ]+?) (?:at|[\d.]+).*?expected (.+?), got (\S+)", self.message)
        return (self.kind, "" if way is None else f"{way[1]}: {_sort(way[2])} becomes {_sort(way[3])}")

    def __str__(self) -> str:
        return f"the target {_DID.get(self.kind, self.kind)}: {self.message}"


_DID = {
    "meaning": "computes something else", "deviation": "differs in a known way", "unsupported": "does not take it",
}  # fmt: skip


def _beyond(port: Port, old: Array, new: Array, wide: Array, excuses: Mapping[str, Array]) -> Difference | None:
    """What is left of a difference where elements are excused."""
    excused = np.logical_or.reduce([np.zeros(old.shape, np.bool_), *excuses.values()])
    return difference([port], Exactness.E2, [old], [np.where(excused, old, new)], [wide], TARGET_ROUNDINGS)


class TargetCheck:
    """Compares what a target computes, in a worker process, with the reference. Usable as a context manager."""

    def __init__(self, target: str, passes: Sequence[Pass] = (), *, timeout: float = 60.0) -> None:
        self.passes = passes
        self.oracle: WorkerOracle = CompiledOracle(target, timeout=timeout)

    def __enter__(self) -> TargetCheck:
        return self

    def __exit__(self, *_: object) -> None:
        self.oracle.close()

    def failure(
        self, program: Program, inputs: Sequence[Array] | None = None, *, seed: int = 0
    ) -> TargetFailure | None:
        """What the target does wrong on a program, if anything. GcompError where the reference has no answer."""
        arrays = list(inputs) if inputs is not None else sample_inputs(program, seed)
        expected = interpret(program, arrays, max_steps=MAX_STEPS)
        wider = interpret_wider(program, arrays, max_steps=MAX_STEPS)
        optimized = program.clone()
        for step in self.passes:
            step.run(optimized, PassContext())
        text, weights = weights_as_inputs(optimized)
        actual = self.oracle.run(text, [*arrays, *weights])
        if isinstance(actual, OracleFailure):
            kind = "unsupported" if actual.reason.startswith(UnsupportedError.__name__) else actual.kind
            return TargetFailure(kind, actual.reason)
        ports = program.outputs()
        if len(actual) != len(ports):
            return TargetFailure("meaning", f"there are {len(ports)} outputs, not {len(actual)}")
        known: TargetFailure | None = None
        reach: dict[str, list[Array]] | None = None
        rounded: list[Array] | None = None
        for i, (port, old, new, wide) in enumerate(zip(ports, expected, actual, wider, strict=True)):
            found = difference([port], Exactness.E2, [old], [new], [wide], TARGET_ROUNDINGS)
            if found is None:
                continue
            if old.shape != new.shape or old.dtype != new.dtype:
                return TargetFailure("meaning", f"{found.where}: {found.why}")
            if reach is None:
                reach = reached(program, arrays, expected, max_steps=MAX_STEPS)
            excuses = {name: masks[i] for name, masks in reach.items() if masks[i].any()}
            if (mask := ill_conditioned(old, wide)).any():
                excuses["rounding decides"] = mask
            rest = _beyond(port, old, new, wide, excuses)
            if rest is not None:
                if rounded is None:
                    rounded = rounded_otherwise(program, arrays, expected, actual, max_steps=MAX_STEPS)
                excuses["rounding"] = rounded[i]
                rest = _beyond(port, old, new, wide, excuses)
            if rest is not None:
                return TargetFailure("meaning", f"{rest.where}: {rest.why}")
            known = TargetFailure("deviation", f"{', '.join(sorted(excuses))}: {found.where}: {found.why}")
        return known

    def keeps(
        self,
        failure: TargetFailure,
        inputs: Callable[[Program], Sequence[Array] | None] | None = None,
        *,
        seed: int = 0,
    ) -> Predicate:
        """Whether the target does the same wrong on a candidate, on the inputs that `inputs` has for it, if any."""

        def interesting(program: Program) -> bool:
            given = None if inputs is None else inputs(program)
            try:
                found = self.failure(program, given, seed=seed)
            except GcompError:
                return False
            return found is not None and found.fingerprint() == failure.fingerprint()

        return interesting
