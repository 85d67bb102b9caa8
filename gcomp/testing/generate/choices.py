"""Choices: what a generator asks, answered by a seed, by Hypothesis, or by a record of earlier answers.

Generators are written once against `Choices`. Seeded answers are fast, for bulk runs; Hypothesis's shrink. Every
answer shrinks toward the first and smallest, so a generator lists what is simplest first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Array = np.ndarray[Any, Any]
T = TypeVar("T")

_LEVELS = 64
_GOES_ON = 0.97
_SPELLED_OUT = 6
_MANY = 256


class Choices(ABC):
    """Answers to what a generator asks."""

    @abstractmethod
    def integer(self, lo: int, hi: int) -> int:
        """An integer from `lo` to `hi`, both included."""

    @abstractmethod
    def flag(self, probability: float = 0.5) -> bool:
        """True with about this probability; False is simpler."""

    @abstractmethod
    def near(self, count: int) -> int:
        """A number below `count`, mostly 0."""

    @abstractmethod
    def weighted(self, totals: Sequence[float]) -> int:
        """The position of one of several weights, given as running totals."""

    def more(self) -> bool:
        """Whether to go on with what has a bound: nearly always; the simplest answer is to stop."""
        return self.flag(_GOES_ON)

    def span(self, grow: Callable[[], T]) -> T:
        """Run `grow`, whose choices belong together: they may be dropped together."""
        return grow()

    def chosen(self, items: Sequence[T]) -> T:
        """One of some items."""
        return items[self.integer(0, len(items) - 1)]

    def some(self, items: Sequence[T], probability: float = 0.5) -> list[T]:
        """Each of the items with a probability, in order."""
        return [item for item in items if self.flag(probability)]

    def permutation(self, count: int) -> list[int]:
        """An order of the numbers below `count`; the natural one is the simplest."""
        order = list(range(count))
        for i in range(count - 1):
            j = self.integer(i, count - 1)
            order[i], order[j] = order[j], order[i]
        return order

    def fill(self, pool: Array, count: int) -> Array:
        """A vector of elements of a pool."""
        few = [self.integer(0, pool.size - 1) for _ in range(min(count, _SPELLED_OUT))]
        return np.resize(pool[few], count) if few else pool[:0]


class Seeded(Choices):
    """Answers from a seed: the same seed gives the same answers, on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def integer(self, lo: int, hi: int) -> int:
        return lo + int(self._random() * (hi - lo + 1))

    def flag(self, probability: float = 0.5) -> bool:
        return self._random() < probability

    def near(self, count: int) -> int:
        roll = self._random()
        return 0 if roll < 0.5 else int((roll - 0.5) * 2 * count)

    def weighted(self, totals: Sequence[float]) -> int:
        return min(bisect_right(totals, self._random() * totals[-1]), len(totals) - 1)

    def more(self) -> bool:
        return True

    def chosen(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]

    def fill(self, pool: Array, count: int) -> Array:
        random, size = self._random, pool.size
        if count > _MANY:
            return pool[np.random.default_rng(int(random() * 2**53)).integers(0, size, count)]
        return pool[[int(random() * size) for _ in range(count)]]


class Drawn(Choices):
    """Answers that Hypothesis draws, and shrinks."""

    def __init__(self, draw: Callable[[SearchStrategy[Any]], Any]) -> None:
        from hypothesis import strategies

        self._draw, self._integers, self._builds = draw, strategies.integers, strategies.builds

    def integer(self, lo: int, hi: int) -> int:
        return lo if lo == hi else int(self._draw(self._integers(lo, hi)))

    def flag(self, probability: float = 0.5) -> bool:
        return self.integer(0, _LEVELS - 1) >= _LEVELS - max(1, round(_LEVELS * probability))

    def near(self, count: int) -> int:
        return self.integer(0, count - 1) if count > 1 and self.flag() else 0

    def weighted(self, totals: Sequence[float]) -> int:
        roll = self.integer(0, 1023) * totals[-1] / 1024
        return min(bisect_right(totals, roll), len(totals) - 1)

    def span(self, grow: Callable[[], T]) -> T:
        return self._draw(self._builds(grow))


