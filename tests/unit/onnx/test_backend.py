"""gcomp as an ONNX backend: the protocol of onnx.backend.base, as ONNX's own runner uses it."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

from gcomp import onnx_backend as backend
from gcomp.errors import GcompError, InputError, UnsupportedError, UsageError
from gcomp.onnx_backend import GcompBackend

X = np.array([[1.0, -2.0, 3.0]], np.float32)
Y = np.array([[4.0], [5.0]], np.float32)


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')


TWO = """(float[1, 3] x, float[2, 1] self) => (float[2, 3] sum, float[2, 3] difference) {
    sum = Add(x, self)
    difference = Sub(x, self)
}"""


def test_it_is_a_backend() -> None:
    assert issubclass(GcompBackend, Backend)
    assert isinstance(backend.prepare(model(TWO)), BackendRep)


@pytest.mark.parametrize("inputs", [[X, Y], (X, Y), {"self": Y, "x": X}, [X.tolist(), Y]])
def test_inputs_in_order_or_by_name(inputs: Any) -> None:
    if isinstance(inputs, list) and isinstance(inputs[0], list):
        inputs = [np.array(inputs[0], np.float32), inputs[1]]
    outputs = backend.run_model(model(TWO), inputs)
    assert isinstance(outputs, tuple)
    np.testing.assert_array_equal(outputs[0], X + Y)
    np.testing.assert_array_equal(outputs["difference"], X - Y)  # type: ignore[call-overload]


def test_an_array_alone_is_the_only_input() -> None:
    (y,) = backend.run_model(model("(float[1, n] x) => (float[1, n] y) {y = Relu(x)}"), X)
    np.testing.assert_array_equal(y, np.maximum(X, 0))


def test_inputs_with_initializers_are_not_asked_for() -> None:
    given = model("(float[1, 3] x, float[3] w) => (float[1, 3] y) <float[3] w = {1, 2, 3}> {y = Mul(x, w)}")
    (y,) = backend.run_model(given, [X])
    np.testing.assert_array_equal(y, X * np.array([1, 2, 3], np.float32))


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [([X], InputError), ([X, Y, Y], InputError), ({"x": X}, InputError), ({"x": X, "y": Y}, InputError),
     ([X, [[1, 2], [3]]], InputError), ([X, Y.astype(np.int64)], InputError)],
)  # fmt: skip
def test_wrong_inputs_are_refused(inputs: Any, kind: type[GcompError]) -> None:
    with pytest.raises(kind):
        backend.prepare(model(TWO)).run(inputs)


def test_devices() -> None:
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(UnsupportedError):
        backend.prepare(model(TWO), "CUDA")


def test_options() -> None:
    symbolic = model("(float[1, n] x) => (float[1, n] y) {y = Relu(x)}")
    rep = backend.prepare(symbolic, dims={"n": 3}, verify="each", rtol=1e-3)
    assert rep.model is not None and rep.model.signature.is_static
    with pytest.raises(UsageError, match="speed"):
        backend.prepare(symbolic, speed=11)
    with pytest.raises(UsageError, match="speed"):
        rep.run([X], speed=11)


def test_compatibility_is_what_import_says() -> None:
    assert backend.is_compatible(model(TWO))
    assert not backend.is_compatible(model(TWO), "CUDA")
    strings = helper.make_tensor_value_info("x", onnx.TensorProto.STRING, [2])
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [strings], [onnx.ValueInfoProto(name="y")])
    assert not backend.is_compatible(helper.make_model(graph))


def test_nodes() -> None:
    node = helper.make_node("Sub", ["a", "a"], ["c"])
    (c,) = backend.run_node(node, [X, Y])  # by position, whatever the names
    np.testing.assert_array_equal(c, X - Y)
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    (y,) = backend.run_node(node, {"x": X, "most": np.float32(1)})
    np.testing.assert_array_equal(y, np.minimum(X, 1))
    old = helper.make_node("Softmax", ["x"], ["y"])
    cube = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    (new_result,), (old_result,) = backend.run_node(old, [cube]), backend.run_node(old, [cube], opset_version=11)
    assert np.allclose(new_result.sum(-1), 1) and np.allclose(old_result.sum((1, 2)), 1)
    with pytest.raises(InputError):
        backend.run_node(node, [X])
    with pytest.raises(UnsupportedError):
        backend.run_node(old, [np.array(["a"])])
    with pytest.raises(InputError):
        backend.run_node(old, [np.array(["2026-11-21"], "datetime64[D]")])


def test_inputs_that_are_sequences_and_optionals() -> None:
    rep = backend.prepare(model("(seq(float[n]) xs) => (seq(float[n]) ys) {ys = Identity(xs)}"))
    assert rep.model is None
    for count in (2, 3):
        given = [np.arange(i + 1, dtype=np.float32) for i in range(count)]
        (ys,) = rep.run([given])
        assert len(ys) == count and all(np.array_equal(a, b) for a, b in zip(ys, given, strict=True))
    has = backend.prepare(model("(optional(float[n]) x) => (bool y) {y = OptionalHasElement(x)}"))
    assert [bool(has.run([value])[0]) for value in (None, X[0])] == [False, True]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_onnx_s_own_runner() -> None:
    runner = BackendTest(GcompBackend, __name__)
    runner.include(
        r"^test_(clip_default|gemm_all|reshape_negative|AvgPool1d|single_relu_model|operator_addconstant).*_cpu$"
    )
    suite = unittest.TestSuite(
        test
        for kind in runner.test_cases.values()
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(kind)
        if "skip" not in (getattr(getattr(test, test._testMethodName), "__unittest_skip_why__", "") or "")
        and not getattr(getattr(test, test._testMethodName), "__unittest_skip__", False)
    )
    assert suite.countTestCases() > 10
    result = unittest.TestResult()
    suite.run(result)
    assert not result.failures and not result.errors, (result.failures + result.errors)[0][1]


def test_the_first_name_of_the_module_still_works() -> None:
    from gcomp.frontends.onnx import backend as first

    assert {name: getattr(first, name) for name in first.__all__} == {
        name: getattr(backend, name) for name in first.__all__
    }
