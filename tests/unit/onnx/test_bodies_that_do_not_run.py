"""What the body of a loop or scan needs of sizes binds where there is an iteration, as ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model, numbers, results
from tests.unit.onnx.structured import assert_same, run_peer

BODY = """body = b (int64 i, bool c, float v) => (bool o, float u{rows}) {
  o = {goes_on} s = Mul(x, w) r = ReduceSum<keepdims = 0>(s) u = Add(v, r) {made} }"""
HEAD = "<float[3] w = {1, 2, 3}, float most = {20}, bool yes = {1}, float zero = {0}>"
PLAIN = {"rows": "", "made": "", "goes_on": "Identity(c)"}
LOOPS = {
    "a trip count that is data": (
        f"(int64 k, float[n] x) => (float y) {HEAD} {{ y = Loop(k, yes, zero) <{{body}}> }}", PLAIN,
    ),
    "a condition that is data": (
        f"(bool g, int64 k, float[n] x) => (float y) {HEAD} {{ y = Loop(k, g, zero) <{{body}}> }}", PLAIN,
    ),
    "rows": (
        f"(int64 k, float[n] x) => (float y, float[m, p] z) {HEAD} {{ y, z = Loop(k, yes, zero) <{{body}}> }}",
        {"rows": ", float[q] t", "made": "t = Identity(s)", "goes_on": "Identity(c)"},
    ),
    "rows of a loop that data end": (
        f"(int64 k, float[n] x) => (float y, float[m, p] z) {HEAD} {{ y, z = Loop(k, yes, zero) <{{body}}> }}",
        {"rows": ", float[q] t", "made": "t = Identity(s)", "goes_on": "Less(v, most)"},
    ),
}  # fmt: skip
SCAN = """(float[t] xs, float[n] x) => (float y, float[m, p] z) <float[3] w = {1, 2, 3}, float zero = {0}> {
  y, z = Scan<num_scan_inputs = 1, body = b (float v, float e) => (float u, float[q] s) {
    s = Mul(x, w) r = ReduceSum<keepdims = 0>(s) a = Mul(r, e) u = Add(v, a) }>(zero, xs) }"""


def loop_of(name: str) -> str:
    graph, words = LOOPS[name]
    body = BODY
    for word, text in words.items():
        body = body.replace(f"{{{word}}}", text)
    return graph.replace("{body}", body)


def inputs_of(name: str, trips: int, n: int) -> list[Any]:
    begins = [np.array(trips > 0)] if "condition" in name else []
    return [*begins, np.array(3 if begins else trips), numbers(n)]


@pytest.mark.parametrize("name", LOOPS)
def test_a_body_that_does_not_run_need_not_fit(name: str, tmp_path: Path) -> None:
    proto = model(loop_of(name))
    compiled = gcomp.compile(proto)
    compiled.save(tmp_path / "m.gcomp")
    for run_it in (compiled, gcomp.load(tmp_path / "m.gcomp"), lambda *given: results(import_onnx(proto), *given)):  # pyright: ignore[reportUnknownLambdaType]
        for trips, n in ((0, 3), (2, 3), (2, 1)):
            given = inputs_of(name, trips, n)
            assert_same(list(run_it(*given)), run_peer(proto, *given))  # pyright: ignore[reportUnknownArgumentType]
    given = inputs_of(name, 0, 5)
    assert float(compiled(*given)[0]) == 0 == float(run_peer(proto, *given)[0])
    with pytest.raises(InputError, match="broadcast with 3"):
        compiled(*inputs_of(name, 2, 5))


def test_a_scan_of_nothing_need_not_fit() -> None:
    compiled = gcomp.compile(model(SCAN), dims={"t": "0.."})
    for length, n in ((2, 3), (2, 1)):  # ONNX Runtime refuses a length of 0
        given = (numbers(length), numbers(n))
        assert_same(list(compiled(*given)), run_peer(model(SCAN), *given))
    assert float(compiled(numbers(0), numbers(5))[0]) == 0
    with pytest.raises(InputError, match="broadcast with"):
        compiled(numbers(2), numbers(5))
