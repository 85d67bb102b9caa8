"""Exact search for offsets within a capacity, in the manner of MiniMalloc (Moffitt, ASPLOS 2023).

Buffers are placed from the bottom up. `lowest[b]` is the least offset that buffer b can still have: the greatest end
of a placed buffer that it lives together with. The search puts one buffer after another at its lowest offset, and tries
them by (lowest offset, rank in a static order). It leaves out

- what is not canonical: offsets never decrease on the way down, nor do ranks at equal offsets, so that each packing is
  reached by one sequence only;
- what is dominated: a buffer whose lowest offset is at or above the top of another that could lie under it;
- what cannot fit: in each section the lowest offset of what is left, and the offset of what comes next, plus the sum of
  what is left must be within the capacity (section by section inference);
- the brothers of a buffer that nothing is left to lie on: if it fails, so will they.

Where nothing that is left spans two neighbouring sections, the sides are independent, and are solved alone. Several
orders take turns, each going on from where it was stopped, and so do short searches by shaken orders (`Turns`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from gcomp.memory.orders import Features, Floats, ranking
from gcomp.memory.problem import Ints, Problem
from gcomp.memory.sections import Neighbourhoods, degrees, sections_of
from gcomp.records import record

PLACED = 2**62
"""The lowest offset of a placed buffer: above everything."""

ORDERS: tuple[str, ...] = ("WAT", "TAW", "TWA")
"""Orders by the letters of `orders.KEYS`, each with an endless search of its own."""

SHAKEN: tuple[str, ...] = ("W", "T", "A")
"""Orders of the short searches; each score is multiplied by a random factor within `SHAKE` of 1."""
SHAKE = 0.3
GROWTH = 1.1
"""How much longer than the last a short search is. The first has as many steps as twice the buffers."""
SEED = 6

SLICE = 512
"""Steps between two looks at the clock. A turn has as many, or one for each buffer."""

BUFFERS = 20_000
"""Most buffers for which the search is begun: a walk down takes some seconds then."""

STEPS_PER_SECOND = 50_000
"""A second of budget, in steps. The count and not the clock ends a search on a machine that is fast enough, so that
the same problem and the same budget give the same plan."""


@dataclass
class Budget:
    """Steps and a time that searches may use together."""

    steps: int
    deadline: float
    out_of_time: bool = False

    @classmethod
    def of(cls, seconds: float, start: float) -> Budget:
        """A budget for so many seconds since a start."""
        return cls(int(seconds * STEPS_PER_SECOND), start + seconds)

    def left(self, steps: int) -> int:
        """How many of some steps may be made now."""
        self.out_of_time = self.out_of_time or time.monotonic() >= self.deadline
        return 0 if self.out_of_time else min(steps, self.steps)


@dataclass(frozen=True, slots=True)
class Near:
    """What placing one buffer touches."""

    size: int
    first: int
    last: int
    """It spans the sections `first <= s < last`."""
    buffers: Ints
    """Those that live together with it."""
    low: int
    high: int
    """They span the sections `low <= s < high` together,"""
    members: Ints
    starts: Ints
    """which have these members, as in `Sections`."""


class Layout:
    """Arrays of a problem that do not change in a search."""

    def __init__(self, problem: Problem) -> None:
        self.size = problem.size
        self.width = problem.upper - problem.lower
        self.lower = problem.lower
        self.alignment = problem.alignment
        self.degree = degrees(problem.lower, problem.upper)
        self.fixed = problem.fixed
        self.aligned = bool((self.alignment > 1).any())
        self.any_fixed = bool((self.fixed >= 0).any())
        self.sections = sections_of(problem.lower, problem.upper)
        neighbourhoods = Neighbourhoods(problem.lower, problem.upper)
        self.near = [self.nearby(buffer, neighbourhoods.of(buffer)) for buffer in range(len(problem))]

    def nearby(self, buffer: int, others: Ints) -> Near:
        """What placing a buffer touches."""
        sections = self.sections
        first, last = int(sections.first[buffer]), int(sections.last[buffer])
        low = min(first, int(sections.first[others].min(initial=first)))
        high = max(last, int(sections.last[others].max(initial=last)))
        starts = sections.starts[low : high + 1]
        members = sections.members[starts[0] : starts[-1]]
        return Near(int(self.size[buffer]), first, last, others, low, high, members, starts[:-1] - starts[0])


@dataclass(frozen=True, slots=True)
class Part:
    """Unplaced buffers that live together with no other unplaced one, by rank, and the sections that they span."""

    ranked: Ints
    low: int
    high: int
    parent: int
    """The depth of the frame whose choice made this part: where to go back to if it cannot be solved."""


@dataclass(slots=True)
class Frame:
    """One choice on the way down: which buffer of a part comes next."""

    part: Part
    left: int
    """How many buffers of the part are not placed yet."""
    choices: list[tuple[int, int]]
    """(offset, rank) of what may come next, in the order of trial."""
    waiting: tuple[Part, ...]
    """Parts to be solved after this one."""
    parent: int
    tried: int = 0
    placed: int = -1
    offset: int = 0
    before: Ints | None = None
    """The lowest offsets of the placed buffer's neighbours before it was placed."""


