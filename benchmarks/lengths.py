"""Variable lengths: what buckets cost beside powers of two, and whether padded models are right.

    python -m benchmarks.lengths                        # both; --calls 200 lengths for each model

The histograms are made here, of distributions that are described with them; files with one length in each line are
read from `--histograms`, beside them. Padding is filled with NaN (or a wrong word, or True), so that a result that
reads it differs. Exits 1 if any result does, or if a model is compiled more often than it has buckets.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gcomp
from benchmarks.length_models import MODELS, LengthModel
from benchmarks.report import Report, publish
from gcomp.cli.lengths import read_lengths
from gcomp.measuring.timing import machine
from gcomp.padding.buckets import Choice, Cost, choose_buckets, linear, polynomial, powers_of_two, price_buckets
from gcomp.reference.interpreter import interpret
from gcomp.runtime.bucketed import BucketedModel
from gcomp.runtime.xla import padded
from gcomp.sources import import_model

Array = np.ndarray[Any, Any]
COUNT, MOST = 5000, 512
FOLDER = Path(__file__).parents[2] / "shared" / "data" / "lengths"


@dataclass(frozen=True)
class Histogram:
    """Lengths of calls: what they are like, and how they are drawn."""

    what: str
    draw: Callable[[np.random.Generator], Array]


def _rounded(values: Array, low: int, high: int) -> Array:
    return np.clip(np.round(values), low, high).astype(np.int64)


def _two_kinds(rng: np.random.Generator) -> Array:
    short, long = rng.lognormal(np.log(12), 0.35, COUNT * 7 // 10), rng.lognormal(np.log(300), 0.2, COUNT * 3 // 10)
    return _rounded(np.concatenate([short, long]), 1, MOST)


HISTOGRAMS: Mapping[str, Histogram] = {
    "sentences": Histogram(
        "log-normal, median 28, sigma 0.55", lambda rng: _rounded(rng.lognormal(np.log(28), 0.55, COUNT), 1, MOST)
    ),
    "two kinds": Histogram("70 % queries (median 12), 30 % documents (median 300)", _two_kinds),
    "questions": Histogram(
        "question and passage: normal, 170 +- 35", lambda rng: _rounded(rng.normal(170, 35, COUNT), 16, 384)
    ),
    "speech": Histogram(
        "frames of an utterance: 1600 x beta(2.2, 2)", lambda rng: _rounded(1600 * rng.beta(2.2, 2, COUNT), 20, 1600)
    ),
    "dialogues": Histogram(
        "log-normal, median 90, sigma 1", lambda rng: _rounded(rng.lognormal(np.log(90), 1.0, COUNT), 1, 1024)
    ),
}
COSTS: Mapping[str, Cost] = {"n": linear, "n + n^2/512": polynomial([0, 1, 1 / 512])}
"""Work in proportion to the length, and that of an encoder in which attention is as much as the rest at 512."""


def histograms(folder: Path) -> dict[str, Array]:
    """The lengths by name: those that are made here, and those that are there."""
    found = {name: h.draw(np.random.default_rng(i)) for i, (name, h) in enumerate(HISTOGRAMS.items())}
    files = sorted(folder.glob("*.txt")) if folder.is_dir() else []
    if not files:
        sys.stderr.write(f"no histograms in {folder}: only those that are made here\n")
    return found | {path.stem: np.asarray(list(read_lengths(path).elements())) for path in files}


def bucketing(lengths: Mapping[str, Array], step: int) -> tuple[Report, list[dict[str, Any]]]:
    """Optimal buckets beside as many powers of two."""
    rows: list[Sequence[str]] = []
    data: list[dict[str, Any]] = []
    for name, drawn in lengths.items():
        powers = powers_of_two(drawn)
        for kind, cost in COSTS.items():
            by_two = price_buckets(drawn, powers, cost)
            best = choose_buckets(drawn, len(powers), multiple_of=step, cost=cost)
            few = [_fewest(drawn, step, cost, part * by_two.cost) for part in (1.0, 0.75)]
            rows.append([
                name, kind, str(len(powers)), _work(by_two), _work(best), f"{1 - best.cost / by_two.cost:.0%}",
                f"{1 - best.padding / by_two.padding:.0%}", *few, " ".join(map(str, best.buckets)),
            ])  # fmt: skip
            data.append({"histogram": name, "cost": kind, "powers": by_two.cost, "best": best.cost,
                         "least": best.least, "buckets": best.buckets})  # fmt: skip
    columns = ["lengths", "cost", "buckets", "powers of two", "optimal", "work below", "padding below",
               "as good with", "25% below with", "sizes"]  # fmt: skip
    notes = [
        "Work is in parts of what the lengths cost without padding. `work below` is how far all of it is below powers "
        "of two, `padding below` how far the part that is for padding is; `as good with` so many optimal buckets cost "
        "no more than the powers of two do, `25% below with` so many three quarters of it.",
        *(f"{name}: {h.what}, {COUNT} lengths." for name, h in HISTOGRAMS.items()),
    ]
    return Report(f"Buckets (multiples of {step})", columns, rows, notes), data


def _fewest(drawn: Array, step: int, cost: Cost, most: float) -> str:
    """How few optimal buckets do all the work for at most so much; a dash where no number of them does."""
    counts = range(1, len(np.unique(drawn)) + 1)
    found = (k for k in counts if choose_buckets(drawn, k, multiple_of=step, cost=cost).cost <= most)
    return str(next(found, "-"))


def _work(choice: Choice) -> str:
    return f"{choice.cost / choice.least:.3f}"


def garbage(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Padding that shows wherever it is read."""
    return np.full(tuple(shape), np.nan if dtype.kind == "f" else True if dtype.kind == "b" else 97).astype(dtype)


