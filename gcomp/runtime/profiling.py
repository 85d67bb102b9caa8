"""Measured time of what a call does: a sample for each launch, copy and host step, and the profile of several calls.

profile = model.profile(x)
print(profile)
profile.save_trace("trace.json")  # for ui.perfetto.dev, or chrome://tracing
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from gcomp.errors import UsageError

SHOWN = 20
"""Rows of a profile's text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a call did once: a `kernel`, `host` step, `copy` or `fill`, its seconds since the call began, and its work.

    `predicted` is in seconds, by the cost model of the target's machine; None where that has none.
    """

    kind: str
    label: str
    place: str
    start: float
    seconds: float
    flops: int = 0
    bytes: int = 0
    predicted: float | None = None
    narrow: bool = False
    """Whether it computes on 16-bit floats or narrower ones, which matrix units do faster."""


@dataclass
class Recording:
    """The samples of one call, in order."""

    architecture: str = ""
    samples: list[Sample] = field(default_factory=list[Sample])
    began: int = field(default_factory=time.perf_counter_ns)

    def add(self, kind: str, label: str, place: str, began: int, nanoseconds: int, flops: int = 0, bytes: int = 0,
            narrow: bool = False) -> None:  # fmt: skip
        """Note what began at a time of `time.perf_counter_ns` and took so long."""
        start = 1e-9 * (began - self.began)
        self.samples.append(Sample(kind, label, place, start, 1e-9 * nanoseconds, flops, bytes, None, narrow))

    @property
    def seconds(self) -> float:
        """The sum of all samples."""
        return sum(sample.seconds for sample in self.samples)


@dataclass(frozen=True)
class Row:
    """One kernel or host step of a call, in all of its `count` runs: seconds together, measured and predicted."""

    kind: str
    label: str
    place: str
    count: int
    seconds: float
    predicted: float | None
    flops: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """What calls of a model spent their time on: each step's median over `calls` of them.

    `seconds` is the median of ordinary calls beside these, None where inputs are given away and a call cannot be
    repeated. What a call spends between its steps, and on arrays that go in and out, is the difference.
    """

    target: str
    architecture: str
    calls: int
    seconds: float | None
    samples: tuple[Sample, ...]

    @property
    def step_seconds(self) -> float:
        """The sum over all steps."""
        return sum(sample.seconds for sample in self.samples)

    @property
    def rows(self) -> list[Row]:
        """Steps that are one (in loops) together; the costliest first."""
        found: dict[tuple[str, str, str], list[Sample]] = {}
        for sample in self.samples:
            found.setdefault((sample.kind, sample.label, sample.place), []).append(sample)
        return sorted([_row(samples) for samples in found.values()], key=lambda row: -row.seconds)

    def __str__(self) -> str:
        rows = self.rows
        width = max([len(row.label) for row in rows[:SHOWN]], default=0)
        lines = [self.summary, f"{'':6}  {'':{width}}  {'us':>10}  {'predicted':>10}  {'runs':>5}  from"]
        for row in rows[:SHOWN]:
            predicted = "" if row.predicted is None else f"{1e6 * row.predicted:,.1f}"
            numbers = f"{1e6 * row.seconds:>10,.1f}  {predicted:>10}  {row.count:>5}"
            lines.append(f"{row.kind:6}  {row.label:{width}}  {numbers}  {row.place}")
        if len(rows) > SHOWN:
            lines.append(f"... and {len(rows) - SHOWN} more, {1e6 * sum(r.seconds for r in rows[SHOWN:]):,.1f} us")
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """One line: steps, their sum, and what a call takes."""
        call = "" if self.seconds is None else f"; a call takes {1e6 * self.seconds:,.1f} us"
        return (
            f"{len(self.samples)} steps on {self.architecture}, {1e6 * self.step_seconds:,.1f} us together"
            f" (medians of {self.calls} calls){call}"
        )

    def _repr_html_(self) -> str:
        """For notebooks: a row for each step, with a bar for its share."""
        rows, whole = self.rows, self.step_seconds or 1.0
        head = "".join(f"<th>{name}</th>" for name in ("", "step", "us", "predicted", "runs", "share", "from"))
        return (
            f"<p>{escape(self.summary)}</p><table><tr>{head}</tr>{''.join(_html(row, whole) for row in rows)}</table>"
        )

    def trace(self) -> dict[str, Any]:
        """The steps in Chrome's trace event format, which Perfetto reads: microseconds, one track for each kind."""
        tracks = {kind: n for n, kind in enumerate(dict.fromkeys(sample.kind for sample in self.samples))}
        events: list[dict[str, Any]] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": self.target}}]
        events += [
            {"ph": "M", "pid": 0, "tid": n, "name": "thread_name", "args": {"name": kind}} for kind, n in tracks.items()
        ]
        events += [
            {
                "ph": "X", "pid": 0, "tid": tracks[s.kind], "cat": s.kind, "name": s.label,
                "ts": round(1e6 * s.start, 3), "dur": round(1e6 * s.seconds, 3),
                "args": {
                    "from": s.place, "flops": s.flops, "bytes": s.bytes,
                    "predicted us": None if s.predicted is None else round(1e6 * s.predicted, 3),
                },
            } for s in self.samples
        ]  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"architecture": self.architecture}}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON. Raises UsageError where it cannot be written."""
        try:
            Path(path).write_text(json.dumps(self.trace()), "utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {os.fspath(path)}", why=error.strerror or str(error)) from None


def _row(samples: Sequence[Sample]) -> Row:
    first = samples[0]
    known = [sample.predicted for sample in samples if sample.predicted is not None]
    return Row(
        first.kind, first.label, first.place, len(samples), sum(s.seconds for s in samples),
        sum(known) if len(known) == len(samples) else None, sum(s.flops for s in samples),
        sum(s.bytes for s in samples),
    )  # fmt: skip


def _html(row: Row, whole: float) -> str:
    share = 100 * row.seconds / whole
    bar = f'<div style="background:#4a7fb5;height:0.8em;width:{share:.1f}px;min-width:1px" title="{share:.1f} %"></div>'
    predicted = "" if row.predicted is None else f"{1e6 * row.predicted:,.1f}"
    cells = [
        escape(row.kind), escape(row.label), f"{1e6 * row.seconds:,.1f}", predicted, str(row.count), bar,
        escape(row.place),
    ]  # fmt: skip
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


Predict = Callable[[Sample], float | None]
"""The seconds that a cost model says for a sample's work."""


