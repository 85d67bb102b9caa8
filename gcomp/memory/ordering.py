"""`order`: a sequence of a graph's nodes with a low peak of live bytes, never above that of the given one.

A node that every other node leads to or comes from has the same place in every order. Such nodes cut a graph into cells
that are ordered alone, exactly: the peak is the greatest of the cells' peaks. Each cell takes the best of some list
schedules. Then the cells with the highest peaks are searched (`downsets`), as long as that can lower the peak; and
where that was not exact, so are windows of the order around its peak.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from gcomp.errors import UsageError
from gcomp.memory.downsets import Cell, best_order
from gcomp.memory.graph import Graph, Node, bytes_while, peak_of
from gcomp.memory.schedules import SCHEDULES
from gcomp.records import record

MOVES_PER_SECOND = 100_000
"""A second of budget, in moves: as in `search.STEPS_PER_SECOND`, the count is to end a search and not the clock."""

NODES = 4000
"""Most nodes of a cell that is searched whole."""

WINDOWS = (32, 128, 512)
"""Sizes of the window of nodes around a peak that is reordered; the next one is tried where the last did not help."""


@record
class Ordering:
    """Nodes in an order, and what is known of its quality."""

    sequence: tuple[int, ...]
    peak: int
    lower_bound: int
    """No order has a lower peak than this."""
    given_peak: int
    """The peak of the order that the graph came in."""
    method: str
    seconds: float
    out_of_time: bool = False

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak, as far as is proven."""
        return self.peak == self.lower_bound


def cells(graph: Graph) -> list[tuple[int, int]]:
    """Ranges of positions `start <= p < stop` that hold the same nodes in every order.

    The cut behind a node is made where it is the only one of those up to it that nothing of them waits for, and ahead
    of it only it waits for none of those from it on: then all before lead to it, and all after come from it.
    """
    count = len(graph.nodes)
    last_of_prefix = [0] * (count + 1)  # nodes up to p without a successor up to p, as differences
    first_of_suffix = [0] * (count + 1)  # nodes from p on without a predecessor from p on, as differences
    for index in range(count):
        last_of_prefix[index] += 1
        last_of_prefix[min(graph.after[index], default=count)] -= 1
        first_of_suffix[max(graph.before[index], default=-1) + 1] += 1
        first_of_suffix[index + 1] -= 1
    found: list[tuple[int, int]] = []
    start = ends = begins = 0
    for index in range(count):
        ends += last_of_prefix[index]
        begins += first_of_suffix[index]
        if ends == 1 and begins == 1:
            found += [(start, index)] * (start < index) + [(index, index + 1)]
            start = index + 1
    return found + [(start, count)] * (start < count)


def least_bytes(graph: Graph) -> int:
    """Bytes that every order needs: what lives at the end, or the inputs and what some node reads and makes besides."""
    kept = sum(graph.sizes[value] for value in graph.inputs)

    def of(node: Node) -> int:
        made = sum(graph.sizes[value] for value in set(node.outputs) - {output for output, _ in node.reuses})
        read = sum(graph.sizes[value] for value in set(node.inputs) - graph.inputs)
        return kept + made + read + node.workspace

    end = sum(graph.sizes[value] for value in graph.kept)
    return max([end, *(of(node) for node in graph.nodes)])


def list_schedules(graph: Graph, ranges: Sequence[tuple[int, int]]) -> tuple[list[int], list[int], set[str]]:
    """The best of the list schedules, cell by cell; each cell's peak; and the names of those that won."""
    candidates = {"given": list(range(len(graph.nodes)))}
    candidates |= {name: schedule(graph) for name, schedule in SCHEDULES.items()}
    needs = {name: bytes_while(graph, sequence) for name, sequence in candidates.items()}
    sequence: list[int] = []
    peaks: list[int] = []
    names: set[str] = set()
    for start, stop in ranges:
        winner = min(candidates, key=lambda name: max(needs[name][start:stop]))
        sequence += candidates[winner][start:stop]
        peaks.append(max(needs[winner][start:stop]))
        if stop - start > 1:
            names.add(winner)
    return sequence, peaks, names


def lower_peaks(
    graph: Graph, sequence: list[int], cell: tuple[int, int], moves: int, deadline: float
) -> tuple[int, int]:
    """Order windows around the peak of a cell anew, in place, until none helps; its peak and the moves left."""
    start, stop = cell
    size = 0
    while True:
        needed = bytes_while(graph, sequence)[start:stop]
        peak = max(needed)
        if size == len(WINDOWS) or moves <= 0 or time.monotonic() >= deadline:
            return peak, moves
        first = max(start, start + needed.index(peak) - WINDOWS[size] // 2)
        last = min(stop, first + WINDOWS[size])
        window = Cell(graph, sequence[first:last], sequence[:first])
        result = best_order(window, peak, moves, deadline)
        # Setting up a window looks at the whole graph.
        moves -= result.moves + len(graph.nodes)
        if result.order is None:
            size += 1
        else:
            sequence[first:last], size = result.order, 0


def order(graph: Graph, *, seconds: float = 5.0) -> Ordering:
    """A sequence with a low peak, never above that of the given order.

    It depends on the clock only where it says `out_of_time`.
    """
    if not seconds >= 0:
        raise UsageError(f"A budget of {seconds} seconds is not at least zero.")
    begun = time.monotonic()
    ranges = cells(graph)
    sequence, peaks, names = list_schedules(graph, ranges)
    given_peak = peak_of(graph, range(len(graph.nodes)))
    proven, reached = least_bytes(graph), 0
    moves, deadline, exact = int(seconds * MOVES_PER_SECOND), begun + seconds, False
    for at in sorted(range(len(ranges)), key=lambda at: -peaks[at]):
        # What is no higher than a cell that was searched, or than any order, does not count.
        if peaks[at] <= max(proven, reached):
            break
        start, stop = ranges[at]
        if exact := stop - start <= NODES:
            result = best_order(Cell(graph, sequence[start:stop], sequence[:start]), peaks[at], moves, deadline)
            moves, exact = moves - result.moves, result.exact
            if result.order is not None:
                sequence[start:stop], peaks[at] = result.order, result.peak
                names.add("exact" if exact else "beam")
        if exact:
            proven = max(proven, peaks[at])
        else:
            lowered, moves = lower_peaks(graph, sequence, ranges[at], moves, deadline)
            names |= {"windows"} if lowered < peaks[at] else set()
            peaks[at] = lowered
        reached = max(reached, peaks[at])
    peak = peak_of(graph, sequence)
    method = ", ".join(sorted(names)) or "given"
    out_of_time = seconds > 0 and time.monotonic() >= deadline
    return Ordering(tuple(sequence), peak, min(peak, proven), given_peak, method, time.monotonic() - begun, out_of_time)