class Search:
    """One order's walk through the packings within a capacity; `run` goes on from where the last one stopped."""

    def __init__(self, layout: Layout, capacity: int, order: str, factors: Floats | None = None) -> None:
        self.layout = layout
        self.capacity = capacity
        self.order = order
        self.factors = np.ones(len(layout.size)) if factors is None else factors
        self.offsets = np.zeros(len(layout.size), np.int64)
        sections, count = layout.sections, len(layout.size)
        # One index more than buffers, which closes each section at the capacity: see `Sections.members`.
        self.lowest = np.append(np.maximum(layout.fixed, 0), capacity)
        self.room = capacity - sections.sums(layout.size)
        """The greatest offset from which what is unplaced in a section still fits."""
        crossing = np.zeros(sections.count + 1, np.int64)
        np.add.at(crossing, sections.first + 1, 1)
        np.add.at(crossing, sections.last, -1)
        self.crossing = np.cumsum(crossing)
        """How many unplaced buffers live in both section s - 1 and s."""
        self.frames: list[Frame] = []
        self.solved = False
        self.exhausted = count > 0 and int(self.room.min()) < 0
        if not self.exhausted:
            self.open(self.parts(np.arange(count), -1))

    @property
    def over(self) -> bool:
        """Whether it is known if there is a packing."""
        return self.solved or self.exhausted

    def run(self, steps: int) -> int:
        """Walk on for so many steps, or to the end; returns the steps made."""
        for step in range(steps):
            if self.over:
                return step
            self.step()
        return steps

    def step(self) -> None:
        """Try the next choice of the deepest frame."""
        frame = self.frames[-1]
        hatless = frame.placed >= 0 and self.undo(frame)
        if hatless or frame.tried == len(frame.choices):
            self.give_up(frame)
            return
        offset, rank = frame.choices[frame.tried]
        frame.tried += 1
        buffer = int(frame.part.ranked[rank])
        if not self.place(frame, buffer, offset):
            return
        near, depth = self.layout.near[buffer], len(self.frames) - 1
        if frame.left == 1:
            self.open(frame.waiting)
        elif self.crossing[near.first + 1 : near.last].all():
            self.frames.append(self.frame(frame.part, frame.left - 1, frame.waiting, depth, offset, rank))
        else:
            ranked = frame.part.ranked
            self.open(self.parts(ranked[self.lowest[ranked] < PLACED], depth) + frame.waiting)

    def place(self, frame: Frame, buffer: int, offset: int) -> bool:
        """Put a buffer at its lowest offset; False where the rest cannot fit any more (the next step takes it back)."""
        layout, near, lowest = self.layout, self.layout.near[buffer], self.lowest
        frame.placed, frame.offset = buffer, offset
        self.offsets[buffer] = offset
        self.room[near.first : near.last] += near.size
        self.crossing[near.first + 1 : near.last] -= 1
        frame.before = lowest[near.buffers]
        raised = np.maximum(frame.before, offset + near.size)
        if layout.aligned:
            alignment = layout.alignment[near.buffers]
            raised = np.where(raised < PLACED, -(-raised // alignment) * alignment, PLACED)
        lowest[near.buffers] = raised
        lowest[buffer] = PLACED
        if layout.any_fixed:
            fixed = layout.fixed[near.buffers]
            if ((fixed >= 0) & (raised > fixed) & (raised < PLACED)).any():
                return False
        floor = np.minimum.reduceat(lowest[near.members], near.starts)
        return not (floor > self.room[near.low : near.high]).any()

    def undo(self, frame: Frame) -> bool:
        """Take back a frame's buffer; whether nothing was left to lie on it."""
        near, before = self.layout.near[frame.placed], frame.before
        assert before is not None
        self.lowest[near.buffers] = before
        self.lowest[frame.placed] = frame.offset
        self.room[near.first : near.last] -= near.size
        self.crossing[near.first + 1 : near.last] += 1
        frame.placed = -1
        return not len(before) or int(before.min()) >= PLACED

    def give_up(self, frame: Frame) -> None:
        """A part cannot be solved: go back to the choice that made it, past parts solved in between."""
        del self.frames[-1]
        while len(self.frames) > frame.parent + 1:
            self.undo(self.frames.pop())
        self.exhausted = not self.frames

    def open(self, parts: tuple[Part, ...]) -> None:
        """Begin the first of some parts; where none is left, all are solved."""
        self.solved = not parts
        if parts:
            part, *waiting = parts
            self.frames.append(self.frame(part, len(part.ranked), tuple(waiting), part.parent, 0, 0))

    def frame(self, part: Part, left: int, waiting: tuple[Part, ...], parent: int, offset: int, rank: int) -> Frame:
        """The canonical, undominated choices after one at an offset and a rank, of which none lies too high already."""
        lowest = self.lowest[part.ranked]
        dominated = int((lowest + self.layout.size[part.ranked]).min())
        ceiling = min(dominated, int(self.room[part.low : part.high].min()) + 1)
        ranks = np.flatnonzero(lowest < ceiling)
        choices = sorted(zip(lowest[ranks].tolist(), ranks.tolist(), strict=True))
        return Frame(part, left, [choice for choice in choices if choice >= (offset, rank)], waiting, parent)

    def parts(self, buffers: Ints, parent: int) -> tuple[Part, ...]:
        """Cut unplaced buffers where none of them spans two neighbouring sections, and rank each part."""
        if not len(buffers):
            return ()
        first, last = self.layout.sections.first, self.layout.sections.last
        buffers = np.sort(buffers)
        buffers = buffers[np.argsort(first[buffers], kind="stable")]
        cuts = np.flatnonzero(first[buffers][1:] >= np.maximum.accumulate(last[buffers])[:-1]) + 1
        return tuple(
            Part(self.ranked(np.sort(part)), int(first[part].min()), int(last[part].max()), parent)
            for part in np.split(buffers, cuts)
        )

    def ranked(self, buffers: Ints) -> Ints:
        """Some buffers by the order, with the pressure of now."""
        layout = self.layout
        pressure = layout.sections.greatest(self.capacity - self.room, buffers)
        arrays = (layout.size[buffers], layout.width[buffers], pressure, layout.degree[buffers], layout.lower[buffers])
        features = Features(*(array.astype(np.float64) for array in arrays))
        return buffers[ranking(features, self.order, self.factors[buffers])]


@record
class Outcome:
    """What a search found: offsets within the capacity, a proof that there are none, or neither."""

    offsets: Ints | None
    infeasible: bool
    order: str = ""


class Turns:
    """Searches within one capacity, turn by turn: an endless one for each of `ORDERS`, then a part of a short one."""

    def __init__(self, layout: Layout, capacity: int) -> None:
        self.layout = layout
        self.capacity = capacity
        self.generator = np.random.default_rng(SEED)
        self.searches = [Search(layout, capacity, order) for order in ORDERS]
        self.shaken = 0
        self.short_steps = 2.0 * len(layout.size)
        self.short_left = 0

    def shake(self) -> None:
        """Begin the next short search, at the end of the list."""
        del self.searches[len(ORDERS) :]
        factors = self.generator.uniform(1 - SHAKE, 1 + SHAKE, len(self.layout.size))
        order = SHAKEN[self.shaken % len(SHAKEN)]
        self.searches.append(Search(self.layout, self.capacity, order, factors))
        self.shaken += 1
        self.short_steps *= GROWTH
        self.short_left = int(self.short_steps)

    def turn(self, search: Search, budget: Budget, steps: int) -> int:
        """A search's next turn, of at most so many steps; returns the steps made."""
        made, wanted = 0, min(steps, max(SLICE, len(self.layout.size)))
        while made < wanted and (allowed := budget.left(min(SLICE, wanted - made))) and not search.over:
            now = search.run(allowed)
            made += now
            budget.steps -= now
        return made

    def run(self, budget: Budget, steps: int) -> Outcome:
        """Search for at most so many steps of a budget."""
        while budget.left(steps):
            if self.short_left <= 0:
                self.shake()
            for search in self.searches:
                made = self.turn(search, budget, steps)
                steps -= made
                if search is self.searches[-1]:
                    self.short_left -= made
                if search.over:
                    return Outcome(search.offsets if search.solved else None, search.exhausted, search.order)
        return Outcome(None, False)
