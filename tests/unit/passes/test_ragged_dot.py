"""A ragged dot keeps the sign of zero when it becomes dots, and rows in no group are 0."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.convert.expand_chlo import ExpandChlo
from gcomp.reference.interpreter import interpret
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


@pytest.mark.parametrize("element", ["i64", "ui64", "i32", "ui8"])
@pytest.mark.parametrize("expanded", [False, True])
def test_groups_of_any_size_end_where_the_rows_do(element: str, expanded: bool) -> None:
    """Sums of sizes at the limits of 64 bits are no sums of 64 bits."""
    text = PROGRAM.replace("ELEMENT", "f32").replace("2xi32", f"3x{element}").replace("2x2x1xf32", "3x2x1xf32")
    program = Program.parse(text)
    if expanded:
        assert ExpandChlo().run(program, PassContext())
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    most = int(np.iinfo(dtype_of(element)).max)
    for sizes, first in (([most] * 3, 3), ([1, most, most], 1), ([0, most, most], 0)):
        (found,) = interpret(program, [x, y, np.array(sizes, dtype_of(element))])
        assert np.array_equal(found[:first], x[:first] @ y[0]) and np.array_equal(found[first:], x[first:] @ y[1])
