"""Sorting: a stable permutation for every weak order, a permutation for anything else; top_k against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.elementwise import compare
from gcomp.reference.numpy.sorting import sort, top_k

from .samples import edges, same_bits


def less(lhs: np.ndarray, rhs: np.ndarray, *_: np.ndarray) -> np.ndarray:
    return compare(lhs, rhs, comparison_direction="LT", compare_type="FLOAT")


@given(st.lists(st.lists(st.integers(0, 4), min_size=9, max_size=9), min_size=1, max_size=3), st.integers(-2, 1))
@settings(deadline=None)
def test_sort_is_stable_and_carries_companions(rows: list[list[int]], dimension: int) -> None:
    keys = np.array(rows, np.int32)
    places = np.broadcast_to(np.arange(keys.shape[dimension]), np.moveaxis(keys, dimension, -1).shape)
    places = np.moveaxis(places, -1, dimension)
    got, moved = sort([keys, places], dimension=dimension, is_stable=True, comparator=less)
    order = np.argsort(keys, axis=dimension, kind="stable")
    assert same_bits(moved, np.ascontiguousarray(order))
    assert same_bits(got, np.take_along_axis(keys, order, axis=dimension))


@given(st.lists(st.floats(width=32), max_size=20))
@settings(deadline=None)
def test_any_comparator_gives_a_permutation(values: list[float]) -> None:
    x = np.array(values, np.float32)
    (result,) = sort([x], dimension=0, comparator=less)
    assert sorted(result.view(np.uint32)) == sorted(x.view(np.uint32))
    (result,) = sort([x], dimension=0, comparator=lambda a, b: np.ones(a.shape, np.bool_))
    assert sorted(result.view(np.uint32)) == sorted(x.view(np.uint32))


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3), (2, 1, 2)])
def test_sort_of_small_shapes(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    for dimension in range(len(shape)):
        (result,) = sort([x], dimension=dimension, comparator=less)
        assert result.shape == shape


@pytest.mark.parametrize("text", ["f32", "bf16", "f8E4M3FNUZ", "i32", "ui8", "i4", "i1"])
def test_top_k_takes_the_greatest_first(text: str) -> None:
    x = np.array([True, False, True]) if text == "i1" else edges(DTYPES[text])
    values, indices = top_k(np.stack([x, x[::-1]]), k=3)
    assert values.shape == indices.shape == (2, 3) and indices.dtype == np.int32
    assert same_bits(values[0], x[indices[0]])
    wide = [float(v) for v in x.astype(np.float64)]
    ranked = sorted(range(len(wide)), key=lambda i: (wide[i] == wide[i], -wide[i] if wide[i] == wide[i] else 0))
    for mine, index in zip(values[0].astype(np.float64), ranked, strict=False):
        assert mine == wide[index] or (np.isnan(mine) and np.isnan(wide[index]))


def test_top_k_orders_zeros_and_keeps_ties_in_order() -> None:
    x = np.array([-0.0, 0.0, 1.0, 1.0, -0.0], np.float32)
    assert top_k(x, k=5)[1].tolist() == [2, 3, 1, 0, 4]
    assert top_k(x, k=0)[0].shape == (0,)
