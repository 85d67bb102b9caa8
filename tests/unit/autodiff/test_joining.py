"""Cotangents of slices side by side are one concatenation, and the right one."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.reference.interpreter import interpret

TEXT = """func.func @main(%x: tensor<7x3xf32> {gcomp.name = "x"}) -> (tensor<2x3xf32> {gcomp.name = "y"}) {
  %a = stablehlo.slice %x [PLACE_A, 0:3] : (tensor<7x3xf32>) -> tensor<2x3xf32>
  %b = stablehlo.slice %x [PLACE_B, 0:3] : (tensor<7x3xf32>) -> tensor<2x3xf32>
  %c = stablehlo.multiply %a, %b : tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}"""


@pytest.mark.parametrize(
    ("first", "second", "side_by_side"),
    [(0, 2, True), (2, 0, True), (0, 5, True), (4, 1, True), (1, 2, False), (3, 3, False)],
)
def test_the_gradient_of_slices(first: int, second: int, side_by_side: bool) -> None:
    text = TEXT.replace("PLACE_A", f"{first}:{first + 2}").replace("PLACE_B", f"{second}:{second + 2}")
    program = gcomp.grad(gcomp.Program.parse(text))
    assert ("concatenate" in program.text()) == side_by_side
    assert ("pad" in program.text()) != side_by_side
    rng = np.random.default_rng(0)
    x, cotangent = rng.standard_normal((7, 3)).astype(np.float32), rng.standard_normal((2, 3)).astype(np.float32)
    expected = np.zeros_like(x)
    expected[first : first + 2] += cotangent * x[second : second + 2]
    expected[second : second + 2] += cotangent * x[first : first + 2]
    np.testing.assert_allclose(interpret(program, [x, cotangent])[0], expected, rtol=1e-6)
