"""Passes of a pipeline held to their promises, one after the other, on a user's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gcomp.dims import Ranges
from gcomp.errors import VerificationError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.compared import Compared
from gcomp.passes.judging import Failure, Work, classes_of, judge_result
from gcomp.passes.manager import Instrument
from gcomp.passes.references import Budget, Given, Reference, sets_for_model
from gcomp.passes.structure import structure

Array = np.ndarray[Any, Any]

SECONDS = 2.0
"""So long may inputs beyond the first take for each pass that changes the program, or as long as the first took."""


@dataclass
class Follower:
    """Judges the passes of a pipeline on a model, each on what the one before it left.

    What a program computed is kept for the pass that comes next.
    """

    inputs: Sequence[Array] | None = None
    """A caller's inputs; by default sets of all kinds and sizes are made from `seed`, within `seconds`."""
    seed: int = 0
    seconds: float = SECONDS
    settles: bool = False
    """Whether a pass must find nothing to do on its own result. Budgets that hold for a whole run may have stopped it
    there, so that it shows only from a fresh start."""
    compared: Compared = field(default_factory=Compared)
    ranges: Ranges = field(default_factory=Ranges)
    _sets: list[Given] = field(default_factory=list[Given])
    _known: Mapping[int, list[Array]] = field(default_factory=dict[int, list[Array]])
    """What the program computed after the last pass that changed it, by the index of the input set in `_sets`."""
    _state: tuple[object, ...] = ()
    """The structure of the program for which `_known` holds."""

    def reference(self, before: Program) -> Reference:
        """What the next pass is held to: what the program that it is given computes."""
        if not self._sets:
            made: Sequence[Given] = sets_for_model(before, self.seed) if self.inputs is None else [self.inputs]
            self._sets, self.ranges = list(made), before.ranges
        known = self._known if structure(before) == self._state else None
        return Reference(
            before, self._sets, max_steps=None, expected=known, budget=Budget(self.seconds), compared=self.compared
        )

    def judge(self, step: Pass, reference: Reference, after: Program, work: Work, rewrites: int) -> Failure | None:
        """The promise that a pass broke on its way from what `reference` is of to `after`, if any."""
        self.compared.passes += 1
        self.compared.changing += work.changed
        # A pass may try rewrites and take them back: such are not part of what was compared.
        self.compared.rewrites += rewrites if work.changed else 0
        failure = judge_result(step, reference, after, work, settles=self.settles)
        if work.changed:
            self._sets, self._known, self._state = reference.sets, reference.found, structure(after)
        return failure

    def restart(self, program: Program) -> None:
        """Go on from another program, which is held to what it means itself."""
        self.inputs, self._sets, self._known, self._state = None, [], {}, ()

    def told(self) -> str:
        """What was compared, in words."""
        return self.compared.told_of_passes(self.ranges)

    def to_json(self) -> dict[str, Any]:
        """What was compared, as JSON."""
        return self.compared.to_json(self.ranges)


@dataclass
class JudgeEach(Instrument):
    """Holds every pass of a pipeline to its promises; VerificationError names the rewrite, the op and its location."""

    inputs: Sequence[Array] | None = None
    """Inputs to compare the meaning on; by default they are made from `seed`."""
    seed: int = 0
    settles: bool = False
    """Whether a pass must find nothing to do on its own result."""
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        self.follower = Follower(self.inputs, self.seed, self.seconds, self.settles)

    def begin(self, context: PassContext) -> None:
        self.follower = Follower(self.inputs, self.seed, self.seconds, self.settles)
        self._context, self._applied = context, list[str]()
        context.looked_at = {}
        context.watchers.append(lambda rule, where: self._applied.append(rule))

    def before(self, step: Pass, program: Program) -> None:
        self._reference = self.follower.reference(program.clone())
        self._applied.clear()
        self._context.looked_at = {}

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        if not step.keeps_meaning:
            # Another program: it must be valid, and what comes after is held to what it means.
            program.verify(f"after {step.spec()}")
            self.follower.restart(program)
            return
        classes = classes_of(self._applied, self._context)
        work = Work(changed, classes, tuple(self._context.looked_at or ()))
        failure = self.follower.judge(step, self._reference, program, work, len(self._applied))
        if failure is not None:
            raise VerificationError(
                failure.what,
                where=failure.culprit or None,
                why=failure.message,
                fix="find the smallest program that shows it with gcomp reduce, and what led there with gcomp bisect",
            )


__all__ = ["SECONDS", "Follower", "JudgeEach"]