@dataclass
class Tally:
    """What became of a model's calls."""

    wrong: int = 0
    compilations: int = 0


def wrong(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether results are not those of the program: other integers, or floats beyond what other sums make of them."""
    for want, got in zip(expected, actual, strict=True):
        if want.shape != got.shape or want.dtype != got.dtype:
            return True
        near = np.allclose(got, want, rtol=1e-4, atol=1e-5) if want.dtype.kind == "f" else np.array_equal(got, want)
        if not near:
            return True
    return False


def in_reference(model: LengthModel, lengths: Sequence[int], buckets: Sequence[int], seed: int) -> int:
    """How many calls of the padded program, run by the reference, differ by a bit."""
    from gcomp.padding.programs import pad_program

    program = import_model(model.make(), dims={"seq": f"1..{MOST}"})
    after = program.clone()
    pad_program(after, ["seq"])
    rng, count = np.random.default_rng(seed), 0
    for length in lengths:
        values = model.inputs(rng, length)
        size = min(b for b in buckets if b >= length)
        grown: list[Array] = []
        for port, value in zip(program.inputs(), values, strict=True):
            shape = [size if not isinstance(s, int) else s for s in port.shape]
            full = garbage(shape, value.dtype)
            full[tuple(slice(0, n) for n in value.shape)] = value
            grown.append(full)
        actual = interpret(after, [*grown, np.asarray(length, np.int64)])
        expected = interpret(program, values)
        cut = [np.array(a[tuple(slice(0, n) for n in e.shape)]) for a, e in zip(actual, expected, strict=True)]
        count += any(a.tobytes() != e.tobytes() for a, e in zip(cut, expected, strict=True))
    return count


def on_xla(model: LengthModel, lengths: Sequence[int], buckets: Sequence[int], seed: int) -> Tally:
    """Calls of the bucketed model against the reference's results of the program."""
    program = import_model(model.make(), dims={"seq": f"1..{MOST}"})
    compiled = gcomp.compile(model.make(), target="xla:cpu", dims={"seq": f"1..{MOST}"}, buckets={"seq": buckets})
    assert isinstance(compiled, BucketedModel)
    rng, tally = np.random.default_rng(seed), Tally()
    for length in lengths:
        values = model.inputs(rng, length)
        tally.wrong += wrong(interpret(program, values), compiled.flat(list(values)))
    tally.compilations = compiled.buckets.compilations
    return tally


def models(calls: int, reference: int) -> tuple[Report, int]:
    """Each model at random lengths, and what is not as it must be."""
    padded.blank = garbage
    rows: list[Sequence[str]] = []
    bad = 0
    for i, (name, model) in enumerate(MODELS.items()):
        rng = np.random.default_rng(i)
        lengths = _rounded(rng.lognormal(np.log(28), 0.7, calls), 1, 200).tolist()
        buckets = choose_buckets(lengths, 6, multiple_of=8, most=MOST).buckets
        by_reference = in_reference(model, lengths[:reference], buckets, i)
        tally = on_xla(model, lengths, buckets, i)
        bad += by_reference + tally.wrong + max(tally.compilations - len(buckets), 0)
        rows.append([
            name, model.what, str(calls), str(len(set(lengths))), str(len(buckets)), str(tally.compilations),
            str(tally.wrong), f"{by_reference} of {min(reference, calls)}",
        ])  # fmt: skip
    columns = ["model", "what", "calls", "lengths", "buckets", "compilations", "wrong", "a bit differs"]
    notes = [
        "Of calls on XLA, results are compared with the reference's of the unpadded program: integers must be "
        "equal, floats near. `a bit differs`: of the padded program run by the reference itself.",
    ]
    return Report("Padded models, their padding full of NaN", columns, rows, notes), bad


def beside_each_length(name: str, calls: int) -> str:
    """How long random lengths take with buckets, and with a compilation for each length; compilations included."""
    model = MODELS[name]
    lengths = _rounded(np.random.default_rng(0).lognormal(np.log(28), 0.7, calls), 1, 200).tolist()
    buckets = choose_buckets(lengths, 6, multiple_of=8, most=MOST).buckets
    seconds: list[float] = []
    for chosen in ({"seq": buckets}, None):
        compiled = gcomp.compile(model.make(), dims={"seq": f"1..{MOST}"}, buckets=chosen, target="xla:cpu")
        rng, started = np.random.default_rng(1), time.perf_counter()
        for length in lengths:
            compiled.flat(model.inputs(rng, length))
        seconds.append(time.perf_counter() - started)
    return f"{name}: {calls} calls take {seconds[0]:.1f} s with buckets and {seconds[1]:.1f} s without, all included."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--reference", type=int, default=200, help="calls that the reference runs, too")
    parser.add_argument("--multiple", type=int, default=1)
    parser.add_argument("--histograms", type=Path, default=FOLDER)
    parser.add_argument("--beside", choices=MODELS, help="a model to time without buckets, too; takes minutes")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    table, data = bucketing(histograms(options.histograms), options.multiple)
    checked, bad = models(options.calls, options.reference)
    if options.beside:
        sys.stdout.write(f"{beside_each_length(options.beside, options.calls)}\n")
    publish("lengths", [table, checked], {"machine": machine(), "buckets": data}, options.output)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
