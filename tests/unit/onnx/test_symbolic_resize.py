"""Resize along dims of symbolic size: as with those sizes known, for every choice of coordinates and rounding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gcomp.errors import UnsupportedError
from tests.unit.onnx.graphs import imported, numbers, results

TRANSFORMS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
PAIRS = ((1, 1), (1, 4), (3, 1), (4, 8), (5, 7), (7, 3), (8, 2), (6, 6), (2, 9))
"""Sizes from and to."""


def to_sizes(attributes: str) -> str:
    return f"""(float[2, N] x, float[M] like) => (float[2, K] y)
        <int64[1] two = {{2}}, float[0] none = {{}}>
        {{ m = Shape(like)  sizes = Concat<axis = 0>(two, m)  y = Resize<{attributes}>(x, none, none, sizes) }}"""


def check(attributes: str) -> None:
    symbolic = imported(to_sizes(attributes))
    for size, target in PAIRS:
        x, like = numbers(2, size), numbers(target)
        (got,) = results(symbolic, x, like)
        (want,) = results(imported(to_sizes(attributes), dims={"N": size, "M": target}), x, like)
        assert got.shape == (2, target)
        assert np.abs(got - want).max() <= 16 * np.finfo(np.float32).eps * np.abs(x).max(), (size, target)


@pytest.mark.parametrize(("transform", "nearest"), list(product(TRANSFORMS, NEAREST)))
def test_nearest(transform: str, nearest: str) -> None:
    check(f'mode = "nearest", coordinate_transformation_mode = "{transform}", nearest_mode = "{nearest}"')


@pytest.mark.parametrize(("transform", "mode", "outside"), list(product(TRANSFORMS, ("linear", "cubic"), (0, 1))))
def test_interpolated(transform: str, mode: str, outside: int) -> None:
    check(f'mode = "{mode}", coordinate_transformation_mode = "{transform}", exclude_outside = {outside}')


@pytest.mark.parametrize(
    ("transform", "mode", "scale"), list(product(TRANSFORMS, ("nearest", "linear"), ("0.5", "1.5", "2.0", "0.375")))
)
def test_by_scales(transform: str, mode: str, scale: str) -> None:
    graph = f"""(float[2, N] x) => (float[2, K] y) <float[2] scales = {{1.0, {scale}}}>
        {{ y = Resize<mode = "{mode}", coordinate_transformation_mode = "{transform}">(x, , scales) }}"""
    symbolic = imported(graph)
    for size in (3, 4, 8, 9):
        (got,) = results(symbolic, numbers(2, size))
        (want,) = results(imported(graph, dims={"N": size}), numbers(2, size))
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= 1e-5 * 11, size


def test_an_axis_that_keeps_its_symbolic_size_is_left_alone() -> None:
    graph = """(float[B, 4] x) => (float[B, 8] y)
        <int64[1] eight = {8}, float[0] none = {}>
        { b = Shape<end = 1>(x)  sizes = Concat<axis = 0>(b, eight)
          y = Resize<mode = "linear">(x, none, none, sizes) }"""
    (got,) = results(imported(graph), numbers(3, 4))
    (want,) = results(imported(graph, dims={"B": 3}), numbers(3, 4))
    assert np.array_equal(got, want)


def test_antialiasing_needs_known_sizes() -> None:
    with pytest.raises(UnsupportedError, match="antialiased"):
        imported(to_sizes('mode = "linear", antialias = 1'))
