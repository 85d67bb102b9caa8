"""Run time of gcomp beside plain `jax.jit` and ONNX Runtime.

    python -m benchmarks.run_time --workloads all --rounds 15 --threads 2
    python -m benchmarks.run_time --only jax,ort          # works without gcomp
    python -m benchmarks.run_time --only cpu,gcomp,ort    # the targets cpu and xla:cpu
    python -m benchmarks.run_time --only cpu,ort,ov       # beside OpenVINO, where that is installed

Each workload runs in a process of its own, pinned to `--threads` cores. Before anything is timed the outputs are
compared: a fast wrong answer is no result. A workload gets `--rounds` rounds, and as many again (up to eight times)
while the 95 % interval of gcomp over jax.jit is wider than 0.03. Exits 1 if a competitor failed or disagreed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.competitors import COMPETITORS, Competitor
from benchmarks.report import Report, publish
from benchmarks.workloads import Arrays, Variant, Workload, select
from gcomp.measuring.timing import Timing, geometric_mean, interleave, machine, pin, ratio, steady_allocator

PAIRS = (("gcomp", "jax"), ("gcomp", "ort"), ("cpu", "gcomp"), ("cpu", "ort"), ("cpu", "ov"), ("jax", "ort"))
LIMIT = 1.03  # for the upper bound of gcomp over jax.jit
WIDTH = 0.03  # of the interval of that ratio: a wider one cannot be held against the limit, so more rounds follow


@dataclass
class Result:
    """One workload: timings by competitor, seconds to compile, and what went wrong, by competitor."""

    workload: str
    timings: dict[str, Timing] = field(default_factory=dict)
    compile_seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def build(name: str, workload: Workload, variant: Variant, threads: int, result: Result) -> Competitor | None:
    """Make one competitor; what it raises goes into the result, so that the others still run."""
    try:
        made = COMPETITORS[name](workload, variant, threads)
    except Exception as error:
        traceback.print_exc()
        result.errors[name] = f"{type(error).__name__}: {error}"
        return None
    result.compile_seconds[name] = made.compile_seconds
    return made


def agree(workload: Workload, made: dict[str, Competitor], inputs: Arrays, result: Result) -> dict[str, Competitor]:
    """The competitors whose outputs match those of ONNX Runtime, or of the last one where that is not run."""
    outputs: dict[str, list[np.ndarray]] = {}
    for name, competitor in made.items():
        try:
            outputs[name] = competitor.numpy(inputs)
        except Exception as error:
            traceback.print_exc()
            result.errors[name] = f"{type(error).__name__}: {error}"
    if not outputs:
        return {}
    expected = outputs["ort" if "ort" in outputs else list(outputs)[-1]]
    for name, found in outputs.items():
        if [out.shape for out in found] != [out.shape for out in expected]:
            result.errors[name] = "wrong output shapes"
            continue
        worst = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, expected, strict=True))
        if not worst <= workload.tolerance:  # also true of NaN
            result.errors[name] = f"wrong answer: error {worst:.1e} above {workload.tolerance:.0e}"
    return {name: made[name] for name in outputs if name not in result.errors}


def measure(workload: Workload, names: list[str], rounds: int, threads: int, variant: Variant) -> Result:
    """Build, compare and time the competitors of one workload, in the calling process."""
    pin(threads)
    result = Result(workload.name)
    made = {name: found for name in names if (found := build(name, workload, variant, threads, result))}
    inputs = workload.inputs(np.random.default_rng(1))
    sound = agree(workload, made, inputs, result)
    if sound:
        runs = {name: partial(run, inputs) for name, run in sound.items()}
        result.timings = interleave(runs, rounds, resolved=resolved)
    return result


def resolved(timings: Mapping[str, Timing]) -> bool:
    """Whether the interval of gcomp over jax.jit is narrow enough to be held against the limit."""
    if not {"gcomp", "jax"} <= timings.keys():
        return True
    found = ratio(timings["gcomp"].wall, timings["jax"].wall)
    return found.high - found.low <= WIDTH


def measure_apart(workload: Workload, *args: Any) -> Result:
    """`measure` in a fresh process, which a crash inside a library cannot outlive or outreach."""
    workload.onnx_path(args[-1])  # export first: that needs every core and its own memory
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(measure, workload, *args).result()
        except BrokenProcessPool:
            return Result(workload.name, errors={"process": "a competitor ended the process"})


def pair_columns(names: list[str]) -> list[tuple[str, str]]:
    """The ratios worth a column: gcomp against the others, or the others against each other."""
    pairs = [pair for pair in PAIRS if set(pair) <= set(names)]
    return [pair for pair in pairs if {"gcomp", "cpu"} & {*pair}] or pairs


def table(results: list[Result], names: list[str], clock: str, title: str) -> Report:
    """Milliseconds and ratios of every workload on one clock, with geometric means over those that have both."""
    pairs = pair_columns(names)
    rows: list[list[str]] = []
    for result in results:
        seconds = {name: timing.clock(clock) for name, timing in result.timings.items()}
        row = [result.workload]
        row += [f"{1e3 * np.median(seconds[name]):.2f}" if name in seconds else "-" for name in names]
        row += [str(ratio(seconds[a], seconds[b])) if a in seconds and b in seconds else "-" for a, b in pairs]
        rows.append(row)
    means = ["geometric mean", *[""] * len(names)]
    for a, b in pairs:
        both = [r.timings for r in results if a in r.timings and b in r.timings]
        means.append(str(geometric_mean([(t[a].clock(clock), t[b].clock(clock)) for t in both])) if both else "-")
    columns = ["workload", *(f"{COMPETITORS[name].label} ms" for name in names), *(f"{a} / {b}" for a, b in pairs)]
    notes = [f"{r.workload}, {name}: {error.splitlines()[0]}" for r in results for name, error in r.errors.items()]
    if ("gcomp", "jax") in pairs and clock == "wall":
        notes += over_the_limit(results)
    return Report(title, columns, [*rows, means], notes)


def over_the_limit(results: list[Result]) -> list[str]:
    """A line per workload on which gcomp may be slower than jax.jit."""
    timed = [r for r in results if {"gcomp", "jax"} <= r.timings.keys()]
    highs = {r.workload: ratio(r.timings["gcomp"].wall, r.timings["jax"].wall).high for r in timed}
    slow = [f"{name} {high:.2f}" for name, high in highs.items() if high > LIMIT]
    return [f"Upper 95 % bound of gcomp / jax.jit above {LIMIT}: {', '.join(slow) or 'none'}."]


def as_json(results: list[Result], options: argparse.Namespace) -> dict[str, Any]:
    def plain(result: Result) -> dict[str, Any]:
        timings = {
            name: {"wall": timing.wall.tolist(), "cpu": timing.cpu.tolist()} for name, timing in result.timings.items()
        }
        return {**asdict(result), "timings": timings}

    return {
        "machine": machine(),
        "threads": options.threads,
        "rounds": options.rounds,
        "variant": options.variant,
        "results": [plain(result) for result in results],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all", help="comma-separated names, or all")
    parser.add_argument("--only", default="gcomp,jax,ort", help="competitors: %(default)s")
    parser.add_argument("--rounds", type=int, default=15, help="at least so many")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--variant", default="dynamo", help="which export gcomp and ONNX Runtime run")
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(COMPETITORS):
        parser.error(f"unknown competitor {', '.join(sorted(unknown))}; there are {', '.join(COMPETITORS)}")

    steady_allocator()
    results: list[Result] = []
    for workload in select(options.workloads):
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        results.append(measure_apart(workload, names, options.rounds, options.threads, options.variant))
    threads = f"{options.threads} thread{'s' * (options.threads > 1)}"
    shape = f"{threads}, at least {options.rounds} rounds, {options.variant} export"
    reports = [table(results, names, clock, f"{title}: {shape}") for clock, title in CLOCKS.items()]
    publish(f"run_time-{options.threads}t", reports, as_json(results, options), options.out)
    sys.exit(any(result.errors for result in results))


CLOCKS = {"wall": "Run time", "cpu": "CPU time of all threads"}

if __name__ == "__main__":
    main()
