"""`assign`: offsets for a problem, by the cheapest method that reaches the goal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gcomp.errors import UsageError
from gcomp.memory import cpsat
from gcomp.memory.greedy import PAIRS, greedy
from gcomp.memory.problem import Assignment, Ints, Problem, check, check_fixed, lower_bound, peak_of
from gcomp.memory.repair import repair
from gcomp.memory.search import BUFFERS, Budget, Layout, Turns
from gcomp.memory.sections import degrees


@dataclass
class Best:
    """The best offsets so far, and a proven bound."""

    problem: Problem
    offsets: Ints
    method: str
    bound: int
    out_of_time: bool = False

    @property
    def peak(self) -> int:
        """The peak of the best offsets."""
        return peak_of(self.problem, self.offsets)

    @property
    def goal(self) -> int:
        """A peak that is good enough: the capacity, or the bound where there is none (or none below the bound)."""
        return max(self.problem.capacity or 0, self.bound)

    @property
    def reached(self) -> bool:
        """Whether nothing better is wanted, or possible; or fitting is proven impossible."""
        capacity = self.problem.capacity
        return self.peak <= self.goal or (capacity is not None and self.bound > capacity)


WINDOWS = ", search in windows"
"""What a method's name ends with where windows of its plan were searched."""


def grain(problem: Problem) -> int:
    """What all sizes, fixed offsets and alignments are multiples of; and so the lowest possible peak."""
    fixed = problem.fixed[problem.fixed >= 0]
    aligned = problem.alignment[problem.alignment > 1]
    return max(1, int(np.gcd.reduce(np.concatenate([problem.size, fixed, aligned]))))


def targets(best: Best, method: Callable[[int], bool], budget: Budget, steps: int) -> None:
    """Lower a plan's peak by a method: to the goal first; where it fails, half way there, a quarter, and so on.

    With a capacity there is nothing between fitting and not. `steps` is what must be left of the budget.
    """
    unit, halvings = grain(best.problem), 0
    whole = best.problem.capacity is not None
    while not best.reached and budget.left(1) and budget.steps > steps:
        goal = best.goal // unit * unit if whole else -(-best.goal // unit) * unit
        target = best.peak - (((best.peak - goal) >> halvings) // unit) * unit
        if target >= best.peak:
            break
        if not method(target):
            if whole:
                break
            halvings += 1


def by_search(best: Best, budget: Budget) -> None:
    """Search in windows of time, then over all of it. A target that is proven too low raises the bound."""
    problem, unit = best.problem, grain(best.problem)
    if len(problem) > BUFFERS or int(degrees(problem.lower, problem.upper).sum()) // 2 > PAIRS:
        return

    def windows(target: int) -> bool:
        if (offsets := repair(problem, best.offsets, target, budget)) is None:
            return False
        best.offsets, best.method = offsets, f"{best.method.removesuffix(WINDOWS)}{WINDOWS}"
        return True

    targets(best, windows, budget, budget.steps // 2)
    if best.reached or not budget.left(1):
        best.out_of_time = budget.out_of_time
        return
    layout, share = Layout(problem), budget.steps if problem.capacity is not None else budget.steps // 3

    def whole(target: int) -> bool:
        outcome = Turns(layout, target).run(budget, share)
        if outcome.offsets is not None:
            best.offsets, best.method = outcome.offsets, f"search by {outcome.order}"
        elif outcome.infeasible:
            best.bound = max(best.bound, target + unit)
        return outcome.offsets is not None or outcome.infeasible

    targets(best, whole, budget, 0)
    best.out_of_time = budget.out_of_time


def by_cpsat(best: Best, budget: Budget) -> None:
    """CP-SAT, from the best offsets so far."""
    seconds = budget.deadline - time.monotonic()
    ceiling = best.peak if best.problem.capacity is None else best.problem.capacity
    offsets, bound, best.out_of_time = cpsat.solve(best.problem, best.bound, best.offsets, ceiling, seconds)
    best.bound = max(best.bound, bound)
    if offsets is not None and peak_of(best.problem, offsets) < best.peak:
        best.offsets, best.method = offsets, "cp-sat"


METHODS: dict[str, Callable[[Best, Budget], None] | None] = {
    "auto": by_search,
    "greedy": None,
    "search": by_search,
    "cp-sat": by_cpsat,
}
"""What follows the greedy tries where they do not reach the goal; `search` is what `auto` does."""


def assign(problem: Problem, *, seconds: float = 10.0, method: str = "auto") -> Assignment:
    """Offsets for a problem's buffers, checked; the peak is above the capacity where no way to fit was found.

    With a capacity, whatever fits is good enough; without one, the lowest peak is looked for. The result depends on
    the clock only where it says `out_of_time`.
    """
    if method not in METHODS:
        raise UsageError(f"There is no method {method!r}.", fix=f"choose one of {', '.join(METHODS)}")
    if not seconds >= 0:
        raise UsageError(f"A budget of {seconds} seconds is not at least zero.")
    if method == "cp-sat":
        cpsat.solver_module()
    start = time.monotonic()
    check_fixed(problem)
    bound = lower_bound(problem)
    offsets = np.maximum(problem.fixed, 0)
    method_used, out_of_time = "nothing to place", False
    # Buffers of no bytes are in nobody's way, and lie at the bottom.
    sized = [index for index, buffer in enumerate(problem.buffers) if buffer.size]
    if sized:
        part = Problem((problem.buffers[index] for index in sized), problem.capacity)
        best = Best(part, *greedy(part, max(problem.capacity or 0, bound)), bound)
        follow = METHODS[method]
        if follow is not None and not best.reached:
            follow(best, Budget.of(seconds, start))
        offsets[sized] = best.offsets
        method_used, out_of_time, bound = best.method, best.out_of_time, best.bound
    peak = peak_of(problem, offsets)
    assignment = Assignment(
        tuple(offsets.tolist()), peak, bound, method_used, time.monotonic() - start, out_of_time and peak > bound
    )
    check(Problem(problem.buffers), assignment)
    return assignment
