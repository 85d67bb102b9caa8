"""Bad models: one GcompError each, which says what, where, why, and what to do."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model

INVALID: dict[str, tuple[str, str]] = {
    "(float[2] x) => (float[2] y) { y = Relu(x, x) }": ("2 inputs", "takes 1"),
    "(float[2] x) => (float[2] y) { y = Add(x) }": ("1 inputs", "takes 2"),
    "(float[2] x) => (float[2] y) { y = Relu <alpha = 1.0> (x) }": ("alpha does not exist", "none"),
    "(float[2] x) => (float[2] y) { y = Concat(x) }": ("axis is missing", "requires"),
    "(float[2] x) => (float[2] y) { y = Concat <axis = 1.5> (x) }": ("axis has type FLOAT", "INT"),
    "(int64[2] x) => (int64[2] y) { y = Sigmoid(x) }": ("int64", "float"),
    "(float[2] x, int32[2] z) => (float[2] y) { y = Add(x, z) }": ("int32", "must be tensor(float)"),
    "(float[2, 3] x, float[4] z) => (float[2, 3] y) { y = Add(x, z) }": ("contradicts", "do not broadcast"),
    "(float[2, 3] x, float[2, 3] z) => (float[2, 3] y) { y = MatMul(x, z) }": ("size 3", "2 is expected"),
    "(float[2, 3] x) => (float[6] y) { y = Transpose <perm = [0, 0]> (x) }": ("[0, 0]", "permutation"),
    "(float[2, 3] x) => (float[6] y) { y = Softmax <axis = 2> (x) }": ("axis 2", "rank 2"),
    "(float[2, 3] x) => (float[7] y) <int64[1] s = {7}> { y = Reshape(x, s) }": ("reshape", "6 elements are not 7"),
    "(float[2, 3] x) => (float[7] y) <int64[2] s = {-1, -1}> { y = Reshape(x, s) }": ("[-1, -1]", "at most one"),
    "(float[2, 3] x) => (float[3] y) <int64[1] a = {0}> { y = Squeeze(x, a) }": ("dim 0 is 2", "size 1"),
    "(float[1, 3, 5] x, float[4, 2, 3] w) => (float[1, 4, 3] y) { y = Conv(x, w) }": ("1 groups", "3 channels"),
    "(float[1, 2, 5] x) => (float[1, 2, 3] y) { y = MaxPool <kernel_shape = [0]> (x) }": ("[0]", "positive"),
    '(float[1, 2, 5] x) => (float[1, 2, 3] y) { y = MaxPool <kernel_shape = [3], auto_pad = "X"> (x) }': (
        "'X'",
        "VALID",
    ),
    "(float[2] x) => (float[2] y) { y = Upsample <scales = [1.0]> (x) }": ("no longer exists", "before opset 20"),
    "(float[2] x) => (float[2] y) { a = Add(x, b)  b = Relu(a)  y = Relu(b) }": ("cyclic", ""),
}  # fmt: skip
"""Graph -> what the error says, and why."""


@pytest.mark.parametrize(("graph", "expected"), INVALID.items())
def test_invalid_models_are_refused(graph: str, expected: tuple[str, str]) -> None:
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(graph))
    error = caught.value
    assert expected[0] in error.what
    assert expected[1] in (error.why or "")
    assert "node `" in (error.where or "")


def test_unsorted_acyclic_graphs_are_sorted() -> None:
    program = import_onnx(model("(float[2] x) => (float[2] y) { y = Relu(a)  a = Neg(x) }"))
    assert next(op.name for op in program.block.ops) == "stablehlo.negate"


def test_all_unsupported_nodes_are_listed_at_once() -> None:
    nodes = "a = StringNormalizer(x)  b = RegexFullMatch(x)  c = StringNormalizer(x)  d = custom.Thing(x)"
    proto = model(f"(float[2, 2] x) => (float y) {{ {nodes}  y = Relu(a) }}", imports=', "custom" : 1')
    for node, name in zip(proto.graph.node, ("image", "match", "", "thing", "relu"), strict=True):
        node.name = name
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(proto)
    text = str(caught.value)
    assert "4 nodes" in text
    assert "StringNormalizer (domain ai.onnx, opset 20): `image`, `StringNormalizer:c`" in text
    assert "RegexFullMatch (domain ai.onnx, opset 20): `match`" in text
    assert "Thing (domain custom, opset 1): `thing`" in text
    assert caught.value.fix


def test_unsupported_nodes_in_subgraphs_and_functions_are_listed() -> None:
    graph = """(float[2, 2] x, bool c) => (float y) {
      y = If (c) <then_branch = t () => (float a) { a = StringNormalizer(x) },
                  else_branch = e () => (float b) { b = local.F(x) }> }"""
    function = '<domain: "local", opset_import: ["" : 20]> F (u) => (v) { v = RegexFullMatch(u) }'
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(model(graph, functions=function, imports=', "local" : 1'))
    assert "StringNormalizer" in str(caught.value)
    assert "RegexFullMatch" in str(caught.value)


def test_unused_functions_are_not_looked_at() -> None:
    function = '<domain: "local", opset_import: ["" : 20]> F (u) => (v) { v = SequenceLength(u) }'
    import_onnx(model("(float[2] x) => (float[2] y) { y = Relu(x) }", functions=function, imports=', "local" : 1'))


def test_opsets_that_the_installed_onnx_does_not_know_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="opset 999") as caught:
        import_onnx(model("(float[2] x) => (float[2] y) { y = Relu(x) }", 999))
    assert "newer onnx" in (caught.value.fix or "")


def test_domains_must_be_imported() -> None:
    proto = model("(float[2] x) => (float[2] y) { y = Relu(x) }")
    proto.graph.node[0].domain = "elsewhere"
    with pytest.raises(InvalidModelError, match="elsewhere"):
        import_onnx(proto)


def test_constants_that_depend_on_data_name_the_node() -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(model("(float[6] x, int64 p) => (float y) { s = SequenceConstruct(x) y = SequenceErase(s, p) }"))
    assert "position depends on the data" in (caught.value.why or "")
    assert "SequenceErase:y" in (caught.value.where or "")
    assert "constant position" in (caught.value.fix or "")


@pytest.mark.parametrize(
    "value",
    [
        helper.make_tensor_value_info("x", TensorProto.STRING, [2]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2]),
    ],
)
def test_inputs_that_are_no_tensors_of_numbers(value: onnx.ValueInfoProto) -> None:
    proto = model("(float[2] x) => (float[2] y) { y = Identity(x) }")
    proto.graph.input[0].CopyFrom(value)
    with pytest.raises(UnsupportedError, match="`x`"):
        import_onnx(proto)


BATCH = "(float[batch] x) => (float[batch] y) { y = Relu(x) }"


@pytest.mark.parametrize("spec", ["many", "5..2", (3, 1), True, 1.5])
def test_ranges_must_be_ranges(spec: object) -> None:
    with pytest.raises(UsageError, match="batch"):
        import_onnx(model(BATCH), dims={"batch": spec})  # type: ignore[dict-item]


def test_dims_must_exist() -> None:
    with pytest.raises(UsageError) as caught:
        import_onnx(model(BATCH), dims={"bath": 3})
    assert "batch" in (caught.value.why or "")


PAIR = "(float[2] x) => (float[2] y) { y = Relu(x) }"


@pytest.mark.parametrize("constants", [{"z": np.zeros(2)}, {"x": np.zeros(2)}, {"x": np.zeros((2, 2), np.float32)}])
def test_constants_must_fit_an_input(constants: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        import_onnx(model(PAIR), constants=constants)  # type: ignore[arg-type]


def test_deep_functions_end_in_an_error() -> None:
    functions = "\n".join(
        f'<domain: "f", opset_import: ["" : 20, "f" : 1]> F{i} (u) => (v) {{ v = f.F{i + 1}(u) }}' for i in range(60)
    )
    functions += '\n<domain: "f", opset_import: ["" : 20]> F60 (u) => (v) { v = Relu(u) }'
    proto = model("(float[2] x) => (float[2] y) { y = f.F0(x) }", functions=functions, imports=', "f" : 1')
    try:
        import_onnx(proto)
    except GcompError as error:
        assert isinstance(error, UnsupportedError)
