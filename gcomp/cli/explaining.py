"""`gcomp explain`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from xdsl.ir import Operation

import gcomp
from gcomp.analysis.constants import place_of
from gcomp.analysis.fusion.decide import Decisions, Verdict, decide, unfused_reasons
from gcomp.analysis.fusion.groups import Group
from gcomp.analysis.machines import Machine, machine_named
from gcomp.analysis.work import Nominal
from gcomp.cli.arguments import Constants, Dims, Links, Load, ModelFile, Structures, Target
from gcomp.cli.options import Source, load_files, source_of, write_file
from gcomp.cli.sharding import explain_sharding
from gcomp.cli.tables import FittedTable
from gcomp.errors import UsageError, did_you_mean
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import describe, places
from gcomp.ir.program import Program
from gcomp.ir.roles import Role
from gcomp.options import DEFAULT_TARGET
from gcomp.passes.fusion.fuse import blocks_to_cut, label_of
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.rematerialize import Report, bytes_in, within_budget
from gcomp.passes.pipelines import TO_FUSION, TO_SHARDING, around_fusion
from gcomp.passes.registry import parse_pipeline
from gcomp.report.kernel_graph import Box, graph_view
from gcomp.report.memory import memory_view
from gcomp.report.page import View, view_page
from gcomp.runtime.engine import Ability
from gcomp.runtime.profiling import seconds_by_place
from gcomp.runtime.sampling import random_inputs
from gcomp.sources import import_model
from gcomp.targets.base import target_named

WIDE = 240
"""Columns of a table in a file or a pipe, where nobody's terminal sets them."""


Wanted = Callable[[Mapping[str, Any]], bool]
"""Whether a kernel, as a row of the table, is asked for."""


@dataclass(frozen=True)
class ExplainOptions:
    """The options of `gcomp explain`."""

    target: str
    machine: str | None
    pipeline: str | None
    max_ops: int
    at: str | None
    steps: bool
    json: bool
    measure: bool
    memory: Path | None
    graph: Path | None
    budget: str | None
    mesh: str | None
    devices: str
    source: Source

    @cached_property
    def model(self) -> Machine:
        """The machine whose cost model decides: the one named, else the target's."""
        return machine_named(target_named(self.target).machine if self.machine is None else self.machine)

    @property
    def passes(self) -> tuple[str, str]:
        """What runs before kernels are cut, and what makes them; nothing where passes or a machine are given."""
        if self.pipeline is not None or self.machine is not None:
            return TO_FUSION if self.pipeline is None else self.pipeline, ""
        return around_fusion(target_named(self.target).pipeline())


