"""What a target computes, held to the reference."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gcomp.errors import GcompError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.judging.deadline import Deadline
from gcomp.judging.deviations import parts_of
from gcomp.judging.excuses import ill_conditioned, reached_elements
from gcomp.passes.checking import TARGET_ROUNDINGS, Difference, difference, same_values
from gcomp.passes.compared import Compared
from gcomp.passes.references import Budget, Given, Reference, sets_for_model
from gcomp.reference.freedom import open_elements
from gcomp.reference.noise import rounding_masks
from gcomp.reference.wider import interpret_wider

Array = np.ndarray[Any, Any]
_SECONDS = 5.0
_RUNS = 2
"""A set of inputs is run by the reference and by the target."""
_NEAR = 1e-2
"""Outputs that are off by this share of the greatest element, or less, may be so by rounding alone."""


def _sort(number: str) -> str:
    """What sort of number a text is."""
    return "NaN" if "nan" in number else "infinity" if "inf" in number else "a number"


@dataclass(frozen=True)
class TargetFailure:
    """What a target did: `refused`, `crashed`, `timeout`, `meaning` (its answer is not the reference's), or `bits` (its
    answer is not what its tile programs compute).

    Two are its right: to say that it does not have something (`unsupported`), and to differ in a way that is known
    (`deviation`; see `gcomp.judging.deviations`).
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
    "meaning": "computes something else", "bits": "computes other bits than its tile programs",
    "deviation": "differs in a known way", "unsupported": "does not take it",
}  # fmt: skip


