"""Sizes whose formulas grow too large are bound by host steps."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import gcomp
from gcomp.errors import UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model, numbers
from tests.unit.onnx.structured import assert_same, run_peer

POOL = "MaxPool<kernel_shape = [3], strides = [2], pads = [1, 1]>({0})"
GROW = 'Resize<mode = "nearest">({0}, , scales)'
ROUND = (GROW, POOL, GROW, POOL, POOL)
"""Sizes times 9/8: each of them nests in the next."""


def nested(rounds: int, after: str = "y = Relu(last)") -> onnx.ModelProto:
    """A model whose last size is a formula of 3 divisions for each round."""
    lines, last = list[str](), "x"
    for i, form in enumerate(ROUND * rounds):
        lines.append(f"v{i} = {form.format(last)}")
        last = f"v{i}"
    body = "\n".join([*lines, f"last = Identity({last})", after])
    return model(f"(float[1, 1, n] x) => (float[1, 1, k] y) <float[3] scales = {{1, 1, 3}}> {{ {body} }}", 17)


def test_a_size_that_is_too_large_for_a_formula_is_bound_at_the_call() -> None:
    proto = nested(12)
    compiled = gcomp.compile(proto, target="xla:cpu")
    assert compiled.signature.data_dependent_symbols
    for n in (1, 7):
        assert_same(list(compiled(numbers(1, 1, n))), run_peer(proto, numbers(1, 1, n)))


def test_what_is_added_to_a_bound_size_has_it_too() -> None:
    """The shape of a tensor from before, and a tensor of it, are restated alike."""
    proto = nested(12, "shape = Shape(v50) flat = Expand(one, shape) s = Add(v50, flat) t = Sub(last, last) "
                   "total = ReduceSum<keepdims = 1>(s) y = Add(t, total)")  # fmt: skip
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, np.float32), "one"))
    compiled = gcomp.compile(proto, target="xla:cpu")
    for n in (4,):
        (got,), (want,) = compiled(numbers(1, 1, n)), run_peer(proto, numbers(1, 1, n))
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_kernels_refuse_formulas_that_are_too_large() -> None:
    with pytest.raises(UnsupportedError, match="positions are too large formulas"):
        gcomp.compile(nested(12), target="cpu")


def test_inside_of_a_branch_it_is_refused() -> None:
    proto = nested(12)
    branch = onnx.helper.make_graph(
        [node for node in proto.graph.node if node.op_type != "Relu"], "b", [],
        [onnx.helper.make_tensor_value_info("last", onnx.TensorProto.FLOAT, None)],
    )  # fmt: skip
    del proto.graph.node[:]
    proto.graph.input.append(onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    proto.graph.node.append(onnx.helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch))
    with pytest.raises(UnsupportedError, match="size formula too large"):
        import_onnx(proto)
