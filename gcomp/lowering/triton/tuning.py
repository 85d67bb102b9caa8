"""Times of kernels in their candidate configurations, as data: measured on a GPU once, and used without one later.

    results = tune(launches, ranges, architecture, compiler, driver())
    Path("results.json").write_bytes(to_bytes(results))
    lower(program, "triton:sm_90", tuned=from_bytes(data, "results.json"))

A time belongs to a kernel's form (`digest_of`), an architecture, and the versions of what made the kernel. Results of
other versions are refused: they may speak of other kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gcomp.analysis.work import Nominal
from gcomp.dims import Ranges
from gcomp.errors import ArtifactError, GcompError, UnsupportedError, UsageError
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.tiles.forms import digest_of, form_of, symbols_of_launch
from gcomp.lowering.tiles.schedules.kernel import Settings
from gcomp.lowering.triton import cache
from gcomp.lowering.triton.aot import Compiled, Compiler
from gcomp.lowering.triton.choose import GpuKernels, candidates, make_kernels, trials
from gcomp.lowering.triton.estimates import predict_seconds
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture, parse_target, triton_version
from gcomp.lowering.triton.timing import Timer
from gcomp.runtime import strict_json
from gcomp.runtime.cuda.driver import Driver
from gcomp.runtime.strict_json import JsonError
from gcomp.version import __version__

FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """One configuration of a kernel: its settings, the model's time and the measured one in seconds.

    `sources` name the texts of its GPU kernels as artifacts do, and `steps` are their times.
    """

    settings: Mapping[str, int]
    predicted: float
    measured: float
    sources: tuple[str, ...]
    steps: tuple[float, ...]


@dataclass(frozen=True)
class Form:
    """A kernel, its sizes when it was timed, and its trials; the first is what is chosen without measurements."""

    digest: str
    kind: str
    label: str
    sizes: Mapping[str, int]
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The fastest."""
        return min(self.trials, key=lambda trial: trial.measured)

    @property
    def gap(self) -> float:
        """How much longer the choice without measurements takes than the best: 0.1 is ten percent."""
        return self.trials[0].measured / self.best.measured - 1 if self.best.measured else 0.0


