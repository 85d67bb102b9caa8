"""A campaign: blocks of numbers go to worker processes; what they find is gathered, and told apart."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from gcomp.testing import workers
from gcomp.testing.fuzz.coverage import Coverage, Found, Key
from gcomp.testing.fuzz.doors import PASSES, door_of
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.fuzz.target import try_target
from gcomp.testing.fuzz.trial import try_passes
from gcomp.testing.reduce.predicates import TargetCheck

Block = tuple[int, int]
"""The first number, and how many."""
Result = tuple[Coverage, list[Found]] | workers.Died | workers.Hung

_TARGET_TIMEOUT = 60.0
_DOOR_BLOCK = 25
OTHERS = 3
"""How many more programs are known of a failure."""
_ENOUGH_TIMES, _ENOUGH_PROGRAMS = 50, 500
"""When known failures were found so often, in so many programs, and no new one was: more of the same says nothing."""


@dataclass(frozen=True)
class Limits:
    """When to stop, and how many processes to use. A program has `seconds`, a process `gibibytes`."""

    minutes: float | None = None
    programs: int | None = None
    jobs: int = 1
    seconds: float = 60.0
    gibibytes: float = 4.0


@dataclass
class Outcome:
    """What a campaign did: counts, and failures by what makes them the same bug (the first found of each)."""

    coverage: Coverage = field(default_factory=Coverage)
    failures: dict[Key, Found] = field(default_factory=dict[Key, Found])
    times: dict[Key, int] = field(default_factory=dict[Key, int])
    """How often each was found."""
    seconds: float = 0.0
    tried: int = 0
    """How many programs were tried, from the first of the seed on."""
    new: tuple[int, int] = (0, 0)
    """How many programs were tried, and failed, when a new failure was found last."""
    systematic: bool = False
    """Whether it ended early, since there was nothing new to find."""

    def add(self, found: Found) -> None:
        """Note a failure."""
        first = self.failures.setdefault(found.key, found)
        if first is found:
            self.new = self.tried, self.failing
        if first is not found and len(first.others) < OTHERS:
            self.failures[found.key] = replace(first, others=(*first.others, found.number))
        self.times[found.key] = self.times.get(found.key, 0) + 1

    @property
    def rate(self) -> float:
        """Programs per second, of all processes."""
        return self.coverage.programs / self.seconds if self.seconds else 0.0

    @property
    def bound(self) -> float:
        """Below this is the failure rate of such programs, with 95 % confidence."""
        return upper_bound(self.failing, self.coverage.judged)

    @property
    def failing(self) -> int:
        """How many programs failed."""
        return sum(self.times.values())

    @property
    def repeats(self) -> bool:
        """Whether what is known fails again and again, and nothing else does."""
        tried, failing = self.new
        return self.failing - failing >= _ENOUGH_TIMES and self.tried - tried >= _ENOUGH_PROGRAMS

    def failed_in(self, rewrite: str) -> int:
        """How many programs failed by a rewrite."""
        return sum(count for key, count in self.times.items() if rewrite in key)


def upper_bound(failing: int, judged: int) -> float:
    """An upper bound, with 95 % confidence, on the rate at which programs fail of which so many were judged.

    Three in n where none failed, else Clopper and Pearson's: at that rate, so few would fail with 5 % probability.
    """
    if not judged or failing >= judged:
        return 1.0
    if not failing:
        return min(1.0, 3 / judged)

    def few(rate: float) -> float:
        return math.fsum(
            math.exp(_log_choose(judged, k) + k * math.log(rate) + (judged - k) * math.log1p(-rate))
            for k in range(failing + 1)
        )

    low, high = failing / judged, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if few(middle) > 0.05 else (low, middle)
    return high


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def fuzz(
    plan: Plan,
    limits: Limits,
    *,
    seed: int = 0,
    known: Outcome | None = None,
    report: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Try programs until the time or the count is up, which counts those of a `known` outcome that it goes on from.

    It ends early where what was found is found again and again and nothing else is. `report` is called after each
    block, and may raise to stop.
    """
    outcome, start = known or Outcome(), time.monotonic()
    before = outcome.seconds
    size = _DOOR_BLOCK if plan.what != PASSES else 100 if plan.target is None else 10
    blocks = _blocks((seed << 32) + outcome.tried, size, limits, outcome.tried, start)
    # Blocks end in any order, and count in theirs, so that an outcome is always that of the first programs.
    waiting: dict[int, tuple[Block, Result]] = {}
    # A block has the time of all its programs, of which next to none needs any.
    allowed = workers.Limits(limits.seconds + size, int(limits.gibibytes * 2**30))
    alone = workers.Limits(limits.seconds, allowed.memory)
    for done, ended in workers.run_tasks(partial(_work, plan), blocks, limits.jobs, allowed):
        waiting[done[0]] = done, ended
        while (seed << 32) + outcome.tried in waiting:
            block, result = waiting.pop((seed << 32) + outcome.tried)
            if isinstance(result, (workers.Died, workers.Hung)):
                _one_by_one(plan, block, alone, outcome)
            else:
                _gather(outcome, *result)
            outcome.tried += block[1]
            outcome.seconds = before + time.monotonic() - start
            if report is not None:
                report(outcome)
            if outcome.repeats:
                outcome.systematic = True
                return outcome
    return outcome


