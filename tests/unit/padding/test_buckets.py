"""The choice of buckets is the best there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.errors import UsageError
from gcomp.padding.buckets import Cost, choose_buckets, fit_cost, linear, polynomial, powers_of_two, price_buckets
from gcomp.testing.fuzz.bucket_laws import cheapest

COSTS: dict[str, Cost] = {
    "linear": linear,
    "quadratic": polynomial([0, 1, 0.25]),
    "flat": lambda size: float(size // 4),
}


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.integers(0, 14), st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sampled_from([1, 4]),
    st.sampled_from(sorted(COSTS)),
)
def test_no_other_buckets_cost_less(counts: dict[int, int], count: int, multiple: int, name: str) -> None:
    cost = COSTS[name]
    found = choose_buckets(counts, count, multiple_of=multiple, cost=cost)
    sizes = [size for size in range(1, 17) if size % multiple == 0]
    assert found.cost == pytest.approx(cheapest(counts, count, sizes, cost))
    assert len(found.buckets) <= count
    assert all(size % multiple == 0 for size in found.buckets)
    assert found.cost == pytest.approx(price_buckets(counts, found.buckets, cost).cost)


def test_more_buckets_cost_no_more_and_one_for_each_length_costs_least() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 500)
    costs = [choose_buckets(lengths, k).cost for k in range(1, 12)]
    assert costs == sorted(costs, reverse=True)
    every = choose_buckets(lengths, 200)
    assert every.cost == every.least == lengths.sum()
    assert every.waste == every.padding == 0


def test_limits() -> None:
    assert choose_buckets([3, 17, 60], 2, multiple_of=32, most=60).buckets == (32, 60)
    assert choose_buckets([1, 1, 2], 3, least=2).buckets == (2,)
    assert powers_of_two([1, 3, 5, 100]) == (1, 4, 8, 128)
    assert powers_of_two([5, 100], most=100) == (8, 100)
    assert choose_buckets(range(40_000), 1).buckets[-1] >= 39_999


def test_costs_that_are_measured() -> None:
    cost = fit_cost(lambda n: 5 + 3 * n + 2 * n * n, [1, 50, 100, 300])
    assert cost(200) == pytest.approx(5 + 3 * 200 + 2 * 200 * 200)
    assert fit_cost(lambda n: -n, [1, 50, 100]) is linear, "what falls is no cost"


@pytest.mark.parametrize(
    ("lengths", "count", "message"),
    [
        ([], 2, "no lengths"), ([-1], 2, "-1 is not a length"), ([4], 0, "cannot be 0 buckets"),
        ({4: -1}, 1, "occurs less than never"),
    ],
)  # fmt: skip
def test_what_is_no_histogram(lengths: list[int], count: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_buckets(lengths, count)


def test_lengths_beyond_the_sizes() -> None:
    with pytest.raises(UsageError, match="length of 9 is beyond the greatest size, 8"):
        choose_buckets([9], 1, most=8)
    with pytest.raises(UsageError, match="length of 9 is beyond the greatest bucket, 8"):
        price_buckets([9], [8])