@dataclass(frozen=True)
class Results:
    """What was measured on a GPU: where, with which versions, and the kernels."""

    format: int
    target: str
    gpu: str
    gcomp: str
    triton: str
    assembler: str
    forms: tuple[Form, ...]

    def settings(self, launch: LaunchOp, ranges: Ranges) -> Settings | None:
        """The fastest settings of a kernel; None where it was not measured."""
        digest = digest_of(launch, ranges)
        return next((Settings(form.best.settings) for form in self.forms if form.digest == digest), None)

    def measured(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """Seconds at these sizes by the name of a kernel's text in artifacts; the least of those that it was timed."""
        found: dict[str, float] = {}
        for form in self.forms:
            for trial in form.trials if all(sizes.get(name) == n for name, n in form.sizes.items()) else ():
                for name, seconds in zip(trial.sources, trial.steps, strict=True):
                    found[name] = min(seconds, found.get(name, seconds))
        return found


# ---- measuring ----------------------------------------------------------------------------------------------------

Progress = Callable[[str, int, int], object]
"""Told what is being done, how much of it is done, and how much there is."""


def tune(
    launches: Iterable[LaunchOp], ranges: Ranges, on: Architecture, compiler: Compiler, gpu: Driver,
    progress: Progress | None = None,
) -> Results:  # fmt: skip
    """Time the candidates of every distinct kernel. Raises GcompError where the GPU does not run one."""
    check_gpu(gpu, on)
    tell = progress or _silent
    distinct = {form_of(launch): launch for launch in reversed([*launches])}
    tried = {form: _make_candidates(launch, ranges, on) for form, launch in distinct.items()}
    sources = list(dict.fromkeys(source for found in tried.values() for one in found for source in one.kernels))
    attempted = compiler.attempt(sources, on, lambda done, total: tell("compiling candidates", done, total))
    binaries = {s: c for s, c in zip(sources, attempted, strict=True) if isinstance(c, Compiled)}
    forms: list[Form] = []
    with Timer(gpu) as timer:
        for n, (form, launch) in enumerate(distinct.items()):
            tell("timing kernels", n, len(distinct))
            if found := _time_candidates(launch, ranges, on, tried[form], binaries, timer):
                forms.append(found)
    forms.sort(key=lambda one: one.digest)
    return Results(FORMAT, on.name, gpu.name, __version__, triton_version(), cache.assembler(), tuple(forms))


def _silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def check_gpu(gpu: Driver, on: Architecture) -> None:
    """UnsupportedError for a GPU of another architecture."""
    if gpu.architecture != on.name:
        raise UnsupportedError(
            f"Kernels for {on.name} cannot be timed on this GPU, which is of {gpu.architecture}.",
            where=gpu.name,
            fix=f"Tune for triton:{gpu.architecture}, or on another GPU.",
        )


def _make_candidates(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[GpuKernels]:
    """A launch's candidates, one for each text; those among which `choose` chooses come first."""
    found: dict[Hashable, GpuKernels] = {}
    for settings in trials(launch, ranges, on):
        one = make_kernels(launch, ranges, settings)
        found.setdefault(one.kernels, one)
    return [*found.values()]


def _time_candidates(
    launch: LaunchOp, ranges: Ranges, on: Architecture, tried: Sequence[GpuKernels],
    binaries: Mapping[KernelSource, Compiled], timer: Timer,
) -> Form | None:  # fmt: skip
    """The times of a launch's candidates; None where it has no GPU kernels, or none of them compiles."""
    runnable = [one for one in tried if one.kernels and all(source in binaries for source in one.kernels)]
    if not runnable:
        return None
    # As `choose` does: of its candidates that which spills least, and of those the one that comes first.
    own = {make_kernels(launch, ranges, settings).kernels for settings in candidates(launch, ranges, on)}
    chosen = min(runnable, key=lambda one: (one.kernels not in own, max(binaries[s].spilled for s in one.kernels)))
    runnable = [chosen, *(one for one in runnable if one is not chosen)]
    nominal = Nominal(ranges)
    sizes = {name: nominal.size(size) for name, size in symbols_of_launch(launch).items()}
    found: list[Trial] = []
    with timer.memory_of(launch, sizes) as memory:
        for one in runnable:
            try:
                steps = timer.seconds(memory, one.scheduled, [binaries[source] for source in one.kernels])
            except GcompError as error:
                where = f"kernel {launch.label_name} in the settings {dict(one.settings.values)}"
                raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from None
            names = tuple([source.member for source in one.kernels])
            guess = predict_seconds(launch, ranges, on, one.settings)
            found.append(Trial(dict(one.settings.values), guess, sum(steps), names, tuple(steps)))
    return Form(digest_of(launch, ranges), launch.kind_name, launch.label_name, sizes, tuple(found))


# ---- how good the model is ----------------------------------------------------------------------------------------


def rank_correlation(forms: Iterable[Form]) -> float | None:
    """Spearman's correlation of predicted and measured times over all trials; None where one of them never varies."""
    pairs = np.array([(t.predicted, t.measured) for form in forms for t in form.trials], np.float64).reshape(-1, 2)
    first, second = (_ranks(column) for column in pairs.T)
    if not len(pairs) or not np.ptp(first) or not np.ptp(second):
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The place of each in order; equal ones share the middle of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse.reshape(-1)]


# ---- as text ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sealed:
    sha256: str
    results: Results


def to_bytes(results: Results) -> bytes:
    """The canonical text of results, with a checksum."""
    return strict_json.dumps({"sha256": _sum(results), "results": asdict(results)}) + b"\n"


def from_bytes(data: bytes, where: str) -> Results:
    """The results that `to_bytes` wrote. ArtifactError for changed ones, UsageError for those of other versions."""
    try:
        sealed = strict_json.decode(_Sealed, strict_json.loads(data), "the file")
    except JsonError as error:
        raise ArtifactError(
            "This is no file of tuning results.", where=where, why=str(error), fix="Write one with gcomp tune."
        ) from None
    results = sealed.results
    if _sum(results) != sealed.sha256:
        raise ArtifactError(
            "The results of tuning were changed.", where=where, why="Their checksum is another.", fix="Tune again."
        )
    own = {"format": FORMAT, "gcomp": __version__, "triton": triton_version(), "assembler": cache.assembler()}
    for name, value in own.items():
        if (then := getattr(results, name)) != value:
            raise UsageError(
                f"The results of tuning are of another {name}.",
                where=where,
                why=f"They were measured with {then!s:.80}, and this is {value!s:.80}: its kernels may be others.",
                fix="Tune again with this one.",
            )
    return results


def read(path: Path) -> Results:
    """The results in a file. UsageError where there is none; see `from_bytes`."""
    try:
        return from_bytes(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None


def read_for(path: Path, target: str) -> Results:
    """The results in a file. UsageError, too, where they are of an architecture that nothing is compiled for."""
    results = read(path)
    if results.target not in (names := [on.name for on in parse_target(target)]):
        raise UsageError(
            f"The results of tuning are for {results.target[:40]}, and the target is {', '.join(names)}.",
            where=str(path),
            fix=f"Compile for triton:{results.target[:40]}, or tune for this target.",
        )
    return results


def _sum(results: Results) -> str:
    return hashlib.sha256(strict_json.dumps(asdict(results))).hexdigest()


__all__ = [
    "Form", "Results", "Trial", "check_gpu", "from_bytes", "rank_correlation", "read", "read_for", "to_bytes",
    "tune",
]  # fmt: skip