def seconds_of(call: Callable[[], object]) -> float:
    """How long a call takes, its results there."""
    began = time.perf_counter()
    made = call()
    for value in made if isinstance(made, list) else ():  # pyright: ignore[reportUnknownVariableType]
        wait = getattr(value, "block_until_ready", None)  # pyright: ignore[reportUnknownArgumentType]
        if wait is not None:
            wait()
    return time.perf_counter() - began


def profile_of(target: str, recordings: Sequence[Recording], calls: Sequence[float], predict: Predict) -> Profile:
    """The profile of several calls that did the same: each sample's median; when it began, as in the median call."""
    middle = sorted(recordings, key=lambda recording: recording.seconds)[len(recordings) // 2]
    alike = [recording.samples for recording in recordings if len(recording.samples) == len(middle.samples)]
    samples: list[Sample] = []
    for sample, times in zip(middle.samples, zip(*alike, strict=True), strict=True):
        predicted = predict(sample) if sample.flops or sample.bytes else None
        samples.append(replace(sample, seconds=median(s.seconds for s in times), predicted=predicted))
    seconds = median(calls) if calls else None
    return Profile(target, middle.architecture, len(recordings), seconds, tuple(samples))


def seconds_by_place(profile: Profile) -> Mapping[tuple[str, str], float]:
    """Measured seconds of kernels by label and place."""
    return {(row.label, row.place): row.seconds for row in profile.rows if row.kind == "kernel"}


__all__ = ["Profile", "Recording", "Row", "Sample", "profile_of", "seconds_by_place", "seconds_of"]
