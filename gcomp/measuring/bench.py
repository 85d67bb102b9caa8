"""A model beside other ways to run it: latency in turn with bounds, throughput, memory, load time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gcomp
from gcomp.dims import evaluate
from gcomp.errors import GcompError, UsageError
from gcomp.ir.program import Program
from gcomp.measuring.engines import Engine, aligned, engine_of
from gcomp.measuring.sample import Sample
from gcomp.measuring.timing import Timing, interleave, ratio, resample
from gcomp.sources import import_model

Array = np.ndarray[Any, Any]
Report = Callable[[str], object]

WIDTH = 0.03
"""While the interval of a ratio is wider, more rounds follow."""
TOLERANCE = 1e-3
"""The largest difference from the first engine's result, over the largest element of that, that is no other answer."""
_LOADS = 3
_SECONDS = 600.0


@dataclass(frozen=True)
class Loading:
    """Of fresh processes: seconds to import the library, to load the model, and of the first call, and bytes at most;
    medians."""

    library: float
    load: float
    first: float
    memory: int


@dataclass(frozen=True)
class Row:
    """An engine at some sizes: seconds of a call with 95 % bounds, and its time over the first engine's, with bounds.

    `samples` is how many of what the first symbol counts go through in a second, if there is a symbol.
    """

    engine: str
    sizes: dict[str, int]
    seconds: tuple[float, float, float]
    ratio: tuple[float, float, float]
    calls_per_second: float
    samples: float | None
    difference: float | None
    rounds: tuple[float, ...] = ()


@dataclass
class Bench:
    """All that was measured."""

    model: str
    threads: int
    rows: list[Row] = field(default_factory=list[Row])
    loading: dict[str, Loading] = field(default_factory=dict[str, Loading])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Engines that were left out, and why."""


def sizes_of(program: Program, dims: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """All combinations of the sizes that are given. UsageError for a symbol that is not there, or has no size."""
    chosen = Sample(program).sizes
    if unknown := sorted(dims.keys() - chosen.keys()):
        raise UsageError(f"the model has no symbolic dimension {unknown[0]!r}",
                         fix=f"its symbols are: {', '.join(chosen) or 'none'}")  # fmt: skip
    for values in product(*dims.values()):
        yield {**chosen, **dict(zip(dims, values, strict=True))}


def measure(
    source: str, against: Sequence[str], *, threads: int, dims: Mapping[str, Sequence[int]], rounds: int = 15,
    first: str = "gcomp", report: Report = lambda said: None,
) -> Bench:  # fmt: skip
    """Time a model with gcomp and other engines. What an engine cannot do is said, and stops no other."""
    found = Bench(source, threads)
    program = import_model(source)
    made: dict[str, Engine] = {}
    for name in dict.fromkeys((first, *against)):
        report(f"loading: {name}")
        try:
            made[name] = engine_of(name, source)(source, threads)
        except GcompError as error:
            if name == first or isinstance(error, UsageError):
                raise
            found.refused[name] = f"{error.what}{f': {error.why}' if error.why else ''}"
        except Exception as error:  # of the library: it is told, and the others go on
            if name == first:
                raise
            found.refused[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    for sizes in list(sizes_of(program, dims)):
        inputs = inputs_at(program, sizes)
        report(f"timing: {sizes or 'the model'}")
        found.rows += _timed(made, inputs, sizes, rounds, found)
    largest = inputs_at(program, list(sizes_of(program, dims))[-1])
    for name in made:
        if name not in found.refused:
            report(f"loading anew: {name}")
            found.loading[name] = _loading(name, source, threads, largest)
    return found


def inputs_at(program: Program, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Plain inputs by name, of these sizes."""
    sample = Sample(program, dict(sizes))
    ports = program.inputs()
    for port, array in zip(ports, sample.inputs, strict=True):
        assert array.shape == tuple(evaluate(size, sizes) for size in port.shape)
    return {port.name: aligned(array) for port, array in zip(ports, sample.inputs, strict=True)}


def _timed(
    made: Mapping[str, Engine], inputs: dict[str, Array], sizes: dict[str, int], rounds: int, found: Bench
) -> Iterator[Row]:
    outputs: dict[str, list[Array]] = {}
    for name, engine in made.items():
        if name in found.refused:
            continue
        try:
            outputs[name] = engine.numpy(inputs)
        except Exception as error:
            found.refused[name] = f"it fails at {sizes}: {type(error).__name__}: {str(error).splitlines()[0][:160]}"
    base = next(iter(outputs))
    differences = {name: _difference(out, outputs[base]) for name, out in outputs.items()}
    for name, difference in differences.items():
        if difference is None or not difference <= TOLERANCE:
            found.refused[name] = f"another answer at {sizes}: it differs by {difference}"
    runs = {name: (lambda engine=made[name]: engine(inputs)) for name in outputs if name not in found.refused}

    def resolved(timings: Mapping[str, Timing]) -> bool:
        ratios = [ratio(t.wall, timings[base].wall) for name, t in timings.items() if name != base]
        return all(r.high - r.low <= WIDTH * r.median for r in ratios)

    timings = interleave(runs, rounds, resolved=resolved)
    for name, timing in timings.items():
        low, high = np.percentile(np.median(resample(timing.wall), axis=1), (2.5, 97.5))
        middle, beside = float(np.median(timing.wall)), ratio(timing.wall, timings[base].wall)
        count = next(iter(sizes.values()), None)
        yield Row(
            name, sizes, (middle, float(low), float(high)), (beside.median, beside.low, beside.high), 1 / middle,
            None if count is None else count / middle, differences[name], tuple(map(float, timing.wall)),
        )  # fmt: skip


def _difference(found: Sequence[Array], expected: Sequence[Array]) -> float | None:
    """The largest difference of any output over the largest element of it; None for outputs of other shapes."""
    if [a.shape for a in found] != [e.shape for e in expected]:
        return None
    worst = 0.0
    for a, e in zip(found, expected, strict=True):
        wide, exact = a.astype(np.complex128), e.astype(np.complex128)
        both = np.isfinite(wide) & np.isfinite(exact)
        scale = float(np.abs(exact[both]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(wide - exact)[both].max(initial=0.0)) / scale)
    return worst


def _loading(name: str, source: str, threads: int, inputs: Mapping[str, Array]) -> Loading:
    """Load it in fresh processes. Of gcomp, that is an artifact."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "inputs.npz"
        np.savez(arrays, **inputs)  # pyright: ignore[reportArgumentType]
        if engine_of(name, source).package == "gcomp" and not source.endswith(".gcomp"):
            target = getattr(engine_of(name, source), "target", "cpu")
            gcomp.compile(source, target=target).save(artifact := Path(folder) / "model.gcomp")
            source = str(artifact)
        command = [sys.executable, "-m", "gcomp.measuring.once", name, source, str(threads), str(arrays)]
        root = str(Path(gcomp.__file__).parents[1])
        around = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
        said: list[dict[str, float]] = []
        for _ in range(_LOADS):
            done = subprocess.run(command, capture_output=True, text=True, env=around, timeout=_SECONDS, check=True)
            said.append(json.loads(done.stdout.splitlines()[-1]))
    library, load, first, memory = (median(s[k] for s in said) for k in ("import", "load", "first", "memory"))
    return Loading(library, load, first, int(memory))


__all__ = ["Bench", "Loading", "Row", "measure"]
