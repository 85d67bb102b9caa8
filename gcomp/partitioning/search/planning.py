"""Plans: how each value of a program lies, what is sent, what that takes, and how far from the best it is at most."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from gcomp.ir.program import Program
from gcomp.partitioning.search.classes import STEPS, Classes, classes_of
from gcomp.partitioning.search.devices import Devices
from gcomp.partitioning.search.layouts import Layout, Network, Sent, Steps, pieces, seconds
from gcomp.partitioning.search.problem import Node, Problem
from gcomp.partitioning.search.solving import MOMENTS, Allowed, Kind, Model, Solution
from gcomp.partitioning.search.strategies import Strategy
from gcomp.sharding import Mesh

LIMIT = 60.0
GAP = 0.001


@dataclass(frozen=True)
class Message:
    """One collective of a plan, and the op for which it is sent: to combine its sums, or to bring what it takes."""

    op: Operation
    sent: Sent
    value: SSAValue
    is_sum: bool


class Plan:
    """What all nodes of a problem choose."""

    def __init__(self, problem: Problem, classes: Classes, solution: Solution) -> None:
        self.problem, self.classes, self.solution = problem, classes, solution

    def choice(self, node: Node) -> Strategy:
        """The strategy of a node."""
        return node.choices[self.solution.chosen[self.classes.of[node]]]

    def layout(self, value: SSAValue) -> Layout | None:
        """The layout of a value; None of what is made anywhere, in any."""
        place = self.problem.places.get(value)
        return None if place is None else place.layout(self.choice(place.node))

    def messages(self) -> Iterator[Message]:
        """All that is sent, in the order of the program; where ways of a value to two layouts begin alike, once."""
        order = {op: i for i, op in enumerate(self.problem.program.block.ops)}
        found: list[Message] = []
        seen: set[tuple[SSAValue, Steps]] = set()
        for node in self.problem.nodes:
            if node.op is not None:
                found += [Message(node.op, sent, node.value, True) for sent in self.choice(node).sent]
        for edge in self.problem.edges:
            given, wanted = edge.source.layout(self.choice(edge.source.node)), edge.wanted(self.choice(edge.target))
            for steps, sent in self.problem.moves(edge.value, given, wanted):
                if (edge.value, steps) not in seen:
                    seen.add((edge.value, steps))
                    found.append(Message(edge.user, sent, edge.value, False))
        yield from sorted(found, key=lambda m: (order[m.op], m.is_sum))

    @property
    def computing(self) -> float:
        """Seconds of all that is computed."""
        mesh = self.problem.network.mesh
        found = [(node, self.choice(node)) for node in self.problem.nodes]
        return sum(c.computing + n.following / pieces(c.results[0], mesh) for n, c in found)

    @property
    def communicating(self) -> float:
        """Seconds of all that is sent."""
        return sum(m.sent.seconds for m in self.messages())

    @property
    def seconds(self) -> float:
        """Seconds of one run: what is sent does not overlap with what is computed."""
        return self.computing + self.communicating

    @property
    def gap(self) -> float:
        """How far from the best it is at most, as a part of what it takes: among plans that cut alike what is alike."""
        return max(0.0, 1 - self.solution.bound / self.seconds) if self.seconds else 0.0

    def alternatives(self, node: Node) -> list[tuple[Strategy, float]]:
        """The other ways to cut a node, and how many seconds more each takes while all else stays, the least first."""
        found = [(choice, self.around(node, choice)) for choice in node.choices]
        own = self.around(node, self.choice(node))
        others = [(choice, cost - own) for choice, cost in found if choice is not self.choice(node)]
        return sorted(others, key=lambda pair: pair[1])

    def around(self, node: Node, choice: Strategy) -> float:
        """Seconds of a node, and of what is sent to it and from it, where it alone chooses so."""
        total = node.seconds(choice, self.problem.network)
        sends: set[tuple[SSAValue, Layout, Layout]] = set()
        for edge in self.problem.edges:
            if node in (edge.target, edge.source.node):
                given = edge.source.layout(choice if edge.source.node is node else self.choice(edge.source.node))
                wanted = edge.wanted(choice if edge.target is node else self.choice(edge.target))
                sends.add((edge.value, given, wanted))
        return total + sum(seconds(self.problem.sending(*each)) for each in sends)

    def memory(self, live: Sequence[SSAValue]) -> float:
        """Bytes of these values on each device."""
        mesh, nominal = self.problem.network.mesh, self.problem.nominal
        return sum(nominal.bytes(v) / pieces(self.layout(v) or (), mesh) for v in live)

    @property
    def peak(self) -> float:
        """The most bytes of values that lie in the memory of a device at once."""
        return max(map(self.memory, moments(self.problem)), default=0.0)


def moments(problem: Problem) -> list[list[SSAValue]]:
    """What lies in memory at each moment, without moments that others hold."""
    lifetimes = [*problem.lifetimes()]
    starts = sorted({start for _, start, _ in lifetimes})
    found: list[list[SSAValue]] = []
    for here, later in zip(starts, [*starts[1:], None], strict=True):
        # Nothing ends before the next value is made: that moment holds all of this one.
        if later is None or any(start <= here <= end < later for _, start, end in lifetimes):
            found.append([v for v, start, end in lifetimes if start <= here <= end])
    return found


def _with_inputs_cut(plan: Plan, allowed: Allowed | None) -> Plan:
    """The plan with inputs cut as far as nothing more is sent for it: the integer program does not ask for that."""
    mesh = plan.problem.network.mesh
    members: dict[int, list[Node]] = {}
    for node in plan.problem.nodes:
        if node.is_input:
            members.setdefault(plan.classes.of[node], []).append(node)
    for c, nodes in members.items():
        count = [pieces(choice.results[0], mesh) for choice in nodes[0].choices]
        kept = plan.solution.chosen[c]
        finer = [k for k in range(len(count)) if count[k] > count[kept]]
        for k in sorted(finer, key=lambda k: -count[k]):
            free = all(plan.around(n, n.choices[k]) <= plan.around(n, plan.choice(n)) for n in nodes)
            if free and (allowed is None or allowed(nodes[0], nodes[0].choices[k])):
                chosen = [*plan.solution.chosen[:c], k, *plan.solution.chosen[c + 1 :]]
                plan = Plan(plan.problem, plan.classes, replace(plan.solution, chosen=chosen))
                break
    return plan


def plan_of(
    program: Program,
    mesh: Mesh,
    devices: Devices,
    *,
    memory: float | None = None,
    kind: Kind | None = None,
    weights: Collection[SSAValue] = (),
    limit: float = LIMIT,
    gap: float = GAP,
    steps: int = STEPS,
) -> Plan:
    """The plan that takes the least time among those that fit in `memory` bytes on each device (that of the devices).

    `kind` leaves fewer choices (`by_hand`), in which these arguments are `weights`; `limit` is in seconds.
    UnsupportedError where nothing fits.
    """
    problem = Problem.of(program, Network(mesh, devices))
    allowed = None if kind is None else kind(problem, weights)
    classes = classes_of(problem, steps, allowed)
    model = Model(problem, classes, allowed)
    most = devices.memory if memory is None else memory
    full = sorted(moments(problem), key=lambda live: -sum(problem.nominal.bytes(v) for v in live))
    waiting = full[MOMENTS:]
    for live in full[:MOMENTS]:
        model.bound_memory(live, most)
    while True:
        plan = Plan(problem, classes, model.solve(limit, gap))
        over = [live for live in waiting if plan.memory(live) > most * (1 + 1e-6)]
        if not over:
            return _with_inputs_cut(plan, allowed)
        worst = max(over, key=plan.memory)
        waiting.remove(worst)
        model.bound_memory(worst, most)


__all__ = ["GAP", "LIMIT", "Message", "Plan", "moments", "plan_of", "seconds"]