def explain_command(model: Path, options: ExplainOptions) -> None:
    """Print the kernels of a model and the reasons between them, or how it is cut, as tables or as JSON."""
    if options.mesh is not None:
        program = import_model(model, **options.source.keywords())
        PassManager(parse_pipeline(TO_SHARDING if options.pipeline is None else options.pipeline)).run(program)
        memory = None if options.budget is None else bytes_in(options.budget)
        explain_sharding(
            model, program, options.mesh, options.devices, memory, as_json=options.json, page=options.graph
        )
        return
    machine = options.model
    program = import_model(model, **options.source.keywords())
    before, after = options.passes
    PassManager(parse_pipeline(before)).run(program)
    budget = None if options.budget is None else bytes_in(options.budget)
    report: Report | None = None
    if options.memory is not None or budget is not None:
        planned = program.clone()
        text = f'fuse{{target="{machine.name}" max-ops={options.max_ops}}},order-for-memory'
        PassManager(parse_pipeline(text)).run(planned)
        report = None if budget is None else within_budget(planned, budget, machine)
        PassManager(parse_pipeline("plan-memory")).run(planned)
        if options.memory is not None:
            page = view_page(f"Memory of {model.name}", memory_view(planned))
            write_file(options.memory, page.encode())
    found = [_Block(d, options) for d in _decisions(program, options)]
    if options.graph is not None:
        page = view_page(f"Kernels of {model.name}", found[0].view(), "kernel_graph.js")
        write_file(options.graph, page.encode())
    wanted = _wanted_kernels(options.at, [row for block in found for row in block.rows])
    if options.measure and not after:
        fix = "leave out --pipeline and --machine, or ask gcomp run --profile"
        raise UsageError("--measure is for the kernels of a target, and none are made here", fix=fix)
    made = _made(model, program, after, options, wanted) if after else []
    if options.json:
        memory = {} if report is None else {"memory": _memory(report)}
        blocks = {"machine": machine.name, "blocks": [block.json(wanted) for block in found], "made": made}
        typer.echo(json.dumps(blocks | memory, indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE, highlight=False)
    for block in found:
        block.show(console, wanted)
    if made:
        _show_made(made, console)
    if report is not None:
        _show_memory(report, console)


def _made(model: Path, program: Program, passes: str, options: ExplainOptions, wanted: Wanted) -> list[dict[str, Any]]:
    """How the target makes the kernels of a program, and why, a row for each; with what they took in calls of the
    model, where that is asked for."""
    target = target_named(options.target)
    PassManager(parse_pipeline(passes)).run(program)
    found = [op for op in target.accounts(program) if wanted({"label": op.label, "places": [op.place]})]
    measured: Mapping[tuple[str, str], float] = {}
    if options.measure:
        target.require(Ability.PROFILE, "--measure runs the model, and profiles it")
        compiled = gcomp.compile(model, target=options.target, **options.source.keywords())
        sizes = Nominal(program.ranges).sizes(compiled.signature.symbols)
        measured = seconds_by_place(compiled.profile(**random_inputs(compiled, sizes), repeat=MEASURED))
    counts = Counter((op.label, op.place) for op in found)
    rows: list[dict[str, Any]] = []
    for op in found:
        row = {name: value for name, value in asdict(op).items() if name != "seconds"}
        row["microseconds"] = round(1e6 * op.seconds, 3)
        seconds = measured.get(key := (op.label, op.place))
        row["measured"] = None if seconds is None else round(1e6 * seconds / counts[key], 3)
        rows.append(row)
    return rows


MEASURED = 10
"""Calls of which `--measure` takes the median."""


def _show_made(made: Sequence[Mapping[str, Any]], console: Console) -> None:
    """How each kernel is computed, and below it why."""
    for n, row in enumerate(made):
        times = [f"{row['microseconds']:,.1f} us predicted for one thread"]
        if row["measured"] is not None:
            times.append(f"{row['measured']:,.1f} us measured")
        console.print(f"[bold]{n} {escape(row['label'])}[/bold], {escape(row['place'])}: {', '.join(times)}")
        console.print(
            f"  {escape(row['algorithm'])}; tile: {row['tile']}; {row['programs']} programs, {row['threads']}"
        )
        for line in (*row["layouts"], *row["because"]):
            console.print(Padding(escape(line), (0, 0, 0, 4)))


def _wanted_kernels(text: str | None, rows: Sequence[Mapping[str, Any]]) -> Wanted:
    """Which kernels have a text: as a whole name if any has, so that `node_1` is not `node_10`. UsageError for none."""
    if text is None:
        return lambda row: True
    quoted = re.escape(text)
    for pattern in (re.compile(rf"(?<!\w){quoted}(?!\w)"), re.compile(quoted)):
        if any(_has(row, pattern) for row in rows):
            return lambda row, pattern=pattern: _has(row, pattern)
    names = {name for row in rows for name in (row["label"], *re.findall(r"[^\s()+,]+", " ".join(row["places"])))}
    raise UsageError(f"no kernel has {text!r} in its label or place", fix=did_you_mean(text, sorted(names)))


def _has(row: Mapping[str, Any], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in (row["label"], *row["places"]))


def _memory(report: Report) -> dict[str, Any]:
    return {
        "budget": report.budget,
        "before": report.before,
        "after": report.after,
        "missing": report.missing,
        "microseconds": round(report.seconds * 1e6, 3),
        "again": [{"label": _label(op), "where": describe(op.location)} for op in report.again],
    }


def _show_memory(report: Report, console: Console) -> None:
    """What runs again to keep a budget, or by how much it cannot be kept."""
    kept = "the budget is kept" if not report.missing else f"{report.missing:,} bytes too many: nothing lowers it more"
    console.print(
        f"{report.before:,} bytes alive at most, {report.after:,} for a budget of {report.budget:,}: {kept}\n"
        f"{len(report.again)} kernels run again, {report.seconds * 1e6:,.1f} us more by the cost model"
    )
    table = FittedTable("run again", "where", names=("run again",), places=("where",))
    for op in report.again:
        table.add(_label(op), describe(op.location))
    if report.again:
        console.print(table)


def _label(op: Operation) -> str:
    return op.label_name if isinstance(op, LaunchOp) else op.name


def _decisions(program: Program, options: ExplainOptions) -> Iterator[Decisions]:
    nominal = Nominal(program.ranges)
    for block in reversed(blocks_to_cut(program)):
        yield decide(block, nominal, options.model, max_ops=options.max_ops)


class _Block:
    """The kernels of one block, and what is said of them."""

    def __init__(self, decisions: Decisions, options: ExplainOptions) -> None:
        self.decisions, self.options = decisions, options
        self.kernels = decisions.kernels()
        self.numbers = {group.members: n for n, group in enumerate(self.kernels)}
        self.apart = unfused_reasons(decisions, max_ops=options.max_ops)
        self.rows = [self.row(group) for group in self.kernels]

    def row(self, group: Group) -> dict[str, Any]:
        kernel, ops = self.decisions.kernel(group), [self.decisions.flow.ops[i] for i in group.members]
        place = place_of(ops)
        return {
            "kernel": self.numbers[group.members],
            "kind": kernel.kind,
            "label": label_of(ops),
            "ops": len(ops),
            "read_bytes": kernel.read_bytes,
            "written_bytes": kernel.written_bytes,
            "flops": kernel.flops,
            "microseconds": round(kernel.seconds * 1e6, 3),
            "where": describe(place),
            "places": places(place),
        }

    def verdict(self, verdict: Verdict) -> dict[str, Any]:
        return {
            "step": verdict.step,
            "first": self.name(verdict.first),
            "second": self.name(verdict.second),
            "fused": verdict.fused,
            "reason": verdict.reason,
            "microseconds": round(verdict.gain * 1e6, 3),
        }

    def name(self, members: Sequence[int]) -> str:
        number = self.numbers.get(tuple(members))
        label = label_of([self.decisions.flow.ops[i] for i in members])
        return label if number is None else f"{number} {label}"

    def json(self, wanted: Wanted) -> dict[str, Any]:
        shown = self._shown(wanted)
        return {
            "kernels": [row for row in self.rows if row["kernel"] in shown],
            "apart": [self.verdict(v) for v in self.apart if shown & self._ends(v)],
            "steps": [self.verdict(v) for v in self.decisions.verdicts],
        }

    def _shown(self, wanted: Wanted) -> set[int]:
        return {row["kernel"] for row in self.rows if wanted(row)}

    def _ends(self, verdict: Verdict) -> set[int | None]:
        """The kernels that a decision is about; None is a part that no kernel is by itself."""
        return {self.numbers.get(verdict.first), self.numbers.get(verdict.second)}

    # ---- a picture ----

    def view(self) -> View:
        """The kernels and what they pass on, drawn."""
        groups = [g for g in self.decisions.groups.ordered() if g.members in self.numbers or self._is_shown(g)]
        number = {group: n for n, group in enumerate(groups)}
        reasons = {(v.first, v.second): v.reason for v in self.apart}
        total = sum(self.decisions.kernel(g).seconds for g in self.kernels) or 1.0
        edges: dict[tuple[int, int], str] = {}
        for group in groups:
            for source in self._sources(group, number):
                reason = reasons.get((source.members, group.members), "")
                edges[number[source], number[group]] = f"not one kernel: {reason}" if reason else ""
        summary = (
            f"{len(self.kernels)} kernels, {total * 1e6:,.1f} us on {self.decisions.machine.name} by the cost model."
        )
        return graph_view([self._box(g, total) for g in groups], edges, summary)

    def _is_shown(self, group: Group) -> bool:
        """Whether what is no kernel is worth a box: control flow, steps of the host, effects."""
        return group.fixed and self.decisions.flow.roles[group.members[0]] in (Role.CONTROL, Role.HOST, Role.EFFECT)

    def _sources(self, group: Group, shown: Mapping[Group, int]) -> Iterator[Group]:
        """The boxes whose results a group reads, itself or through views."""
        seen, pending = set[Group](), list(group.predecessors)
        while pending:
            source = pending.pop()
            if source in shown:
                yield source
            elif source not in seen:
                seen.add(source)
                pending += source.predecessors

    def _box(self, group: Group, total: float) -> Box:
        returned = not self.decisions.flow.returned.isdisjoint(group.members)
        if group.members not in self.numbers:
            op = self.decisions.flow.ops[group.members[0]]
            return Box(op.name, "", describe(op.location), returned=returned)
        row = self.row(group)
        told = (
            f"{row['kind']}, {row['microseconds']:,.1f} us\n{row['ops']} ops, {row['read_bytes']:,} bytes in, "
            f"{row['written_bytes']:,} out, {row['flops']:,} flops\n{row['where']}"
        )
        share = self.decisions.kernel(group).seconds / total
        return Box(f"{row['kernel']} {row['label']}", row["kind"], told, share, returned)

    # ---- tables ----

    def show(self, console: Console, wanted: Wanted) -> None:
        rows = self.rows
        total = [sum(row[name] for row in rows) for name in ("read_bytes", "written_bytes", "flops", "microseconds")]
        title = (
            f"{len(rows)} kernels, {total[0] + total[1]:,} bytes moved, {total[2]:,} flops, {total[3]:,.1f} us "
            f"on {self.decisions.machine.name} by the cost model"
        )
        columns = ("", "kind", "label", "ops", "bytes in", "bytes out", "flops", "us", "where")
        numbers = ("", "ops", "bytes in", "bytes out", "flops", "us")
        table = FittedTable(*columns, names=("label",), places=("where",), numbers=numbers, title=title)
        shown = self._shown(wanted)
        for row in rows:
            if row["kernel"] in shown:
                moved = [f"{row[name]:,}" for name in ("read_bytes", "written_bytes", "flops")]
                table.add(
                    str(row["kernel"]), row["kind"], row["label"], str(row["ops"]), *moved,
                    f"{row['microseconds']:.2f}", row["where"],
                )  # fmt: skip
        console.print(table)
        self._reasons(console, "not one kernel, though the second reads the first", self.apart, shown)
        if self.options.steps:
            self._reasons(console, "every decision, in order", self.decisions.verdicts, None)

    def _reasons(self, console: Console, title: str, verdicts: Sequence[Verdict], shown: set[int] | None) -> None:
        columns = ("first", "second", "fused", "reason", "us saved")
        ends = ("first", "second")
        table = FittedTable(*columns, names=ends, prose=("reason",), numbers=("us saved",), title=title)
        for verdict in verdicts:
            if shown is None or shown & self._ends(verdict):
                one = self.verdict(verdict)
                saved = f"{one['microseconds']:.2f}" if one["microseconds"] else ""
                fused = "yes" if verdict.fused else "no"
                table.add(one["first"], one["second"], fused, verdict.reason, saved)
        if table.row_count:
            console.print(table)


_Measure = Annotated[bool, typer.Option("--measure", help="run the model, too, and show what each kernel took")]
_Graph = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html", help="write a page that shows the kernels as a graph; with --mesh, how the model is cut"
    ),
]
_Budget = Annotated[
    str | None,
    typer.Option(metavar="BYTES", help="run kernels again where that keeps memory within a budget, as in 2GiB"),
]
_Mesh = Annotated[
    str | None,
    typer.Option(metavar="AXES", help="show how the model is cut across devices, as in data=2,model=4"),
]
_Devices = Annotated[
    str, typer.Option(metavar="NAME|FILE.toml", help="the devices of the mesh: cpu, a100, h100, or a file")
]


