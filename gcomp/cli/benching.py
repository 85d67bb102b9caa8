"""`gcomp bench`."""

from __future__ import annotations

import json as json_text
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from gcomp.cli.bench_plot import plot as draw
from gcomp.cli.options import pairs, write_file
from gcomp.cli.spinner import spinner
from gcomp.cli.tables import FittedTable
from gcomp.errors import UsageError
from gcomp.measuring.bench import Bench, Row, measure
from gcomp.measuring.engines import ENGINES, engine_of
from gcomp.measuring.timing import machine, pin, processor

_RIVALS = "ort,openvino,torch,jax"


def bench_command(
    source: str,
    against: list[str],
    threads: int,
    dims: dict[str, list[int]],
    rounds: int,
    json: bool,
    file: Path | None,
) -> None:
    """Measure, print a table or JSON, and draw."""
    with spinner("loading") as say:
        found = measure(source, against, threads=threads, dims=dims, rounds=rounds, report=say)
    if file is not None:
        write_file(file, draw(found).encode())
    if json:
        typer.echo(json_text.dumps({"machine": machine(), **asdict(found)}, indent=1))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(_table(found))
    console.print(_loading(found))
    for name, why in found.refused.items():
        console.print(Text(f"{name} was left out: {why}", style="yellow"))
    console.print(
        Text(f"{processor()}, {threads} of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", style="dim")
    )


def _table(found: Bench) -> FittedTable:
    sizes = any(row.sizes for row in found.rows)
    samples = any(row.samples is not None for row in found.rows)
    columns = ["engine", *(["sizes"] if sizes else []), "ms", "95 % bounds", "over gcomp", "calls/s"]
    table = FittedTable(*columns, *(["samples/s"] if samples else []), "differs by", names=("engine",),
                        numbers=("ms", "calls/s", "samples/s"), title=f"{found.model}: a call")  # fmt: skip
    for row in found.rows:
        table.add(*_cells(row, sizes, samples))
    return table


def _cells(row: Row, sizes: bool, samples: bool) -> list[str]:
    middle, low, high = (1e3 * seconds for seconds in row.seconds)
    shown = [", ".join(f"{name}={size}" for name, size in row.sizes.items())] if sizes else []
    rate = [] if not samples else ["" if row.samples is None else f"{row.samples:,.0f}"]
    beside = f"{row.ratio[0]:.2f} [{row.ratio[1]:.2f}, {row.ratio[2]:.2f}]"
    difference = "" if row.difference is None else f"{row.difference:.0e}"
    return [ENGINES[row.engine].label, *shown, f"{middle:.3f}", f"[{low:.3f}, {high:.3f}]", beside,
            f"{row.calls_per_second:,.0f}", *rate, difference]  # fmt: skip


def _loading(found: Bench) -> FittedTable:
    columns = ("engine", "import ms", "load ms", "first call ms", "peak MiB")
    table = FittedTable(*columns, names=("engine",), numbers=columns[1:], title="in a fresh process, median of 3")
    for name, one in found.loading.items():
        times = [f"{1e3 * seconds:.1f}" for seconds in (one.library, one.load, one.first)]
        table.add(ENGINES[name].label, *times, f"{one.memory / 2**20:.0f}")
    return table


def bench(
    model: Annotated[str, typer.Argument(help="an .onnx, .mlir, .pt2 or .gcomp file, or package.module:factory")],
    against: Annotated[
        str | None, typer.Option(metavar="ENGINES", help=f"others to time beside gcomp: {_RIVALS}, xla")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="cores to use (all)")] = None,
    dim: Annotated[
        list[str] | None, typer.Option("--dim", "-d", metavar="NAME=SIZES", help="sizes to time at, as batch=1,8,32")
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, help="rounds at least; more follow while bounds are wide")] = 15,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="draw the latencies")] = None,
    json: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
) -> None:
    """Time a model: latency beside other engines, throughput, load time, and memory.

      gcomp bench model.onnx

      gcomp bench model.onnx --against ort,openvino --threads 2 --dim batch=1,8 --plot latency.svg

    Engines run in turn, round after round; times are compared within rounds, and come with 95 % bounds. An engine whose
    answer differs, or that does not take the model, is named and left out. Load time and memory are of fresh processes,
    in which artifacts are loaded. torch and jax run the file, or what the factory makes: code that is the file's own.
    """
    cores = sorted(os.sched_getaffinity(0))
    count = len(cores) if threads is None else threads
    if count > len(cores):
        raise UsageError(f"--threads {count}: there are {len(cores)} cores", fix=f"--threads {len(cores)}")
    names = [name for name in (against or "").split(",") if name]
    for name in names:
        if name not in ENGINES:
            engine_of(name, model)
    sizes = {name: _numbers(name, text) for name, text in pairs(dim or [], "--dim").items()}
    pin(count)
    try:
        bench_command(model, names, count, sizes, rounds, json, plot)
    finally:
        os.sched_setaffinity(0, cores)


def _numbers(name: str, text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) > 0 and len(part) < 10 for part in parts):
        raise UsageError(f"--dim {name}={text} has no sizes", fix=f"--dim {name}=8, or {name}=1,8,32")
    return [int(part) for part in parts]


__all__ = ["bench"]
