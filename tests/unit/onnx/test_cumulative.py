"""Running sums: the same along known and symbolic sizes, and no more work than their elements."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import gcomp
from gcomp.dims import evaluate, product
from gcomp.frontends.onnx import import_onnx
from gcomp.ir.types import shape_of
from gcomp.reference.interpreter import interpret


def model(axis: int, *, symbolic: bool, exclusive: int, reverse: int) -> onnx.ModelProto:
    shape: list[int | str] = [4, 4, 4]
    if symbolic:
        shape[axis] = "n"
    graph = helper.make_graph(
        [helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)], "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [helper.make_tensor("axis", TensorProto.INT64, [], [axis])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("size", [4, 0, 1, 5])
def test_sums_up_to_each_element(size: int, axis: int, exclusive: int, reverse: int) -> None:
    shape = [4, 4, 4]
    shape[axis] = size
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)
    order = np.flip(x, axis) if reverse else x
    sums = np.cumsum(order, axis, dtype=np.int32) - (order if exclusive else 0)
    expected = np.flip(sums, axis) if reverse else sums
    proto = model(axis, symbolic=size != 4, exclusive=exclusive, reverse=reverse)
    (found,) = interpret(import_onnx(proto), [x])
    np.testing.assert_array_equal(found, expected)
    (machine,) = gcomp.compile(proto, target="cpu").flat([x])
    np.testing.assert_array_equal(machine, expected)


def test_no_value_grows_with_the_square_of_the_size() -> None:
    program = import_onnx(model(2, symbolic=True, exclusive=0, reverse=0))
    values = [result for op in program.module.walk() for result in op.results]
    most = [max(evaluate(product(shape_of(value)), {"n": n}) for value in values) for n in (10, 1000)]
    assert most[1] <= 100 * most[0]
