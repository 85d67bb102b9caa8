"""Offsets: errors, published instances, the optional solver, and sizes that are large or many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.minimalloc_csv import read
from gcomp.errors import UsageError, VerificationError
from gcomp.memory import cpsat, greedy
from gcomp.memory.assign import METHODS, assign
from gcomp.memory.problem import Assignment, Buffer, Problem, check, lower_bound, peak_of

PUBLISHED = Path(__file__).parents[4] / "shared/data/minimalloc"
PAIR = Problem([Buffer("a", 0, 2, 4), Buffer("b", 1, 3, 8)])

BROKEN: dict[str, tuple[Problem, tuple[int, ...], int, str]] = {
    "too few offsets": (PAIR, (0,), 99, "1 offsets is for 2"),
    "overlap": (PAIR, (0, 3), 99, r"'a' \(bytes 0 to 4, steps 0 to 2\) and 'b' \(bytes 3 to 11, steps 1 to 3\)"),
    "negative": (PAIR, (-1, 8), 99, "'a' has the offset -1"),
    "above the stated peak": (PAIR, (0, 4), 11, "'b' ends at 12, above the stated peak of 11"),
    "outside the capacity": (Problem(PAIR.buffers, 11), (0, 4), 12, "'b' ends at 12, outside the capacity 11"),
    "crooked": (Problem([Buffer("a", 0, 2, 4, 4)]), (2,), 99, "not a multiple of 4"),
    "moved": (Problem([Buffer("a", 0, 2, 4, offset=8)]), (0,), 99, "fixed at 8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_check_names_what_is_broken(case: str) -> None:
    problem, offsets, peak, message = BROKEN[case]
    with pytest.raises(VerificationError) as caught:
        check(problem, Assignment(offsets, peak, 0, "by hand", 0.0))
    caught.match(message)


UNFIT: dict[str, tuple[list[Buffer], int | None, str]] = {
    "no lifetime": ([Buffer("a", 2, 2, 4)], None, "no lifetime"),
    "negative size": ([Buffer("a", 0, 2, -4)], None, "size is -4"),
    "crooked": ([Buffer("a", 0, 2, 4, 4, 6)], None, "not a multiple"),
    "doubled name": ([Buffer("a", 0, 2, 4), Buffer("a", 0, 2, 4)], None, "same name"),
    "too much": ([Buffer(str(i), 0, 2, 2**52) for i in range(3)], None, "2^53 bytes or more together"),
    "no capacity": ([], -1, "capacity of -1"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_problems_that_are_none_are_refused(case: str) -> None:
    buffers, capacity, message = UNFIT[case]
    with pytest.raises(UsageError) as caught:
        Problem(buffers, capacity)
    assert message in str(caught.value)


def test_unknown_methods_and_budgets_are_refused() -> None:
    with pytest.raises(UsageError, match="no method 'gurobi'"):
        assign(PAIR, method="gurobi")
    for seconds in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="not at least zero"):
            assign(PAIR, seconds=seconds)


def test_no_buffers_and_empty_buffers() -> None:
    assert assign(Problem([])).peak == 0
    plan = assign(Problem([Buffer("a", 0, 2, 0), Buffer("b", 0, 2, 0, offset=5)]))
    assert (plan.offsets, plan.peak, plan.optimal, plan.gap) == ((0, 5), 5, True, 0.0)


def test_no_budget_leaves_the_greedy_plan() -> None:
    problem = tiling()
    plan = assign(problem, seconds=0)
    assert plan.method.startswith("greedy")
    assert plan.peak == assign(problem, method="greedy").peak > lower_bound(problem)


def tiling() -> Problem:
    """A rectangle of 100 bytes and 40 steps, cut into pieces; the greedy tries leave gaps."""
    rng = np.random.default_rng(19)
    rectangles = [(0, 40, 0, 100)]
    for _ in range(60):
        lower, upper, bottom, top = rectangles.pop(int(rng.integers(len(rectangles))))
        at, height = int(rng.integers(lower, upper)), int(rng.integers(bottom, top))
        if rng.random() < 0.5 and lower < at:
            rectangles += [(lower, at, bottom, top), (at, upper, bottom, top)]
        elif bottom < height:
            rectangles += [(lower, upper, bottom, height), (lower, upper, height, top)]
        else:
            rectangles.append((lower, upper, bottom, top))
    return Problem(Buffer(str(i), low, high, top - bottom) for i, (low, high, bottom, top) in enumerate(rectangles))


def test_the_search_closes_the_gap_that_greedy_leaves() -> None:
    plan = assign(tiling(), seconds=20)
    assert (plan.peak, plan.lower_bound, plan.out_of_time) == (100, 100, False)
    assert "search" in plan.method


def test_a_capacity_that_is_too_small_is_proven_so() -> None:
    plan = assign(Problem(PAIR.buffers, 11))
    assert plan.peak == plan.lower_bound == 12


def test_steps_and_sizes_up_to_the_limit() -> None:
    """Products of sizes and lifetimes do not fit 64 bits; sums do."""
    buffers = [Buffer("a", 0, 2**52, 2**51), Buffer("b", 5, 2**53 - 1, 2**51), Buffer("c", 2**52, 2**53 - 1, 2**50)]
    plan = assign(Problem(buffers))
    assert plan.peak == plan.lower_bound == 2**52


def test_many_buffers_that_live_together_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training step in small: each activation lives until its gradient is made."""
    buffers = [Buffer(f"a{i}", i, 400 - i, 8 + i % 3) for i in range(200)] + [Buffer("w", 0, 400, 9, offset=0)]
    monkeypatch.setattr(greedy, "PAIRS", 100)
    names = [name for name, _ in greedy.tries(Problem(buffers))]
    assert names == ["sweep", "sweep backwards"]
    plan = assign(Problem(buffers), method="greedy")
    assert plan.peak <= 1.05 * plan.lower_bound


def test_without_ortools_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(cpsat.importlib, "import_module", absent)
    with pytest.raises(UsageError, match=r"gcomp\[ortools\]"):
        assign(PAIR, method="cp-sat")


def test_cp_sat_finds_the_optimum() -> None:
    pytest.importorskip("ortools", reason="OR-tools, an optional extra, is not installed: pip install 'gcomp[ortools]'")
    buffers = [*tiling().buffers[:20], Buffer("fixed", 3, 30, 7, offset=21), Buffer("aligned", 0, 30, 7, 5)]
    plan, other = assign(Problem(buffers), method="cp-sat", seconds=20), assign(Problem(buffers), seconds=20)
    assert plan.peak == other.peak
    assert assign(Problem(buffers, other.peak), method="cp-sat", seconds=20).peak == other.peak


@pytest.mark.parametrize("name", ["G", "K", "input"])
def test_published_instances_fit(name: str) -> None:
    """Those of MiniMalloc's paper that take least time; `python -m benchmarks.memory` has all."""
    found = sorted(PUBLISHED.glob(f"{name}.*.csv"))
    if not found:
        pytest.skip("MiniMalloc's instances are not beside the repository, in ../shared/data/minimalloc")
    capacity = int(found[0].stem.rpartition(".")[2])
    problem = read(found[0], capacity)
    plan = assign(problem, seconds=60)
    check(problem, plan)
    assert peak_of(problem, plan.offsets) <= capacity


def test_every_method_is_tried_here() -> None:
    """A method added to the table needs a test of its own."""
    assert set(METHODS) == {"auto", "greedy", "search", "cp-sat"}