class Recorded(Seeded):
    """Seeded answers, with a record from which `Replayed` gives them again."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.record: list[int] = []

    def integer(self, lo: int, hi: int) -> int:
        return lo + self._noted(super().integer(lo, hi) - lo)

    def flag(self, probability: float = 0.5) -> bool:
        return bool(self._noted(int(super().flag(probability))))

    def near(self, count: int) -> int:
        return self._noted(super().near(count))

    def weighted(self, totals: Sequence[float]) -> int:
        return self._noted(super().weighted(totals))

    def more(self) -> bool:
        return bool(self._noted(1))

    def chosen(self, items: Sequence[T]) -> T:
        return items[self._noted(int(self._random() * len(items)))]

    def fill(self, pool: Array, count: int) -> Array:
        picks = [self._noted(int(self._random() * pool.size)) for _ in range(count)]
        return pool[picks]

    def _noted(self, answer: int) -> int:
        self.record.append(answer)
        return answer


class Replayed(Choices):
    """The answers of a record, which may have been shortened or lowered: past its end they are the simplest."""

    def __init__(self, record: Sequence[int]) -> None:
        self.record = record
        self.used = 0
        self.spans: list[tuple[int, int]] = []
        """Where in the record the answers of each span begin and end."""

    def span(self, grow: Callable[[], T]) -> T:
        start = self.used
        result = grow()
        self.spans.append((start, self.used))
        return result

    def _next(self, most: int) -> int:
        if self.used >= len(self.record):
            self.used += 1
            return 0
        self.used += 1
        return min(self.record[self.used - 1], most)

    def integer(self, lo: int, hi: int) -> int:
        return lo + self._next(hi - lo)

    def flag(self, probability: float = 0.5) -> bool:
        return bool(self._next(1))

    def near(self, count: int) -> int:
        return self._next(count - 1)

    def weighted(self, totals: Sequence[float]) -> int:
        return self._next(len(totals) - 1)

    def fill(self, pool: Array, count: int) -> Array:
        return pool[[self._next(pool.size - 1) for _ in range(count)]]


def shrink(record: Sequence[int], fails: Callable[[Choices], bool], tries: int = 2000) -> list[int]:
    """A shorter and lower record that still `fails`: spans are dropped, then runs of answers, then answers lowered."""
    return _Shrinker(record, fails, tries).run()


class _Shrinker:
    def __init__(self, record: Sequence[int], fails: Callable[[Choices], bool], tries: int) -> None:
        self.best, self.fails, self.left = list(record), fails, tries
        self.spans: list[tuple[int, int]] = []

    def run(self) -> list[int]:
        self.attempt(self.best, force=True)
        before: list[int] | None = None
        while before != self.best and self.left > 0:
            before = self.best
            self.drop_spans()
            self.drop_runs()
            self.lower()
        return self.best

    def attempt(self, candidate: list[int], *, force: bool = False) -> bool:
        """Take a candidate if it fails too."""
        if self.left <= 0 or (candidate == self.best and not force):
            return False
        self.left -= 1
        choices = Replayed(candidate)
        if not self.fails(choices):
            return False
        self.best, self.spans = candidate[: choices.used], choices.spans
        return True

    def drop_spans(self) -> None:
        """Drop a span, the last ones first."""
        i = len(self.spans)
        while i > 0:
            i = min(i - 1, len(self.spans) - 1)
            if i >= 0:
                start, end = self.spans[i]
                self.attempt(self.best[:start] + self.best[end:])

    def drop_runs(self) -> None:
        width = max(1, len(self.best) // 2)
        while width:
            at = len(self.best) - width
            while at >= 0:
                self.attempt(self.best[:at] + self.best[at + width :])
                at -= width
            width //= 2

    def lower(self) -> None:
        i = 0
        while i < len(self.best):
            known = self.best[i]
            for lower in dict.fromkeys((0, 1, known // 2, known - 1)):
                if 0 <= lower < known and self.attempt([*self.best[:i], lower, *self.best[i + 1 :]]):
                    break
            i += 1
