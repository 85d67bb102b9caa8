"""The problem of order: nodes that make values from values, and how many bytes are alive while each runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gcomp.errors import UsageError
from gcomp.records import record


@dataclass(frozen=True, slots=True)
class Node:
    """Reads the values `inputs` and makes the values `outputs`, with `workspace` bytes while it runs.

    `reuses` are pairs (output, input): the output may lie on the input's bytes if the input dies here and is no
    smaller. Each input is reused once, by the first pair that may.
    """

    name: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    workspace: int = 0
    reuses: tuple[tuple[int, int], ...] = ()


@record
class Graph:
    """Nodes in an order that is possible, the one to beat; and the bytes of each value."""

    nodes: tuple[Node, ...]
    sizes: Mapping[int, int]
    inputs: frozenset[int] = frozenset()
    """Values that exist before the first node; they live to the end."""
    donated: frozenset[int] = frozenset()
    """Values that exist before the first node, and die after their last use."""
    outputs: frozenset[int] = frozenset()
    """Values that live to the end once they are made."""
    must_follow: tuple[tuple[int, int], ...] = field(default=())
    """Pairs (earlier, later) of nodes, by index, beyond what values demand."""

    def __post_init__(self) -> None:
        made = Counter(value for node in self.nodes for value in node.outputs)
        for value in (*self.inputs, *self.donated):
            made[value] += 1
        for value, count in made.items():
            if count > 1:
                raise UsageError(f"Value {value} has {count} sources.", fix="give each value one node or one input")
        for node in self.nodes:
            if node.workspace < 0:
                raise UsageError("A workspace has negative size.", where=f"node {node.name!r}")
            for output, reused in node.reuses:
                if output not in node.outputs or reused not in node.inputs:
                    raise UsageError("A node reuses what it does not read or make.", where=f"node {node.name!r}")
        used = {value for node in self.nodes for value in node.inputs} | self.outputs
        for value in sorted(used | set(made)):
            if value not in made:
                raise UsageError(f"Value {value} is used, and nothing makes it.")
            if self.sizes.get(value, -1) < 0:
                raise UsageError(f"Value {value} has no size, or a negative one.")
        count = len(self.nodes)
        if any(not 0 <= node < count for pair in self.must_follow for node in pair):
            raise UsageError(f"An edge is between nodes that do not exist; there are {count}.")
        if (index := first_too_early(self, range(count))) is not None:
            raise UsageError("The given order is not possible.", where=f"node {self.nodes[index].name!r}",
                             why="it runs before what it needs, or the edges form a cycle")  # fmt: skip

    @cached_property
    def kept(self) -> frozenset[int]:
        """Values that never die."""
        return self.inputs | self.outputs

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """The nodes that read each value, without repetition."""
        readers: dict[int, list[int]] = {value: [] for value in self.sizes}
        for index, node in enumerate(self.nodes):
            for value in dict.fromkeys(node.inputs):
                readers[value].append(index)
        return readers

    @cached_property
    def before(self) -> list[list[int]]:
        """The nodes that each node directly waits for."""
        maker = {value: index for index, node in enumerate(self.nodes) for value in node.outputs}
        before = [[maker[value] for value in node.inputs if value in maker] for node in self.nodes]
        for earlier, later in self.must_follow:
            before[later].append(earlier)
        return [list(dict.fromkeys(nodes)) for nodes in before]

    @cached_property
    def after(self) -> list[list[int]]:
        """The nodes that directly wait for each node."""
        after: list[list[int]] = [[] for _ in self.nodes]
        for index, nodes in enumerate(self.before):
            for node in nodes:
                after[node].append(index)
        return after


def first_too_early(graph: Graph, sequence: Iterable[int]) -> int | None:
    """The first node of a sequence that runs before a node it waits for, if there is one."""
    done: set[int] = set()
    for index in sequence:
        if not done.issuperset(graph.before[index]):
            return index
        done.add(index)
    return None


def bytes_while(graph: Graph, sequence: Sequence[int]) -> list[int]:
    """The bytes alive while each node of a sequence runs: what was, what it makes beyond reuse, and its workspace."""
    if sorted(sequence) != list(range(len(graph.nodes))) or first_too_early(graph, sequence) is not None:
        raise UsageError("This is no order of the graph's nodes: one is missing, doubled, or before what it waits for.")
    left = {value: len(readers) for value, readers in graph.readers.items()}
    alive = graph.inputs | {value for value in graph.donated if left[value] or value in graph.outputs}
    live = sum(graph.sizes[value] for value in alive)
    needed: list[int] = []
    for index in sequence:
        node = graph.nodes[index]
        for value in set(node.inputs):
            left[value] -= 1
        dying = {value for value in node.inputs if left[value] == 0 and value not in graph.kept}
        reused: dict[int, int] = {}
        for output, value in node.reuses:
            fits = value in dying and graph.sizes[output] <= graph.sizes[value]
            if fits and value not in reused.values() and output not in reused:
                reused[output] = value
        live += sum(graph.sizes[value] for value in node.outputs)
        needed.append(live - sum(graph.sizes[output] for output in reused) + node.workspace)
        dying |= {value for value in node.outputs if left[value] == 0 and value not in graph.kept}
        live -= sum(graph.sizes[value] for value in dying)
    return needed


def peak_of(graph: Graph, sequence: Sequence[int]) -> int:
    """The most bytes alive at once, when the nodes run in a sequence."""
    idle = sum(graph.sizes[value] for value in graph.kept)
    return max(bytes_while(graph, sequence), default=idle)
