"""Where in the pipeline passes do most: every place is tried, on models that are small."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from gcomp.analysis.machines import machine_named
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.structure import structure
from gcomp.targets.base import target_named
from gcomp.testing import workers
from gcomp.trying.change import kernels_on
from gcomp.trying.models import Model
from gcomp.trying.subject import Subject

_MEMORY = 6 << 30
_SECONDS = 20.0


@dataclass(frozen=True)
class Fired:
    """A model: how often the passes apply at each place, what is predicted with them there, and without them.

    Numbers are the logarithm of predicted seconds, and ops. Where a place has none, the passes do nothing there.
    """

    model: str
    applied: dict[int, int] = field(default_factory=dict[int, int])
    scores: dict[int, tuple[float, int]] = field(default_factory=dict[int, tuple[float, int]])
    base: tuple[float, int] | None = None
    error: str = ""


@dataclass(frozen=True)
class Place:
    """A place of the pipeline: in how many models the passes apply there, how often, and what is predicted.

    `gain` is the mean over models of the logarithm of predicted time with the passes over that without them: below 0 is
    faster. `ops` is how many ops more there are before kernels are made.
    """

    at: int
    models: int
    applied: int
    gain: float
    ops: int


def places_of(models: Sequence[Model], subject: Subject, *, jobs: int, until: float) -> Iterator[Fired]:
    """Each model with what the passes do at each place, until a moment of `time.monotonic`."""
    by_name = {model.name: model for model in models}
    limits = workers.Limits(_SECONDS, _MEMORY, until)
    for name, result in workers.run_tasks(partial(_fired, by_name, subject), by_name, jobs, limits):
        hung = isinstance(result, workers.Hung)
        if isinstance(result, (workers.Died, workers.Hung)):
            yield Fired(name, error=f"took longer than {_SECONDS:g} s" if hung else f"ended its process: {result}")
        else:
            yield result


def _fired(models: dict[str, Model], subject: Subject, name: str) -> Fired:
    try:
        return _try_places(models[name].program(), subject, name)
    except GcompError as error:
        return Fired(name, error=str(error.what))
    except Exception as error:
        return Fired(name, error=f"{type(error).__name__}: {error}")


def _try_places(program: Program, subject: Subject, name: str) -> Fired:
    """Run the pipeline once. At each place at which the program is another than before, the passes run on a copy, which
    goes through the rest of the pipeline beside it, until it is as the program itself, or as another copy."""
    applied, allowed = dict[int, int](), set(subject.places())
    cut = next((k for k, step in enumerate(subject.before) if step.level != "graph"), len(subject.before))
    ways = _Ways(program)
    changed, last = True, 0
    for k in range(cut + 1):
        if k in allowed and changed:
            copy, context = program.clone(), PassContext()
            did = [step.run(copy, context) for step in subject.tried]
            last, changed = (context.applications or int(any(did) and not context.known)), False
            if last:
                ways.add(k, copy)
        if k in allowed and last:
            applied[k] = last
        if k < cut:
            changed |= ways.advance(subject.before[k])
    base, scores = ways.scores(subject.target)
    for k in applied:  # a place at which the program is as at the one before it
        if k not in scores and (same := max((j for j in scores if j < k), default=None)) is not None:
            scores[k] = scores[same]
    return Fired(name, applied, scores, base)


@dataclass
class _Ways:
    """A program on its way through the pipeline, and copies of it with passes put in, by the places that led there."""

    program: Program
    copies: list[tuple[list[int], Program]] = field(default_factory=list[tuple[list[int], Program]])
    merged: list[int] = field(default_factory=list[int])
    """Places that led to the program itself."""

    def add(self, place: int, copy: Program) -> None:
        """A copy more."""
        self.copies.append(([place], copy))

    def advance(self, step: Pass) -> bool:
        """Run the next pass on all of them; whether it changed the program. Copies that become alike become one."""
        changed = [step.run(one, PassContext()) for one in (self.program, *(copy for _, copy in self.copies))]
        if any(changed):
            self._merge()
        return changed[0]

    def _merge(self) -> None:
        known = {structure(self.program): self.merged}
        left: list[tuple[list[int], Program]] = []
        for places, copy in self.copies:
            same = known.setdefault(structure(copy), places)
            if same is places:
                left.append((places, copy))
            else:
                same.extend(places)
        self.copies = left

    def scores(self, target: str) -> tuple[tuple[float, int], dict[int, tuple[float, int]]]:
        """The score of the program, and of the copy of each place."""
        base = _score(self.program, target)
        found = dict.fromkeys(self.merged, base)
        for places, copy in self.copies:
            found |= dict.fromkeys(places, _score(copy, target))
        return base, dict(sorted(found.items()))


def _score(program: Program, target: str) -> tuple[float, int]:
    seconds = kernels_on(program, machine_named(target_named(target).machine))[3]
    return math.log(max(seconds, 1e-12)), program.op_count()


def ranked(fired: Sequence[Fired], subject: Subject) -> list[Place]:
    """The places, the best first: by predicted time, then by ops, then by models, then the earliest."""
    found: list[Place] = []
    for k in subject.places():
        applied = [one.applied[k] for one in fired if k in one.applied]
        moved = [
            (one.scores[k][0] - one.base[0], one.scores[k][1] - one.base[1])
            for one in fired
            if one.base is not None and k in one.scores
        ]
        if applied:
            gain = sum(t for t, _ in moved) / max(1, len(fired))
            found.append(Place(k, len(applied), sum(applied), gain, sum(ops for _, ops in moved)))
    return sorted(found, key=lambda p: (round(p.gain, 4), p.ops, -p.models, p.at))


__all__ = ["Fired", "Place", "places_of", "ranked"]
