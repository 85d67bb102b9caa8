"""What is said of a plan for several devices: rows for tables, in words."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from gcomp.ir.locations import describe
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import rank_of, tensor_of
from gcomp.partitioning.search.layouts import WHOLE, Layout, pieces, sharding_of
from gcomp.partitioning.search.planning import Message, Plan
from gcomp.partitioning.search.problem import Node

_SHOWN = 2
"""So many other ways to cut an op are told."""


def input_rows(plan: Plan) -> Iterator[dict[str, str]]:
    """A row for each class of arguments and weights."""
    for node, count in _classes(plan):
        if node.is_input:
            layout = plan.choice(node).results[0]
            name = node.value.name_hint or (str(node.op.properties["weight"]) if node.op is not None else "")
            yield {
                "input": name, "alike": str(count), "type": str(tensor_of(node.value)),
                "cut": layout_text(plan, layout, rank_of(node.value)),
                "on each device": bytes_text(plan.memory([node.value])),
            }  # fmt: skip


def op_rows(plan: Plan) -> Iterator[dict[str, str]]:
    """A row for each class of ops that send something, and for each class of products."""
    sent = sent_for(plan)
    for node, count in _classes(plan):
        if node.is_input or node.op is None:
            continue
        messages = sent.get(node.op, [])
        if not messages and role_of(node.op) not in (Role.CONTRACTION, Role.CONVOLUTION):
            continue
        yield {
            "op": place_text(node.op), "alike": str(count), "cut": cut_text(plan, node),
            "sends": ", ".join(map(message_text, messages)) or "-",
            "time": time_text(computing(plan, node) + sum(m.sent.seconds for m in messages)),
            "otherwise": ", ".join(alternatives(plan, node)) or "-",
        }  # fmt: skip


def _classes(plan: Plan) -> Iterator[tuple[Node, int]]:
    yield from zip(plan.classes.first, plan.classes.counts, strict=True)


def sent_for(plan: Plan) -> dict[Operation, list[Message]]:
    """Op of a node -> what is sent for it, and for those that follow it."""
    places, found = plan.problem.places, dict[Operation, list[Message]]()
    for message in plan.messages():
        place = places.get(message.op.results[0]) if message.op.results else None
        op = message.op if place is None or place.node.op is None else place.node.op
        found.setdefault(op, []).append(message)
    return found


def computing(plan: Plan, node: Node) -> float:
    """Seconds that a node computes, with all that follows it."""
    choice = plan.choice(node)
    return choice.computing + node.following / pieces(choice.results[0], plan.problem.network.mesh)


def alternatives(plan: Plan, node: Node) -> list[str]:
    """Other ways to cut a node's first result, with the seconds more that each takes, the least first."""
    seen, said = set[Layout](), list[str]()
    for choice, more in plan.alternatives(node):
        layout = choice.results[0]
        if layout not in seen and layout != plan.choice(node).results[0] and len(said) < _SHOWN:
            said.append(f"{layout_text(plan, layout, rank_of(node.value))} +{time_text(more)}")
        seen.add(layout)
    return said


# ---- words ----------------------------------------------------------------------------------------------------------


def cut_text(plan: Plan, node: Node) -> str:
    """How the first result of a node is cut."""
    return layout_text(plan, plan.choice(node).results[0], rank_of(node.value))


def layout_text(plan: Plan, layout: Layout, rank: int) -> str:
    """`[data, -]`: the axes that cut each dimension; `whole` where none does."""
    if all(d == WHOLE for d in layout):
        return "whole"
    dims = sharding_of(layout, rank, plan.problem.network.mesh, "mesh").dimensions
    return "[" + ", ".join("+".join(a.name for a in d.axes) or "-" for d in dims) + "]"


def message_text(message: Message) -> str:
    """What is sent, how much of it, and along which axis."""
    sent = message.sent
    return f"{sent.kind} {bytes_text(sent.bytes)} along {sent.axis}"


def place_text(op: Operation) -> str:
    """An op and where it comes from."""
    at = describe(op.location)
    return f"{op.name.partition('.')[2]} {at}" if at else op.name


def time_text(seconds: float) -> str:
    """Three digits of a time."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def bytes_text(count: float) -> str:
    """Three digits of a size."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


__all__ = ["alternatives", "bytes_text", "computing", "cut_text", "input_rows", "message_text", "op_rows",
           "place_text", "sent_for", "time_text"]  # fmt: skip
