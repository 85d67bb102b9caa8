"""Laws of offsets: every method's plan is valid, none is below the bound, and the search finds the optimum."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.errors import UsageError, VerificationError
from gcomp.memory.assign import assign
from gcomp.memory.greedy import greedy, sweep, tries
from gcomp.memory.problem import Assignment, Buffer, Problem, check, conflict, lower_bound, peak_of
from gcomp.memory.repair import repair
from gcomp.memory.search import Budget, Layout, Turns
from gcomp.memory.sections import Neighbourhoods, degrees, sections_of


@st.composite
def problems(draw: st.DrawFn, most: int = 12, aligned: bool = True, fixed: bool = True) -> Problem:
    """Buffers over few steps, so that most live together; some aligned, some fixed where nothing is fixed yet."""
    buffers: list[Buffer] = []
    for index in range(draw(st.integers(0, most))):
        lower = draw(st.integers(0, 7))
        upper = draw(st.integers(lower + 1, 9))
        size = draw(st.integers(0, 12))
        alignment = draw(st.sampled_from((1, 1, 2, 3, 4))) if aligned else 1
        buffer = Buffer(f"b{index}", lower, upper, size, alignment)
        if fixed and draw(st.integers(0, 4)) == 0:
            offset = draw(st.integers(0, 6)) * alignment
            placed = Buffer(buffer.name, lower, upper, size, alignment, offset)
            others = Problem([other for other in buffers if other.offset is not None] + [placed])
            if conflict(others, others.fixed) is None:
                buffer = placed
        buffers.append(buffer)
    return Problem(buffers)


def together(a: Buffer, b: Buffer) -> bool:
    return a.lower < b.upper and b.lower < a.upper


def overlapping(problem: Problem, offsets: tuple[int, ...]) -> bool:
    """Whether two live buffers share a byte, by looking at every pair."""
    ends = [offset + buffer.size for offset, buffer in zip(offsets, problem.buffers, strict=True)]
    return any(
        together(a, b) and max(offsets[i], offsets[j]) < min(ends[i], ends[j])
        for i, a in enumerate(problem.buffers)
        for j, b in enumerate(problem.buffers[:i])
        if a.size and b.size
    )


def optimum(problem: Problem) -> int:
    """The lowest peak, by dropping the buffers in every order, each to the lowest place at or above all before it.

    Buffers of no bytes are in nobody's way.
    """
    best = None
    ends = [buffer.offset for buffer in problem.buffers if not buffer.size and buffer.offset is not None]
    for order in permutations(index for index, buffer in enumerate(problem.buffers) if buffer.size):
        offsets: dict[int, int] = {}
        for index in order:
            buffer = problem.buffers[index]
            floor = max(
                [offsets[o] + problem.buffers[o].size for o in offsets if together(problem.buffers[o], buffer)],
                default=0,
            )
            offsets[index] = -(-floor // buffer.alignment) * buffer.alignment
            if buffer.offset is not None:
                offsets[index] = buffer.offset if floor <= buffer.offset else 10**9
        peak = max([*ends, *(offsets[i] + problem.buffers[i].size for i in offsets)], default=0)
        best = peak if best is None else min(best, peak)
    assert best is not None
    return best


@given(problems())
@settings(max_examples=60, deadline=None)
def test_every_plan_is_valid_and_the_same_again(problem: Problem) -> None:
    """`assign` checks by its own sweep; here, every pair is looked at."""
    plan = assign(problem, seconds=0.2)
    check(problem, plan)
    assert not overlapping(problem, plan.offsets)
    assert plan.peak >= plan.lower_bound >= lower_bound(problem)
    again = assign(problem, seconds=0.2)
    assert plan.offsets == again.offsets or plan.out_of_time or again.out_of_time
    for buffer, offset in zip(problem.buffers, plan.offsets, strict=True):
        assert offset % buffer.alignment == 0
        assert buffer.offset in (None, offset)


@given(problems())
@settings(max_examples=150, deadline=None)
def test_each_greedy_try_is_valid(problem: Problem) -> None:
    sized = Problem(buffer for buffer in problem.buffers if buffer.size)
    if not len(sized):
        return
    plans = [*tries(sized), ("sweep", sweep(sized, False)), ("sweep backwards", sweep(sized, True))]
    for name, offsets in plans:
        peak = peak_of(sized, offsets)
        check(sized, Assignment(tuple(offsets.tolist()), peak, 0, name, 0.0))
        assert peak >= lower_bound(sized), name


@given(problems(most=6))
@settings(max_examples=150, deadline=None)
def test_the_search_finds_the_optimum(problem: Problem) -> None:
    """Against all orders of up to six buffers, with alignments and fixed offsets."""
    plan = assign(problem, seconds=5)
    assert plan.peak == plan.lower_bound == optimum(problem)


@given(problems(most=7, fixed=False), st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_the_search_decides_capacities(problem: Problem, capacity: int) -> None:
    """It finds a plan within a capacity, or exhausts its choices, exactly where the optimum says so."""
    sized = Problem(buffer for buffer in problem.buffers if buffer.size)
    if not len(sized):
        return
    best = assign(sized, seconds=5).peak
    outcome = Turns(Layout(sized), capacity).run(Budget(10**6, float("inf")), 10**6)
    assert (outcome.offsets is not None) == (best <= capacity)
    assert outcome.infeasible == (best > capacity)
    if outcome.offsets is not None:
        assert peak_of(sized, outcome.offsets) <= capacity


@given(problems(most=10, fixed=False), st.integers(0, 40))
@settings(max_examples=50, deadline=None)
def test_a_capacity_is_kept_where_that_is_possible(problem: Problem, capacity: int) -> None:
    least = assign(problem, seconds=5)
    plan = assign(Problem(problem.buffers, capacity), seconds=5)
    assert (plan.peak <= capacity) == (least.peak <= capacity)
    assert plan.peak <= capacity or plan.lower_bound > capacity


@given(problems(fixed=False))
@settings(max_examples=200, deadline=None)
def test_sections_and_neighbours_say_who_lives_together(problem: Problem) -> None:
    if not len(problem):
        return
    sections = sections_of(problem.lower, problem.upper)
    near = Neighbourhoods(problem.lower, problem.upper)
    degree = degrees(problem.lower, problem.upper)
    for i, a in enumerate(problem.buffers):
        expected = {j for j, b in enumerate(problem.buffers) if i != j and together(a, b)}
        met = {
            j
            for j in range(len(problem))
            if sections.first[i] < sections.last[j] and sections.first[j] < sections.last[i]
        }
        assert met - {i} == expected == set(near.of(i).tolist())
        assert degree[i] == len(expected)
        own = sections.members[sections.starts[sections.first[i]] : sections.starts[sections.last[i]]]
        assert set(own.tolist()) == expected | {i, len(problem)}
    live = max(sum(b.size for b in problem.buffers if b.lower <= t < b.upper) for t in range(9))
    assert int(sections.sums(problem.size).max()) == live <= lower_bound(problem)


@given(problems(most=6), st.data())
@settings(max_examples=150, deadline=None)
def test_the_check_refuses_exactly_what_overlaps(problem: Problem, data: st.DataObject) -> None:
    offsets = tuple(
        data.draw(st.integers(0, 8)) * buffer.alignment if buffer.offset is None else buffer.offset
        for buffer in problem.buffers
    )
    plan = Assignment(offsets, peak_of(problem, offsets), 0, "random", 0.0)
    if overlapping(problem, offsets):
        with pytest.raises(VerificationError, match="share bytes"):
            check(problem, plan)
    else:
        check(problem, plan)


@given(problems(), st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_windows_of_time_keep_a_plan_valid(problem: Problem, target: int) -> None:
    """From the greedy plan to a target: a plan within it, or none; fixed buffers stay."""
    sized = Problem(buffer for buffer in problem.buffers if buffer.size)
    if not len(sized):
        return
    offsets, _ = greedy(sized, 0)
    before = offsets.copy()
    found = repair(sized, offsets, target, Budget(10**5, float("inf")))
    assert (offsets == before).all()
    if found is not None:
        check(sized, Assignment(tuple(found.tolist()), target, 0, "windows", 0.0))


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


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_stacked_tilings_are_packed_again(seed: int, pieces: int, steps: int) -> None:
    """A rectangle cut into pieces has a packing without a gap; small ones are found."""
    rng = np.random.default_rng(seed)
    rectangles = [(0, steps, 0, 64)]
    for _ in range(pieces // 4):
        lower, upper, bottom, top = rectangles.pop(int(rng.integers(len(rectangles))))
        if rng.random() < 0.5 and upper - lower > 1:
            at = int(rng.integers(lower + 1, upper))
            rectangles += [(lower, at, bottom, top), (at, upper, bottom, top)]
        elif top - bottom > 1:
            at = int(rng.integers(bottom + 1, top))
            rectangles += [(lower, upper, bottom, at), (lower, upper, at, top)]
        else:
            rectangles.append((lower, upper, bottom, top))
    buffers = [Buffer(str(i), low, high, top - bottom) for i, (low, high, bottom, top) in enumerate(rectangles)]
    plan = assign(Problem(buffers), seconds=5)
    assert plan.peak == plan.lower_bound == 64


def test_greedy_stops_at_its_goal() -> None:
    problem = Problem([Buffer("a", 0, 2, 4), Buffer("b", 1, 3, 4)])
    offsets, name = greedy(problem, 8)
    assert (peak_of(problem, offsets), name) == (8, "greedy, bottom up by TWA")


def test_fixed_offsets_that_collide_are_refused() -> None:
    with pytest.raises(UsageError, match="share bytes while both live"):
        assign(Problem([Buffer("a", 0, 2, 4, offset=0), Buffer("b", 1, 3, 4, offset=2)]))