def target_failure(
    program: Program,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    actual: Sequence[Array],
    *,
    max_steps: int | None = None,
    deadline: Deadline | None = None,
) -> TargetFailure | None:
    """How what a target computes differs from the reference beyond what it may, if it does.

    It may round otherwise, and add in its element types: an output that is off by no more than that brings it, as runs
    of the reference with noise show (`gcomp.reference.noise`), is right. Raises GcompError where the deadline passes.
    """
    ports = program.outputs()
    if len(actual) != len(ports):
        return TargetFailure("meaning", f"there are {len(ports)} outputs, not {len(actual)}")
    if same_values(ports, Exactness.E2, expected, actual):
        return None
    for port, old, new in zip(ports, expected, actual, strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            found = difference([port], Exactness.E1, [old], [new], [None])
            return TargetFailure("meaning", f"output {port.name!r}" if found is None else f"{found.where}: {found.why}")
    wider = interpret_wider(program, inputs, max_steps=max_steps)
    return _Excuses(program, inputs, expected, actual, wider, max_steps, deadline).failure()


def hold_target(
    program: Program,
    run: Callable[[list[Array]], Sequence[Any]],
    given: Sequence[Array] | None = None,
    *,
    seed: int = 0,
    seconds: float = _SECONDS,
) -> Compared:
    """What was compared of what a target computes and the reference. Raises VerificationError where they differ.

    `run` takes the flat inputs and gives the flat results. Sets of inputs of all kinds and sizes are made up where none
    are `given`; those beyond the first take `seconds`, or as long as the first did.
    """
    made: Sequence[Given] = sets_for_model(program, seed) if given is None else [given]
    budget, compared = Budget(seconds), Compared()
    reference = Reference(program, made, max_steps=None, budget=budget, compared=compared)
    for i in range(len(reference.sets)):
        elements, name = reference.elements(i), reference.made(i)
        if not budget.allows(elements, _RUNS):
            compared.left(name, "it would take too long")
            continue
        started = time.process_time()
        expected = reference.expected(i)
        if isinstance(expected, GcompError):
            compared.left(name, "the reference refuses it")
            continue
        failure = _judge_inputs(reference, i, expected, [np.asarray(r) for r in run(reference.arrays(i))], seconds)
        budget.took(elements, time.process_time() - started)
        if failure is not None and failure.kind == "meaning":
            raise VerificationError(
                "the target changed what the program computes",
                where=None if name is None else f"on inputs of {name}",
                why=failure.message,
                fix="find the op with gcomp bisect --run-target, or reduce the program with gcomp reduce",
            )
        if failure is not None:
            compared.deviations[failure.fingerprint()[1]] += 1
    if not compared.outputs:
        reference.usable()
    return compared


def _judge_inputs(
    reference: Reference, i: int, expected: Sequence[Array], actual: Sequence[Array], seconds: float
) -> TargetFailure | None:
    """What is wrong on one set of inputs; where it takes too long to say, the set is left out, but for the first."""
    deadline = Deadline(seconds) if i else None
    try:
        failure = target_failure(
            reference.program, reference.arrays(i), expected, actual, max_steps=reference.steps(i), deadline=deadline
        )
    except GcompError:
        if not i:
            raise
        reference.compared.left(reference.made(i), "to find what it may differ by would take too long")
        return None
    reference.compared.saw(reference.made(i), expected)
    return failure


@dataclass
class _Excuses:
    """By what a target's outputs may differ from the reference's: rounding, and the target's documented deviations."""

    program: Program
    inputs: Sequence[Array]
    expected: Sequence[Array]
    actual: Sequence[Array]
    wider: Sequence[Array]
    max_steps: int | None
    deadline: Deadline | None

    @cached_property
    def rounded(self) -> list[Array]:
        """Where rounding alone may bring each output."""
        check = None if self.deadline is None else self.deadline.check
        return rounding_masks(
            self.program, self.inputs, self.expected, self.actual, max_steps=self.max_steps, each=check,
            narrow_sums=True,
        )  # fmt: skip

    @cached_property
    def open(self) -> list[Array]:
        """What the class of a target leaves open of each output: sums that overflow in some order, above all."""
        if self.deadline is not None:
            self.deadline.check()
        return open_elements(
            self.program, Exactness.E2, self.inputs, self.expected, self.actual, max_steps=self.max_steps
        )

    @cached_property
    def reached(self) -> dict[str, list[Array]]:
        """What the known deviations reach of each output."""
        check = None if self.deadline is None else self.deadline.check
        return reached_elements(self.program, self.inputs, self.expected, max_steps=self.max_steps, each=check)

    def failure(self) -> TargetFailure | None:
        """The first output that is wrong; where none is, that some differ in known ways."""
        known: TargetFailure | None = None
        for i, port in enumerate(self.program.outputs()):
            found = self._beyond(i, port, {})
            if found is None or (self._is_near(i) and self._beyond(i, port, {"rounding": self.rounded[i]}) is None):
                continue
            excuses = {name: masks[i] for name, masks in self.reached.items() if masks[i].any()}
            if (mask := ill_conditioned(self.expected[i], self.wider[i])).any():
                excuses["rounding decides"] = mask
            rest = self._beyond(i, port, excuses)
            if rest is not None:
                excuses["rounding"] = self.rounded[i]
                rest = self._beyond(i, port, excuses)
            if rest is not None:
                excuses["sums that overflow in some order"] = self.open[i]
                rest = self._beyond(i, port, excuses)
            if rest is not None:
                return TargetFailure("meaning", f"{rest.where}: {rest.why}")
            known = TargetFailure("deviation", f"{', '.join(sorted(excuses))}: {found.where}: {found.why}")
        return known

    def _beyond(self, i: int, port: Port, excuses: Mapping[str, Array]) -> Difference | None:
        """What is left of a difference where elements are excused."""
        old, new = self.expected[i], self.actual[i]
        excused = np.logical_or.reduce([np.zeros(old.shape, np.bool_), *excuses.values()])
        held = np.where(excused, old, new) if excuses else new
        return difference([port], Exactness.E2, [old], [held], [self.wider[i]], TARGET_ROUNDINGS)

    def _is_near(self, i: int) -> bool:
        """Whether an output is so near that it may be rounding alone."""
        pairs = zip(parts_of([self.expected[i]]), parts_of([self.actual[i]]), strict=True)
        with np.errstate(all="ignore"):
            return all(
                bool((np.isfinite(a) == np.isfinite(b)).all())
                and float(np.abs(a - b)[np.isfinite(a)].max(initial=0)) <= _NEAR * float(np.abs(a).max(initial=0))
                for a, b in pairs
            )


__all__ = ["TargetFailure", "hold_target", "target_failure"]
