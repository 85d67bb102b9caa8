"""`rematerialize`: which values to make again shortly before they are read, so that fewer bytes are alive at once.

A value that lives long and is not used for a while can die in between if what makes it runs a second time. That takes
time, and what it is made from must be there. Greedy: where the most bytes are alive, the value goes whose bytes cost
the least time, as long as what is above the budget, summed over all nodes, shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gcomp.errors import UsageError
from gcomp.memory.graph import Graph, Node, bytes_while
from gcomp.memory.ordering import least_bytes
from gcomp.records import record

CHAIN = 6
"""Most nodes that run again for one value: what dies before it is read can be made again too."""

CANDIDATES = 24
"""How many values are tried where the most bytes are alive, before the place counts as one that nothing lowers."""

PLACES = 4
"""How many nodes above the target are looked at, far enough from each other."""

SMALL = 8
"""What a value is made from is kept for it where it takes less than one part in so many of its bytes."""

LEAST_GAIN = 1e-3
"""What a step must take off what is above the budget, as a share: else thousands of tiny steps would follow."""


@record
class Again:
    """Nodes that run again, in order, before the node at `before` runs; which reads their results from then on.

    Numbers of nodes count those that were put in by earlier steps.
    """

    nodes: tuple[int, ...]
    before: int


@record
class Rematerialization:
    """Steps, one after the other, and what they do."""

    steps: tuple[Again, ...]
    given_peak: int
    peak: int
    seconds: float
    """The time that the nodes take which run again."""


class Work:
    """A graph whose nodes stand in the order that they run in, and what of it is alive when."""

    def __init__(self, graph: Graph, seconds: Sequence[float | None]) -> None:
        self.graph = graph
        self.seconds = list(seconds)
        """How long each node takes to run again; None for one that must not."""
        self.needed = bytes_while(graph, range(len(graph.nodes)))
        self.maker = {value: i for i, node in enumerate(graph.nodes) for value in node.outputs}

    def excess(self, budget: int) -> int:
        """The bytes above a budget, summed over all nodes."""
        return sum(max(0, needed - budget) for needed in self.needed)

    def next_read(self, value: int, after: int) -> int | None:
        """The first node after some node that reads a value."""
        return next((i for i in self.graph.readers[value] if i > after), None)

    def idle(self, at: int) -> Iterator[tuple[int, int]]:
        """The values that are alive at a node, and not used there; each with the node that reads it next."""
        node = self.graph.nodes[at]
        for value, maker in self.maker.items():
            if maker < at and value not in node.inputs and value not in self.graph.kept and self.graph.sizes[value]:
                following = self.next_read(value, at)
                if following is not None:
                    yield value, following

    def chain(self, value: int, before: int) -> tuple[int, ...] | None:
        """The nodes to run again for a value: its maker, and those of what is dead by then; None where they may not."""
        found: set[int] = set()
        pending = [value]
        while pending:
            maker = self.maker.get(pending.pop())
            if maker in found:
                continue
            if maker is None or self.seconds[maker] is None or len(found) == CHAIN:
                return None
            found.add(maker)
            for source in self.graph.nodes[maker].inputs:
                if source in self.graph.kept or self.next_read(source, before - 1) is not None:
                    continue  # it is there then
                if source in self.graph.donated or SMALL * self.graph.sizes[source] > self.graph.sizes[value]:
                    pending.append(source)
        return tuple(sorted(found))

    def time(self, nodes: Sequence[int]) -> float:
        """How long some nodes take to run again."""
        return sum(self.seconds[i] or 0.0 for i in nodes)

    def then(self, step: Again) -> Work:
        """What becomes of the graph after a step."""
        nodes, sizes = list(self.graph.nodes), dict(self.graph.sizes)
        renamed: dict[int, int] = {}
        copies: list[Node] = []
        for index in step.nodes:
            node = nodes[index]
            for value in node.outputs:
                if value not in self.graph.kept:
                    renamed[value] = len(sizes)
                    sizes[len(sizes)] = sizes[value]
            copies.append(_reading(node, renamed, made=True))
        later = [_reading(node, renamed) for node in nodes[step.before :]]
        # What nothing reads of the copies is not made.
        read = {value for node in (*copies, *later) for value in node.inputs}
        new = read.intersection(renamed.values())
        copies = [
            replace(
                c, outputs=tuple(v for v in c.outputs if v in new), reuses=tuple(p for p in c.reuses if p[0] in new)
            )
            for c in copies
        ]
        count = len(copies)
        edges = tuple(
            (_moved_position(a, step, count), _moved_position(b, step, count)) for a, b in self.graph.must_follow
        )
        graph = replace(self.graph, nodes=(*nodes[: step.before], *copies, *later), sizes=sizes, must_follow=edges)
        seconds = [self.seconds[i] for i in step.nodes]
        return Work(graph, [*self.seconds[: step.before], *seconds, *self.seconds[step.before :]])


def _reading(node: Node, renamed: dict[int, int], *, made: bool = False) -> Node:
    """A node that reads values under their new names, and makes them if it is a copy."""

    def new(value: int) -> int:
        return renamed.get(value, value)

    return replace(
        node,
        inputs=tuple(new(v) for v in node.inputs),
        outputs=tuple(new(v) for v in node.outputs) if made else node.outputs,
        reuses=tuple((new(o) if made else o, new(i)) for o, i in node.reuses),
    )


def _moved_position(node: int, step: Again, count: int) -> int:
    return node if node < step.before else node + count


def rematerialize(graph: Graph, seconds: Sequence[float | None], budget: int) -> Rematerialization:
    """Steps after which at most `budget` bytes are alive at once, or about as few as can be reached.

    The nodes run in the graph's own order. `seconds` says how long each takes to run again, None that it must not.
    """
    if budget < 0:
        raise UsageError(f"A budget of {budget} bytes is negative.")
    start = Work(graph, seconds)
    found = _towards(start, max(budget, least_bytes(graph)))
    if found.peak > budget:
        # Steps that lowered nothing but single nodes are not worth their time.
        again = _towards(start, found.peak)
        found = again if again.peak <= found.peak else found
    return found


def _towards(work: Work, target: int) -> Rematerialization:
    steps: list[Again] = []
    given, seconds = max(work.needed, default=0), 0.0
    while (excess := work.excess(target)) > 0:
        found = _next_step(work, target, excess)
        if found is None:
            break
        steps.append(found[0])
        seconds += work.time(found[0].nodes)
        work = found[1]
    return Rematerialization(tuple(steps), given, max(work.needed, default=0), seconds)


def _next_step(work: Work, target: int, excess: int) -> tuple[Again, Work] | None:
    """The step that frees most bytes per second at one of the highest nodes, and what becomes of the graph."""
    tops = sorted((i for i, needed in enumerate(work.needed) if needed > target), key=lambda i: -work.needed[i])
    for at in _apart(tops):
        ranked: list[tuple[float, int, Again]] = []
        for value, following in work.idle(at):
            if (nodes := work.chain(value, following)) is not None:
                worth = work.graph.sizes[value] / max(work.time(nodes), 1e-12)
                ranked.append((-worth, value, Again(nodes, following)))
        for _, _, step in sorted(ranked, key=lambda r: r[:2])[:CANDIDATES]:
            after = work.then(step)
            if excess - after.excess(target) >= LEAST_GAIN * excess:
                return step, after
    return None


def _apart(nodes: Sequence[int]) -> list[int]:
    chosen: list[int] = []
    for node in nodes:
        if len(chosen) == PLACES:
            break
        if all(abs(node - other) > CANDIDATES for other in chosen):
            chosen.append(node)
    return chosen
