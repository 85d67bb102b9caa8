"""What rounding alone may make of a program's results."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.reference.noise import rounding_masks


@pytest.mark.parametrize(
    ("function", "pole"), [("lgamma", -5.0), ("digamma", -3.0), ("atanh", 1.0), ("atanh", -1.0), ("erf_inv", 1.0)]
)
def test_an_operand_beside_a_pole_may_be_there(function: str, pole: float) -> None:
    """A sum that is an ulp from a whole number is that number where it is rounded otherwise, and far from it is not."""
    count, terms = 500, 256
    text = f"""func.func @main(%x: tensor<{count}x{terms}xf32>) -> tensor<{count}xf32> {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<{count}x{terms}xf32>, tensor<f32>) -> tensor<{count}xf32>
      %1 = chlo.{function} %0 : tensor<{count}xf32> -> tensor<{count}xf32>
      func.return %1 : tensor<{count}xf32>
    }}"""
    program = Program.parse(text)
    beside, apart = np.nextafter(np.float32(pole), np.float32(0)), np.float32(pole * 0.9)
    for operand, is_open in ((beside, True), (apart, False)):
        x = np.full((count, terms), operand / terms, np.float32)
        expected = interpret(program, [x])
        assert np.isfinite(expected[0]).all()
        infinite = [np.full(count, np.inf, np.float32)]
        (mask,) = rounding_masks(program, [x], expected, infinite, narrow_sums=True)
        assert mask.all() if is_open else not mask.any()
