"""Is a pass worth it? Run time beside the same model without it, and the error against float64 of both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.measuring.sample import Sample
from gcomp.measuring.timing import geometric_mean, interleave, ratio
from gcomp.passes.base import Pass
from gcomp.passes.manager import PassManager
from gcomp.reference.wider import interpret_wider
from gcomp.runtime.model import Model as Compiled
from gcomp.runtime.stateful import model_of, with_state
from gcomp.targets.base import target_named
from gcomp.trying.models import Model
from gcomp.trying.subject import Subject

_ROUNDS, _SLOT = 9, 0.012
_LONG = 0.5
"""A model whose call takes so many seconds is run a few times only."""
_REFERENCE_STEPS = 400_000


@dataclass(frozen=True)
class Worth:
    """A model: median seconds of a call without the passes and with them, the ratio with its 95 % bounds, and the
    largest error of each against float64, over the largest magnitude of its output (None: no float64 result)."""

    model: str
    before: float
    after: float
    ratio: tuple[float, float, float]
    rounds: tuple[tuple[float, float], ...]
    error_before: float | None = None
    error_after: float | None = None
    error: str = ""

    @property
    def faster(self) -> bool:
        """Whether it is faster for sure."""
        return self.ratio[2] < 1

    @property
    def slower(self) -> bool:
        """Whether it is slower for sure."""
        return self.ratio[1] > 1


def worth_of(
    models: Sequence[Model], subject: Subject, *, until: float, report: Callable[[str], object] = lambda said: None
) -> Iterator[Worth]:
    """Each model timed with the passes and without, in turn, on one thread. None begins that would not be done at
    `until`, a moment of `time.monotonic`, if it took as long as the longest so far."""
    longest = 0.0
    for model in models:
        started = time.monotonic()
        if started + longest >= until:
            return
        report(model.name)
        try:
            yield _timed(model, subject)
        except GcompError as error:
            yield Worth(model.name, 0, 0, (1, 1, 1), (), error=str(error.what))
        except Exception as error:
            yield Worth(model.name, 0, 0, (1, 1, 1), (), error=f"{type(error).__name__}: {error}")
        longest = max(longest, time.monotonic() - started)


def _timed(model: Model, subject: Subject) -> Worth:
    program = model.program()
    sample = Sample(program)
    inputs = sample.inputs
    runs = {
        "before": _compiled(program.clone(), subject.before, subject.target),
        "after": _compiled(program.clone(), subject.after, subject.target),
    }
    values = {port.name: array for port, array in zip(program.inputs(), inputs, strict=True)}
    started = time.perf_counter()
    runs["before"](**values)
    rounds = _ROUNDS if time.perf_counter() - started < _LONG else 3
    timings = interleave({name: (lambda run=run: run(**values)) for name, run in runs.items()}, rounds, _SLOT)
    before, after = timings["before"].cpu, timings["after"].cpu
    found = ratio(after, before)
    first, second = _errors(program, inputs, [run.flat(list(inputs)) for run in runs.values()])
    return Worth(
        model.name, float(np.median(before)), float(np.median(after)), (found.median, found.low, found.high),
        tuple(zip(map(float, before), map(float, after), strict=True)), first, second,
    )  # fmt: skip


def _compiled(program: Program, passes: Sequence[Pass], target: str) -> Compiled:
    chosen = target_named(target)
    PassManager(passes).run(program)
    plan = chosen.lower(program, report=lambda said: None)
    program.weights.materialize()
    model = model_of(plan, with_state(dict(program.weights.items()), program.initial), timings={}, start=True)
    model.set_threads(1)
    return model


def _errors(program: Program, inputs: Sequence[np.ndarray], results: Sequence[Sequence[object]]) -> list[float | None]:
    """The largest error of each result against float64; None where the reference says nothing."""
    try:
        with np.errstate(all="ignore"):
            exact = interpret_wider(program, list(inputs), max_steps=_REFERENCE_STEPS)
    except GcompError:
        return [None for _ in results]
    return [max((_error(np.asarray(a), e) for a, e in zip(one, exact, strict=True)), default=0.0) for one in results]


def _error(actual: np.ndarray, exact: np.ndarray) -> float:
    if exact.dtype.kind not in "fc" or not exact.size:
        return 0.0 if np.array_equal(actual, exact.astype(actual.dtype)) else float("inf")
    both = np.isfinite(exact) & np.isfinite(actual.astype(exact.dtype))
    scale = float(np.abs(exact[both]).max(initial=0.0)) or 1.0
    return float(np.abs(actual.astype(exact.dtype) - exact)[both].max(initial=0.0)) / scale


def overall(found: Sequence[Worth]) -> tuple[float, float, float] | None:
    """The geometric mean over models of time with the passes over time without, with 95 % bounds; None without any."""
    pairs = [(np.array([b for _, b in w.rounds]), np.array([a for a, _ in w.rounds])) for w in found if w.rounds]
    if not pairs:
        return None
    mean = geometric_mean(pairs)
    return mean.median, mean.low, mean.high


__all__ = ["Worth", "overall", "worth_of"]
