"""Times of kernels in their candidate configurations, as data: measured on a machine once, and used without one later.

A time belongs to a kernel's form (`digest_of`), an architecture, and the versions of what made the kernel. Results of
other versions are refused: they may speak of other kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gcomp.dims import Ranges
from gcomp.errors import ArtifactError, UsageError
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.tiles.forms import digest_of
from gcomp.lowering.tiles.schedules.kernel import Settings
from gcomp.runtime import strict_json
from gcomp.runtime.strict_json import JsonError

FORMAT = 2


@dataclass(frozen=True)
class Trial:
    """One configuration of a kernel: its settings, the model's time and the measured one in seconds.

    `sources` name the texts of its parts as artifacts do, and `steps` are their times, where they are timed apart.
    """

    settings: Mapping[str, int]
    predicted: float
    measured: float
    sources: tuple[str, ...]
    steps: tuple[float, ...]


@dataclass(frozen=True)
class Form:
    """A kernel, its sizes when it was timed, and its trials; the first is what is chosen without measurements.

    `taken` is the number of the trial that is taken, -1 for the fastest.
    """

    digest: str
    kind: str
    label: str
    sizes: Mapping[str, int]
    trials: tuple[Trial, ...]
    taken: int = -1

    @property
    def best(self) -> Trial:
        """The one that is taken."""
        return self.trials[self.taken] if self.taken >= 0 else min(self.trials, key=lambda trial: trial.measured)

    @property
    def gap(self) -> float:
        """How much longer the choice without measurements takes than the best: 0.1 is ten percent."""
        return self.trials[0].measured / self.best.measured - 1 if self.best.measured else 0.0


@dataclass(frozen=True)
class Results:
    """What was measured on a machine: where, with which versions of what made the kernels, and the kernels."""

    format: int
    target: str
    device: str
    versions: Mapping[str, str]
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


Progress = Callable[[str, int, int], object]
"""Told what is being done, how much of it is done, and how much there is."""


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


def from_bytes(data: bytes, where: str, versions: Mapping[str, str]) -> Results:
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
    known = {"format": results.format, **results.versions}
    for name, value in {"format": FORMAT, **versions}.items():
        if (then := known.get(name, "none")) != value:
            raise UsageError(
                f"The results of tuning are of another {name}.",
                where=where,
                why=f"They were measured with {then!s:.80}, and this is {value!s:.80}: its kernels may be others.",
                fix="Tune again with this one.",
            )
    return results


def read(path: Path, versions: Mapping[str, str]) -> Results:
    """The results in a file. UsageError where there is none; see `from_bytes`."""
    try:
        return from_bytes(path.read_bytes(), str(path), versions)
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None


def read_for(path: Path, versions: Mapping[str, str], family: str, names: Sequence[str]) -> Results:
    """The results in a file. UsageError, too, where they are of an architecture that nothing is compiled for: of a
    family of targets (`triton`, `cpu`), these names."""
    results = read(path, versions)
    if results.target not in names:
        raise UsageError(
            f"The results of tuning are for {results.target[:40]}, and the target is {', '.join(names)}.",
            where=str(path),
            fix=f"Compile for {family}:{results.target[:40]}, or tune for this target.",
        )
    return results


def _sum(results: Results) -> str:
    return hashlib.sha256(strict_json.dumps(asdict(results))).hexdigest()


__all__ = [
    "FORMAT", "Form", "Progress", "Results", "Trial", "from_bytes", "rank_correlation", "read", "read_for", "to_bytes",
]  # fmt: skip
