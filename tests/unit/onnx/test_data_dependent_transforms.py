"""Transforms whose sizes and axes are data: the same results as with constants, and refusals of what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import gcomp
from gcomp.errors import GcompError, InputError, UnsupportedError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers


def _number(value: int) -> Any:
    return np.asarray(value, np.int64)


def _list(*values: int) -> Any:
    return np.asarray(values, np.int64)


def _compare(graph: str, x: Any, sets: list[Mapping[str, Any]]) -> None:
    """With integers as data, and fixed: one program for all sets, by the interpreter and compiled."""
    program, compiled = imported(graph), gcomp.compile(model(graph))
    for given in sets:
        (want,) = interpret(imported(graph, constants=dict(given)), [x])
        for got in (interpret(program, [x, *given.values()])[0], np.asarray(compiled(x, *given.values())[0])):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("flags", ["onesided = 0", "onesided = 1", "inverse = 1", "inverse = 1, onesided = 1"])
def test_the_axis_of_a_transform(flags: str) -> None:
    parts, results = (2 if "inverse" in flags else 1), (1 if "," in flags else 2)
    graph = f"""(float[a, 3, 4, {parts}] x, int64 axis) => (float[b, c, d, {results}] y)
        {{ y = DFT <{flags}> (x, , axis) }}"""
    _compare(graph, numbers(5, 3, 4, parts), [{"axis": _number(axis)} for axis in (0, 1, 2, -2, -4)])


def test_the_axis_and_the_length_of_a_transform() -> None:
    graph = "(float[a, 3, 1] x, int64 n, int64 axis) => (float[b, c, 2] y) { y = DFT (x, n, axis) }"
    sets = [{"n": _number(n), "axis": _number(axis)} for n in (2, 3, 7) for axis in (0, 1)]
    _compare(graph, numbers(4, 3, 1), sets)


def test_a_transform_of_nothing() -> None:
    graph = "(float[2, 0, 1] x, int64 axis) => (float[b, c, 2] y) { y = DFT (x, , axis) }"
    _compare(graph, numbers(2, 0, 1), [{"axis": _number(0)}])


@pytest.mark.parametrize("axis", [2, -1, 3, -4])
def test_what_is_no_axis_of_a_transform(axis: int) -> None:
    compiled = gcomp.compile(model("(float[2, 3, 1] x, int64 a) => (float[b, c, 2] y) { y = DFT (x, , a) }"))
    with pytest.raises(InputError, match="axis"):
        compiled(numbers(2, 3, 1), _number(axis))


@pytest.mark.parametrize("window", [False, True])
def test_steps_and_lengths_of_frames(window: bool) -> None:
    more, operand = (", float[w] window", "window") if window else ("", "")
    graph = f"(float[b, n, 1] x, int64 step, int64 length{more}) => (float[b, f, k, 2] y)"
    graph += f"{{ y = STFT (x, step, {operand}, length) }}"
    program, compiled, x = imported(graph), gcomp.compile(model(graph)), numbers(2, 13, 1)
    for step, length in ((1, 4), (3, 5), (5, 13), (20, 1)):
        extra = [np.hanning(length).astype(np.float32)] if window else []
        given = {"step": _number(step), "length": _number(length)}
        (want,) = interpret(imported(graph, constants=given), [x, *extra])
        for got in (interpret(program, [x, *given.values(), *extra])[0], compiled(x, *given.values(), *extra)[0]):
            assert np.asarray(got).shape == want.shape
            np.testing.assert_allclose(np.asarray(got), want, atol=2e-5)


@pytest.mark.parametrize(("step", "length"), [(0, 4), (-1, 4), (1, 0), (1, -3)])
def test_frames_that_do_not_exist(step: int, length: int) -> None:
    graph = "(float[b, n, 1] x, int64 step, int64 length) => (float[b, f, k, 2] y) { y = STFT (x, step, , length) }"
    with pytest.raises(InputError, match=r"STFT|length"):
        gcomp.compile(model(graph))(numbers(2, 13, 1), _number(step), _number(length))


COLUMNS = "(float[n, c, l] x, int64[2] image, int64[2] block) => (float[n, d, h, w] y)"
COLUMNS += "{{ y = Col2Im <{}> (x, image, block) }}"


def test_positions_that_are_too_large_formulas_are_refused_by_kernels() -> None:
    with pytest.raises(UnsupportedError, match=r"positions are too large formulas(.|\n)*Col2Im"):
        gcomp.compile(model(COLUMNS.format("strides = [1, 1]")), target="cpu")


@pytest.mark.parametrize("flags", ["strides = [1, 1]", "pads = [1, 0, 2, 1], strides = [2, 1]", "dilations = [1, 2]"])
def test_images_and_blocks(flags: str) -> None:
    graph = COLUMNS.format(flags)
    program, compiled = imported(graph), gcomp.compile(model(graph), target="xla:cpu")
    for image, block in (((5, 6), (2, 3)), ((4, 4), (1, 2)), ((7, 5), (3, 1))):
        pads = [1, 0, 2, 1] if "pads" in flags else [0] * 4
        step, gap = ((2, 1) if "pads" in flags else (1, 1)), ((1, 2) if "dilations" in flags else (1, 1))
        counts = [
            (image[i] + pads[i] + pads[2 + i] - gap[i] * (block[i] - 1) - 1) // step[i] + 1 for i in range(2)
        ]  # fmt: skip
        x = numbers(2, 3 * block[0] * block[1], counts[0] * counts[1])
        feeds = {"x": x, "image": _list(*image), "block": _list(*block)}
        (want,) = ReferenceEvaluator(model(graph)).run(None, feeds)
        fixed = imported(graph, constants={"image": _list(*image), "block": _list(*block)})
        runs: list[Any] = [interpret(fixed, [x])[0], interpret(program, list(feeds.values()))[0]]
        for got in (*runs, compiled(*feeds.values())[0]):
            assert np.array_equal(np.asarray(got), want)  # small integers: sums in any order are the same


@pytest.mark.parametrize(
    ("shape", "image", "block"), [((1, 6, 9), (4, 4), (2, 2)), ((1, 4, 8), (4, 4), (2, 2)), ((1, 4, 9), (4, 4), (0, 4)),
                                  ((1, 25, 1), (4, 4), (5, 5)), ((1, 4, 9), (-4, 4), (2, 2))]
)  # fmt: skip
def test_blocks_that_do_not_fit(shape: tuple[int, ...], image: tuple[int, ...], block: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        gcomp.compile(model(COLUMNS.format("strides = [1, 1]")), target="xla:cpu")(
            numbers(*shape), _list(*image), _list(*block)
        )
    with pytest.raises(GcompError):
        constants = {"image": _list(*image), "block": _list(*block)}
        gcomp.compile(model(COLUMNS.format("strides = [1, 1]")), constants=constants)(numbers(*shape))


MEL = "(int64 bins, int64 n, int64 rate, float low, float high) => (float[f, b] y)"
MEL += "{ y = MelWeightMatrix (bins, n, rate, low, high) }"


def _bands(bins: int, n: int, rate: int, low: float, high: float) -> list[Any]:
    return [*map(_number, (bins, n, rate)), np.float32(low)[()], np.float32(high)[()]]


def test_bands_of_the_mel_scale() -> None:
    compiled, names = gcomp.compile(model(MEL)), ("bins", "n", "rate", "low", "high")
    for given in (_bands(8, 16, 8192, 0, 4096), _bands(3, 64, 16000, 100, 7000), _bands(20, 8, 8192, 20, 4000)):
        feeds = dict(zip(names, given, strict=True))
        (want,) = ReferenceEvaluator(model(MEL)).run(None, feeds)
        (fixed,) = interpret(imported(MEL, constants=feeds), [])
        for got in (fixed, compiled(*map(np.asarray, given))[0]):
            np.testing.assert_array_equal(np.asarray(got), want)


def test_bands_that_are_cut_off_or_are_none() -> None:
    feeds = dict(zip(("bins", "n", "rate", "low", "high"), _bands(4, 8, 8000, 0, 64000), strict=True))
    (cut,) = interpret(imported(MEL, constants=feeds), [])  # bands above the highest frequency
    assert cut.shape == (5, 4) and not cut[:, -1].any() and np.isfinite(cut).all()
    for wrong in (_bands(0, 8, 8000, 0, 4000), _bands(4, -8, 8000, 0, 4000), _bands(4, 8, 0, 0, 4000)):
        with pytest.raises(InputError, match="mel bands"):
            gcomp.compile(model(MEL))(*map(np.asarray, wrong))
        with pytest.raises(GcompError, match="mel bands"):
            imported(MEL, constants=dict(zip(feeds, wrong, strict=True)))