def explain(
    model: ModelFile,
    target: Target = DEFAULT_TARGET,
    machine: Annotated[
        str | None,
        typer.Option("--machine", "-m", help="a machine in place of the target's: cpu, sm_80, sm_90, sm_100"),
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="passes to run before kernels are made")
    ] = None,
    max_ops: Annotated[int, typer.Option(min=1, help="ops of a kernel, at most")] = 64,
    at: Annotated[
        str | None, typer.Option(metavar="TEXT", help="only kernels with this name, or text, in label or place")
    ] = None,
    steps: Annotated[bool, typer.Option("--steps", help="print every decision in order, too")] = False,
    json: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
    measure: _Measure = False,
    memory: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="plan the memory, and write a page that shows the plan")
    ] = None,
    graph: _Graph = None,
    memory_budget: _Budget = None,
    mesh: _Mesh = None,
    devices: _Devices = "cpu",
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Show which kernels a model becomes, why those that pass data to each other are not one, and for processors how
    each is computed and why so.

      gcomp explain model.onnx

      gcomp explain model.onnx --at conv --measure

      gcomp explain model.onnx --target triton:sm_90 --at dot --steps

      gcomp explain model.onnx --dim batch=1..64 --memory plan.html --graph kernels.html

      gcomp explain model.onnx --dim batch=1..64 --memory-budget 512MiB

      gcomp explain model.onnx --dim batch=16 --mesh data=2,model=4 --devices h100 --graph cut.html

    Bytes, flops and times are the cost model's: a roofline of the target's machine, at the largest sizes of ranges.
    """
    load_files(load or [])
    source = source_of(model, dim, structure, constant, allow_links)
    options = ExplainOptions(
        target,
        machine,
        pipeline,
        max_ops,
        at,
        steps,
        json,
        measure,
        memory,
        graph,
        memory_budget,
        mesh,
        devices,
        source,
    )
    explain_command(model, options)
