"""Resize along dims of symbolic size: as with those sizes known, for every choice of coordinates and rounding."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import gcomp
from gcomp.errors import InputError, InvalidModelError
from tests.support.thinning import swept
from tests.unit.onnx.graphs import imported, model, numbers, results

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


@pytest.mark.parametrize(("transform", "mode", "outside"), list(product(TRANSFORMS, ("linear", "cubic"), (0, 1))))
def test_antialiased(transform: str, mode: str, outside: int) -> None:
    check(
        f'mode = "{mode}", antialias = 1, coordinate_transformation_mode = "{transform}", exclude_outside = {outside}'
    )


SHAPES = (
    ((2, 4), (1, 3)), ((2, 2), (7, 8)), ((5, 3), (2, 9)), ((4, 6), (0, 3)), ((1, 9), (1, 4)), ((3, 3), (3, 3)),
    ((100, 2), (2, 1)),
)  # fmt: skip
"""Sizes from and to, for two axes."""


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("how", ['mode = "nearest"', 'mode = "cubic", coordinate_transformation_mode = "align_corners"',
                                 'mode = "linear", antialias = 1, coordinate_transformation_mode = "align_corners"',
                                 'mode = "linear", antialias = 1'])  # fmt: skip
def test_one_scale_for_all_axes_where_sizes_are_data(policy: str, how: str) -> None:
    graph = f"""(float[1, H, W] x, int64[2] sizes) => (float[1, K, L] y)
        {{ y = Resize<{how}, axes = [1, 2], keep_aspect_ratio_policy = "{policy}">(x, , , sizes) }}"""
    symbolic, evaluator = imported(graph), ReferenceEvaluator(model(graph))
    for shape, sizes in SHAPES:
        x, target = numbers(1, *shape), np.asarray(sizes, np.int64)
        (got,) = results(symbolic, x, target)
        (known,) = results(imported(graph, constants={"sizes": target}, dims={"H": shape[0], "W": shape[1]}), x)
        (want,) = evaluator.run(None, {"x": x, "sizes": target})
        assert got.shape == known.shape == want.shape
        for other in (known, want):
            assert got.size == 0 or np.abs(got - other).max() <= 32 * np.finfo(np.float32).eps * np.abs(x).max()


def test_a_half_is_rounded_up_exactly() -> None:
    """47 * (3 / 94) is 1.5; as a product of doubles it is less."""
    graph = """(float[H, W] x, int64[2] sizes) => (float[K, L] y)
        { y = Resize<mode = "nearest", keep_aspect_ratio_policy = "not_larger">(x, , , sizes) }"""
    for n in (1, 2, 47, 94, 147):
        (got,) = results(imported(graph), numbers(2 * n, n), np.asarray([3, 9999], np.int64))
        assert got.shape == (3, 2)


def test_a_negative_size_is_refused() -> None:
    graph = "(float[2, N] x) => (float[2, K] y) <int64[2] sizes = {2, -1}> { y = Resize(x, , , sizes) }"
    with pytest.raises(InvalidModelError, match="not negative"):
        imported(graph)


@pytest.mark.parametrize("how", [
    'mode = "nearest"', 'mode = "nearest", nearest_mode = "ceil", coordinate_transformation_mode = "asymmetric"',
    'mode = "linear", coordinate_transformation_mode = "align_corners"', 'mode = "cubic", exclude_outside = 1',
    'mode = "linear", antialias = 1', 'mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric"',
])  # fmt: skip
def test_scales_from_data(how: str) -> None:
    graph = f"(float[n, m] x, float[2] scales) => (float[a, b] y) {{ y = Resize<{how}>(x, , scales) }}"
    late, x = imported(graph), numbers(5, 7)
    for scales in ((1, 1), (0.6, 2), (1.7, 0.3), (3, 1 / 3), (0.1, 4), (1, 0.7)):
        given = np.asarray(scales, np.float32)
        (got,) = results(late, x, given)
        (want,) = results(imported(graph, constants={"scales": given}, dims={"n": 5, "m": 7}), x)
        assert got.shape == want.shape
        assert got.size == 0 or np.abs(got - want).max() <= 32 * np.finfo(np.float32).eps * np.abs(x).max(), scales


def test_scales_from_data_compiled() -> None:
    graph = '(float[n, m] x, float[2] scales) => (float[a, b] y) { y = Resize<mode = "linear">(x, , scales) }'
    compiled, x = gcomp.compile(model(graph)), numbers(5, 7)
    x[2, 3] = np.inf
    for scales in ((1, 1), (1, 2), (0.6, 1)):
        given = np.asarray(scales, np.float32)
        (want,) = results(imported(graph, constants={"scales": given}, dims={"n": 5, "m": 7}), x)
        np.testing.assert_allclose(np.asarray(compiled(x, given)[0]), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-30, 1e30, 1e-42])
def test_what_is_no_scale_is_an_input_error(scale: float) -> None:
    late = imported("(float[n] x, float[1] scales) => (float[a] y) { y = Resize(x, , scales) }")
    with pytest.raises(InputError, match="scales"):
        results(late, numbers(3), np.asarray([scale], np.float32))


@pytest.mark.parametrize("mode", ["nearest", "linear", *swept("cubic")])
@pytest.mark.parametrize("data", ["sizes", *swept("scales")])
def test_a_part_from_data(mode: str, data: str) -> None:
    how = f'mode = "{mode}", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.0'
    given, operands = ("int64[2] k", "roi, , k") if data == "sizes" else ("float[2] k", "roi, k")
    graph = f"(float[n, m] x, float[4] roi, {given}) => (float[a, b] y) {{ y = Resize<{how}>(x, {operands}) }}"
    late, evaluator, x = imported(graph), ReferenceEvaluator(model(graph)), numbers(5, 7)
    for roi in ((0, 0, 1, 1), (0.25, 0.125, 0.75, 0.875), (-0.25, 0.5, 0.375, 1.5), (0.75, 0, 0.25, 0)):
        for sizes in ((5, 7), (3, 14), (1, 1), (8, 7)):
            k = np.asarray(sizes, np.int64) if data == "sizes" else np.asarray(sizes, np.float32) / np.float32([5, 7])
            feed = {"x": x, "roi": np.asarray(roi, np.float32), "k": k}
            (want,) = evaluator.run(None, feed)
            (got,) = results(late, *feed.values())
            (fixed,) = results(imported(graph, constants={"k": k}, dims={"n": 5, "m": 7}), x, feed["roi"])
            (known,) = results(imported(graph, constants={"k": k, "roi": feed["roi"]}), x)
            for other in (got, fixed, known):
                assert other.shape == want.shape
                assert np.abs(other - want).max() <= 32 * np.finfo(np.float32).eps * np.abs(x).max(), (roi, sizes)


def test_infinity_stays_where_it_is_in_an_axis_that_is_left_alone() -> None:
    how = 'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"'
    graph = f"(float[n, m] x, float[4] roi, int64[2] k) => (float[a, b] y) {{ y = Resize<{how}>(x, roi, , k) }}"
    x = numbers(3, 4)
    x[1, 0] = np.inf
    (got,) = results(imported(graph), x, np.float32([0, 0, 1, 1]), np.asarray([3, 2], np.int64))
    assert np.argwhere(~np.isfinite(got)).tolist() == [[1, 0]] and got[1, 0] == np.inf
