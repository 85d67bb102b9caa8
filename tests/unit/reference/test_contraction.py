"""Dot products and convolutions against their definitions on integers, where every order agrees, and on floats."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.contraction import convolution, dot_general, dynamic_conv

from .samples import same_bits

I32 = np.dtype(np.int32)


@given(st.data())
@settings(deadline=None)
def test_dot_general_is_einsum(data: st.DataObject) -> None:
    sizes = {c: data.draw(st.integers(0, 3)) for c in "abcdefg"}
    batch, contract, left, right = "ab", "cd", "e", "fg"
    lhs_axes = "".join(data.draw(st.permutations(batch + contract + left)))
    rhs_axes = "".join(data.draw(st.permutations(batch + contract + right)))
    rng = np.random.default_rng(0)
    lhs = rng.integers(-(2**31), 2**31, [sizes[c] for c in lhs_axes]).astype(np.int32)
    rhs = rng.integers(-(2**31), 2**31, [sizes[c] for c in rhs_axes]).astype(np.int32)
    result = dot_general(
        lhs,
        rhs,
        lhs_batching_dimensions=[lhs_axes.index(c) for c in batch],
        rhs_batching_dimensions=[rhs_axes.index(c) for c in batch],
        lhs_contracting_dimensions=[lhs_axes.index(c) for c in contract],
        rhs_contracting_dimensions=[rhs_axes.index(c) for c in contract],
    )
    right = "".join(c for c in rhs_axes if c in right)
    assert same_bits(result, np.einsum(f"{lhs_axes},{rhs_axes}->{batch}{left}{right}", lhs, rhs))


@pytest.mark.parametrize("text", ["f16", "bf16", "f32", "f8E4M3FN"])
def test_float_dots_round_once(text: str) -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.normal(size=s).astype(np.float32).astype(DTYPES[text]) for s in ((3, 17), (17, 2)))
    result = dot_general(lhs, rhs, lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0], dtype=DTYPES["f32"])
    for i in range(3):
        for j in range(2):
            exact = sum(Fraction(float(lhs[i, k])) * Fraction(float(rhs[k, j])) for k in range(17))
            assert result[i, j] == np.float32(float(exact))


def test_dot_general_types() -> None:
    x = np.array([[100, 100], [-128, 127]], np.int8)
    contract: dict[str, Any] = {"lhs_contracting_dimensions": [1], "rhs_contracting_dimensions": [0]}
    assert dot_general(x, x, **contract, dtype=I32).tolist() == (x.astype(int) @ x.astype(int)).tolist()
    assert same_bits(dot_general(x, x, **contract), (x.astype(int) @ x.astype(int)).astype(np.int8))
    big = np.full((1, 3), 2**63 + 12345, np.uint64)
    assert int(dot_general(big, big.T, **contract)[0, 0]) == 3 * (2**63 + 12345) ** 2 % 2**64
    bits = np.array([[True, False], [True, True]])
    assert dot_general(bits, bits, **contract).tolist() == [[True, False], [True, True]]
    nibbles = np.array([[7, 7]], DTYPES["i4"])
    assert int(dot_general(nibbles, nibbles.T, **contract)[0, 0]) == 98 - 96
    assert dot_general(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), **contract).tolist() == [[0] * 3] * 2
    z = np.array([[1 + 2j]], np.complex64)
    assert dot_general(z, z, **contract).tolist() == [[-3 + 4j]]
    huge = np.array([[3e38, 3e38, -3e38]], np.float32)
    assert dot_general(huge, np.ones((3, 1), np.float32), **contract)[0, 0] == np.float32(3e38)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_convolution_follows_its_definition(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 2))
    features, batches = data.draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2)]))

    def draw(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    spatial, window, strides, base, dilation = draw(0, 5), draw(0, 3), draw(1, 2), draw(1, 2), draw(1, 2)
    padding = list(zip(draw(-1, 2), draw(-1, 2), strict=True))
    reversal = data.draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    spans = [max(n - 1, 0) * b + min(n, 1) + l + h for n, b, (l, h) in zip(spatial, base, padding, strict=True)]
    if any(n < 0 for n in spans):
        return
    rng = np.random.default_rng(0)
    n, c, o = 2 * batches, 2 * features, 2 * features * batches
    lhs = rng.integers(-9, 9, (n, c, *spatial)).astype(np.int32)
    rhs = rng.integers(-9, 9, (o, c // features, *window)).astype(np.int32)
    expected = direct_convolution(lhs, rhs, strides, padding, base, dilation, reversal, features, batches, spans)

    layouts = [data.draw(st.permutations(range(rank + 2))) for _ in range(3)]
    places = [np.argsort(layout) for layout in layouts]
    attributes: dict[str, Any] = {
        "window_strides": strides,
        "lhs_dilation": base,
        "rhs_dilation": dilation,
        "window_reversal": reversal,
        "input_batch_dimension": places[0][0],
        "input_feature_dimension": places[0][1],
        "input_spatial_dimensions": places[0][2:],
        "kernel_output_feature_dimension": places[1][0],
        "kernel_input_feature_dimension": places[1][1],
        "kernel_spatial_dimensions": places[1][2:],
        "output_batch_dimension": places[2][0],
        "output_feature_dimension": places[2][1],
        "output_spatial_dimensions": places[2][2:],
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    image, kernel = lhs.transpose(layouts[0]), rhs.transpose(layouts[1])
    wanted = np.ascontiguousarray(expected.transpose(layouts[2]))
    assert same_bits(convolution(image, kernel, padding=padding, **attributes), wanted)
    floats = convolution(image.astype(np.float32), kernel.astype(np.float32), padding=padding, **attributes)
    assert same_bits(floats, wanted.astype(np.float32))
    edges = np.array(padding, np.int64).reshape(rank, 2)
    assert same_bits(dynamic_conv(image, kernel, edges, **attributes), wanted)


def direct_convolution(
    lhs: np.ndarray,
    rhs: np.ndarray,
    strides: list[int],
    padding: list[tuple[int, int]],
    base: list[int],
    dilation: list[int],
    reversal: list[bool],
    features: int,
    batches: int,
    spans: list[int],
) -> np.ndarray:
    window = rhs.shape[2:]
    extents = [(w - 1) * d + 1 if w else 0 for w, d in zip(window, dilation, strict=True)]
    counts = [(n - e) // s + 1 if n and n >= e else 0 for n, e, s in zip(spans, extents, strides, strict=True)]
    n, o, depth = lhs.shape[0] // batches, rhs.shape[0], rhs.shape[1]
    result = np.zeros((n, o, *counts), np.int32)
    per_group = o // (features * batches)
    for index in np.ndindex(*result.shape):
        group = index[1] // per_group
        sample = index[0] + (group * n if batches > 1 else 0)
        first = group * depth if features > 1 else 0
        for offset in np.ndindex(*window):
            at = [i * s + k * d for i, s, k, d in zip(index[2:], strides, offset, dilation, strict=True)]
            source = [(p - low) / b for p, (low, _), b in zip(at, padding, base, strict=True)]
            if all(v == int(v) and 0 <= v < m for v, m in zip(source, lhs.shape[2:], strict=True)):
                flipped = [w - 1 - k if r else k for w, k, r in zip(window, offset, reversal, strict=True)]
                values = lhs[(sample, slice(first, first + depth), *(int(v) for v in source))]
                result[index] += values @ rhs[(index[1], slice(None), *flipped)]
    return result


def test_xla_agrees_on_a_depthwise_convolution() -> None:
    rng = np.random.default_rng(0)
    image, kernel = (rng.integers(-8, 8, s).astype(np.float32) for s in ((2, 9, 9, 6), (3, 3, 1, 12)))
    numbers = lax.conv_dimension_numbers(image.shape, kernel.shape, ("NHWC", "HWIO", "NHWC"))
    run = jax.jit(
        lambda a, b: lax.conv_general_dilated(a, b, (2, 1), "SAME", dimension_numbers=numbers, feature_group_count=6)
    )
    result = convolution(
        image,
        kernel,
        window_strides=[2, 1],
        padding=[(1, 1), (1, 1)],
        input_batch_dimension=0,
        input_feature_dimension=3,
        input_spatial_dimensions=[1, 2],
        kernel_input_feature_dimension=2,
        kernel_output_feature_dimension=3,
        kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=0,
        output_feature_dimension=3,
        output_spatial_dimensions=[1, 2],
        feature_group_count=6,
    )
    assert same_bits(result, np.asarray(run(image, kernel)))
