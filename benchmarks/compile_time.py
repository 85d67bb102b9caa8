"""What compiling costs: time beside XLA's own, growth with the size of the program, and memory.

    python -m benchmarks.compile_time models [--workloads all] [--rounds 3]
    python -m benchmarks.compile_time processors [--workloads all] [--rounds 3] [--target cpu]
    python -m benchmarks.compile_time growth [--sizes 1000,10000,100000]
    python -m benchmarks.compile_time memory [--megabytes 500]
    python -m benchmarks.compile_time imports [--sizes 1000,5000,20000]

Every compilation runs in a fresh process. The budget is passes and emission together within XLA's own time; for
processors, passes and emission, LLVM included, within 1.5 s of BERT-base and 2 s of every other model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.report import Report, publish
from benchmarks.workloads import select
from gcomp.measuring.timing import machine

ROOT = Path(__file__).resolve().parent.parent
PHASES = ("import", "passes", "emission", "xla")
Record = dict[str, Any]


def compile_apart(path: Path | str, timeout: float | None = None, target: str = "xla:cpu") -> Record:
    """Compile an ONNX file, or measure the `--baseline`, in a fresh process (see `compile_one`)."""
    command = [sys.executable, "-m", "benchmarks.compile_one", str(path), "--target", target]
    # without gcomp's disk cache, which would take the place of XLA's work
    environment = {**os.environ, "GCOMP_CACHE_DIR": "off"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=timeout)
    if done.returncode:
        sys.exit(f"compiling {path} failed with exit code {done.returncode}; its message is above")
    return json.loads(done.stdout.splitlines()[-1])


def median_of(records: list[Record]) -> Record:
    return {key: float(np.median([record[key] for record in records])) for key in (*PHASES, "total")}


def milliseconds(record: Record) -> list[str]:
    return [f"{1e3 * record[phase]:.0f}" for phase in PHASES]


def own_over_xla(record: Record) -> float:
    return (record["passes"] + record["emission"]) / record["xla"]


# The measurements


def models(options: argparse.Namespace) -> tuple[list[Report], Record]:
    """Passes and emission over XLA's own compile time, for each workload."""
    data: Record = {}
    rows: list[list[str]] = []
    for workload in select(options.workloads):
        path = workload.onnx_path(options.variant)
        records = [compile_apart(path) for _ in range(options.rounds)]
        data[workload.name] = records
        middle = median_of(records)
        rows.append(
            [workload.name, *milliseconds(middle), f"{1e3 * middle['total']:.0f}", f"{own_over_xla(middle):.2f}"]
        )
        print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    ratios = [own_over_xla(median_of(records)) for records in data.values()]
    rows.append(["geometric mean", *[""] * (len(PHASES) + 1), f"{math.exp(np.mean(np.log(ratios))):.2f}"])
    columns = ["workload", *(f"{phase} ms" for phase in PHASES), "total ms", "(passes + emission) / xla"]
    return [Report(f"Compile time, medians of {options.rounds}, {options.variant} export", columns, rows)], data


def processors(options: argparse.Namespace) -> tuple[list[Report], Record]:
    """Seconds of compiling each workload to machine code: by the clock, and of processors."""
    data: Record = {}
    rows: list[list[str]] = []
    own = ("import", "passes", "emission")
    for workload in select(options.workloads):
        path = workload.onnx_path(options.variant)
        records = [compile_apart(path, target=options.target) for _ in range(options.rounds)]
        data[workload.name] = records
        wall = [np.median([record[phase] for record in records]) for phase in own]
        used = [np.median([record["processor"][phase] for record in records]) for phase in own]
        llvm = np.median([record["children"] for record in records])
        seconds = [*wall, wall[1] + wall[2], *used, llvm]
        rows.append([workload.name, str(records[0]["kernels"]), *(f"{value:.2f}" for value in seconds)])
        print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    columns = [
        "workload", "kernels", *(f"{phase} s" for phase in own), "passes + emission s",
        *(f"{phase} CPU s" for phase in own), "LLVM CPU s",
    ]  # fmt: skip
    notes = ["Emission ends when LLVM has compiled all kernels, which it does on all cores while others are made."]
    title = f"Compiling for {options.target}, medians of {options.rounds}, {options.variant} export, nothing cached"
    return [Report(title, columns, rows, notes)], data


def growth(options: argparse.Namespace) -> tuple[list[Report], Record]:
    """Time of each phase as the program grows; linear means that the microseconds per operation stay the same."""
    data: Record = {}
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in options.sizes:
            path = Path(scratch) / f"chain-{size}.onnx"
            programs.chain(path, size)
            record = data[str(size)] = compile_apart(path, timeout=options.timeout)
            per_op = [f"{1e6 * record[phase] / size:.0f}" for phase in PHASES]
            rows.append([f"{size:,}", *milliseconds(record), *per_op, f"{record['memory']['rss']:.0f}"])
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    columns = ["operations", *(f"{phase} ms" for phase in PHASES), *(f"{phase} us/op" for phase in PHASES), "peak MB"]
    return [Report("Growth of compile time with the program", columns, rows, slopes(data))], data


