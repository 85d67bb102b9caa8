"""Laws of offsets (`gcomp.testing.fuzz.packings`), drawn by Hypothesis, and instances of their own."""

from __future__ import annotations

import pytest

from gcomp.errors import UsageError
from gcomp.memory.assign import assign
from gcomp.memory.greedy import greedy
from gcomp.memory.problem import Assignment, Buffer, Problem, check, peak_of
from gcomp.memory.repair import repair
from gcomp.memory.search import Budget
from gcomp.testing.fuzz.packings import LAWS
from tests.property.laws import holds

ABOUT = ("assign", "greedy", "search", "sections", "problem", "repair")


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.about in ABOUT])
def test_a_law_of_offsets_holds(name: str) -> None:
    holds(LAWS[name])


def test_windows_repair_what_is_local() -> None:
    """Thirty hard places one after another: each is searched alone."""
    place = [(0, 4, 5), (4, 9, 7), (0, 6, 3), (6, 9, 1), (2, 7, 2), (3, 5, 4), (1, 8, 3)]
    buffers = [
        Buffer(f"{i}.{j}", 8 * i + lower, 8 * i + upper, size)
        for i in range(30)
        for j, (lower, upper, size) in enumerate(place)
    ]
    problem = Problem(buffers)
    worst, _ = greedy(problem, 10**9)
    best = assign(problem, seconds=10).peak
    lift = worst.copy()
    lift[::7] += 40
    found = repair(problem, lift, best, Budget(10**5, float("inf")))
    assert found is not None
    check(problem, Assignment(tuple(found.tolist()), best, 0, "windows", 0.0))


def test_greedy_stops_at_its_goal() -> None:
    problem = Problem([Buffer("a", 0, 2, 4), Buffer("b", 1, 3, 4)])
    offsets, name = greedy(problem, 8)
    assert (peak_of(problem, offsets), name) == (8, "greedy, bottom up by TWA")


def test_fixed_offsets_that_collide_are_refused() -> None:
    with pytest.raises(UsageError, match="share bytes while both live"):
        assign(Problem([Buffer("a", 0, 2, 4, offset=0), Buffer("b", 1, 3, 4, offset=2)]))
