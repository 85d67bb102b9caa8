"""AffineGrid: as ONNX's reference computes it, with sizes that are constants, shapes or data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import gcomp
from gcomp.errors import GcompError, InputError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers

GRAPH = """({type}[N, {d}, {e}] theta, int64[{k}] size) => ({type}[a, b, c, {rest}] y)
    {{ y = AffineGrid <align_corners = {corners}> (theta, size) }}"""
SIZES = ((2, 3, 5, 6), (1, 1, 4, 3), (3, 2, 1, 2), (2, 0, 1, 1), (2, 3, 4, 5, 6), (1, 1, 1, 2, 1))


def graph(size: tuple[int, ...], corners: int, type: str = "float") -> str:
    d = len(size) - 2
    return GRAPH.format(type=type, d=d, e=d + 1, k=len(size), corners=corners, rest="2" if d == 2 else "e, 3")


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_grids(size: tuple[int, ...], corners: int) -> None:
    text, d = graph(size, corners), len(size) - 2
    theta, given = numbers(size[0], d, d + 1) / 7, np.asarray(size, np.int64)
    with np.errstate(divide="ignore"):
        (want,) = ReferenceEvaluator(model(text)).run(None, {"theta": theta, "size": given})
    runs: list[Any] = [interpret(imported(text), [theta, given])[0], gcomp.compile(model(text))(theta, given)[0]]
    runs.append(interpret(imported(text, constants={"size": given}), [theta])[0])
    for got in runs:
        assert np.asarray(got).shape == want.shape
        assert np.abs(np.asarray(got) - want).max() <= 8 * np.finfo(np.float32).eps


def test_narrow_types_compute_in_single() -> None:
    size = (1, 1, 40, 50)
    theta = (numbers(1, 2, 3) / 7).astype(np.float16)
    (got,) = interpret(imported(graph(size, 1, "float16")), [theta, np.asarray(size, np.int64)])
    (want,) = interpret(imported(graph(size, 1)), [theta.astype(np.float32), np.asarray(size, np.int64)])
    assert got.dtype == np.float16 and np.array_equal(got, want.astype(np.float16))


def test_a_batch_that_differs_is_refused() -> None:
    size = (2, 1, 4, 4)
    compiled = gcomp.compile(model(graph(size, 0)))
    with pytest.raises(InputError, match="must equal"):
        compiled(numbers(3, 2, 3), np.asarray(size, np.int64))


@pytest.mark.parametrize("size", [(2, 1, 4), (2, 1, 4, -4), (2, 1, 4, 4, 4)])
def test_what_fits_nothing(size: tuple[int, ...]) -> None:
    text = f"""(float[2, 2, 3] theta) => (float[a, b, c, 2] y) <int64[{len(size)}] size = {{{str(size)[1:-1]}}}>
        {{ y = AffineGrid(theta, size) }}"""
    with pytest.raises(GcompError):
        imported(text)
