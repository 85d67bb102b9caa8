"""Optionals: operators, inputs and outputs of programs that may be None, loops and branches, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import gcomp
from gcomp.errors import InvalidModelError, UnsupportedError, UsageError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import model, numbers
from tests.unit.onnx.structured import assert_same, run, run_peer

DEFAULTED = """(optional(float[2]) x, float[2] d) => (float[2] y, bool has) {
    has = OptionalHasElement(x)
    y = If (has) <then_branch = t () => (float[2] a) { a = OptionalGetElement(x) },
                  else_branch = e () => (float[2] b) { b = Identity(d) }> }"""


@pytest.mark.parametrize("opset", [15, 18, 20])
@pytest.mark.parametrize("given", [True, False])
def test_an_input_may_hold_nothing(opset: int, given: bool) -> None:
    proto, x, d = model(DEFAULTED, opset), numbers(2), numbers(2) + 5
    held = x if given else None
    got = run(proto, held, d, structures={"x": int(given)})
    assert_same(got, [x if given else d, np.array(given)])
    assert_same(got, run_peer(proto, held, d))


@pytest.mark.parametrize("absent", [None, 0, False, []])
def test_nothing_is_said_in_several_ways(absent: Any) -> None:
    program = import_onnx(model(DEFAULTED), structures={"x": absent})
    assert [port.name for port in program.inputs()] == ["d"]


@pytest.mark.parametrize("present", [1, True, [(2,)], [(None,)]])
def test_a_tensor_in_an_optional_keeps_the_name(present: Any) -> None:
    program = import_onnx(model(DEFAULTED), structures={"x": present})
    assert [(port.name, port.shape) for port in program.inputs()] == [("x", (2,)), ("d", (2,))]


@pytest.mark.parametrize("structure", [2, -1, "x", [(2,), (2,)], [(3,)]])
def test_other_structures_are_refused(structure: Any) -> None:
    with pytest.raises(UsageError, match="structure of the input `x`"):
        import_onnx(model(DEFAULTED), structures={"x": structure})


def test_the_error_says_how_to_give_the_structure() -> None:
    with pytest.raises(UnsupportedError, match="None where it holds nothing"):
        import_onnx(model(DEFAULTED))


SEQUENCES = """(optional(seq(float[n])) xs) => (optional(seq(float[m])) ys, bool has) {
    has = OptionalHasElement(xs)
    ys = If (has) <
      then_branch = t () => (optional(seq(float[m])) some) {
        s = OptionalGetElement(xs)  r = SequenceErase(s)  some = Optional(r) },
      else_branch = e () => (optional(seq(float[m])) none) {
        none = Optional <type: type_proto = seq(float[1])> () }> }"""


@pytest.mark.parametrize(
    ("structure", "held", "want"),
    [(None, None, None), (1, [numbers(2)], []), (2, [numbers(2), numbers(3)], [numbers(2)])],
)
def test_an_optional_may_hold_a_sequence(structure: Any, held: Any, want: Any) -> None:
    assert_same(run(model(SEQUENCES), held, structures={"xs": structure}), [want, np.array(held is not None)])


def test_compiled_models_return_none(tmp_path: Any) -> None:
    graph = """(float[2] x) => (optional(float[2]) y, optional(float[2]) z) {
        y = Optional <type: type_proto = float[2]> ()  n = Neg(x)  z = Optional(n) }"""
    compiled = gcomp.compile(model(graph))
    assert_same(list(compiled(numbers(2))), [None, -numbers(2)])
    compiled.save(tmp_path / "m.gcomp")
    assert_same(list(gcomp.load(tmp_path / "m.gcomp")(numbers(2))), [None, -numbers(2)])


def test_no_input_has_no_element_and_tensors_are_their_own() -> None:
    graph = """(float[2] x) => (bool none, bool tensor, bool list, float[2] y) {
        none = OptionalHasElement()  tensor = OptionalHasElement(x)  s = SequenceConstruct(x)
        list = OptionalHasElement(s)  y = OptionalGetElement(x) }"""
    proto = model(graph)
    got = run(proto, numbers(2))
    assert [bool(v) for v in got[:3]] == [False, True, True]
    assert_same(got, run_peer(proto, numbers(2)))


def test_loops_may_begin_with_nothing() -> None:
    graph = """(float[2] x) => (optional(float[2]) y) <int64 n = {3}, bool c = {1}> {
        none = Optional <type: type_proto = float[2]> ()
        y = Loop (n, c, none) <body = b (int64 i, bool go, optional(float[2]) o) => (bool on, optional(float[2]) p) {
            on = Identity(go)  has = OptionalHasElement(o)
            v = If (has) <then_branch = t () => (float[2] a) { e = OptionalGetElement(o)  a = Add(e, e) },
                          else_branch = e () => (float[2] d) { d = Identity(x) }>
            p = Optional(v) }> }"""
    assert_same(run(model(graph), numbers(2)), [numbers(2) * 4])


def test_branches_that_differ_need_a_known_condition() -> None:
    graph = """(bool c, float[2] x) => (optional(float[2]) y) {
        y = If (c) <then_branch = t () => (optional(float[2]) a) { a = Optional(x) },
            else_branch = e () => (optional(float[2]) d) { d = Optional <type: type_proto = float[2]> () }> }"""
    with pytest.raises(UnsupportedError, match="optional with and without an element"):
        run(model(graph), np.array(True), numbers(2))
    assert_same(run(model(graph), numbers(2), constants={"c": np.array(True)}), [numbers(2)])
    assert_same(run(model(graph), numbers(2), constants={"c": np.array(False)}), [None])


def test_branches_that_both_hold_something_are_chosen_at_run_time() -> None:
    graph = """(bool c, float[2] x) => (optional(float[2]) y) {
        y = If (c) <then_branch = t () => (optional(float[2]) a) { a = Optional(x) },
                    else_branch = e () => (optional(float[2]) d) { n = Neg(x)  d = Optional(n) }> }"""
    assert_same(run(model(graph), np.array(True), numbers(2)), [numbers(2)])
    assert_same(run(model(graph), np.array(False), numbers(2)), [-numbers(2)])


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("o = Optional <type: type_proto = float[2]> ()  y = OptionalGetElement(o)", "holds nothing"),
        ("o = Optional()  y = OptionalGetElement(o)", "neither an input nor the attribute type"),
        ("o = Optional <type: type_proto = int64[2]> (x)  y = OptionalGetElement(o)", "input is tensor(float)"),
        ("o = Optional <type: type_proto = seq(seq(float))> ()  y = OptionalGetElement(o)", "neither a tensor"),
        ("o = Optional(x)  y = Relu(o)", "optional(tensor(float))"),
        ("o = Optional(x)  p = Optional(o)  y = OptionalGetElement(p)", "optional(tensor(float))"),
        ("o = Optional(x)  y = SequenceLength(o)", "optional(tensor(float))"),
    ],
)
def test_malformed_nodes_are_refused(nodes: str, text: str) -> None:
    proto: onnx.ModelProto = model(f"(float[2] x) => (float[2] y) {{ {nodes} }}")
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(proto)
    assert text in str(caught.value)
