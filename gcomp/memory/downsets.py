"""The order of a cell with the lowest peak, over the sets of nodes that can have run (downsets), level by level.

A state is a set of nodes that have run, with the lowest peak known for reaching it: the live bytes are a function of
the set, so two ways to one set are compared by peak alone. This is a dynamic program, and exact, as long as no level
has more than `EXACT_STATES` states; where one has, only the best are kept, by peak and live bytes, and it is a beam
search. States are left out whose peak is no better than the best order known; and where a node can run that neither
adds bytes nor raises the peak, nothing else is tried, since running it later can free no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gcomp.memory.graph import Graph
from gcomp.records import record

EXACT_STATES = 4096
"""Most states of a level while the program may still be exact."""

BEAM = 64
"""States of a level that a beam search keeps."""


class Cell:
    """A run of nodes that some order has next to each other, with what lives before, numbered from 0; sets are bits."""

    def __init__(self, graph: Graph, nodes: Sequence[int], before: Sequence[int]) -> None:
        self.nodes = list(nodes)
        number = {index: at for at, index in enumerate(self.nodes)}
        earlier = set(before)
        self.waits = [sum(1 << number[n] for n in graph.before[index] if n in number) for index in self.nodes]
        self.after = [[number[n] for n in graph.after[index] if n in number] for index in self.nodes]
        self.workspace = [graph.nodes[index].workspace for index in self.nodes]
        self.sizes = graph.sizes
        self.outputs = [graph.nodes[index].outputs for index in self.nodes]
        self.inputs = [tuple(dict.fromkeys(graph.nodes[index].inputs)) for index in self.nodes]
        self.reuses = [graph.nodes[index].reuses for index in self.nodes]
        self.made = [sum(graph.sizes[value] for value in outputs) for outputs in self.outputs]
        touched = {value for at in range(len(self.nodes)) for value in (*self.inputs[at], *self.outputs[at])}
        self.readers: dict[int, int] = {}
        """The readers of each value that dies in the cell."""
        for value in touched - graph.kept:
            readers = [n for n in graph.readers[value] if n not in earlier]
            if all(n in number for n in readers):
                self.readers[value] = sum(1 << number[n] for n in readers)
        self.live = live_after(graph, before)
        self._others = [0] * len(self.nodes)
        """The nodes that read what a node reads."""
        for at, inputs in enumerate(self.inputs):
            for value in inputs:
                self._others[at] |= self.readers.get(value, 0)
        self._runs: dict[tuple[int, int], tuple[int, int]] = {}

    def run(self, done: int, at: int) -> tuple[int, int]:
        """(bytes while a node runs beyond what lives, growth of what lives), after a set of nodes has run."""
        key = at, done & self._others[at]
        found = self._runs.get(key)
        if found is None:
            found = self._runs[key] = self._run(*key)
        return found

    def _run(self, at: int, done: int) -> tuple[int, int]:
        after = done | 1 << at
        dying = [v for v in self.inputs[at] if v in self.readers and not self.readers[v] & ~after]
        reused: set[int] = set()
        saved: dict[int, int] = {}
        for output, value in self.reuses[at]:
            fits = value in dying and self.sizes[output] <= self.sizes[value]
            if fits and value not in reused and output not in saved:
                reused.add(value)
                saved[output] = self.sizes[output]
        dead = sum(self.sizes[v] for v in self.outputs[at] if self.readers.get(v, -1) == 0)
        growth = self.made[at] - dead - sum(self.sizes[v] for v in dying)
        return self.made[at] - sum(saved.values()) + self.workspace[at], growth

    def ready(self, done: int, ready: int, at: int) -> int:
        """The nodes that can run once a node of those ready has run."""
        done, ready = done | 1 << at, ready & ~(1 << at)
        for node in self.after[at]:
            if not self.waits[node] & ~done:
                ready |= 1 << node
        return ready


def live_after(graph: Graph, before: Sequence[int]) -> int:
    """The bytes that live after some nodes have run, and before the next."""
    done = set(before)
    made = {value for index in before for value in graph.nodes[index].outputs} | graph.inputs | graph.donated
    alive = (v for v in made if v in graph.kept or any(n not in done for n in graph.readers[v]))
    return sum(graph.sizes[value] for value in alive)


@dataclass(frozen=True, slots=True)
class State:
    """A set of nodes that have run, and the best way known to it."""

    done: int
    ready: int
    live: int
    peak: int
    last: int
    previous: State | None


@record
class Result:
    """A better order of a cell, if one was found, and whether there is no better one than it, or than the known."""

    order: list[int] | None
    peak: int
    exact: bool
    moves: int
    """How many times a node was tried after a set."""
    out_of_time: bool = False


def bits(members: int) -> Iterator[int]:
    """The numbers in a set."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def following(cell: Cell, state: State, below: int) -> Iterator[State]:
    """The states one node further with a peak below some bytes; only one where a node is free to run."""
    found: list[State] = []
    for at in bits(state.ready):
        needed, growth = cell.run(state.done, at)
        peak = max(state.peak, state.live + needed)
        if peak < below:
            ready = cell.ready(state.done, state.ready, at)
            following = State(state.done | 1 << at, ready, state.live + growth, peak, at, state)
            if growth <= 0 and peak == state.peak:
                yield following
                return
            found.append(following)
    yield from found


def next_level(cell: Cell, level: list[State], below: int) -> list[State]:
    """The sets with one node more, each with the best way to it."""
    reached: dict[int, State] = {}
    for state in level:
        for one in following(cell, state, below):
            rival = reached.get(one.done)
            if rival is None or one.peak < rival.peak:
                reached[one.done] = one
    return list(reached.values())


def path(cell: Cell, state: State | None) -> list[int]:
    """The nodes on the way to a state."""
    order: list[int] = []
    while state is not None and state.last >= 0:
        order.append(cell.nodes[state.last])
        state = state.previous
    return order[::-1]


def best_order(cell: Cell, known: int, moves: int, deadline: float) -> Result:
    """The order of a cell with the lowest peak below `known`, within a number of moves and a time."""
    roots = sum(1 << at for at in range(len(cell.nodes)) if not cell.waits[at])
    level = [State(0, roots, cell.live, cell.live, -1, None)]
    exact, made, width = True, 0, EXACT_STATES
    for depth in range(len(cell.nodes)):
        made += (cost := sum(state.ready.bit_count() for state in level))
        level = next_level(cell, level, known)
        if not level:
            return Result(None, known, exact, made)
        if time.monotonic() >= deadline:
            return Result(None, known, False, made, out_of_time=True)
        if made > moves:
            return Result(None, known, False, made)
        if len(level) > width:
            # So wide that what is left of the moves lasts to the end.
            affordable = (moves - made) * len(level) // (max(1, cost) * (len(cell.nodes) - depth))
            exact, width = False, min(BEAM, max(1, affordable))
            level = sorted(level, key=lambda state: (state.peak, state.live, state.done))[:width]
    (end,) = level
    return Result(path(cell, end), end.peak, exact, made)
