"""Movement ops against the specification's index formulas, element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES, text_of
from gcomp.reference.numpy import movement as ops
from gcomp.reference.numpy.rounding import value_bits

from .samples import FLOATS, INTEGERS, edges, same_bits

I64 = np.dtype(np.int64)
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def counting(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape)


@given(shapes, st.data())
@settings(deadline=None)
def test_pad_follows_its_formula(shape: tuple[int, ...], data: st.DataObject) -> None:
    low, high = (data.draw(st.lists(st.integers(-4, 4), min_size=len(shape), max_size=len(shape))) for _ in range(2))
    interior = data.draw(st.lists(st.integers(0, 2), min_size=len(shape), max_size=len(shape)))
    spans = [n + max(n - 1, 0) * i for n, i in zip(shape, interior, strict=True)]
    result_shape = [l + s + h for l, s, h in zip(low, spans, high, strict=True)]
    if any(n < 0 for n in result_shape):
        return
    x = counting(shape)
    result = ops.pad(x, np.array(-1, np.int32), edge_padding_low=low, edge_padding_high=high, interior_padding=interior)
    expected = np.full(result_shape, -1, np.int32)
    for index in np.ndindex(*shape):
        at = tuple(l + i * (p + 1) for l, i, p in zip(low, index, interior, strict=True))
        if all(0 <= i < n for i, n in zip(at, result_shape, strict=True)):
            expected[at] = x[index]
    assert same_bits(result, expected)
    amounts = (np.array(v, np.int64) for v in (low, high, interior))
    assert same_bits(ops.dynamic_pad(x, np.array(-1, np.int32), *amounts), expected)


@given(st.data())
@settings(deadline=None)
def test_broadcast_in_dim_follows_its_formula(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 3), max_size=4).map(tuple))
    dims = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    operand_shape = tuple(1 if data.draw(st.booleans()) else shape[d] for d in dims)
    x = counting(operand_shape)
    result = ops.broadcast_in_dim(x, broadcast_dimensions=dims, shape=shape)
    assert result.shape == shape
    for index in np.ndindex(*shape):
        at = tuple(0 if n == 1 else index[d] for n, d in zip(operand_shape, dims, strict=True))
        assert result[index] == x[at]
    dynamic = ops.dynamic_broadcast_in_dim(x, np.array(shape, np.int64), broadcast_dimensions=dims)
    assert same_bits(dynamic, result)


def test_slice_reverse_transpose_concatenate() -> None:
    x = counting((4, 5))
    assert ops.slice(x, start_indices=[1, 0], limit_indices=[4, 5], strides=[2, 3]).tolist() == [[5, 8], [15, 18]]
    assert ops.slice(x, start_indices=[4, 2], limit_indices=[4, 5], strides=[1, 1]).shape == (0, 3)
    bounds = (np.array(v, np.int64) for v in ([1, 0], [4, 5], [2, 3]))
    assert ops.real_dynamic_slice(x, *bounds).tolist() == [[5, 8], [15, 18]]
    assert ops.reverse(x, dimensions=[1])[0].tolist() == [4, 3, 2, 1, 0]
    assert ops.transpose(counting((2, 3, 4)), permutation=[2, 0, 1])[3, 1, 2] == 12 + 8 + 3
    joined = ops.concatenate([x, x[:, :0], x[:, :1]], dimension=1)
    assert joined.shape == (4, 6) and joined[:, 5].tolist() == x[:, 0].tolist()
    assert ops.concatenate([x], dimension=0).tolist() == x.tolist()
    assert ops.reshape(x, shape=(2, 10))[1, 9] == 19
    assert ops.dynamic_reshape(x, np.array([20], np.int32)).shape == (20,)
    assert ops.get_dimension_size(x, dimension=1) == np.int32(5)


@pytest.mark.parametrize("text", ["i32", "ui8", "f32", "bf16", "i4", "complex<f32>", "f64"])
def test_iota(text: str) -> None:
    result = ops.iota(iota_dimension=1, shape=(2, 5, 0 + 1), dtype=DTYPES[text])
    assert result.dtype == DTYPES[text] and result.shape == (2, 5, 1)
    assert result[1, :, 0].astype(np.complex64).real.tolist() == [0, 1, 2, 3, 4]
    assert same_bits(ops.dynamic_iota(np.array([2, 5, 1]), iota_dimension=1, dtype=DTYPES[text]), result)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=text_of)
def test_bits_survive(dtype: np.dtype) -> None:
    x = edges(dtype)
    if dtype == np.float32:
        x = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1], np.uint32).view(np.float32)
    n = x.size
    padded = ops.pad(x, x[:1].reshape(()), edge_padding_low=[1], edge_padding_high=[0], interior_padding=[1])
    assert np.array_equal(value_bits(padded)[1::2], value_bits(x))
    moved = ops.reverse(ops.concatenate([x, x], dimension=0), dimensions=[0])
    assert np.array_equal(value_bits(moved)[:n][::-1], value_bits(x))
    spread = ops.transpose(ops.broadcast_in_dim(x, broadcast_dimensions=[1], shape=(2, n)), permutation=[1, 0])
    assert np.array_equal(
        value_bits(ops.slice(spread, start_indices=[0, 1], limit_indices=[n, 2], strides=[1, 1])),
        value_bits(x).reshape(n, 1),
    )


def test_results_do_not_alias_their_operands() -> None:
    x = counting((2, 3))
    results = [
        ops.reshape(x, shape=(3, 2)),
        ops.transpose(x, permutation=[1, 0]),
        ops.reverse(x, dimensions=[]),
        ops.slice(x, start_indices=[0, 0], limit_indices=[2, 3], strides=[1, 1]),
        ops.broadcast_in_dim(x, broadcast_dimensions=[0, 1], shape=(2, 3)),
    ]
    for result in results:
        assert not np.shares_memory(result, x) and result.flags.writeable
