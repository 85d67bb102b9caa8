"""List schedules: orders of a whole graph by a rule, in about linear time. `SCHEDULES` is the table of rules."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from gcomp.memory.graph import Graph

LOOKAHEAD = 8
"""Nodes that `smallest_growth` looks down a chain."""


def produced_bytes(graph: Graph) -> list[int]:
    """For each node, the bytes of what it makes and something reads, or that lives on."""
    return [
        sum(graph.sizes[value] for value in node.outputs if graph.readers[value] or value in graph.kept)
        for node in graph.nodes
    ]


def smallest_growth(graph: Graph) -> list[int]:
    """Again and again the ready node that leaves the fewest bytes more, at the lowest point of the chain it begins.

    A node's growth is what it makes less what dies with it. Looking down the chain of nodes that only wait for it finds
    that a large tensor is about to be reduced.
    """
    made = produced_bytes(graph)
    waiting = [len(before) for before in graph.before]
    left = {value: len(readers) for value, readers in graph.readers.items()}
    last_reader = {value: sum(readers) for value, readers in graph.readers.items()}
    done = [False] * len(graph.nodes)

    def growth(index: int) -> int:
        dying = (v for v in set(graph.nodes[index].inputs) if left[v] == 1 and v not in graph.kept)
        return made[index] - sum(graph.sizes[v] for v in dying)

    def score(index: int) -> tuple[int, int, int]:
        total = growth(index)
        lowest, highest, at = total, total, index
        for _ in range(LOOKAHEAD):
            following = [node for node in graph.after[at][:LOOKAHEAD] if waiting[node] == 1]
            if not following:
                break
            at = min(following, key=growth)
            total += growth(at)
            lowest, highest = min(lowest, total), max(highest, total)
        return lowest, highest, index

    heap = [score(index) for index, count in enumerate(waiting) if count == 0]
    heap.sort()
    sequence: list[int] = []
    while heap:
        index = heappop(heap)[2]
        if done[index]:
            continue
        done[index] = True
        sequence.append(index)
        changed: list[int] = []
        for value in set(graph.nodes[index].inputs):
            left[value] -= 1
            last_reader[value] -= index
            if left[value] == 1:
                changed.append(last_reader[value])
        for node in graph.after[index]:
            waiting[node] -= 1
            changed.append(node)
        for node in changed:
            if waiting[node] == 0 and not done[node]:
                heappush(heap, score(node))
    return sequence


def depth_first(graph: Graph) -> list[int]:
    """Each node as late as its first reader needs it, what needs most bytes first (Sethi and Ullman's for trees)."""
    made = produced_bytes(graph)
    need = [0] * len(graph.nodes)
    ranked: list[list[int]] = []
    for index, node in enumerate(graph.nodes):
        children = sorted(graph.before[index], key=lambda child: (made[child] - need[child], child))
        held = most = 0
        for child in children:
            most = max(most, held + need[child])
            held += made[child]
        need[index] = max(most, held + made[index] + node.workspace)
        ranked.append(children)
    done = [False] * len(graph.nodes)
    sequence: list[int] = []
    for sink in (index for index, after in enumerate(graph.after) if not after):
        stack: list[tuple[int, int]] = [(sink, 0)]
        while stack:
            index, at = stack.pop()
            if done[index]:
                continue
            if at < len(ranked[index]):
                stack += [(index, at + 1), (ranked[index][at], 0)]
            else:
                done[index] = True
                sequence.append(index)
    return sequence


def backwards(graph: Graph) -> list[int]:
    """From the last node to the first: again and again the node that needs the fewest bytes more before it than after.

    A node's growth, seen backwards, is what it reads that nothing later reads, less what it makes.
    """
    made = produced_bytes(graph)
    waiting = [len(after) for after in graph.after]
    live = set(graph.kept)
    done = [False] * len(graph.nodes)

    def score(index: int) -> tuple[int, int]:
        read = (value for value in set(graph.nodes[index].inputs) if value not in live)
        return sum(graph.sizes[value] for value in read) - made[index], -index

    heap = sorted(score(index) for index, count in enumerate(waiting) if count == 0)
    sequence: list[int] = []
    while heap:
        index = -heappop(heap)[1]
        if done[index]:
            continue
        done[index] = True
        sequence.append(index)
        changed = list(graph.before[index])
        for node in changed:
            waiting[node] -= 1
        for value in set(graph.nodes[index].inputs) - live:
            live.add(value)
            # What reads it too has become cheaper; a value with many readers is read again soon enough.
            changed += graph.readers[value][:LOOKAHEAD]
        for node in changed:
            if waiting[node] == 0 and not done[node]:
                heappush(heap, score(node))
    return sequence[::-1]


SCHEDULES: dict[str, Callable[[Graph], list[int]]] = {
    "smallest growth": smallest_growth,
    "depth first": depth_first,
    "backwards": backwards,
}
