"""Sequences: operators against ONNX Runtime, inputs and outputs of programs, loops and branches, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import gcomp
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model, numbers
from tests.unit.onnx.structured import assert_same, run, run_peer, run_xla

X = numbers(5, 3)
I = np.array


def check(graph: str, *inputs: Any, opset: int = 20, structures: Any = None) -> list[Any]:
    """gcomp's outputs, which are ONNX Runtime's."""
    proto = model(graph, opset)
    got = run(proto, *inputs, structures=structures)
    for a, b in zip(got, run_peer(proto, *inputs), strict=True):
        assert_same(a, b)
    return got


# ---- operators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", ["", "0", "1", "2", "-1", "-2"])
def test_insert_at_every_position(position: str) -> None:
    at = f"p = Constant<value_int = {position}>()" if position else ""
    check(
        f"""(float[2] a, float[3] c, float[4] d) => (seq(float[k]) y) {{
        {at} s = SequenceConstruct(a, c)  y = SequenceInsert(s, d{", p" if position else ""}) }}""",
        numbers(2), numbers(3), numbers(4),
    )  # fmt: skip


@pytest.mark.parametrize("position", ["", "0", "2", "-1", "-3"])
def test_erase_at_every_position(position: str) -> None:
    at = f"p = Constant<value_int = {position}>()" if position else ""
    check(
        f"""(float[2] a, float[3] c, float[4] d) => (seq(float[k]) y, int64 n) {{
        {at} s = SequenceConstruct(a, c, d)  y = SequenceErase(s{", p" if position else ""})
        n = SequenceLength(y) }}""",
        numbers(2), numbers(3), numbers(4),
    )  # fmt: skip


@pytest.mark.parametrize("position", [0, 1, -1, -2])
def test_at_a_constant_position(position: int) -> None:
    check(
        f"""(float[2] a, float[3] c) => (float[k] y) {{
        p = Constant<value_int = {position}>()  s = SequenceConstruct(a, c)  y = SequenceAt(s, p) }}""",
        numbers(2), numbers(3),
    )  # fmt: skip


@pytest.mark.parametrize("position", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_at_a_position_that_depends_on_data(position: int, dtype: str) -> None:
    check(
        f"""(float[2] a, float[2] c, float[2] d, {dtype} p) => (float[2] y) {{
        s = SequenceConstruct(a, c, d)  y = SequenceAt(s, p) }}""",
        numbers(2), numbers(2) + 1, numbers(2) + 2, np.array(position, dtype),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("split", "attributes"),
    [
        ("", ""), ("", "<axis = 1>"), ("", "<axis = -1, keepdims = 0>"), ("", "<keepdims = 0>"),
        ("value_int = 2", ""), ("value_int = 5", ""), ("value_int = 7", ""),
        ("value_ints = [1, 3, 1]", ""), ("value_ints = [5]", ""), ("value_ints = [0, 3]", "<axis = 1>"),
    ],
)  # fmt: skip
def test_split_in_every_form(split: str, attributes: str) -> None:
    given = f"n = Constant<{split}>()" if split else ""
    check(
        f"""(float[5, 3] x) => (seq(float[k, j]) y) {{
        {given} y = SplitToSequence {attributes} (x{", n" if split else ""}) }}""",
        X,
    )


@pytest.mark.parametrize("attributes", ["axis = 0", "axis = 1", "axis = -1", "axis = -2"])
@pytest.mark.parametrize("stack", [0, 1])
def test_concatenation_of_what_a_split_gives_along_every_axis(attributes: str, stack: int) -> None:
    graph = f"""(float[6, 3] x) => (float y) {{
        n = Constant<value_int = 2>()  s = SplitToSequence(x, n)
        y = ConcatFromSequence <{attributes}, new_axis = {stack}> (s) }}"""
    proto = model(graph)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert_same(run(proto, numbers(6, 3)), run_peer(proto, numbers(6, 3)))


def test_keepdims_counts_only_where_no_sizes_are_given() -> None:
    # So says the specification. ONNX Runtime drops the axis of parts of size 1, and fails on others.
    proto = model("""(float[5, 3] x) => (seq(float[k, j]) y) {
        n = Constant<value_int = 1>()  y = SplitToSequence <axis = 1, keepdims = 0> (x, n) }""")
    assert_same(run(proto, X), [[X[:, :1], X[:, 1:2], X[:, 2:]]])


def test_symbolic_parts() -> None:
    proto = model("""(float[n] x, float[k] z) => (seq(float[j]) y) {
        some = Shape(z)  all = Shape(x)  rest = Sub(all, some)  sizes = Concat<axis = 0>(some, rest)
        y = SplitToSequence(x, sizes) }""")
    program = import_onnx(proto)
    assert [[str(s) for s in port.shape] for port in program.outputs()] == [["k"], ["n - k"]]
    assert_same(run(proto, numbers(5), numbers(2)), [[numbers(5)[:2], numbers(5)[2:]]])


def test_symbolic_parts_of_an_unknown_number_say_so() -> None:
    with pytest.raises(UnsupportedError, match="axis of size n"):
        run(model("(float[n] x) => (seq(float[k]) y) { y = SplitToSequence(x) }"), numbers(3))
    assert (
        len(run(model("(float[n] x) => (seq(float[k]) y) { y = SplitToSequence(x) }"), numbers(3), dims={"n": 3})[0])
        == 3
    )


def test_map_gives_each_call_an_element_and_every_tensor() -> None:
    graph = """(seq(float[k]) xs, float[1] t) => (seq(float[k]) ys, seq(int64[1]) ns) {
        ys, ns = SequenceMap (xs, t) <body = m (float[k] x, float[1] u) => (float[k] y, int64[1] n) {
            y = Add(x, u)  n = Shape(x) }> }"""
    items = [numbers(4), numbers(1), numbers(3)]
    check(graph, items, np.float32([2]), structures={"xs": 3})


def test_map_over_no_elements_keeps_the_dtype() -> None:
    graph = """(seq(float[k]) xs) => (seq(int64[1]) ns) {
        ns = SequenceMap (xs) <body = m (float[k] x) => (int64[1] n) { n = Shape(x) }> }"""
    assert run(model(graph), [], structures={"xs": 0}) == [[]]


def test_model_functions_take_and_give_sequences() -> None:
    function = (
        '<domain: "local", opset_import: ["" : 20]> Swap (s) => (t) {'
        " z = Constant<value_int = 0>() a = SequenceAt(s, z) r = SequenceErase(s, z) t = SequenceInsert(r, a) }"
    )
    proto = model(
        "(float[2] a, float[3] c) => (seq(float[k]) y) { s = SequenceConstruct(a, c)  y = local.Swap(s) }",
        functions=function, imports=', "local" : 1',
    )  # fmt: skip
    assert_same(run(proto, numbers(2), numbers(3)), [[numbers(3), numbers(2)]])


# ---- control flow ------------------------------------------------------------------------------------------------

CHOICE = """(bool c, float[2] a, float[3] d) => (seq(float[k]) y, float[2] z) {
    y, z = If (c) <
      then_branch = t () => (seq(float[k]) s, float[2] u) { s = SequenceConstruct(a, d)  u = Neg(a) },
      else_branch = e () => (seq(float[k]) r, float[2] v) {
        n = Neg(a)  m = Exp(d)  q = SequenceConstruct(n)  r = SequenceInsert(q, m)  v = Identity(a) }> }"""


@pytest.mark.parametrize("c", [True, False])
def test_branches_give_sequences_of_one_length(c: bool) -> None:
    check(CHOICE, np.array(c), numbers(2), numbers(3))


def test_branches_of_different_lengths_need_a_known_condition() -> None:
    graph = """(bool c, float[2] a) => (seq(float[2]) y) {
        y = If (c) <then_branch = t () => (seq(float[2]) s) { s = SequenceConstruct(a, a) },
                    else_branch = e () => (seq(float[2]) r) { r = SequenceConstruct(a) }> }"""
    with pytest.raises(UnsupportedError, match=r"If:y.*\n.*sequences of different lengths"):
        run(model(graph), I(True), numbers(2))
    for c in (True, False):
        assert_same(run(model(graph), numbers(2), constants={"c": I(c)}), run_peer(model(graph), I(c), numbers(2)))


def test_loops_that_grow_a_sequence_are_unrolled() -> None:
    check(
        """(float[4] x) => (seq(float[k]) y, float[j] z) <int64 n = {3}, bool c = {1}> {
        empty = SequenceEmpty()
        y = Loop (n, c, empty) <body = b (int64 i, bool go, seq(float[k]) s) => (bool on, seq(float[k]) t) {
            on = Identity(go)  one = Constant<value_ints = [1]>()  zero = Constant<value_ints = [0]>()
            r = Reshape(i, one)  end = Add(r, one)
            part = Slice(x, zero, end)  t = SequenceInsert(s, part) }>
        z = ConcatFromSequence <axis = 0> (y) }""",
        numbers(4),
    )


def test_loops_carry_sequences_of_one_structure_in_a_while() -> None:
    graph = """(int64 n, float[2] a, float[3] d) => (seq(float[k]) y) <bool c = {1}> {
        s0 = SequenceConstruct(a, d)
        y = Loop (n, c, s0) <body = b (int64 i, bool go, seq(float[k]) s) => (bool on, seq(float[k]) t) {
            on = Identity(go)  zero = Constant<value_int = 0>()  last = Constant<value_int = 1>()
            p = SequenceAt(s, zero)  q = SequenceAt(s, last)  u = Neg(p)  v = Add(q, q)
            t = SequenceConstruct(u, v) }> }"""
    for n in (0, 1, 5):
        check(graph, I(n), numbers(2), numbers(3))


def test_loops_of_unknown_length_that_grow_a_sequence_say_so() -> None:
    graph = """(int64 n, float[2] a) => (seq(float[2]) y) <bool c = {1}> {
        s0 = SequenceConstruct(a)
        y = Loop (n, c, s0) <body = b (int64 i, bool go, seq(float[2]) s) => (bool on, seq(float[2]) t) {
            on = Identity(go)  t = SequenceInsert(s, a) }> }"""
    with pytest.raises(UnsupportedError, match=r"Loop:y.*\n.*structure of a sequence or optional.*depends on the data"):
        run(model(graph), I(3), numbers(2))


# ---- inputs and outputs of programs ------------------------------------------------------------------------------

PAIRWISE = (
    "(seq(float[n, 2]) xs, float[2] t) => (seq(float[n, 2]) ys, float[2] u) {"
    " ys = SequenceMap (xs, t) <body = m (float[n, 2] x, float[2] v) => (float[n, 2] y) {"
    " y = Mul(x, v) }>  u = Neg(t) }"
)


def test_elements_are_inputs_with_sizes_of_their_own() -> None:
    program = import_onnx(model(PAIRWISE), structures={"xs": 2})
    assert [(p.name, [str(s) for s in p.shape]) for p in program.inputs()] == [
        ("xs.0", ["xs_0_n", "2"]), ("xs.1", ["xs_1_n", "2"]), ("t", ["2"]),
    ]  # fmt: skip
    assert [p.name for p in program.outputs()] == ["ys.0", "ys.1", "u"]
    assert program.result_structure == {"tuple": [{"list": [0, 1]}, 2]}


def test_compiled_models_return_lists_also_after_saving(tmp_path: Any) -> None:
    compiled = gcomp.compile(model(PAIRWISE), structures={"xs": 2})
    items, t = [numbers(3, 2), numbers(1, 2)], np.float32([2, -1])
    want = [[items[0] * t, items[1] * t], -t]
    assert_same(list(compiled(*items, t)), want)
    compiled.save(tmp_path / "m.gcomp")
    assert_same(list(gcomp.load(tmp_path / "m.gcomp")(*items, t)), want)


def test_outputs_may_be_an_empty_sequence_only() -> None:
    proto = model("(float[2] x) => (seq(float) y) { y = SequenceEmpty() }")
    assert run(proto, numbers(2)) == [[]]


def test_dims_bind_the_sizes_of_all_elements() -> None:
    program = import_onnx(model(PAIRWISE), structures={"xs": 2}, dims={"n": 4})
    assert [[str(s) for s in p.shape] for p in program.inputs()] == [["4", "2"], ["4", "2"], ["2"]]
    program = import_onnx(model(PAIRWISE), structures={"xs": 2}, dims={"xs_1_n": 4})
    assert [[str(s) for s in p.shape] for p in program.inputs()] == [["xs_0_n", "2"], ["4", "2"], ["2"]]


def test_shapes_of_elements_may_be_given() -> None:
    program = import_onnx(model(PAIRWISE), structures={"xs": [(3, 2), ("m", None), ("m", 2), (None, 2)]})
    assert [[str(s) for s in p.shape] for p in program.inputs()[:4]] == [
        ["3", "2"], ["m", "2"], ["m", "2"], ["xs_3_n", "2"],
    ]  # fmt: skip


def unranked(name: str = "xs") -> onnx.ModelProto:
    """A model of a sequence whose elements have no stated rank."""
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    node = helper.make_node("SequenceLength", [name], ["n"])
    inputs = [helper.make_value_info(name, kind)]
    outputs = [helper.make_tensor_value_info("n", TensorProto.INT64, [])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_elements_without_a_rank_need_their_shapes() -> None:
    with pytest.raises(UnsupportedError, match=r"rank of the tensors in the input `xs`"):
        import_onnx(unranked(), structures={"xs": 2})
    assert run(unranked(), [], structures={"xs": 0})[0] == 0
    assert run(unranked(), [numbers(2), numbers(2, 3)], structures={"xs": [(2,), (None, 3)]})[0] == 2


@pytest.mark.parametrize(
    ("structures", "error", "text"),
    [
        ({}, UnsupportedError, 'structures={"xs": 1}'),
        ({"ys": 1}, UsageError, "no input `ys`"),
        ({"xs": 1, "t": 1}, UsageError, "no input `t`"),
        ({"xs": None}, UsageError, "does not fit"),
        ({"xs": -1}, UsageError, "does not fit"),
        ({"xs": True}, UsageError, "does not fit"),
        ({"xs": 1 << 40}, UsageError, "does not fit"),
        ({"xs": "ab"}, UsageError, "does not fit"),
        ({"xs": [2]}, UsageError, "does not fit"),
        ({"xs": [(2,)]}, UsageError, "declares tensors of shape"),
        ({"xs": [(2, 3)]}, UsageError, "declares tensors of shape"),
        ({"xs": [(-2, 2)]}, UsageError, "does not fit"),
        ({"xs": [("a b", 2)]}, UsageError, "does not fit"),
        ({"xs": [(2.5, 2)]}, UsageError, "does not fit"),
    ],
)
def test_structures_that_do_not_fit_are_refused(structures: Any, error: type[GcompError], text: str) -> None:
    with pytest.raises(error) as caught:
        import_onnx(model(PAIRWISE), structures=structures)
    assert text in str(caught.value)


def test_structures_are_for_onnx_models() -> None:
    with pytest.raises(UsageError, match="ONNX"):
        gcomp.compile("func.func @main() {\n return }", structures={"x": 1})


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("s = SequenceConstruct(x, x)  y = Relu(s)", "seq(tensor(float))"),
        ("y = SequenceAt(x, p)", "tensor(float)"),
        ("s = SequenceConstruct(x)  y = SequenceAt(s, p)", "position 1 is out of range"),
        (
            "s = SequenceConstruct(x)  m = Constant<value_int = -2>()  y = SequenceAt(s, m)",
            "position -2 is out of range",
        ),
        ("s = SequenceConstruct(x, p)  y = SequenceAt(s, p)", "must be tensor(float)"),
        (
            "s = SequenceConstruct(x)  t = SequenceInsert(s, p)  y = SequenceAt(t, p)",
            "the sequence is seq(tensor(float))",
        ),
        ("s = SequenceEmpty()  t = SequenceErase(s)  y = SequenceAt(t, p)", "its sequence is empty"),
        ("s = SequenceEmpty()  y = ConcatFromSequence<axis = 0>(s)", "its sequence is empty"),
        ("s = SequenceConstruct(x)  y = ConcatFromSequence<axis = 2>(s)", "axis 2 is out of range"),
        ("s = SequenceConstruct(x)  y = ConcatFromSequence<axis = 0, new_axis = 2>(s)", "new_axis is 2"),
        ("s = SplitToSequence<axis = 3>(x)  y = SequenceAt(s, p)", "axis 3 is out of range"),
        ("m = Constant<value_ints = [1, 2]>()  s = SplitToSequence(x, m)  y = SequenceAt(s, p)", "SplitToSequence"),
        ("m = Constant<value_ints = [3, -1]>()  s = SplitToSequence(x, m)  y = SequenceAt(s, p)", "not negative"),
        ("m = Constant<value_int = 0>()  s = SplitToSequence(x, m)  y = SequenceAt(s, p)", "must be positive"),
        ("y = SequenceConstruct(x)", "output `y` is seq(tensor(float))"),
    ],
)
def test_malformed_nodes_are_refused_by_name(nodes: str, text: str) -> None:
    proto = model(f"(float[2] x) => (float[2] y) {{ p = Constant<value_int = 1>()  {nodes} }}")
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(proto)
    assert text in str(caught.value)


def test_elements_of_different_shapes_need_a_constant_position() -> None:
    proto = model(
        "(float[2] a, float[3] c, int64 p) => (float[k] y) { s = SequenceConstruct(a, c) y = SequenceAt(s, p) }"
    )
    with pytest.raises(UnsupportedError, match="depends on the data"):
        import_onnx(proto)


def test_compiled_sequences_agree() -> None:
    proto = model(CHOICE)
    for c in (True, False):
        assert_same(
            run_xla(proto, np.array(c), numbers(2), numbers(3)), run_peer(proto, np.array(c), numbers(2), numbers(3))
        )
