"""A ragged dot keeps the sign of zero when it becomes dots, and rows in no group are 0."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.testing.check import check_pass

PROGRAM = """func.func @main(%x: tensor<3x2xELEMENT>, %w: tensor<2x2x1xELEMENT>, %n: tensor<2xi32>)
    -> tensor<3x1xELEMENT> {
  %0 = "chlo.ragged_dot"(%x, %w, %n) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
    : (tensor<3x2xELEMENT>, tensor<2x2x1xELEMENT>, tensor<2xi32>) -> tensor<3x1xELEMENT>
  return %0 : tensor<3x1xELEMENT>
}"""


@pytest.mark.parametrize("element, dtype", [("f32", np.float32), ("f64", np.float64), ("complex<f32>", np.complex64)])
def test_negative_zeros_stay(element: str, dtype: type) -> None:
    program = Program.parse(PROGRAM.replace("ELEMENT", element))
    x = np.array([[-0.0, -0.0], [0.0, -1.0], [3.0, 4.0]], dtype)
    inputs = [x, np.ones((2, 2, 1), dtype), np.array([1, 1], np.int32)]
    failure = check_pass("expand-chlo", program, inputs)
    assert failure is None, failure
