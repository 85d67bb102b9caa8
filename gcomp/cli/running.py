"""`gcomp run`."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gcomp
from gcomp.cli.arguments import (
    Checks,
    Constants,
    Coordinator,
    Dims,
    Fetch,
    Links,
    NoNative,
    Processes,
    ProcessId,
    Structures,
    Threads,
    Wait,
)
from gcomp.cli.joining import taking_part
from gcomp.cli.options import (
    Source,
    check_sizes,
    check_writable,
    fixed_sizes,
    pairs,
    read_array,
    source_of,
    split_list,
    write_file,
)
from gcomp.cli.profiling import profile_table
from gcomp.errors import UsageError, suggest
from gcomp.runtime.model import Model, is_named
from gcomp.runtime.sampling import random_inputs

Array = np.ndarray[Any, Any]

SOURCES = (".onnx", ".mlir", ".pt2", ".jax_export")

PROFILED = 10
"""Calls that a profile takes, where nobody says how many."""


def open_model(path: Path, source: Source, fetch: Sequence[str] = (), checks: Sequence[str] = (),
               threads: int | None = None, native: bool = True) -> Model:  # fmt: skip
    """Load an artifact, or compile a model, with what is to be fetched of it."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.suffix in SOURCES:
        return gcomp.compile(path, **source.keywords(), fetch=fetch or None, checks=checks, threads=threads)
    if checks:
        raise UsageError(f"{path} is compiled already", fix="give --check to gcomp compile, or run the source")
    if source.structure or source.constant:
        fix = "give --structure and --constant to gcomp compile"
        raise UsageError(f"{path} is compiled already", why="what its inputs hold is settled", fix=fix)
    return gcomp.load(path, threads=threads, native=native)


def run_command(path: Path, inputs: Sequence[str], outputs: Sequence[str], fetch: Sequence[str], random: bool,
                seed: int | None, source: Source, repeat: int, checks: Sequence[str] = (),
                threads: int | None = None, native: bool = True, profile: bool = False,
                trace: Path | None = None, quiet: bool = False) -> None:  # fmt: skip
    """Run a model, print a summary of its outputs, and write those that were asked for; `quiet`: only run it."""
    for file in (*pairs(outputs, "--output").values(), *([] if trace is None else [trace])):
        check_writable(Path(file))
    model = open_model(path, source, fetch, checks, threads, native)
    sizes = {} if path.suffix in SOURCES else fixed_sizes(source.dim)
    check_sizes(sizes, model.signature.symbols)
    if sizes and not random:
        raise UsageError("--dim says nothing here: the sizes are those of the inputs", fix="leave it out")
    arrays = {name: read_array(Path(file)) for name, file in pairs(inputs, "--input").items()}
    if seed is not None:
        arrays |= {_seed_input(model, arrays): np.asarray(seed, np.uint64)}
    shown = _chosen_outputs(model, fetch, artifact=path.suffix not in SOURCES)
    known = [o.name for o in model.outputs]
    if unknown := [n for n in pairs(outputs, "--output") if n not in known]:
        raise UsageError(f"there is no output {unknown[0]!r}", fix=f"the outputs are: {', '.join(known)}")
    if random:
        arrays = {**random_inputs(model, sizes), **arrays}
    results = model.named(**arrays)
    written = pairs(outputs, "--output")
    for name, file in () if quiet else written.items():
        stream = io.BytesIO()
        np.save(stream, np.asarray(results[name]), allow_pickle=False)
        write_file(Path(file), stream.getvalue())
    console = Console(quiet=quiet)
    console.print(_summary({n: np.asarray(r) for n, r in results.items() if n in shown}))
    if profile or trace is not None:
        found = model.profile(**arrays, repeat=repeat if repeat > 1 else PROFILED)
        console.print(profile_table(found))
        if trace is not None:
            found.save_trace(trace)
    elif repeat > 1:
        seconds = [_measure(model, arrays) for _ in range(repeat)]
        console.print(f"median of {repeat} runs: {median(seconds) * 1e3:.3f} ms", highlight=False)


def _chosen_outputs(model: Model, fetch: Sequence[str], *, artifact: bool) -> list[str]:
    """The outputs to show: those that are fetched, or all. A name of several values means all of them."""
    known = [output.name for output in model.outputs]
    if not fetch:
        return known
    found = {key: [name for name in known if is_named(name, key)] for key in fetch}
    if unknown := [key for key, names in found.items() if not names]:
        raise UsageError(
            f"there is no output {unknown[0]!r}",
            why="an artifact does not hold its program, and gives what it was compiled to give" if artifact else None,
            fix=f"{suggest(unknown[0], known)}The outputs are: {', '.join(known)}. Others come from the source: "
            f"gcomp run MODEL --fetch {unknown[0]}, or gcomp compile MODEL --fetch {unknown[0]}",
        )
    return [name for names in found.values() for name in names]


def _seed_input(model: Model, given: Mapping[str, Array]) -> str:
    """The name of the input that seeds the model's random operators: the one of type ui64 that has a default."""
    names = [port.name for port in model.inputs if port.default is not None and port.dtype == "ui64"]
    if len(names) != 1:
        raise UsageError("--seed says nothing here: the model has no random operators", fix="leave it out")
    if names[0] in given:
        raise UsageError(f"the input {names[0]!r} was given twice, by --seed and by --input")
    return names[0]


def _measure(model: Model, arrays: Mapping[str, Array]) -> float:
    started = time.perf_counter()
    model.named(**arrays)
    return time.perf_counter() - started


_NAMES = 4
"""How many names of classes a summary shows."""


def _summary(results: Mapping[str, Array]) -> Table:
    table = Table("output", "dtype", "shape", "least", "mean", "greatest", "NaN")
    for name, array in results.items():
        if array.dtype.kind == "U":
            found = ", ".join(np.unique(array)[:_NAMES].tolist())
            table.add_row(escape(name), "names", escape(str(list(array.shape))), escape(found), "", "", "")
            continue
        values = np.abs(array) if np.iscomplexobj(array) else array.astype(np.float64)
        finite = values[np.isfinite(values)]
        cells = [f"{f(finite):.6g}" for f in (np.min, np.mean, np.max)] if finite.size else ["-"] * 3
        nans = int(np.isnan(values).sum())
        table.add_row(escape(name), str(array.dtype), escape(str(list(array.shape))), *cells, str(nans) if nans else "")
    return table


def run(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact, or an .onnx or .mlir file to compile first")],
    input: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE", help="an input, from an .npy file")
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option("--output", "-o", metavar="NAME=FILE", help="write an output to an .npy file")
    ] = None,
    fetch: Fetch = None,
    check: Checks = None,
    random: Annotated[bool, typer.Option("--random", help="random values for the inputs that are not given")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**64 - 1, help="the seed of the model's random operators")
    ] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    repeat: Annotated[int, typer.Option(min=1, help="run this many times and print the median time")] = 1,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="print the time that each kernel and host step takes, beside the predicted"),
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="write the profile as a trace for Perfetto or Chrome")
    ] = None,
    threads: Threads = None,
    no_native: NoNative = False,
    coordinator: Coordinator = None,
    processes: Processes = 1,
    process_id: ProcessId = 0,
    timeout: Wait = 60,
) -> None:
    """Run a model on inputs from .npy files."""
    source = source_of(artifact, dim, structure, constant, allow_links)
    with taking_part(artifact, coordinator, processes, process_id, timeout):
        run_command(
            artifact, input or [], output or [], fetch or [], random, seed, source, repeat, split_list(check), threads,
            not no_native, profile, trace, quiet=process_id > 0,
        )  # fmt: skip
