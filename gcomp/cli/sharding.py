"""`gcomp explain --mesh`: how a model is cut across devices, what is sent, and what else would have cost."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gcomp.cli.options import write_file
from gcomp.cli.tables import FittedTable
from gcomp.dims import symbols_of
from gcomp.errors import UnsupportedError
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.partitioning.memory import predicted_memory
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import Devices, devices_named, mesh_named
from gcomp.partitioning.search.planning import Plan, plan_of
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply
from gcomp.report.page import View, view_page
from gcomp.report.plans import bytes_text, input_rows, op_rows, place_text, time_text
from gcomp.report.sharding import sharding_view

_COLUMNS = {"places": ("op",), "prose": ("sends", "otherwise"), "numbers": ("alike", "on each device")}


def explain_sharding(
    model: Path, program: Program, mesh: str, devices: str, memory: int | None, *, as_json: bool, page: Path | None
) -> None:
    """Print the plan of a program, as tables or as JSON, and write a page that shows it."""
    on, known = mesh_named(mesh), devices_named(devices)
    plan = plan_of(program, on, known, memory=memory)
    others = {name: _other(program, plan, name, memory) for name in BY_HAND}
    said, head = _json(plan, others), [*_head(model.name, mesh, known, plan)]
    view = None if page is None else sharding_view(plan, others)
    taken = said["predicted memory"] = _taken(plan)
    how = f"is predicted to take {bytes_text(taken)}" if isinstance(taken, int) else f"is not predicted for: {taken}"
    head.append(f"XLA {how} on each device, with what it copies and sends.")
    if page is not None and view is not None:
        title, shown = f"{model.name} on {mesh} of {known.name}", View(" ".join(head), view.svg, view.table)
        write_file(page, view_page(title, shown, "kernel_graph.js").encode())
    if as_json:
        typer.echo(json.dumps(said, indent=1))
        return
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200
    console = Console(width=width, highlight=False)
    for line in head:
        console.print(line)
    for title in ("inputs", "ops"):
        _show(console, title.capitalize(), said[title])
    _show(console, "By hand", ({"plan": name, "time": time} for name, time in said["by hand"].items()))


def _head(model: str, mesh: str, known: Devices, plan: Plan) -> Iterator[str]:
    """What a plan is, in a few lines."""
    sent = bytes_text(sum(m.sent.bytes for m in plan.messages()))
    yield (
        f"{model} on {mesh} of {known.name}: {time_text(plan.seconds)} predicted, "
        f"{time_text(plan.communicating)} of them to send {sent}; {bytes_text(plan.peak)} on each device at most."
    )
    yield (
        f"At most {plan.gap:.2%} from the best plan of those that cut alike what is alike: "
        f"{len(plan.classes.counts)} of {len(plan.problem.nodes)} ops and inputs were decided, the others repeat them."
    )
    sizes = [size for port in plan.problem.program.inputs() for size in port.shape]
    if symbols := sorted({n for size in sizes for n in symbols_of(size)}):
        yield f"What has the size {' or '.join(symbols)} is not cut: --dim {symbols[0]}=N gives it a number."


def _taken(plan: Plan) -> int | str:
    """Bytes that XLA is predicted to take on each device for what the plan's program becomes here; else why not."""
    program = plan.problem.program
    try:
        apply(plan)
        Partition().run(program, PassContext())
    except UnsupportedError as error:
        return str(error).splitlines()[0]
    return predicted_memory(program) if sdy.is_sharded(program.module) else "nothing is cut"


def _show(console: Console, title: str, rows: Iterable[Mapping[str, str]]) -> None:
    found = list(rows)
    if found:
        own = {key: [h for h in headers if h in found[0]] for key, headers in _COLUMNS.items()}
        table = FittedTable(*found[0], title=title, **own)
        for row in found:
            table.add(*row.values())
        console.print(table)


def _other(program: Program, plan: Plan, name: str, memory: int | None) -> Plan | str:
    """The best plan of a kind, or why there is none."""
    network = plan.problem.network
    try:
        return plan_of(program, network.mesh, network.devices, memory=memory, kind=BY_HAND[name])
    except UnsupportedError as error:
        return str(error).splitlines()[0]


def _beside(plan: Plan, other: Plan | str) -> str:
    if isinstance(other, str):
        return other
    more = other.seconds / plan.seconds if plan.seconds else 1.0
    return f"{time_text(other.seconds)}, {more:.2f} times as long, {bytes_text(other.peak)} at most"


def _json(plan: Plan, others: Mapping[str, Plan | str]) -> dict[str, Any]:
    return {
        "seconds": plan.seconds, "computing": plan.computing, "communicating": plan.communicating,
        "peak": plan.peak, "gap": plan.gap, "inputs": [*input_rows(plan)], "ops": [*op_rows(plan)],
        "messages": [
            {"op": place_text(m.op), "kind": m.sent.kind, "axis": m.sent.axis, "bytes": m.sent.bytes,
             "seconds": m.sent.seconds} for m in plan.messages()
        ],
        "by hand": {name: _beside(plan, other) for name, other in others.items()},
    }  # fmt: skip


__all__ = ["explain_sharding"]
