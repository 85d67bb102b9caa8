"""A campaign: blocks of numbers go to worker processes; what they find is gathered, and told apart."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from gcomp.testing import workers
from gcomp.testing.fuzz import trial
from gcomp.testing.fuzz.attempt import attempt, attempt_about, look_at
from gcomp.testing.fuzz.chosen import Chooser, Look
from gcomp.testing.fuzz.coverage import Coverage, Found, Key
from gcomp.testing.fuzz.directed import FAMILY
from gcomp.testing.fuzz.doors import PASSES, door_of
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.garbage import collect_garbage


@dataclass(frozen=True)
class Block:
    """Numbers that are tried together. Where a campaign is about lines of source, what is known of these then:
    `focused`, that there are programs that have to do with their words; `lost`, that no program runs them; `sure`,
    that most do."""

    numbers: Sequence[int]
    focused: bool = False
    lost: bool = False
    sure: bool = False


Result = tuple[Coverage, list[Found], list[Look]] | workers.Died | workers.Hung

_DOOR_BLOCK, _TARGET_BLOCK, _PASS_BLOCK, _LOOKED_AT, _TRIED = 25, 10, 100, 20, 5
_UNNAMED = 4
"""Of programs that do not name what the lines name, where others do, so many are there for one that is judged."""
OTHERS = 3
"""How many more programs are known of a failure."""
_ENOUGH_TIMES, _ENOUGH_PROGRAMS = 50, 500
"""When known failures were found so often, in so many programs, and no new one was: more of the same says nothing."""


@dataclass(frozen=True)
class Limits:
    """When to stop, and how many processes to use. A program has `seconds`, a process `gibibytes`.

    After `minutes`, what was begun is brought to its end. At `until`, a moment of `time.monotonic`, it is given up.
    `block` is how many programs are tried before they are counted; the campaign knows best where it is None.
    """

    minutes: float | None = None
    programs: int | None = None
    jobs: int = 1
    seconds: float = 60.0
    gibibytes: float = 4.0
    until: float = math.inf
    block: int | None = None


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
    only: int | None = None,
    known: Outcome | None = None,
    report: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Try programs until the time or the count is up, which counts those of a `known` outcome that it goes on from.

    It ends early where what was found is found again and again and nothing else is. `report` is called after each
    block, and may raise to stop. With `only`, the program of that number is tried, and no other.
    """
    outcome, start = known or Outcome(), time.monotonic()
    before = outcome.seconds
    size = limits.block or _block_size(plan)
    chooser = _chooser(plan, seed, outcome.tried)
    blocks = _blocks(seed, size, limits, outcome.tried, start, chooser) if only is None else iter([Block((only,))])
    # Blocks end in any order, and count in theirs, so that an outcome is always that of the first programs.
    order: list[Block] = []
    waiting: dict[Block, Result] = {}
    # A block has the time of all its programs, of which next to none needs any.
    allowed = workers.Limits(limits.seconds + size, int(limits.gibibytes * 2**30), limits.until)
    alone = workers.Limits(limits.seconds, allowed.memory, limits.until)
    for done, ended in workers.run_tasks(partial(_work, plan), _note_order(blocks, order), limits.jobs, allowed):
        waiting[done] = ended
        while order and order[0] in waiting:
            block = order.pop(0)
            result = waiting.pop(block)
            if isinstance(result, (workers.Died, workers.Hung)):
                _one_by_one(plan, block, alone, outcome)
            else:
                _gather(outcome, result[0], result[1])
                if chooser is not None:
                    chooser.learn(result[2])
            outcome.tried += len(block.numbers)
            outcome.seconds = before + time.monotonic() - start
            if report is not None:
                report(outcome)
            if outcome.repeats:
                outcome.systematic = True
                return outcome
    return outcome


def _block_size(plan: Plan) -> int:
    if plan.about is not None:
        return _LOOKED_AT if plan.what == PASSES or door_of(plan.what).looks else _TRIED
    return _DOOR_BLOCK if plan.what != PASSES else _PASS_BLOCK if plan.target is None else _TARGET_BLOCK


def _chooser(plan: Plan, seed: int, tried: int) -> Chooser | None:
    """What chooses the programs of a campaign about lines of source."""
    if plan.about is None:
        return None
    if plan.what != PASSES:
        door = door_of(plan.what)
        return Chooser(seed, door.topic, door.varies, door.looks, plan.about.kin, tried)
    # Near misses come by the chooser: those of a pass's families are not needed.
    stride = FAMILY if plan.passes else 1
    return Chooser(seed, partial(trial.topic, plan=plan), True, True, plan.about.kin, tried, stride)


def _blocks(seed: int, size: int, limits: Limits, tried: int, start: float, chooser: Chooser | None) -> Iterator[Block]:
    """Blocks of numbers, until a limit: one after the other, or chosen."""
    left = None if limits.programs is None else limits.programs - tried
    first = (seed << 32) + tried
    while (left is None or left > 0) and (limits.minutes is None or time.monotonic() - start < 60 * limits.minutes):
        count = size if left is None else min(size, left)
        if chooser is None:
            yield Block(range(first, first + count))
        else:
            sure = chooser.sure or not chooser.looks
            yield Block(tuple(chooser.numbers(count)), chooser.focused, chooser.lost, sure)
        first += count
        left = None if left is None else left - count


def _note_order(blocks: Iterator[Block], order: list[Block]) -> Iterator[Block]:
    """The blocks, whose order is noted as they are taken."""
    for block in blocks:
        order.append(block)
        yield block


def _gather(outcome: Outcome, coverage: Coverage, failures: list[Found]) -> None:
    outcome.coverage.add(coverage)
    for found in failures:
        outcome.add(found)


def _one_by_one(plan: Plan, block: Block, limits: workers.Limits, outcome: Outcome) -> None:
    """A process died or hung over a block: find the programs that do that."""
    singles = (replace(block, numbers=(number,)) for number in block.numbers)
    for single, result in workers.run_tasks(partial(_work, plan), singles, 1, limits):
        (number,) = single.numbers
        if isinstance(result, workers.Died):
            outcome.add(Found(number, ("died", result.detail), f"the process ended: {result.detail}"))
        elif isinstance(result, workers.Hung):
            outcome.add(Found(number, ("hung",), f"no end after {limits.seconds:g} s"))
        else:
            _gather(outcome, result[0], result[1])


def _work(plan: Plan, block: Block) -> tuple[Coverage, list[Found], list[Look]]:
    """Try a block, in a worker process."""
    coverage, failures, looks = Coverage(), list[Found](), list[Look]()
    collect_garbage()
    for number in block.numbers:
        found, look = None, None
        if plan.about is None:
            found = attempt(number, plan, coverage)
        elif block.sure:
            look, found = attempt_about(number, plan, plan.about, coverage)
        elif _is_judged(look := look_at(number, plan, plan.about), block):
            found = attempt(number, plan, coverage)
        if look is not None:
            looks.append(look)
            coverage.looked += 1
            coverage.reached += look.reached
        if found is not None:
            failures.append(found)
    return coverage, failures, looks


def _is_judged(look: Look, block: Block) -> bool:
    if look.reached:
        return look.named or not block.focused or look.number % _UNNAMED == 0
    return block.lost


__all__ = ["Limits", "Outcome", "fuzz", "upper_bound"]