def _blocks(first: int, size: int, limits: Limits, tried: int, start: float) -> Iterator[Block]:
    """Blocks of numbers from the first on, until a limit."""
    left = None if limits.programs is None else limits.programs - tried
    while (left is None or left > 0) and (limits.minutes is None or time.monotonic() - start < 60 * limits.minutes):
        count = size if left is None else min(size, left)
        yield first, count
        first += count
        left = None if left is None else left - count


def _gather(outcome: Outcome, coverage: Coverage, failures: list[Found]) -> None:
    outcome.coverage.add(coverage)
    for found in failures:
        outcome.add(found)


def _one_by_one(plan: Plan, block: Block, limits: workers.Limits, outcome: Outcome) -> None:
    """A process died or hung over a block: find the programs that do that."""
    singles = ((block[0] + i, 1) for i in range(block[1]))
    for (number, _), result in workers.run_tasks(partial(_work, plan), singles, 1, limits):
        if isinstance(result, workers.Died):
            outcome.add(Found(number, ("died", result.detail), f"the process ended: {result.detail}"))
        elif isinstance(result, workers.Hung):
            outcome.add(Found(number, ("hung",), f"no end after {limits.seconds:g} s"))
        else:
            _gather(outcome, *result)


def _work(plan: Plan, block: Block) -> tuple[Coverage, list[Found]]:
    """Try a block, in a worker process."""
    coverage, failures = Coverage(), list[Found]()
    _collect()
    numbers = range(block[0], block[0] + block[1])
    if plan.what != PASSES:
        door = door_of(plan.what)
        failures += filter(None, (door.attempt(number, plan.size, coverage) for number in numbers))
    elif plan.target is None:
        failures += filter(None, (try_passes(number, plan, coverage) for number in numbers))
    else:
        check = _target_check(plan)
        failures += filter(None, (try_target(number, plan, check, coverage) for number in numbers))
    return coverage, failures


def _collect() -> None:
    """Collect garbage once for each block: programs are cyclic, and Python would look for them all the time.

    What is left then are tables that grow, which are not looked through again: that took a seventh of a long run.
    """
    gc.disable()
    gc.collect()
    gc.freeze()


_checks: dict[Plan, TargetCheck] = {}
"""A worker's own process of the target, which lives as long as the worker."""


def _target_check(plan: Plan) -> TargetCheck:
    if plan not in _checks:
        assert plan.target is not None
        _checks[plan] = TargetCheck(plan.target, plan.fixed(), timeout=_TARGET_TIMEOUT)
    return _checks[plan]


__all__ = ["Limits", "Outcome", "fuzz", "upper_bound"]
