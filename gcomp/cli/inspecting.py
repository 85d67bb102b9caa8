"""`gcomp inspect`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gcomp
from gcomp.analysis.machines import Machine, machine_named
from gcomp.cli.arguments import Dims
from gcomp.cli.launches import launch_tables
from gcomp.cli.options import check_sizes, fixed_sizes, write_file
from gcomp.cli.roofline_table import roofline_table
from gcomp.cli.running import SOURCES
from gcomp.cli.tables import FittedTable
from gcomp.errors import UsageError
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import KERNELS
from gcomp.passes.registry import parse_pipeline
from gcomp.report.costs import costs_of, plans_of
from gcomp.report.memory import artifact_view, memory_view
from gcomp.report.page import view_page
from gcomp.report.roofline import measured_by_text, points, roofline_view
from gcomp.runtime.artifact import open_artifact
from gcomp.runtime.cpu.threads import thread_count
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.runtime.engine import Ability
from gcomp.runtime.manifest import InputSpec, NumericsSpec, OutputSpec
from gcomp.runtime.model import Model
from gcomp.runtime.plan import HostStep
from gcomp.runtime.sampling import random_inputs, sizes_for
from gcomp.sources import import_model
from gcomp.targets.base import target_named


def inspect_command(path: Path, dim: Sequence[str], text: bool, json: bool, memory: Path | None = None,
                    roofline: Path | None = None, tuned: Path | None = None,
                    measure: bool = False) -> None:  # fmt: skip
    """Show what an artifact holds. Sizes in `dim` fix symbols; the others are the least that fit the constraints."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.suffix in SOURCES:
        raise UsageError(
            f"{path} is a model that is not compiled, and inspect shows artifacts",
            fix=f"gcomp compile {quote(str(path))} -o {quote(str(path.with_suffix('.gcomp')))}, and inspect that; "
            f"gcomp explain {quote(str(path))} shows its kernels",
        )
    if text and json:
        raise UsageError("--text and --json exclude each other", fix="ask twice")
    model = gcomp.load(path, verify="full")
    given = fixed_sizes(dim)
    check_sizes(given, model.signature.symbols | model.signature.data_dependent_symbols)
    sizes = sizes_for(model.signature, given)
    if tuned is not None and roofline is None:
        raise UsageError("--tuned says what the page of --roofline shows", fix="name it, too: --roofline FILE.html")
    if measure and roofline is None:
        raise UsageError("--measure is for the page of --roofline", fix="name it, too: --roofline FILE.html")
    if memory is not None:
        _draw(path, model, sizes, memory)
    if roofline is not None:
        _roofline(path, model, sizes, roofline, tuned, measure)
    if json:
        with open_artifact(path) as artifact:
            sys.stdout.write(artifact.member("manifest.json").tobytes().decode("utf-8") + "\n")
    elif text:
        sys.stdout.write(model.text(**sizes))
    elif memory is None and roofline is None:
        _show(path, model, sizes)


def _draw(path: Path, model: Model, sizes: dict[str, int], memory: Path) -> None:
    """Write a page that shows the plan of an artifact for GPUs, or how gcomp plans the memory of a program for XLA."""
    if len(model.segments) != 1:
        raise UsageError(
            f"the program of {path} is not one text", fix="draw the plan from its source: gcomp explain --memory"
        )
    if model.on.can(Ability.LAUNCHES):
        view = artifact_view(plans_of(model)[0], sizes)
    else:
        program = import_model(model.text(**sizes))
        PassManager(parse_pipeline(KERNELS)).run(program)
        view = memory_view(program)
    write_file(memory, view_page(f"Memory of {path.name}", view).encode())


def _roofline(
    path: Path, model: Model, sizes: dict[str, int], page: Path, tuned: Path | None, measure: bool
) -> None:  # fmt: skip
    """Write a page that shows the launches of an artifact under the roofline of its first architecture."""
    model.on.require(Ability.LAUNCHES, "--roofline shows launches, and there are none")
    plans = plans_of(model)
    machine = machine_named(target_named(model.target).machine)
    measured: dict[str, float] = {}
    if tuned is not None:
        from gcomp.lowering.triton.tuning import read_for

        results = read_for(tuned, model.target)
        measured = results.measured(sizes) if results.target == machine.name else {}
    costs = [cost for plan in plans if plan.architecture == machine.name for cost in costs_of(plan, sizes)]
    if measure:
        arrays: dict[str, Any] = dict(random_inputs(model, sizes))
        measured, machine = measured_by_text(costs, model.profile(**arrays)), measured_machine(machine)
        costs = [replace(cost, rate=machine.wide_contraction) for cost in costs]
    found = points(costs, measured)
    title = f"Roofline of {path.name} on {machine.name}"
    write_file(page, view_page(title, roofline_view(found, machine)).encode())
    Console().print(roofline_table(found, machine))


