"""Buckets: the few sizes that a padded symbol may have, and a tally of what calls paid for padding."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Protocol

from gcomp.errors import InputError
from gcomp.records import record
from gcomp.runtime.executor import Executor
from gcomp.runtime.plan import Bucketing


@record
class Use:
    """What calls did with one combination of buckets: how many there were, and the sums of their lengths."""

    sizes: Mapping[str, int]
    calls: int
    lengths: Mapping[str, int]

    def waste(self, symbol: str) -> float:
        """The part of what was computed along a symbol that was padding."""
        padded = self.calls * self.sizes[symbol]
        return 1 - self.lengths[symbol] / padded if padded else 0.0


class Buckets(Mapping[str, tuple[int, ...]]):
    """The sizes of each padded symbol, and how they have been used so far."""

    def __init__(self, bucketings: Mapping[str, Bucketing]) -> None:
        self._sizes = {name: bucketing.sizes for name, bucketing in bucketings.items()}
        self._calls, self._lengths = Counter[tuple[int, ...]](), Counter[tuple[tuple[int, ...], str]]()
        self._lock = Lock()
        self.compilations = 0
        """How many programs were compiled so far."""

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}: {list(sizes)}" for name, sizes in self._sizes.items())
        return f"<buckets {listed}; {sum(self._calls.values())} calls, {self.compilations} compilations>"

    def padded(self, env: Mapping[str, int]) -> dict[str, int]:
        """Sizes with the least bucket that holds it for each padded symbol. Raises InputError where none does."""
        found = dict(env)
        for name, sizes in self._sizes.items():
            place = bisect_left(sizes, env[name])
            if place == len(sizes):
                raise InputError(
                    f"The dimension {name} = {env[name]} is beyond the greatest bucket, {sizes[-1]}.",
                    why=f"The model was compiled for lengths of {name} up to that: its buckets are {list(sizes)}.",
                    fix=f"Split the input, or compile the model with a bucket of at least {env[name]}.",
                )
            found[name] = sizes[place]
        return found

    def count(self, true: Mapping[str, int], padded: Mapping[str, int]) -> None:
        """Tally one call."""
        key = tuple([padded[name] for name in self._sizes])
        with self._lock:
            self._calls[key] += 1
            for name in self._sizes:
                self._lengths[key, name] += true[name]

    @property
    def uses(self) -> list[Use]:
        """What calls did with each combination of buckets that was used, in ascending order."""
        with self._lock:
            return [
                Use(dict(zip(self._sizes, key, strict=True)), calls, {n: self._lengths[key, n] for n in self._sizes})
                for key, calls in sorted(self._calls.items())
            ]


class PaddedExecutor(Executor, Protocol):
    """An executor that pads its inputs to buckets."""

    @property
    def buckets(self) -> Buckets: ...
