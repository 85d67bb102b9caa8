"""Where in the pipeline passes do most: every place is tried, on models that are small."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from gcomp.analysis.machines import machine_named
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
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

    Numbers are the logarithm of predicted seconds, and ops. Where a place has none, there was no time for it, or the
    passes do nothing there.
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

    def waiting() -> Iterator[str]:
        for name in by_name:
            if time.monotonic() >= until:
                return
            yield name

    limits = workers.Limits(_SECONDS, _MEMORY)
    for name, result in workers.run_tasks(partial(_fired, by_name, subject, until), waiting(), jobs, limits):
        hung = isinstance(result, workers.Hung)
        if isinstance(result, (workers.Died, workers.Hung)):
            yield Fired(name, error=f"took longer than {_SECONDS:g} s" if hung else f"ended its process: {result}")
        else:
            yield result


def _fired(models: dict[str, Model], subject: Subject, until: float, name: str) -> Fired:
    try:
        return _try_places(models[name].program(), subject, until, name)
    except GcompError as error:
        return Fired(name, error=str(error.what))
    except Exception as error:
        return Fired(name, error=f"{type(error).__name__}: {error}")


def _try_places(program: Program, subject: Subject, until: float, name: str) -> Fired:
    """Run the pipeline once; at each place at which the program is another than before, run the passes on a copy."""
    found, allowed = Fired(name), set(subject.places())
    cut = next((k for k, step in enumerate(subject.before) if step.level != "graph"), len(subject.before))
    changed, last, copies = True, 0, dict[int, Program]()
    for k in range(cut + 1):
        if k in allowed and changed:
            copy, context = program.clone(), PassContext()
            did = [step.run(copy, context) for step in subject.tried]
            last, changed = (context.applications or int(any(did) and not context.known)), False
            if last:
                copies[k] = copy
        if k in allowed and last:
            found.applied[k] = last
        if k < cut:
            changed |= subject.before[k].run(program, PassContext())
    base = _score(program, subject.target)
    for k, copy in copies.items():
        if time.monotonic() < until:
            PassManager(subject.before[k:cut]).run(copy)
            found.scores[k] = _score(copy, subject.target)
    for k in found.applied:  # a place at which the program is as at the one before it
        same = max((j for j in found.scores if j < k), default=None)
        if same is not None and k not in copies:
            found.scores[k] = found.scores[same]
    return Fired(name, found.applied, found.scores, base)


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