def measured_machine(machine: Machine, threads: int | None = None) -> Machine:
    """A processor with the rates that are measured of it now, with so many threads, or those that models compute with.

    UsageError for machines whose peaks are not measured.
    """
    from gcomp.lowering.llvm.peaks import Peaks

    variant = VARIANTS.get(machine.name)
    if variant is None:
        raise UsageError(f"the peaks of {machine.name} are not measured", fix="leave out --measure")
    count = thread_count() if threads is None else threads
    with Peaks(variant, count) as peaks:
        flops, bandwidth = peaks.flops(), peaks.bandwidth()
    name = f"{machine.name} (measured, {count} thread{'s' * (count > 1)})"
    return replace(machine, name=name, contraction=flops, wide_contraction=flops, bandwidth=bandwidth)


def _show(path: Path, model: Model, sizes: dict[str, int]) -> None:
    console = Console()
    at = f" (at {', '.join(f'{k}={v}' for k, v in sizes.items())})" if sizes else ""
    console.print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, target {model.target}", highlight=False)
    console.print(_signature(model))
    if sizes:
        ranges = ", ".join(f"{name} in {known}" for name, known in model.signature.ranges.items())
        console.print(f"symbols: {ranges}", highlight=False, markup=False)
    memory = model.memory(**sizes)
    facts = Table("fact", "value", title=f"facts{at}")
    facts.add_row("floating-point operations", f"{model.flops(**sizes):,} ({memory.source})")
    facts.add_row("memory", f"{memory.total_bytes:,} bytes ({memory.source})")
    for name, size in (("arguments", memory.argument_bytes), ("outputs", memory.output_bytes),
                       ("temporaries", memory.temporary_bytes), ("shared", -memory.shared_bytes)):  # fmt: skip
        facts.add_row(f"  {name}", f"{size:,} bytes")
    if code := [len(data) for data in model.plan.binaries.values()]:
        held = f"{sum(code):,} bytes in {len(code)} member{'s' * (len(code) > 1)}, for {', '.join(model.on.variants)}"
        facts.add_row("machine code", f"{held}: a call runs it, so trust who made it")
    facts.add_row("weights", f"{len(model.weights):,} ({sum(w.nbytes for w in model.weights.values()):,} bytes)")
    if model.numerics is not None:
        facts.add_row("numerics", model.numerics.name)
    if counts := Counter(step.function for step in model.plan.steps if isinstance(step, HostStep)):
        listed = ", ".join(f"{count} x {name}" for name, count in sorted(counts.items()))
        facts.add_row("host steps", f"{counts.total()} ({listed}): sizes that depend on data")
    for name, bucketing in model.plan.buckets.items():
        facts.add_row(f"{name} is padded to", ", ".join(map(str, bucketing.sizes)))
    for index, segment in enumerate(model.segments):
        facts.add_row(f"segment {index}", escape(segment))
    console.print(facts)
    if model.numerics is not None and model.numerics.kernels:
        console.print(_chosen(model.numerics))
    if model.on.can(Ability.LAUNCHES):
        for table in launch_tables(model, sizes):
            console.print(table)
    else:
        console.print(_ops(model.text(**sizes)))


def _chosen(numerics: NumericsSpec) -> Table:
    """The kernels that were chosen for how fast they are."""
    title = "chosen for their time: errors relative to the results, against f64"
    table = Table("where", "algorithm", "error", "of plain sums", title=title)
    for kernel in numerics.kernels:
        table.add_row(escape(kernel.where), escape(kernel.algorithm), f"{kernel.error:.1e}", f"{kernel.exact:.1e}")
    return table


def _signature(model: Model) -> Table:
    table = FittedTable("", "name", "dtype", "shape", names=("name",), prose=("shape",), title="signature")
    for kind, ports in (("input", model.inputs), ("output", model.outputs)):
        for port in ports:
            default = port.default if isinstance(port, InputSpec) else None
            shape = f"[{', '.join(port.dims)}]" + ("" if default is None else f", {default} if left out")
            shape += "" if port.key is None else f", keys of {port.key}"
            named = isinstance(port, OutputSpec) and port.names is not None
            table.add(kind, port.name, "names" if named else port.dtype, shape)
    return table


def _ops(text: str) -> Table:
    counts = Counter(re.findall(r"\b((?:stablehlo|chlo)\.(?!return)[a-z_0-9]+)", re.sub(r"#stablehlo\S*", "", text)))
    table = Table("op", "count", title=f"{sum(counts.values())} ops")
    for name, count in counts.most_common():
        table.add_row(name, str(count))
    return table


def inspect(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact")],
    dim: Dims = None,
    text: Annotated[bool, typer.Option("--text", help="print the program's text")] = False,
    json: Annotated[bool, typer.Option("--json", help="print the manifest as JSON")] = False,
    memory: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="write a page that shows the memory plan")
    ] = None,
    roofline: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="write a page that shows kernels under a roofline")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="with --roofline: run the model, and measure the machine's peaks, too")
    ] = False,
    tuned: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="with --roofline: show the times that gcomp tune measured")
    ] = None,
) -> None:
    """Show what an artifact holds: signature, ops, flops, weights, memory, segments."""
    inspect_command(artifact, dim or [], text, json, memory, roofline, tuned, measure)