def slopes(data: Record) -> list[str]:
    """The exponent of growth of each phase between the smallest and the largest program: 1 is linear."""
    small, large = min(data, key=int), max(data, key=int)
    if small == large:
        return []
    span = math.log(int(large) / int(small))
    found = [f"{phase} {math.log(data[large][phase] / data[small][phase]) / span:.2f}" for phase in PHASES]
    return [f"Exponent of growth from {int(small):,} to {int(large):,} operations: {', '.join(found)}."]


def imports(options: argparse.Namespace) -> tuple[list[Report], Record]:
    """Seconds of importing an ONNX file as it grows, on one core, libraries loaded before."""
    data: Record = {}
    rows: list[list[str]] = []
    kinds = {"attention blocks, symbolic sizes": programs.attention_blocks, "chain": programs.chain}
    with tempfile.TemporaryDirectory() as scratch:
        for kind, write in kinds.items():
            for size in options.sizes:
                path = Path(scratch) / f"{write.__name__}-{size}.onnx"
                nodes = write(path, size) or size
                seconds = [import_apart(path) for _ in range(options.rounds)]
                data[f"{kind}, {nodes}"] = seconds
                middle = float(np.median(seconds))
                rows.append([kind, f"{nodes:,}", f"{middle:.2f}", f"{1e6 * middle / nodes:.0f}"])
                print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    columns = ["model", "nodes", "import s", "us/node"]
    return [Report(f"Import of ONNX files, medians of {options.rounds}, one core", columns, rows)], data


def import_apart(path: Path) -> float:
    """Seconds of importing a file in a fresh process that may use one core."""
    command = [sys.executable, "-m", "benchmarks.import_one", str(path)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def memory(options: argparse.Namespace) -> tuple[list[Report], Record]:
    """Peak memory of compiling a model of a given size, with its weights inside the ONNX file and beside it."""
    data: Record = {"baseline": compile_apart("--baseline")}
    loaded = data["baseline"]["memory"]
    base = [f"{loaded[key]:.0f}" for key in ("rss", "anonymous")]
    rows: list[list[str]] = [["none: gcomp loaded", "", *base, "", "", ""]]
    with tempfile.TemporaryDirectory() as scratch:
        for placement in ("external", "embedded"):
            path = Path(scratch) / placement / "model.onnx"
            path.parent.mkdir()
            weights = programs.dense_stack(path, options.megabytes, external=placement == "external")
            record = data[placement] = compile_apart(path)
            peak = record["memory"]
            rows.append(
                [
                    f"{placement} weights",
                    f"{weights:.0f}",
                    *(f"{peak[key]:.0f}" for key in ("rss", "anonymous")),
                    f"{peak['rss'] / weights:.2f}",
                    f"{(peak['rss'] - loaded['rss']) / weights:.2f}",
                    f"{record['total']:.1f}",
                ]
            )
    above = ["peak / weights", "above gcomp loaded / weights"]
    columns = ["model", "weights MB", "peak MB", "anonymous peak MB", *above, "seconds"]
    notes = [
        "Resident megabytes above those of a bare interpreter. The first line is an interpreter that has loaded gcomp,",
        "its dependencies and XLA's client, and has compiled nothing; the budget is 1.3 times the weights above it.",
    ]
    return [Report("Memory of compiling", columns, rows, notes)], data


COMMANDS = {"models": models, "processors": processors, "growth": growth, "memory": memory, "imports": imports}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        command.set_defaults(function=function)
        command.add_argument("--out", type=Path, help="directory for the results")
        if name == "processors":
            command.add_argument("--target", default="cpu")
        if name in ("models", "processors"):
            command.add_argument("--workloads", default="all", help="comma-separated names, or all")
            command.add_argument("--rounds", type=int, default=3)
            command.add_argument("--variant", default="dynamo", help="dynamo, optimized or legacy")
        elif name == "growth":
            sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
            command.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=sizes)
            command.add_argument("--timeout", type=float, default=1800, help="seconds for one compilation")
        elif name == "imports":
            sizes = [1_000, 2_000, 5_000, 10_000, 20_000]
            command.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=sizes)
            command.add_argument("--rounds", type=int, default=3)
        else:
            command.add_argument("--megabytes", type=int, default=500)
    options = parser.parse_args()
    reports, data = options.function(options)
    publish(f"compile_time-{options.command}", reports, {"machine": machine(), "results": data}, options.out)


if __name__ == "__main__":
    main()
