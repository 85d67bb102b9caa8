"""Times of kernels in their candidate configurations on a processor, in place: alone they find warm what is cold in a
model.

The whole model is compiled once for each number of a candidate, in which every kernel is in that one of its own. Calls
of these models take turns, and each kernel's time in a call is noted. What is fastest by its median is put into
one more model, which takes turns with that of the choices without measurements; there it must be faster by `WORTH`, or
it is not taken. All of these models give the same bits, which is checked.

    results = tune(program, variant, launches, make)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from gcomp.analysis.work import Nominal
from gcomp.dims import Ranges
from gcomp.errors import InternalError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.lowering import tuned
from gcomp.lowering.llvm.accounts import predicted_seconds
from gcomp.lowering.llvm.codegen import llvmlite_version
from gcomp.lowering.llvm.trials import trials
from gcomp.lowering.tiles.forms import digest_of, form_of, symbols_of_launch
from gcomp.lowering.tiles.schedules.kernel import Settings
from gcomp.lowering.tuned import FORMAT, Form, Progress, Results, Trial
from gcomp.runtime.cpu.variants import Variant
from gcomp.version import __version__

ROUNDS, CONFIRMING = 15, 25
"""Calls of each model that count, while candidates are timed, and when the best are confirmed."""
WORTH = 0.98
"""The share of a kernel's time that another choice may take, at most, to be taken: less is the machine's noise."""


class Timed(Protocol):
    """A model with inputs, ready to be called."""

    def results(self) -> Sequence[Any]:
        """The results of a call."""
        ...

    def seconds(self) -> Mapping[tuple[str, str], float]:
        """The seconds of the kernels of a call, by label and place."""
        ...


Make = Callable[["Chosen"], Timed]
"""Of choices, the model that has them."""


class Chosen:
    """The settings of launches by their digests; others are as chosen without measurements."""

    def __init__(self, variant: Variant, settings: Mapping[str, Settings]) -> None:
        self.target, self._settings = variant.name, settings

    def settings(self, launch: LaunchOp, ranges: Ranges) -> Settings | None:
        """The settings of a launch; None for those without measurements."""
        return self._settings.get(digest_of(launch, ranges)) if self._settings else None


def tune(program: Program, variant: Variant, device: str, make: Make, progress: Progress) -> Results:
    """Time the candidates of every distinct kernel of a program of planned kernels."""
    launches = [op for op in program.ops() if isinstance(op, LaunchOp)]
    forms = {form_of(op): op for op in reversed(launches)}
    digests = {form: digest_of(op, program.ranges) for form, op in forms.items()}
    tried = {digests[f]: trials(op, program.ranges, variant.bits) for f, op in forms.items()}
    keys: dict[str, set[tuple[str, str]]] = {}
    for op in launches:
        keys.setdefault(digests[form_of(op)], set()).add((op.label_name, describe(op.location)))
    count = max(map(len, tried.values()), default=0)
    calls: list[Timed] = []
    for n in range(count):
        progress("compiling candidates", n, count)
        calls.append(make(Chosen(variant, {d: found[n] for d, found in tried.items() if 0 < n < len(found)})))
    times = _times(calls, ROUNDS, keys, lambda n: progress("timing calls", n, ROUNDS))
    best = {d: min(range(len(found)), key=_seconds_of(times, d)) for d, found in tried.items()}
    winners = Chosen(variant, {d: tried[d][n] for d, n in best.items() if n})
    progress("compiling the best", 0, 1)
    pair = _times(
        [calls[0], make(winners)], CONFIRMING, keys, lambda n: progress("confirming the best", n, CONFIRMING)
    ) if count else []  # fmt: skip
    rows = [
        _form(op, program, variant, tried[digests[f]], [t[digests[f]] for t in times[: len(tried[digests[f]])]])
        for f, op in forms.items()
    ]  # fmt: skip
    for n, form in enumerate(rows):
        before, after = pair[0][form.digest], pair[1][form.digest]
        if (taken := best[form.digest]) and after <= WORTH * before:
            # The fastest of several is fast by chance, too: what counts was measured when that was over.
            found = {0: before, taken: after}
            own = [replace(trial, measured=found.get(k, trial.measured)) for k, trial in enumerate(form.trials)]
            rows[n] = replace(form, trials=tuple(own), taken=taken)
    return Results(FORMAT, variant.name, device, versions(), tuple(sorted(rows, key=lambda one: one.digest)))


def _times(
    calls: Sequence[Timed], rounds: int, keys: Mapping[str, set[tuple[str, str]]], tell: Callable[[int], object]
) -> list[dict[str, float]]:
    """For each model the median seconds of each form in a call, all of its launches; calls of the models take turns."""
    found: list[dict[str, list[float]]] = [{} for _ in calls]
    expected = [np.array(x).tobytes() for x in calls[0].results()]
    for call in calls[1:]:
        if [np.asarray(x).tobytes() for x in call.results()] != expected:
            why = "candidates should differ in time only"
            raise InternalError("A candidate of tuning computes other bits.", why=why, fix="Report the model.")
    for n in range(rounds):
        tell(n)
        for call, times in zip(calls, found, strict=True):
            seconds = call.seconds()
            for digest, places in keys.items():
                times.setdefault(digest, []).append(sum(seconds.get(place, 0.0) for place in places))
    return [{digest: median(times) for digest, times in one.items()} for one in found]


def _seconds_of(times: Sequence[Mapping[str, float]], digest: str) -> Callable[[int], float]:
    return lambda n: times[n][digest]


def _form(
    op: LaunchOp, program: Program, variant: Variant, tried: Sequence[Settings], times: Sequence[float]
) -> Form:  # fmt: skip
    sizes = Nominal(program.ranges).sizes(symbols_of_launch(op))
    guess = predicted_seconds(op, program, variant)
    found = [Trial(dict(s.values), guess, time, (), ()) for s, time in zip(tried, times, strict=True)]
    return Form(digest_of(op, program.ranges), op.kind_name, op.label_name, sizes, tuple(found), 0)


def versions() -> dict[str, str]:
    """The versions of what makes kernels."""
    return {"gcomp": __version__, "llvmlite": llvmlite_version()}


def read_for(path: Path, names: Sequence[str]) -> Results:
    """The results in a file, for kinds of processors. Raises UsageError, ArtifactError."""
    return tuned.read_for(path, versions(), "cpu", names)


__all__ = ["Chosen", "read_for", "tune", "versions"]
