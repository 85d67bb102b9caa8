"""Folds against plain loops in the documented order, with bodies that tell orders apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy import elementwise
from gcomp.reference.numpy import reduction as ops

from .samples import same_bits


def ordered(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(a * 31 + b, np.int64)]


@given(st.lists(st.integers(0, 3), max_size=3), st.data())
@settings(deadline=None)
def test_reduce_is_a_left_fold(shape: list[int], data: st.DataObject) -> None:
    dimensions = [d for d in range(len(shape)) if data.draw(st.booleans())]
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)
    (result,) = ops.reduce([x], [np.array(7)], dimensions=dimensions[::-1], body=ordered)
    expected = np.full([n for d, n in enumerate(shape) if d not in dimensions], 7, np.int64)
    for index in np.ndindex(*shape):
        at = tuple(i for d, i in enumerate(index) if d not in dimensions)
        expected[at] = expected[at] * 31 + x[index]
    assert same_bits(result, expected)


def test_variadic_reduce_finds_the_first_maximum() -> None:
    x = np.array([[3, 9, 9], [5, 5, 1]], np.int32)
    index = np.broadcast_to(np.arange(3, dtype=np.int32), x.shape)

    def body(a: np.ndarray, i: np.ndarray, b: np.ndarray, j: np.ndarray) -> list[np.ndarray]:
        return [np.where(b > a, b, a), np.where(b > a, j, i)]

    inits = [np.array(-1, np.int32), np.array(0, np.int32)]
    values, places = ops.reduce([x, index], inits, dimensions=[1], body=body)
    assert values.tolist() == [9, 5] and places.tolist() == [1, 0]


def test_reduce_promotes_to_the_body_types() -> None:
    x = np.full(300, 1, DTYPES["bf16"])
    (narrow,) = ops.reduce([x], [np.zeros((), x.dtype)], dimensions=[0], body=lambda a, b: [elementwise.add(a, b)])
    (wide,) = ops.reduce(
        [x],
        [np.zeros((), x.dtype)],
        dimensions=[0],
        body=lambda a, b: [elementwise.add(a, b)],
        dtypes=[np.dtype(np.float32)],
    )
    assert (float(narrow), narrow.dtype) == (256, DTYPES["bf16"])
    assert (float(wide), wide.dtype) == (300, np.float32)


@given(st.data())
@settings(deadline=None)
def test_reduce_window_is_reduce_of_padded_windows(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 2))

    def draw(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    shape, window, strides, base, dilation = draw(0, 5), draw(1, 3), draw(1, 3), draw(1, 2), draw(1, 2)
    padding = list(zip(draw(-1, 2), draw(-1, 2), strict=True))
    spans = [max(n - 1, 0) * b + min(n, 1) + low + high for n, b, (low, high) in zip(shape, base, padding, strict=True)]
    if any(n < 0 for n in spans):
        return
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape) + 1
    (result,) = ops.reduce_window(
        [x],
        [np.array(5)],
        window_dimensions=window,
        window_strides=strides,
        base_dilations=base,
        window_dilations=dilation,
        padding=padding,
        body=ordered,
    )
    extents = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    counts = [(n - e) // s + 1 if n and n >= e else 0 for n, e, s in zip(spans, extents, strides, strict=True)]
    assert list(result.shape) == counts
    for index in np.ndindex(*counts):
        total = 5
        for offset in np.ndindex(*window):
            at = [i * s + o * d for i, s, o, d in zip(index, strides, offset, dilation, strict=True)]
            source = [(p - low) / b for p, (low, _), b in zip(at, padding, base, strict=True)]
            inside = all(v == int(v) and 0 <= v < n for v, n in zip(source, shape, strict=True))
            total = total * 31 + (int(x[tuple(int(v) for v in source)]) if inside else 5)
        assert int(result[index]) == (total + 2**63) % 2**64 - 2**63


def test_select_and_scatter() -> None:
    x = np.array([1, 5, 5, 2, 9, 0], np.int32)
    source = np.array([10, 20, 30], np.int32)
    result = ops.select_and_scatter(
        x,
        source,
        np.array(1, np.int32),
        window_dimensions=[3],
        window_strides=[2],
        padding=[(1, 0)],
        select=lambda a, b: elementwise.compare(a, b, comparison_direction="GE"),
        scatter=elementwise.add,
    )
    # Windows [_, 1, 5], [5, 5, 2] and [2, 9, 0]: of equals the first, and position 1 is chosen twice.
    assert result.tolist() == [1, 31, 1, 1, 31, 1]


def test_select_and_scatter_drops_windows_of_padding() -> None:
    result = ops.select_and_scatter(
        np.array([4], np.int32),
        np.array([7, 8], np.int32),
        np.array(0, np.int32),
        window_dimensions=[1],
        window_strides=[1],
        padding=[(1, 0)],
        select=lambda a, b: np.asarray(a >= b),
        scatter=elementwise.add,
    )
    assert result.tolist() == [8]


def test_select_and_scatter_with_nan_prefers_what_select_says() -> None:
    x = np.array([1.0, np.nan, 3.0], np.float32)
    result = ops.select_and_scatter(
        x,
        np.ones(1, np.float32),
        np.zeros((), np.float32),
        window_dimensions=[3],
        select=lambda a, b: elementwise.compare(a, b, comparison_direction="GE"),
        scatter=elementwise.add,
    )
    # 1 >= NaN is false: NaN is taken; NaN >= 3 is false: 3 is taken.
    assert result.tolist() == [0, 0, 1]


@pytest.mark.parametrize("targets", [[], [3], [0, 0, 0], [2, 1, 2, 1, 2, 0]])
def test_turns_keep_each_targets_order(targets: list[int]) -> None:
    array = np.array(targets, np.int64)
    groups = ops.turns(array, array != 3)
    assert all(len(set(array[group])) == len(group) for group in groups)
    for target in {0, 1, 2}:
        order = [int(p) for group in groups for p in group if array[p] == target]
        assert order == [i for i, t in enumerate(targets) if t == target]


def test_map() -> None:
    x = np.arange(6).reshape(2, 3)
    assert ops.map([x, x], dimensions=[0, 1], computation=lambda a, b: a * b).tolist() == (x * x).tolist()
