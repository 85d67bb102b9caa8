"""Which sizes to pad to: the buckets that cost least for a histogram of lengths, found exactly.

A length costs what the least bucket that holds it costs. The best set of at most k buckets is found by dynamic
programming over the distinct lengths: of the best ways to cover the shorter lengths with one bucket less, and one
bucket for the rest, the cheapest. Some best set has lengths (rounded up to a multiple, if asked) as its buckets, since
making a bucket smaller, down to the longest length that it holds, costs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from gcomp.errors import UsageError
from gcomp.records import record

Cost = Callable[[int], float]
"""The cost of a call at a size; it must not fall."""
MAX_LENGTHS = 1 << 14
"""Distinct lengths, at most: more are first rounded up to a coarser multiple."""


@record
class Choice:
    """Buckets, and what a histogram of lengths costs with them."""

    buckets: tuple[int, ...]
    cost: float
    """Of all lengths, padded."""
    least: float
    """Of all lengths, if none were padded."""

    @property
    def padding(self) -> float:
        """The cost of padding: what is paid beside the least."""
        return self.cost - self.least

    @property
    def waste(self) -> float:
        """The part of the cost that is for padding."""
        return 1 - self.least / self.cost if self.cost else 0.0


def linear(size: int) -> float:
    """Work in proportion to the size."""
    return float(size)


def polynomial(coefficients: Sequence[float]) -> Cost:
    """Work of a polynomial of the size, its constant first."""
    return lambda size: float(sum(c * size**i for i, c in enumerate(coefficients)))


def fit_cost(measure: Callable[[int], float], sizes: Sequence[int], degree: int = 2) -> Cost:
    """The polynomial nearest to what was measured at some sizes, such as `model.flops`.

    Where it falls anywhere between them, work is in proportion to the size instead.
    """
    chosen = sorted(set(sizes))
    values = [measure(size) for size in chosen]
    fit = np.polynomial.Polynomial.fit(chosen, values, min(degree, len(chosen) - 1)).convert()
    cost = polynomial([float(c) for c in fit.coef])
    between = np.arange(chosen[0], chosen[-1] + 1)
    rising = np.all(np.diff(fit(between)) >= -1e-9 * max(map(abs, values))) and cost(chosen[0]) >= 0
    return cost if rising else linear


def histogram(lengths: Iterable[int] | Mapping[int, int]) -> Counter[int]:
    """How often each length occurs. UsageError for what is no length, and for no lengths at all."""
    counts: Counter[int] = Counter()
    if isinstance(lengths, Mapping):
        counts.update({int(n): int(count) for n, count in cast("Mapping[int, int]", lengths).items()})
    else:
        counts.update(map(int, lengths))  # NumPy's integers too
    if bad := next((n for n, count in counts.items() if n < 0 or count < 0), None):
        raise UsageError(f"{bad} is not a length, or occurs less than never", fix="give lengths of data, from 0 up")
    counts = +counts
    if not counts:
        raise UsageError("there are no lengths to choose buckets for", fix="give the lengths of some calls")
    return counts


def choose_buckets(
    lengths: Iterable[int] | Mapping[int, int], count: int, *, multiple_of: int = 1, most: int | None = None,
    least: int = 1, cost: Cost = linear,
) -> Choice:  # fmt: skip
    """The at most `count` buckets for which these lengths, or a histogram of them, cost least when padded.

    Buckets are multiples of `multiple_of`, or `most`, which none exceeds; none is below `least`. Raises UsageError for
    lengths beyond that.
    """
    counts = histogram(lengths)
    if count < 1 or multiple_of < 1:
        raise UsageError(f"there cannot be {count} buckets that are multiples of {multiple_of}")
    if most is not None and max(counts) > most:
        raise UsageError(f"a length of {max(counts)} is beyond the greatest size, {most}")
    rounded = Counter[int]()
    step = multiple_of
    while True:
        for length, number in counts.items():
            size = max(-(-length // step) * step, -(-least // multiple_of) * multiple_of)
            rounded[size if most is None else min(size, most)] += number
        if len(rounded) <= MAX_LENGTHS:
            break
        rounded, step = Counter[int](), 2 * step
    sizes = sorted(rounded)
    chosen = _best(sizes, [rounded[size] for size in sizes], [cost(size) for size in sizes], count)
    return price_buckets(counts, [sizes[i] for i in chosen], cost)


def _best(sizes: Sequence[int], counts: Sequence[int], costs: Sequence[float], most: int) -> list[int]:
    """The places among the sizes of at most `most` buckets with the least total cost."""
    n = len(sizes)
    before = np.concatenate([[0.0], np.cumsum(np.asarray(counts, np.float64))])
    price = np.asarray(costs, np.float64)
    # total[j]: the least cost of the first j sizes with the buckets so far; the last bucket is size j - 1.
    total = np.full(n + 1, np.inf)
    total[0] = 0.0
    rows: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    best = (np.inf, 0)
    for k in range(1, min(most, n) + 1):
        after, origin = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
        for j in range(1, n + 1):
            ways = total[:j] + price[j - 1] * (before[j] - before[:j])
            origin[j] = i = int(np.argmin(ways))
            after[j] = ways[i]
        rows.append(origin)
        total = after
        if total[n] < best[0]:
            best = float(total[n]), k
    places: list[int] = []
    j = n
    for origin in reversed(rows[: best[1]]):
        places.append(j - 1)
        j = int(origin[j])
    return places[::-1]


def price_buckets(lengths: Iterable[int] | Mapping[int, int], buckets: Iterable[int], cost: Cost = linear) -> Choice:
    """What these lengths cost with given buckets. UsageError for a length beyond them."""
    counts, sizes = histogram(lengths), sorted(set(buckets))
    total = least = 0.0
    for length, number in counts.items():
        size = next((s for s in sizes if s >= length), None)
        if size is None:
            raise UsageError(f"a length of {length} is beyond the greatest bucket, {sizes[-1] if sizes else 'none'}")
        total += number * cost(size)
        least += number * cost(length)
    return Choice(tuple(sizes), total, least)


def powers_of_two(lengths: Iterable[int] | Mapping[int, int], most: int | None = None) -> tuple[int, ...]:
    """The powers of two that hold these lengths, each the least for some of them; the greatest may be `most`."""
    found = {1 << max(n - 1, 0).bit_length() for n in histogram(lengths)}
    return tuple(sorted(found if most is None else {min(size, most) for size in found}))
