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
from xdsl.ir import Operation

from gcomp.cli.tables import FittedTable
from gcomp.dims import symbols_of
from gcomp.errors import UnsupportedError
from gcomp.ir import sdy
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import rank_of, tensor_of
from gcomp.partitioning.memory import predicted_memory
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import Devices, devices_named, mesh_named
from gcomp.partitioning.search.layouts import WHOLE, Layout, sharding_of
from gcomp.partitioning.search.planning import Plan, plan_of
from gcomp.partitioning.search.problem import Node
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply

_COLUMNS = {"places": ("op",), "prose": ("sends", "otherwise"), "numbers": ("alike", "on each device")}
_SHOWN = 2
"""So many other ways to cut an op are told."""


def explain_sharding(model: Path, program: Program, mesh: str, devices: str, memory: int | None, as_json: bool) -> None:
    """Print the plan of a program, as tables or as JSON."""
    on, known = mesh_named(mesh), devices_named(devices)
    plan = plan_of(program, on, known, memory=memory)
    others = {name: _other(program, plan, name, memory) for name in BY_HAND}
    said, head = _json(plan, others), [*_head(model.name, mesh, known, plan)]
    taken = said["predicted memory"] = _taken(plan)
    if as_json:
        typer.echo(json.dumps(said, indent=1))
        return
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200
    console = Console(width=width, highlight=False)
    how = (
        f"is predicted to take {_bytes(taken)}" if isinstance(taken, int) else f"takes what is not predicted ({taken})"
    )
    for line in (*head, f"XLA {how} on each device, with what it copies and sends."):
        console.print(line)
    for title in ("inputs", "ops"):
        _show(console, title.capitalize(), said[title])
    _show(console, "By hand", ({"plan": name, "time": time} for name, time in others.items()))


def _head(model: str, mesh: str, known: Devices, plan: Plan) -> Iterator[str]:
    """What a plan is, in a few lines."""
    sent = _bytes(sum(m.sent.bytes for m in plan.messages()))
    yield (
        f"{model} on {mesh} of {known.name}: {_time(plan.seconds)} predicted, {_time(plan.communicating)} of them "
        f"to send {sent}; {_bytes(plan.peak)} on each device at most."
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


# ---- what is said ---------------------------------------------------------------------------------------------------


def _inputs(plan: Plan) -> Iterator[dict[str, str]]:
    """A row for each class of arguments and weights."""
    for node, count in _classes(plan):
        if node.is_input:
            layout = plan.choice(node).results[0]
            name = node.value.name_hint or (str(node.op.properties["weight"]) if node.op is not None else "")
            yield {
                "input": name, "alike": str(count), "type": str(tensor_of(node.value)),
                "cut": _layout(plan, layout, rank_of(node.value)),
                "on each device": _bytes(plan.memory([node.value])),
            }  # fmt: skip


def _ops(plan: Plan) -> Iterator[dict[str, str]]:
    """A row for each class of ops that send something, and for each class of products."""
    sent = _sent(plan)
    for node, count in _classes(plan):
        if node.is_input or node.op is None:
            continue
        choice, messages = plan.choice(node), sent.get(node.op, [])
        if not messages and role_of(node.op) not in (Role.CONTRACTION, Role.CONVOLUTION):
            continue
        yield {
            "op": _place(node.op), "alike": str(count),
            "cut": _layout(plan, choice.results[0], rank_of(node.value)),
            "sends": ", ".join(f"{m.kind} {_bytes(m.bytes)} along {m.axis}" for m in messages) or "-",
            "time": _time(node.seconds(choice, plan.problem.network) + sum(m.seconds for m in messages)),
            "otherwise": _alternatives(plan, node) or "-",
        }  # fmt: skip


def _classes(plan: Plan) -> Iterator[tuple[Node, int]]:
    yield from zip(plan.classes.first, plan.classes.counts, strict=True)


def _sent(plan: Plan) -> dict[Operation, list[Any]]:
    """Op -> what is sent for it, and for those that follow it."""
    places, found = plan.problem.places, dict[Operation, list[Any]]()
    for message in plan.messages():
        place = places.get(message.op.results[0]) if message.op.results else None
        op = message.op if place is None or place.node.op is None else place.node.op
        found.setdefault(op, []).append(message.sent)
    return found


def _alternatives(plan: Plan, node: Node) -> str:
    seen, said = set[Layout](), list[str]()
    for choice, more in plan.alternatives(node):
        layout = choice.results[0]
        if layout not in seen and layout != plan.choice(node).results[0] and len(said) < _SHOWN:
            said.append(f"{_layout(plan, layout, rank_of(node.value))} +{_time(more)}")
        seen.add(layout)
    return ", ".join(said)


def _other(program: Program, plan: Plan, name: str, memory: int | None) -> str:
    network = plan.problem.network
    try:
        other = plan_of(program, network.mesh, network.devices, memory=memory, kind=BY_HAND[name])
    except UnsupportedError as error:
        return str(error).splitlines()[0]
    return f"{_time(other.seconds)}, {other.seconds / plan.seconds:.2f} times as long, {_bytes(other.peak)} at most"


def _json(plan: Plan, others: Mapping[str, str]) -> dict[str, Any]:
    return {
        "seconds": plan.seconds, "computing": plan.computing, "communicating": plan.communicating,
        "peak": plan.peak, "gap": plan.gap, "inputs": [*_inputs(plan)], "ops": [*_ops(plan)],
        "messages": [
            {"op": _place(m.op), "kind": m.sent.kind, "axis": m.sent.axis, "bytes": m.sent.bytes,
             "seconds": m.sent.seconds} for m in plan.messages()
        ],
        "by hand": dict(others),
    }  # fmt: skip


# ---- words ----------------------------------------------------------------------------------------------------------


def _place(op: Operation) -> str:
    at = describe(op.location)
    return f"{op.name.partition('.')[2]} {at}" if at else op.name


def _layout(plan: Plan, layout: Layout, rank: int) -> str:
    if all(d == WHOLE for d in layout):
        return "whole"
    dims = sharding_of(layout, rank, plan.problem.network.mesh, "mesh").dimensions
    return "[" + ", ".join("+".join(a.name for a in d.axes) or "-" for d in dims) + "]"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _bytes(count: float) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
