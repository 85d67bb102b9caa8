"""A page that shows a plan for several devices: its time beside that of plans by hand, the program along that time,
layer by layer, with what is computed and what is sent along each axis, and the ops as a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from xdsl.ir import Operation

from gcomp.html import html_table
from gcomp.ir.roles import Role, role_of
from gcomp.partitioning.search.planning import Message, Plan
from gcomp.partitioning.search.problem import Node
from gcomp.report.kernel_graph import Box, graph_view
from gcomp.report.origins import Origins, common_scope
from gcomp.report.page import View
from gcomp.report.plans import (
    alternatives,
    bytes_text,
    computing,
    cut_text,
    input_rows,
    message_text,
    op_rows,
    place_text,
    sent_for,
    time_text,
)

WIDTH, LANE, LABEL = 1200, 26, 96
"""Pixels of the drawing, of the height of a lane, and before its lanes."""
DRAWN = 400
"""More ops than these are drawn by one of each that are cut alike."""
NAMES = 24
"""Layers that are told apart, at most."""
COLORS = {
    "all_gather": "hsl(210, 50%, 58%)", "all_reduce": "hsl(12, 62%, 60%)", "reduce_scatter": "hsl(38, 68%, 56%)",
    "all_to_all": "hsl(285, 34%, 62%)", "collective_permute": "hsl(160, 38%, 48%)",
}  # fmt: skip
_KINDS = (Role.CONTRACTION, Role.CONVOLUTION, Role.REDUCTION, Role.ELEMENTWISE, Role.MOVEMENT, Role.VIEW)


_NUMBERS = ("alike", "on each device", "time", "ops", "to send", "bytes")
_STAYS = "stays as it lies"


@dataclass(frozen=True)
class Step:
    """One op of a plan with what follows it: what is sent before and after, and how long it computes."""

    node: Node
    layer: str
    kind: str
    told: str
    computing: float
    before: tuple[Message, ...]
    after: tuple[Message, ...]

    @property
    def seconds(self) -> float:
        return self.computing + sum(m.sent.seconds for m in (*self.before, *self.after))


def sharding_view(plan: Plan, others: Mapping[str, Plan | str]) -> View:
    """A plan; `others` are plans by hand, or say why there are none. What it is in words is left to who shows it."""
    steps = [*_steps(plan)]
    shown = [step for step in steps if step.node in plan.classes.first] if len(steps) > DRAWN else steps
    edges = _edges(plan, shown)
    moving = {ends for ends, said in edges.items() if said != _STAYS}
    graph = graph_view([_box(step, plan) for step in shown], edges, "", _KINDS, moving)
    parts = [
        "<h2>Beside plans by hand</h2>", _bars(plan, others), "<h2>Along the time that is predicted</h2>", _keys(steps),
        _timeline(plan, steps), "<h2>Ops, and where values change how they lie</h2>", graph.svg,
    ]  # fmt: skip
    found = {"Layers": _layer_rows(steps), "Inputs": input_rows(plan), "Ops": op_rows(plan)}
    tables = [_table(title, [*rows]) for title, rows in found.items()]
    return View("", "\n".join(parts), "\n".join(tables))


def _steps(plan: Plan) -> Iterator[Step]:
    sent = sent_for(plan)
    nodes = [(node, node.op) for node in plan.problem.nodes if not node.is_input and node.op is not None]
    for (node, op), layer in zip(nodes, _layers_of([op for _, op in nodes]), strict=True):
        messages = sent.get(op, [])
        lines = [
            place_text(op), f"lies {cut_text(plan, node)}", f"computes {time_text(computing(plan, node))}",
            *[f"sends {message_text(m)}, {time_text(m.sent.seconds)}" for m in messages],
            *[f"otherwise {text}" for text in alternatives(plan, node)],
        ]  # fmt: skip
        yield Step(
            node, layer, role_of(op).value, "\n".join(lines), computing(plan, node),
            tuple(m for m in messages if not m.is_sum), tuple(m for m in messages if m.is_sum),
        )  # fmt: skip


def _layers_of(ops: Sequence[Operation]) -> list[str]:
    """The module of each op, as deep as there are not too many names; nothing where the source has no modules."""
    origins = Origins({})
    scopes = [common_scope([origins.all[n] for n in origins.of(op.location)]) for op in ops]
    for depth in range(max(map(len, scopes), default=0), 0, -1):
        names = [".".join(scope[:depth]) for scope in scopes]
        if len({*names}) <= NAMES:
            return names
    return [""] * len(ops)


# ---- times -----------------------------------------------------------------------------------------------------------


def _bars(plan: Plan, others: Mapping[str, Plan | str]) -> str:
    """A bar for each plan: what it computes, and then what it sends."""
    plans = {"the search": plan} | {name: p for name, p in others.items() if isinstance(p, Plan)}
    longest = max(p.seconds for p in plans.values()) or 1.0
    across, rows = (WIDTH - 2 * LABEL - 220) / longest, list[str]()
    for n, (name, p) in enumerate(plans.items()):
        y, computes, sends = n * LANE, p.computing * across, p.communicating * across
        said = f"{time_text(p.seconds)}, {time_text(p.communicating)} to send; {bytes_text(p.peak)} on each device"
        rows.append(
            f'<text x="0" y="{y + 17}">{escape(name)}</text>'
            f'<rect x="{LABEL}" y="{y + 4}" width="{computes:.2f}" height="16" fill="var(--accent)"/>'
            f'<rect x="{LABEL + computes:.2f}" y="{y + 4}" width="{sends:.2f}" height="16" fill="var(--bad)"/>'
            f'<text class="small" x="{LABEL + computes + sends + 8:.2f}" y="{y + 17}">{escape(said)}</text>'
        )
    rows.append(f'<text class="small" x="{LABEL}" y="{len(plans) * LANE + 12}">blue: computing; red: sending</text>')
    told = [f"<p>{escape(name)}: {escape(why)}</p>" for name, why in others.items() if isinstance(why, str)]
    return _svg(len(plans) * LANE + 20, rows) + "".join(told)


def _timeline(plan: Plan, steps: Sequence[Step]) -> str:
    """Lanes from left to right: layers, what is computed, and what is sent along each axis of the mesh."""
    total = sum(step.seconds for step in steps) or 1.0
    across, axes = (WIDTH - LABEL) / total, [axis.name for axis in plan.problem.network.mesh.axes]
    named = ["layers"] if any(step.layer for step in steps) else []
    lanes = {name: k * LANE for k, name in enumerate((*named, "computes", *axes))}
    parts = [f'<text class="small" x="0" y="{y + 17}">{escape(name)}</text>' for name, y in lanes.items()]
    x, places = float(LABEL), list[tuple[str, float, float]]()
    for step in steps:
        begin = x
        for messages in (step.before, None, step.after):
            if messages is None:
                width = step.computing * across
                face = _face(x, lanes["computes"], width, step.told)
                parts.append(f'<g class="box k-{step.kind}">{face}</g>')
                x += width
            for message in messages or ():
                width = message.sent.seconds * across
                told = f"{message_text(message)}, {time_text(message.sent.seconds)}\n{step.told}"
                for axis in message.sent.axis.split("+"):
                    parts.append(_face(x, lanes[axis], width, told, COLORS[message.sent.kind]))
                x += width
        places.append((step.layer, begin, x))
    return _svg(len(lanes) * LANE, [*parts, *(_layers(places) if named else ())])


def _layers(places: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    """A bracket for each run of ops of one layer, with its name where there is room."""
    for n, (name, run) in enumerate(groupby(places, key=lambda place: place[0])):
        spans = [*run]
        left, right = spans[0][1], spans[-1][2]
        label = escape(name) if (right - left) > 6.5 * len(name) + 4 else ""
        yield (
            f'<rect x="{left:.2f}" y="4" width="{max(0.0, right - left):.2f}" height="16" class="storage" '
            f'fill="{"var(--wash)" if n % 2 else "var(--line)"}"><title>{escape(name)}</title></rect>'
            f'<text class="small" x="{left + 3:.2f}" y="16">{label}</text>'
        )


def _face(x: float, y: float, width: float, told: str, fill: str = "") -> str:
    style = f' fill="{fill}"' if fill else ' class="face"'
    return (
        f'<rect x="{x:.2f}" y="{y + 4:.0f}" width="{max(width, 0.4):.2f}" height="18"{style}>'
        f"<title>{escape(told)}</title></rect>"
    )


def _keys(steps: Sequence[Step]) -> str:
    """What the colors of messages are, of those that there are."""
    kinds = {m.sent.kind for step in steps for m in (*step.before, *step.after)}
    named = {kind: color for kind, color in COLORS.items() if kind in kinds}
    keys = [f'<span class="key" style="--fill: {color}">{kind}</span>' for kind, color in named.items()]
    return f"<p>{''.join(keys) or 'Nothing is sent.'}</p>"


def _svg(height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return "\n".join([f'<svg {size} xmlns="http://www.w3.org/2000/svg">', *parts, "</svg>"])


# ---- the graph -------------------------------------------------------------------------------------------------------


def _box(step: Step, plan: Plan) -> Box:
    count = plan.classes.counts[plan.classes.of[step.node]]
    op = step.node.op
    assert op is not None
    sent = sum(m.sent.bytes for m in (*step.before, *step.after))
    alike, sends = f" ×{count}" if count > 1 else "", f" sends {bytes_text(sent)}" if sent else ""
    title = op.name.partition(".")[2] or op.name
    return Box(
        title,
        step.kind,
        f"{cut_text(plan, step.node)}{alike}{sends}\n{step.told}",
        step.seconds / (plan.seconds or 1.0),
    )


def _edges(plan: Plan, steps: Sequence[Step]) -> dict[tuple[int, int], str]:
    """What ops pass on; where a value changes how it lies, what is sent is said."""
    numbers = {plan.classes.of[step.node]: n for n, step in enumerate(steps)}
    own = {step.node: n for n, step in enumerate(steps)}
    found: dict[tuple[int, int], str] = {}
    for edge in plan.problem.edges:
        ends = [own.get(node, numbers.get(plan.classes.of[node])) for node in (edge.source.node, edge.target)]
        a, b = ends
        if a is None or b is None or a >= b:
            continue
        given, wanted = edge.source.layout(plan.choice(edge.source.node)), edge.wanted(plan.choice(edge.target))
        sent = [sent for _, sent in plan.problem.moves(edge.value, given, wanted)]
        said = ", ".join(f"{s.kind} {bytes_text(s.bytes)} along {s.axis}" for s in sent)
        found[a, b] = said or found.get((a, b), _STAYS)
    return found


def _layer_rows(steps: Sequence[Step]) -> Iterator[dict[str, str]]:
    """A row for each layer, in order: what it computes and sends."""
    for layer in dict.fromkeys(step.layer for step in steps if step.layer):
        own = [step for step in steps if step.layer == layer]
        sent = [m.sent for step in own for m in (*step.before, *step.after)]
        kinds = Counter(f"{s.kind} along {s.axis}" for s in sent)
        yield {
            "layer": layer, "ops": str(len(own)), "time": time_text(sum(step.seconds for step in own)),
            "to send": time_text(sum(s.seconds for s in sent)), "bytes": bytes_text(sum(s.bytes for s in sent)),
            "sends": ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "-",
        }  # fmt: skip


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    if not rows:
        return ""
    columns = [*rows[0]]
    left = [c for c in columns if c not in _NUMBERS]
    return f"<h2>{title}</h2>{html_table(columns, [[*row.values()] for row in rows], left)}"


__all__ = ["sharding_view"]
