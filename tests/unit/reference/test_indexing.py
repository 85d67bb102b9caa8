"""Slices, gather and scatter against the specification's formulas, element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.reference.numpy import indexing as ops

from .samples import same_bits


def test_dynamic_slices_clamp() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    for start, first in (((-5, 1), 1), ((9, 9), 6), ((1, 2), 6), ((2**62, -(2**62)), 4)):
        starts = [np.array(s, np.int64) for s in start]
        assert ops.dynamic_slice(x, starts, slice_sizes=[2, 2])[0, 0] == first
        updated = ops.dynamic_update_slice(x, np.full((2, 2), -1, np.int32), starts)
        assert (updated == -1).sum() == 4 and updated.flat[first] == -1
    huge = [np.array(2**64 - 1, np.uint64), np.array(0, np.uint64)]
    assert ops.dynamic_slice(x, huge, slice_sizes=[1, 4]).tolist() == [[8, 9, 10, 11]]
    assert ops.dynamic_slice(x, [np.array(7), np.array(0)], slice_sizes=[0, 4]).shape == (0, 4)
    assert ops.dynamic_slice(np.array(5), [], slice_sizes=[]) == 5


@dataclass
class Case:
    """Dimension numbers of a gather and of the scatter with the same windows."""

    operand: np.ndarray
    indices: np.ndarray
    offset_dims: list[int]
    collapsed: list[int]
    batching: list[int]
    indices_batching: list[int]
    index_map: list[int]
    vector_dim: int
    slice_sizes: list[int]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(np.moveaxis(self.full_indices, self.vector_dim, -1).shape[:-1])

    @property
    def full_indices(self) -> np.ndarray:
        return self.indices if self.vector_dim < self.indices.ndim else self.indices[..., None]

    @property
    def window(self) -> list[int]:
        return [d for d in range(self.operand.ndim) if d not in self.collapsed and d not in self.batching]

    @property
    def result_shape(self) -> tuple[int, ...]:
        batch, windows = iter(self.batch_shape), iter(self.window)
        rank = len(self.batch_shape) + len(self.window)
        return tuple(self.slice_sizes[next(windows)] if d in self.offset_dims else next(batch) for d in range(rank))

    def target(self, index: tuple[int, ...], *, clamp: bool) -> tuple[int, ...]:
        batch = [i for d, i in enumerate(index) if d not in self.offset_dims]
        vector = np.moveaxis(self.full_indices, self.vector_dim, -1)[tuple(batch)]
        at = [0] * self.operand.ndim
        for start, d in zip(vector, self.index_map, strict=True):
            limit = self.operand.shape[d] - self.slice_sizes[d]
            at[d] += min(max(int(start), 0), limit) if clamp else int(start)
        for d, source in zip(self.batching, self.indices_batching, strict=True):
            at[d] += batch[source - (source > self.vector_dim)]
        for d, place in zip(self.window, self.offset_dims, strict=True):
            at[d] += index[place]
        return tuple(at)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dims = draw(st.permutations(range(len(shape))))
    batch_count = draw(st.integers(0, len(shape) - 1))
    batching = sorted(dims[:batch_count])
    index_map = list(dims[batch_count : batch_count + draw(st.integers(0, len(shape) - batch_count))])
    collapsed = sorted(d for d in index_map if draw(st.booleans()))
    fixed = {*collapsed, *batching}
    slice_sizes = [1 if d in fixed else draw(st.integers(1, n)) for d, n in enumerate(shape)]
    batch_shape = [shape[d] for d in batching] + draw(st.lists(st.integers(0, 3), max_size=2))
    vector_dim = draw(st.integers(0, len(batch_shape)))
    implicit = len(index_map) == 1 and vector_dim == len(batch_shape) and draw(st.booleans())
    full = batch_shape if implicit else batch_shape[:vector_dim] + [len(index_map)] + batch_shape[vector_dim:]
    rank = len(batch_shape) + len(shape) - len(fixed)
    offsets = sorted(draw(st.permutations(range(rank)))[: len(shape) - len(fixed)])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from([np.int32, np.int64, np.int8]))
    return Case(
        operand=rng.integers(0, 1000, shape).astype(np.int32),
        indices=rng.integers(-3, 6, full).astype(dtype),
        offset_dims=offsets,
        collapsed=collapsed,
        batching=batching,
        indices_batching=[i + (i >= vector_dim) for i in range(len(batching))],
        index_map=index_map,
        vector_dim=vector_dim,
        slice_sizes=slice_sizes,
    )


@given(cases())
@settings(max_examples=200, deadline=None)
def test_gather_follows_its_formula(case: Case) -> None:
    attributes = {
        "offset_dims": case.offset_dims,
        "collapsed_slice_dims": case.collapsed,
        "operand_batching_dims": case.batching,
        "start_indices_batching_dims": case.indices_batching,
        "start_index_map": case.index_map,
        "index_vector_dim": case.vector_dim,
    }
    result = ops.gather(case.operand, case.indices, **attributes, slice_sizes=case.slice_sizes)
    expected = np.zeros(case.result_shape, np.int32)
    for index in np.ndindex(*case.result_shape):
        expected[index] = case.operand[case.target(index, clamp=True)]
    assert same_bits(result, expected)
    dynamic = ops.dynamic_gather(case.operand, case.indices, np.array(case.slice_sizes, np.int64), **attributes)
    assert same_bits(dynamic, expected)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_scatter_follows_its_formula_in_order(case: Case) -> None:
    updates = np.arange(np.prod(case.result_shape, dtype=int), dtype=np.int32).reshape(case.result_shape) + 1
    second = case.operand * 2

    def combine(a: np.ndarray, b: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        # Neither commutative nor associative, and each result sees both inputs.
        return [a * 3 + u, b - a + v]

    got = ops.scatter(
        [case.operand, second],
        case.indices,
        [updates, -updates],
        update_window_dims=case.offset_dims,
        inserted_window_dims=case.collapsed,
        input_batching_dims=case.batching,
        scatter_indices_batching_dims=case.indices_batching,
        scatter_dims_to_operand_dims=case.index_map,
        index_vector_dim=case.vector_dim,
        update_computation=combine,
    )
    expected = [case.operand.copy(), second.copy()]
    for index in np.ndindex(*updates.shape):
        at = case.target(index, clamp=False)
        if all(0 <= i < n for i, n in zip(at, case.operand.shape, strict=True)):
            values = combine(expected[0][at], expected[1][at], updates[index], -updates[index])
            expected[0][at], expected[1][at] = values
    assert same_bits(got[0], expected[0]) and same_bits(got[1], expected[1])


def test_scatter_far_out_of_bounds_and_promoted() -> None:
    far = np.array([[2**63 - 1], [-(2**63)], [1]], np.int64)
    (result,) = ops.scatter(
        [np.zeros(3, np.float16)],
        far,
        [np.ones(3, np.float16)],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
        update_computation=lambda a, b: [a + b],
        dtypes=[np.dtype(np.float32)],
    )
    assert result.dtype == np.float32 and result.tolist() == [0, 1, 0]


@pytest.mark.parametrize("extents", [[2, 2], [0, 2], [1, 3]])
def test_slices_that_a_dynamic_gather_cannot_take_have_no_meaning(extents: list[int]) -> None:
    """Where a dimension is dropped they are 1 long: a lowering takes the sizes from the result's type."""
    x, starts = np.ones((2, 2), np.float32), np.zeros(1, np.int32)
    numbers = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "index_vector_dim": 1}
    assert ops.dynamic_gather(x, starts, np.array([1, 2]), **numbers).shape == (1, 2)
    with pytest.raises(ValueError, match="along dimension"):
        ops.dynamic_gather(x, starts, np.array(extents), **numbers)
