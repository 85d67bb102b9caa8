"""Greedy offsets: buffers one after another, each placed once.

Two ways to place: into a gap between what is placed already, in a fixed order; or bottom up, where the buffer that can
lie lowest comes next. `greedy` tries several of `TRIES` and keeps the best. The work grows with the pairs of buffers
that live together; where those are too many (a long training step keeps thousands of activations), `sweep` walks
through time with a list of free holes, in n log n.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

import numpy as np

from gcomp.memory.orders import Features, ranking
from gcomp.memory.problem import Ints, Problem, peak_of
from gcomp.memory.sections import Neighbourhoods, degrees, sections_of

FAR = 2**61
"""An offset above everything."""

PAIRS = 8_000_000
"""Most pairs of buffers that live together for which neighbours are listed."""

PLACEMENTS = 150_000
"""Buffers placed over all tries of one problem, at least one try: keeps large programs within seconds."""

PAIRS_PER_PLACEMENT = 80
"""Looking at so many neighbours takes as long as placing a buffer does besides."""


def features_of(problem: Problem) -> Features:
    """What orders are made from."""
    sections = sections_of(problem.lower, problem.upper)
    pressure = sections.greatest(sections.sums(problem.size), np.arange(len(problem)))
    degree = degrees(problem.lower, problem.upper)
    arrays = (problem.size, problem.upper - problem.lower, pressure, degree, problem.lower)
    return Features(*(array.astype(np.float64) for array in arrays))


def gap(lows: Ints, highs: Ints, size: int, alignment: int, tightest: bool) -> int:
    """An aligned offset for `size` bytes between the intervals `lows` to `highs`, which may overlap each other."""
    if not len(lows):
        return 0
    order = np.argsort(lows, kind="stable")
    starts = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(highs[order])])
    if alignment > 1:
        starts = -(-starts // alignment) * alignment
    room = np.append(lows[order], FAR) - starts
    fits = np.flatnonzero(room >= size)
    return int(starts[fits[room[fits].argmin()] if tightest else fits[0]])


def into_gaps(problem: Problem, near: Neighbourhoods, order: Ints, tightest: bool) -> Ints:
    """Offsets of all buffers, each put into the tightest or the lowest gap that is large enough, in an order."""
    size, alignment, offsets = problem.size, problem.alignment, problem.fixed.copy()
    for buffer in order.tolist():
        if problem.fixed[buffer] >= 0:
            continue
        others = near.of(buffer)
        lows = offsets[others]
        there = lows >= 0
        lows = lows[there]
        highs = lows + size[others[there]]
        offsets[buffer] = gap(lows, highs, int(size[buffer]), int(alignment[buffer]), tightest)
    return offsets


def bottom_up(problem: Problem, near: Neighbourhoods, order: Ints) -> Ints:
    """Offsets of all buffers: again and again the one that can lie lowest, ties by the order."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    size, alignment = problem.size[order], problem.alignment[order]
    lowest = np.where(problem.fixed[order] >= 0, FAR, 0)
    offsets = problem.fixed.copy()
    any_fixed = bool((offsets >= 0).any())
    for _ in range(len(order) * (len(order) + 1)):
        at = int(lowest.argmin())
        offset, buffer = int(lowest[at]), int(order[at])
        if offset >= FAR:
            break
        others = near.of(buffer)
        end = offset + int(size[at])
        if any_fixed:
            # Fixed buffers are in the way, and not below: what would meet one goes above it.
            fixed = problem.fixed[others]
            tops = fixed + problem.size[others]
            tops = tops[(fixed >= 0) & (fixed < end) & (tops > offset)]
            if len(tops):
                lowest[at] = -(-int(tops.max()) // int(alignment[at])) * int(alignment[at])
                continue
        offsets[buffer] = offset
        lowest[at] = FAR
        raised = rank[others]
        step = alignment[raised]
        lowest[raised] = np.maximum(lowest[raised], -(-end // step) * step)
    return offsets


PLACERS: dict[str, Callable[[Problem, Neighbourhoods, Ints], Ints]] = {
    "bottom up": bottom_up,
    "tightest gap": lambda problem, near, order: into_gaps(problem, near, order, True),
    "lowest gap": lambda problem, near, order: into_gaps(problem, near, order, False),
}

TRIES: tuple[tuple[str, str], ...] = (
    ("bottom up", "TWA"),
    ("tightest gap", "ZW"),
    ("lowest gap", "SZW"),
    ("bottom up", "WAT"),
    ("bottom up", "TAW"),
    ("tightest gap", "BZ"),
    ("lowest gap", "ZW"),
    ("tightest gap", "AZ"),
    ("lowest gap", "WZ"),
)
"""What is tried, the most promising first: a placer, and an order by the letters of `orders.KEYS`."""


def tries(problem: Problem) -> Iterator[tuple[str, Ints]]:
    """Offsets by each try, with its name."""
    pairs = int(degrees(problem.lower, problem.upper).sum()) // 2
    if pairs > PAIRS:
        for backwards in (False, True):
            yield "sweep backwards" if backwards else "sweep", sweep(problem, backwards)
        return
    near = Neighbourhoods(problem.lower, problem.upper)
    features = features_of(problem)
    cost = len(problem) + pairs // PAIRS_PER_PLACEMENT
    for placer, word in TRIES[: max(1, PLACEMENTS // cost)]:
        yield f"{placer} by {word}", PLACERS[placer](problem, near, ranking(features, word))


def greedy(problem: Problem, goal: int) -> tuple[Ints, str]:
    """The offsets with the lowest peak over the tries, up to the first that reaches the goal; and what found them."""
    best: tuple[int, Ints, str] | None = None
    for name, offsets in tries(problem):
        peak = peak_of(problem, offsets)
        if best is None or peak < best[0]:
            best = (peak, offsets, name)
        if peak <= goal:
            break
    assert best is not None
    return best[1], f"greedy, {best[2]}"


class Holes:
    """Free bytes of an arena without end, by offset and by length."""

    def __init__(self, start: int) -> None:
        self.by_offset: list[tuple[int, int]] = []
        self.by_length: list[tuple[int, int]] = []
        self.add(start, FAR)

    def take(self, size: int) -> int:
        """The offset of so many bytes, out of the smallest hole that has them."""
        length, offset = self.by_length[bisect_left(self.by_length, (size, -1))]
        self.remove(offset, length)
        if length > size:
            self.add(offset + size, length - size)
        return offset

    def give(self, offset: int, size: int) -> None:
        """Free some bytes, and join them with the holes beside them."""
        at = bisect_left(self.by_offset, (offset, 0))
        after = self.by_offset[at] if at < len(self.by_offset) else (-1, 0)
        before = self.by_offset[at - 1] if at else (-1, 0)
        if after[0] == offset + size:
            self.remove(*after)
            size += after[1]
        if before[0] + before[1] == offset:
            self.remove(*before)
            offset, size = before[0], before[1] + size
        self.add(offset, size)

    def add(self, offset: int, length: int) -> None:
        insort(self.by_offset, (offset, length))
        insort(self.by_length, (length, offset))

    def remove(self, offset: int, length: int) -> None:
        del self.by_offset[bisect_left(self.by_offset, (offset, length))]
        del self.by_length[bisect_left(self.by_length, (length, offset))]


def sweep(problem: Problem, backwards: bool) -> Ints:
    """Offsets as an allocator would give them that meets the buffers in time: the smallest hole that is large enough.

    Of buffers born together the longest-lived come first. All sizes are rounded up to a multiple of every alignment,
    and nothing is put below the end of a buffer with a fixed offset.
    """
    unit = int(np.lcm.reduce(problem.alignment))
    size = -(-problem.size // unit) * unit
    fixed_end = int(np.where(problem.fixed >= 0, problem.fixed + problem.size, 0).max())
    holes = Holes(-(-fixed_end // unit) * unit)
    births, deaths = (-problem.upper, -problem.lower) if backwards else (problem.lower, problem.upper)
    movable = np.flatnonzero(problem.fixed < 0).tolist()
    events = [(int(deaths[b]), 0, 0, b) for b in movable] + [(int(births[b]), 1, -int(deaths[b]), b) for b in movable]
    offsets = problem.fixed.copy()
    for _, begins, _, buffer in sorted(events):
        if begins:
            offsets[buffer] = holes.take(int(size[buffer]))
        else:
            holes.give(int(offsets[buffer]), int(size[buffer]))
    return offsets
