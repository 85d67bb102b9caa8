"""What an imported program looks like: names, locations, weights, symbols, composites, functions and subgraphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import numpy_helper

from gcomp.frontends.onnx import import_onnx
from gcomp.ir.locations import describe
from tests.unit.onnx.graphs import imported, model, numbers, op_names, results, shapes

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def test_digits_agree_with_the_onnx_reference() -> None:
    program = import_onnx(DIGITS)
    program.verify()
    assert shapes(program) == [["batch", "10"]]
    images = numbers(3, 1, 8, 8) / 8
    (want,) = onnx.reference.ReferenceEvaluator(str(DIGITS)).run(None, {"images": images})
    (got,) = results(program, images)
    assert np.abs(got - want).max() <= 64 * np.finfo(np.float32).eps


def test_ports_keep_the_names_of_the_model() -> None:
    proto = model("(float[2] a, float[2] c) => (float[2] u, float[2] v) { u = Add(a, c)  v = Sub(a, c) }")
    proto.graph.input[0].name = proto.graph.node[0].input[0] = proto.graph.node[1].input[0] = "a.b/c d"
    program = import_onnx(proto)
    assert [p.name for p in program.inputs()] == ["a.b/c d", "c"]
    assert [p.name for p in program.outputs()] == ["u", "v"]


def test_every_op_says_which_node_it_came_from() -> None:
    proto = model("(float[2, 2] x) => (float[2, 2] y) { a = Softmax(x)  y = Relu(a) }")
    proto.graph.node[0].name = "attention/softmax"
    ops = list(import_onnx(proto).block.ops)
    assert describe(ops[0].location) == "attention/softmax (Softmax)"
    assert describe(ops[1].location) == "Relu:y (Relu)"


def test_functions_are_inlined_with_their_attributes_and_call_sites() -> None:
    function = '<domain: "local", opset_import: ["" : 20]> F <k> (u) => (v) { v = LeakyRelu <alpha : float = @k> (u) }'
    proto = model(
        "(float[3] x) => (float[3] y) { a = local.F <k = 0.5> (x)  y = local.F <k = 0.25> (a) }",
        functions=function,
        imports=', "local" : 1',
    )
    program = import_onnx(proto)
    assert np.array_equal(results(program, np.float32([-8, 0, 4]))[0], np.float32([-1, 0, 4]))
    places = {describe(op.location) for op in program.block.ops}
    assert any("LeakyRelu" in p and "called at F:y (F)" in p for p in places)


def test_large_initializers_are_weights_that_share_memory() -> None:
    array = np.arange(4096, dtype=np.float32).reshape(64, 64)
    proto = model("(float[2, 64] x) => (float[2, 64] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(array, "w"))
    program = import_onnx(proto)
    assert list(program.weights) == ["w"]
    assert not program.weights["w"].flags.owndata
    assert np.array_equal(program.weights["w"], array)


def test_splats_stay_splats() -> None:
    proto = model("(float[64, 64] x) => (float[64, 64] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.full((64, 64), 0.5, np.float32), "w"))
    program = import_onnx(proto)
    assert not len(program.weights)


def test_initializers_that_are_inputs_too_are_constants() -> None:
    proto = model("(float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.float32([1, 2]), "w"))
    assert [p.name for p in import_onnx(proto).inputs()] == ["x"]


# ---- symbols -----------------------------------------------------------------------------------------------------


def test_dim_names_become_symbols_and_stay_apart() -> None:
    proto = model("(float[n, m] x, float[n, m] z) => (float[n, m] y) { y = Add(x, z) }")
    dims = [d for v in proto.graph.input for d in v.type.tensor_type.shape.dim]
    dims[0].dim_param, dims[1].dim_param = "batch size", "past + 1"
    dims[2].dim_param, dims[3].dim_param = "batch_size", "past"
    program = import_onnx(proto)
    first, second = (list(map(str, p.shape)) for p in program.inputs())
    assert first == ["batch_size_1", "past + 1"]
    assert second == ["batch_size", "past"]


def test_unnamed_dims_get_names() -> None:
    proto = model("(float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    assert shapes(import_onnx(proto)) == [["x_dim0", "3"]]


def test_dims_bind_symbols_and_their_ranges() -> None:
    graph = "(float[b, s] x) => (float[b, s] y) { y = Relu(x) }"
    program = imported(graph, dims={"b": 4, "s": "1..64"})
    assert shapes(program) == [["4", "s"]]
    assert str(program.ranges["s"]) == "1..64"
    assert str(imported(graph, dims={"s": (2, 8)}).ranges["s"]) == "2..8"


def test_shape_arithmetic_folds_to_symbols_and_leaves_no_op() -> None:
    program = imported(
        """(float[b, s, 6] x) => (float[n, 2, m] y)
        <int64[1] two = {2}, int64[1] minus = {-1}, int64 zero = {0}, int64[1] axis = {0}> {
          shape = Shape(x)  b = Gather(shape, zero)  b1 = Unsqueeze(b, axis)
          target = Concat <axis = 0> (b1, two, minus)  y = Reshape(x, target) }"""
    )
    assert shapes(program) == [["b", "2", "3*s"]]
    assert op_names(program) == ["stablehlo.reshape", "func.return"]


def test_relations_between_sizes_become_constraints() -> None:
    program = imported("(float[a] x, float[c] z) => (float[d] y) { y = Add(x, z) }")
    assert [(c.kind, str(c.lhs), str(c.rhs)) for c in program.constraints] == [("broadcast", "a", "c")]
    assert "Add:y" in program.constraints[0].where
    program = imported(
        """(float[b, s] x, float[1, 512] t) => (float[1, s] y) <int64[1] zero = {0}, int64[1] one = {1}> {
          n = Shape <start = 1> (x)  y = Slice(t, zero, n, one) }"""
    )
    assert [(c.kind, str(c.lhs), str(c.rhs)) for c in program.constraints] == [("le", "s", "512")]
    assert shapes(program) == [["1", "s"]]


def test_constants_fix_inputs() -> None:
    graph = "(float[6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }"
    program = imported(graph, constants={"s": np.array([2, 3])})
    assert [p.name for p in program.inputs()] == ["x"]
    assert shapes(program) == [["2", "3"]]


# ---- composites --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("Softmax <axis = -1> (x)", "gcomp.softmax"),
        ("LogSoftmax <axis = 0> (x)", "gcomp.log_softmax"),
        ("Gelu <approximate = \"tanh\"> (x)", "gcomp.gelu"),
        ("LayerNormalization (x, w)", "gcomp.layer_norm"),
    ],
)  # fmt: skip
def test_composites_are_named(node: str, name: str) -> None:
    program = imported(f"(float[2, 3] x, float[3] w) => (float[2, 3] y) {{ y = {node} }}")
    (op,) = (op for op in program.block.ops if op.name == "stablehlo.composite")
    assert name in str(op.properties["name"])


def test_old_softmax_flattens() -> None:
    x = numbers(2, 3, 4)
    (got,) = results(imported("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", opset=11), x)
    assert np.allclose(got.reshape(2, 12).sum(axis=1), 1, rtol=0, atol=1e-6)
    (got,) = results(imported("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", opset=13), x)
    assert np.allclose(got.sum(axis=1), 1, rtol=0, atol=1e-6)


# ---- control flow ------------------------------------------------------------------------------------------------

BRANCHES = """(float[2] x, bool c) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
              else_branch = e () => (float[2] b) { b = Relu(x) }> }"""


def test_if_captures_and_chooses_at_run_time() -> None:
    program, x = imported(BRANCHES), np.float32([-1, 2])
    assert np.array_equal(results(program, x, np.array(True))[0], -x)
    assert np.array_equal(results(program, x, np.array(False))[0], np.maximum(x, 0))


def test_if_of_a_known_condition_is_one_branch() -> None:
    program = imported(BRANCHES, constants={"c": np.array(True)})
    assert op_names(program) == ["stablehlo.negate", "func.return"]


LOOP = """(int64 n, float[2] x) => (float[2] last, float[r, 2] rows) <bool yes = {1}> {
  last, rows = Loop (n, yes, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] row) {
    on = Identity(go)  t = Add(s, s)  row = Identity(t) }> }"""


def test_loops_with_rows_need_a_known_trip_count() -> None:
    program = imported(LOOP, constants={"n": np.array(3)})
    last, rows = results(program, np.float32([1, -2]))
    assert np.array_equal(last, np.float32([8, -16]))
    assert np.array_equal(rows, np.float32([[2, -4], [4, -8], [8, -16]]))
    assert "stablehlo.while" in op_names(program)


def test_loops_whose_shapes_change_are_unrolled() -> None:
    graph = """(float[1] x) => (float[k] y) <int64 n = {3}, bool yes = {1}> {
      y = Loop (n, yes, x) <body = b (int64 i, bool go, float[m] s) => (bool on, float[p] t) {
        on = Identity(go)  t = Concat <axis = 0> (s, s) }> }"""
    program = imported(graph)
    assert shapes(program) == [["8"]]
    assert "stablehlo.while" not in op_names(program)


def test_scan_over_a_symbolic_dim() -> None:
    graph = """(float[2] s, float[n, 2] xs) => (float[2] last, float[n, 2] rows) {
      last, rows = Scan (s, xs) <num_scan_inputs = 1, body = b (float[2] a, float[2] x) => (float[2] c, float[2] r) {
        c = Add(a, x)  r = Identity(c) }> }"""
    xs = numbers(5, 2)
    last, rows = results(imported(graph), np.zeros(2, np.float32), xs)
    assert np.array_equal(rows, np.cumsum(xs, axis=0))
    assert np.array_equal(last, rows[-1])


# ---- determinism -------------------------------------------------------------------------------------------------


def test_the_same_model_gives_the_same_text() -> None:
    first, second = (import_onnx(DIGITS).text(locations=True) for _ in range(2))
    assert first == second


def test_import_leaves_the_protobuf_alone() -> None:
    proto = onnx.load(DIGITS)
    before = proto.SerializeToString(deterministic=True)
    import_onnx(proto)
    assert proto.SerializeToString(deterministic=True) == before


def test_random_nodes_draw_from_their_own_streams() -> None:
    graph = (
        "() => (float[64] a, float[64] b) { a = RandomUniform <shape = [64]> ()  b = RandomUniform <shape = [64]> () }"
    )
    first, second = results(imported(graph)), results(imported(graph))
    assert np.array_equal(first[0], second[0])
    assert not np.array_equal(first[0], first[1])
    assert ((first[0] >= 0) & (first[0] < 1)).all()
