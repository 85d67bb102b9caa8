"""Nodes that contradict the specification or their inputs, reduced from mutants: refused, or right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, parser

import gcomp
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret

Array = np.ndarray[Any, Any]


def model(graph: str, opset: int = 22, functions: str = "") -> onnx.ModelProto:
    text = f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>\n{graph}\n{functions}'
    return parser.parse_model(text)


def run(graph: str, *inputs: Array, opset: int = 22) -> list[Array]:
    return interpret(import_onnx(model(graph, opset)), list(inputs))


REFUSED = {
    "a flag that is neither yes nor no": "y = ReduceMax<keepdims=4>(x)",
    "a flag of an operator that is expanded": "y = HannWindow<periodic=-5>(n)",
    "a reduction that does not exist": 'y = NegativeLogLikelihoodLoss<reduction="mul">(x, labels)',
    "a mode that does not exist": 'y = DepthToSpace<blocksize=2, mode="DRC">(image)',
    "two values": "y = Constant<value_float=1.0, value_ints=[1]>()",
    "no value": "y = Constant()",
    "a rank that an operator does not take": "y = DepthToSpace<blocksize=2>(x)",
    "the extremum of nothing": "y = ArgMax<axis=1>(empty)",
    "groups less than none": "y = GroupNormalization<num_groups=-1>(image, channels, channels)",
    "a bound that is a matrix": "y = Clip(x, one)",
    "more outputs than there are": "y, z = ConvTranspose(image, kernel)",
    "a negative scale of attention": "y = Attention<scale=-1.0>(image, image, image)",
    "lengths that are a matrix": 'y = Attention(image, image, image, "", "", "", lengths)',
    "weights that are a matrix": "y = SoftmaxCrossEntropyLoss(x, labels, x)",
    "a last dim that is no complex number": "y = DFT(image)",
    "too many sizes": "y = ConvTranspose<output_shape=[4, 4, 4, 4, 4]>(image, kernel)",
}


@pytest.mark.parametrize("node", REFUSED.values(), ids=list(REFUSED))
def test_nodes_are_refused(node: str) -> None:
    graph = f"""g (float[3, 4] x, float[2, 0] empty, float[1, 4, 3, 3] image, float[4] channels,
        float[4, 1, 2, 2] kernel)
        => (y) <int64[3] labels = {{0, 1, 2}}, int64 n = {{5}}, float[1, 1] one = {{1}}, int64[1, 1] lengths = {{2}}>
        {{ {node} }}"""
    version = 24 if "Attention" in node else 22
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(graph, version))
    operator = node.split("= ")[1].split("(")[0].split("<")[0]
    assert operator in str(caught.value) and caught.value.where and caught.value.why


@pytest.mark.parametrize("opset", [9, 16])
def test_layer_normalization_before_it_had_a_schema_takes_floats_only(opset: int) -> None:
    graph = "g (uint16[2, 3] x, uint16[3] w) => (uint16[2, 3] y) { y = LayerNormalization(x, w) }"
    with pytest.raises(InvalidModelError, match="uint16"):
        import_onnx(model(graph, opset))


def with_attribute(**fields: Any) -> onnx.ModelProto:
    proto = model("g (float[4] x) => (float[4] y) { y = LeakyRelu<alpha=0.5>(x) }")
    attribute = proto.graph.node[0].attribute[0]
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(attribute, name).extend(value)
        else:
            setattr(attribute, name, value)
    return proto


@pytest.mark.parametrize("fields", [{"i": 1}, {"s": b"x"}, {"ints": [1]}, {"strings": [b"x"]}])
def test_an_attribute_has_a_value_of_its_type_only(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidModelError, match="not of its type") as caught:
        import_onnx(with_attribute(**fields))
    assert "LeakyRelu" in str(caught.value) and "`alpha`" in str(caught.value)


@pytest.mark.parametrize("kind", [onnx.AttributeProto.STRING, onnx.AttributeProto.STRINGS])
def test_texts_of_attributes_are_utf8(kind: int) -> None:
    proto = model("g (float[4] x) => (float[4] y) { y = LeakyRelu<alpha=0.5>(x) }")
    attribute = proto.graph.node[0].attribute.add(name="note", type=kind)
    if kind == onnx.AttributeProto.STRING:
        attribute.s = b"\xff\xfe"
    else:
        attribute.strings.extend([b"fine", b"\xff"])
    for source in (proto, proto.SerializeToString()):
        with pytest.raises(InvalidModelError, match="UTF-8") as caught:
            import_onnx(source)
        assert "LeakyRelu" in str(caught.value)


def test_functions_that_call_each_other_in_a_circle_are_refused() -> None:
    functions = """<domain: "local", opset_import: ["" : 22, "local" : 1]> f (a) => (b) { b = local.g (a) }
        <domain: "local", opset_import: ["" : 22, "local" : 1]> g (a) => (b) { b = local.f (a) }"""
    with pytest.raises(InvalidModelError, match="calls itself"):
        import_onnx(model("main (float[2] x) => (float[2] y) { y = local.f (x) }", functions=functions))


def test_a_subgraph_that_reads_what_nothing_defines_is_refused() -> None:
    graph = """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (a) { a = Add(x, nowhere) }, else_branch = e () => (b) { b = Neg(x) }>
    }"""
    with pytest.raises(InvalidModelError, match="'nowhere'"):
        import_onnx(model(graph))


@pytest.mark.parametrize(
    ("domain", "operator"), [("unheard.of", "Relu"), ("", "Frobnicate"), ("com.microsoft", "Nope")]
)
def test_unknown_operators_are_named(domain: str, operator: str) -> None:
    node = helper.make_node(operator, ["x"], ["y"], domain=domain, name="the_node")
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid(domain or "other", 1)]
    with pytest.raises(UnsupportedError, match="the_node"):
        import_onnx(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=10))


# ---- results ----


def test_shrink_of_integers_computes_with_numbers_between_them() -> None:
    x = np.asarray([-2, -1, 0, 1, 2], np.int16)
    [y] = run("g (int16[5] x) => (int16[5] y) { y = Shrink<bias=1.5, lambd=1.5>(x) }", x)
    assert y.tolist() == [0, 0, 0, 0, 0]
    [y] = run("g (int16[5] x) => (int16[5] y) { y = Shrink<bias=0.5, lambd=0.5>(x) }", x)
    assert y.tolist() == [-1, 0, 0, 0, 1]


@pytest.mark.parametrize("source", [np.uint64, np.int32])
def test_integers_beyond_an_eight_bit_float_saturate(source: Any) -> None:
    x = np.asarray([0, 3, 1 << 30], source)
    text = np.dtype(source).name
    [y] = run(f"g ({text}[3] x) => (float8e5m2[3] y) {{ y = Cast<to=19>(x) }}", x)
    assert y.astype(np.float32).tolist() == [0, 3, 57344]
    [y] = run(f"g ({text}[3] x) => (float8e5m2[3] y) {{ y = Cast<to=19, saturate=0>(x) }}", x)
    assert y.dtype == ml_dtypes.float8_e5m2 and np.isinf(y.astype(np.float32)[2])


def test_integers_become_powers_of_two_as_floats_do() -> None:
    x = np.asarray([0, 1, 3, 64], np.int32)
    [y] = run("g (int32[4] x) => (float8e8m0[4] y) { y = Cast<to=24>(x) }", x, opset=25)
    graph = "g (float[4] x) => (float8e8m0[4] y) { y = Cast<to=24>(x) }"
    [wanted] = run(graph, x.astype(np.float32), opset=25)
    assert np.array_equal(y.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("wanted", ["indices", "inverse", "counts"])
def test_results_of_a_lone_host_step_keep_their_places(wanted: str) -> None:
    names = [name if name == wanted else '""' for name in ("indices", "inverse", "counts")]
    graph = f"g (float[5] x) => (float[n] y, int64[m] {wanted}) {{ y, {', '.join(names)} = Unique(x) }}"
    x = np.asarray([3, 1, 3, 2, 3], np.float32)
    found = gcomp.compile(model(graph))(x)
    expected = {"indices": [1, 3, 0], "inverse": [2, 0, 2, 1, 2], "counts": [1, 1, 3]}
    assert found[0].tolist() == [1, 2, 3] and found[1].tolist() == expected[wanted]


def test_a_failing_importer_blames_the_model_only_where_onnx_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp.frontends.onnx.engine import registry

    def fail(ctx: Any) -> Any:
        raise IndexError("list index out of range")

    monkeypatch.setattr(registry, "lookup", lambda *key: fail)
    with pytest.raises(InvalidModelError, match="MatMul"):
        import_onnx(model("g (float[2, 3] x) => (y) { y = MatMul(x, x) }"))
    with pytest.raises(GcompError, match="failed to import"):
        import_onnx(model("g (float[3, 3] x) => (y) { y = MatMul(x, x) }"))
