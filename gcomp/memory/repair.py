"""Exact search in windows of time: lowers the peak of a plan that is good but not good enough.

The search places from the bottom up over all of time, and so forgets where in time it failed; on thousands of buffers
that costs too much. Here the plan stays as it is, but for the buffers that live near one that ends above the target;
they are searched anew between the others, which are fixed. Windows grow until the buffer fits, or none helps.
"""

from __future__ import annotations

import numpy as np

from gcomp.memory.problem import Buffer, Ints, Problem
from gcomp.memory.search import Budget, Layout, Turns
from gcomp.memory.sections import sections_of

REACHES: tuple[int, ...] = (1, 4, 16, 64)
"""Sections that a window has more than the buffer in its middle, before and after."""

LONG = 4
"""Buffers that live longer than so many windows stay where they are, unless they are too high themselves."""

MOST = 4000
"""Most buffers in a window, the fixed ones around it included."""

STEPS = 20
"""Steps of a window's search for each of its buffers."""


def repair(problem: Problem, offsets: Ints, target: int, budget: Budget) -> Ints | None:
    """Offsets with a peak at most `target`, near the given ones, if windows of time suffice."""
    offsets = offsets.copy()
    sections = sections_of(problem.lower, problem.upper)
    first, last = sections.first, sections.last
    while (above := np.flatnonzero(offsets + problem.size > target)).size:
        if (problem.fixed[above] >= 0).any():
            return None
        worst = int(above[(offsets + problem.size)[above].argmax()])
        for reach in REACHES:
            low, high = first[worst] - reach, last[worst] + reach
            free = (first < high) & (last > low) & (last - first <= LONG * (high - low))
            free[above] |= (first[above] < high) & (last[above] > low)
            free &= problem.fixed < 0
            # What is too high and lives with what is free can be no fixed neighbour.
            free[above] |= (first[above] < last[free].max()) & (last[above] > first[free].min())
            around = (first < last[free].max()) & (last > first[free].min())
            if int(around.sum()) > MOST or not budget.left(1):
                return None
            if (
                found := search_between(problem, offsets, np.flatnonzero(around), free.astype(np.int64), target, budget)
            ) is not None:
                offsets = found
                break
        else:
            return None
    return offsets


def search_between(
    problem: Problem, offsets: Ints, around: Ints, free: Ints, target: int, budget: Budget
) -> Ints | None:
    """The offsets with those free searched anew, all others of a window fixed where they are."""
    buffers: list[Buffer] = []
    for index in (int(index) for index in around):
        b, offset = problem.buffers[index], None if free[index] else int(offsets[index])
        buffers.append(Buffer(b.name, b.lower, b.upper, b.size, b.alignment, offset))
    # Setting up costs about a step for each buffer.
    budget.steps -= len(around)
    outcome = Turns(Layout(Problem(buffers)), target).run(budget, STEPS * len(around))
    if outcome.offsets is None:
        return None
    found = offsets.copy()
    found[around] = outcome.offsets
    return found
