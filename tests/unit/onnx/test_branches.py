"""If: known and unknown conditions, branches of different shapes, captures, errors; functions that call themselves."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import imported, model, numbers, op_names, results, shapes
from tests.unit.onnx.structured import assert_same, run, run_peer, run_xla


def choice(then: str, other: str, graph: str = "(bool c, float[2] x) => (float[k] y)") -> str:
    """A graph of one If."""
    return f"{graph} {{ y = If (c) <then_branch = t {then}, else_branch = e {other}> }}"


SAME = choice("() => (float[2] a) { a = Neg(x) }", "() => (float[2] b) { b = Exp(x) }")


@pytest.mark.parametrize("c", [True, False])
def test_the_condition_chooses(c: bool) -> None:
    proto = model(SAME)
    want = run_peer(proto, np.array(c), numbers(2))
    assert_same(run(proto, np.array(c), numbers(2)), want)
    assert_same(run_xla(proto, np.array(c), numbers(2)), want)
    assert_same(run(proto, numbers(2), constants={"c": np.array(c)}), want)


@pytest.mark.parametrize("c", [True, False])
def test_a_condition_of_one_element_is_a_scalar(c: bool) -> None:
    proto = model(SAME.replace("bool c", "bool[1] c"))
    assert_same(run(proto, np.array([c]), numbers(2)), run_peer(proto, np.array([c]), numbers(2)))


def test_a_condition_of_more_elements_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="If"):
        import_onnx(model(SAME.replace("bool c", "bool[2] c")))
    with pytest.raises(InvalidModelError, match=r"condition has shape \(2,\)"):
        import_onnx(model(SAME.replace("bool c", "bool[2] c")), constants={"c": np.array([True, False])})


SHAPED = """(float[n, k] x) => (float[a, b] y) <int64 limit = {4}> {
  shape = Shape(x)  axis = Constant<value_int = 1>()  width = Gather(shape, axis)  c = Less(width, limit)
  y = If (c) <then_branch = t () => (float[a, b] p) { p = Transpose(x) },
              else_branch = e () => (float[a, b] q) { q = Concat<axis = 0>(x, x) }> }"""


def test_shapes_decide_conditions_and_branches_may_then_differ() -> None:
    assert shapes(imported(SHAPED, dims={"k": 3})) == [["3", "n"]]
    assert shapes(imported(SHAPED, dims={"k": "5..9"})) == [["2*n", "k"]]
    assert "stablehlo.if" not in op_names(imported(SHAPED, dims={"k": "5..9"}))
    decided_late = import_onnx(model(SHAPED))
    for shape in ((2, 3), (2, 5)):
        want = run_peer(model(SHAPED), numbers(*shape))
        assert_same(run(model(SHAPED), numbers(*shape), dims={"k": shape[1]}), want)
        assert_same(results(decided_late, numbers(*shape)), want)


def test_results_that_nobody_reads_may_differ() -> None:
    graph = """(bool c, float[2] x) => (float[2] y) {
      y, z = If (c) <then_branch = t () => (float[2] p, float[2] q) { p = Neg(x)  q = Exp(x) },
                     else_branch = e () => (float[2] r, float[3] s) {
                       r = Exp(x)  s = Constant<value_floats=[1.0,2.0,3.0]>() }> }"""
    proto = model(graph)
    proto.graph.node[0].output[1] = ""
    for c in (True, False):
        want = -numbers(2) if c else np.exp(numbers(2))
        assert_same(run(proto, np.array(c), numbers(2)), [want])


def test_branches_in_branches_see_all_names_around_them() -> None:
    graph = """(bool c, bool d, float[2] x) => (float[2] y) {
      w = Mul(x, x)
      y = If (c) <
        then_branch = t () => (float[2] a) { u = Add(w, x)
          a = If (d) <then_branch = p () => (float[2] f) { f = Sub(u, w) },
                      else_branch = q () => (float[2] g) { g = Mul(u, x) }> },
        else_branch = e () => (float[2] b) { b = Neg(w) }> }"""
    for c in (True, False):
        for d in (True, False):
            inputs = (np.array(c), np.array(d), numbers(2))
            assert_same(run(model(graph), *inputs), run_peer(model(graph), *inputs))


@pytest.mark.parametrize(
    ("then", "other", "words"),
    [
        ("() => (float[2] a, float[2] d) { a = Neg(x)  d = Exp(x) }", "() => (float[2] b) { b = Exp(x) }", "2 outputs"),
        ("(float[2] z) => (float[2] a) { a = Neg(z) }", "() => (float[2] b) { b = Exp(x) }", "takes 1 inputs"),
        ("() => (float[2] a) { a = Cast<to = 7>(x) }", "() => (float[2] b) { b = Exp(x) }", "is tensor(int64)"),
        (
            "() => (int64[2] a) { a = Cast<to = 7>(x) }",
            "() => (float[2] b) { b = Exp(x) }",
            "tensor(int64) and tensor(float)",
        ),
        (
            "() => (seq(float[2]) a) { a = SequenceConstruct(x) }",
            "() => (float[2] b) { b = Exp(x) }",
            "seq(tensor(float))",
        ),
    ],
)
def test_branches_that_contradict_the_node_are_refused(then: str, other: str, words: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(choice(then, other)))
    assert words in str(caught.value) and "If:y" in str(caught.value)


DIFFERENT = choice(
    "() => (float[j] a) { a = Neg(x) }",
    "() => (float[i] b) { b = Exp(z) }",
    "(bool c, float[n] x, float[m] z) => (float[k] y)",
)


def test_branches_of_different_sizes_give_what_the_one_that_runs_gives() -> None:
    compiled = gcomp.compile(model(DIFFERENT), target="cpu", verify="each")
    for c, n, m in itertools.product((True, False), (1, 3), (3, 5)):
        inputs = (np.array(c), numbers(n), numbers(m))
        assert_same(list(compiled(*inputs)), run_peer(model(DIFFERENT), *inputs))
    ranks = DIFFERENT.replace("Exp(z)", "Unsqueeze(z, axes)").replace("y) {", "y) <int64[1] axes = {0}> {")
    with pytest.raises(UnsupportedError, match=r"shapes \[n\] and \[1, m\]"):
        import_onnx(model(ranks.replace("float[i] b", "float[i, l] b")))


# ---- what a branch needs of sizes binds where it runs ---------------------------------------------------------------

RATES = """(float[1, 1, n] x, int64 rate) => (float[1, 1, k] y)
  <int64 high = {16000}, float[1, 1, 8] wide = {1, 2, 3, 4, 5, 6, 7, 8}, float[1, 1, 3] narrow = {3, 2, 1}> {
  c = Equal(rate, high)
  z = If (c) <then_branch = t () => (float[1, 1, a] p) { p = Conv(x, wide) },
              else_branch = e () => (float[1, 1, b] q) { r = Conv(x, narrow)  q = Neg(r) }>
  y = Relu(z) }"""


@pytest.mark.parametrize("stage", ["as imported", "compiled", "saved"])
def test_a_branch_that_is_not_taken_need_not_fit(stage: str, tmp_path: Path) -> None:
    proto = model(RATES)
    run_it: Any = lambda *inputs: results(import_onnx(proto), *inputs)  # noqa: E731
    if stage != "as imported":
        run_it = gcomp.compile(proto, verify="full")
    if stage == "saved":
        run_it.save(tmp_path / "rates.gcomp")
        run_it = gcomp.load(tmp_path / "rates.gcomp")
    for n, rate in ((8, 16000), (11, 16000), (8, 8000), (7, 8000), (3, 8000)):
        inputs = (numbers(1, 1, n), np.array(rate))
        assert_same(list(run_it(*inputs)), run_peer(proto, *inputs))
    for n, rate, least in ((7, 16000, 8), (2, 8000, 3)):
        if stage != "as imported":
            with pytest.raises(InputError, match=f"Conv.*{least}"):
                run_it(numbers(1, 1, n), np.array(rate))


def test_relations_of_every_kind_bind_where_they_are_needed() -> None:
    graph = """(bool c, float[n] x, float[m] z) => (float[k] y) <int64[2] pairs = {-1, 2}, int64[1] flat = {-1}> {
      y = If (c) <then_branch = t () => (float[a] p) { s = Reshape(x, pairs)  p = Reshape(s, flat) },
                  else_branch = e () => (float[b] q) { q = Add(x, z) }> }"""
    compiled = gcomp.compile(model(graph))
    for c, n, m in ((True, 4, 3), (True, 2, 7), (False, 3, 3), (False, 3, 1), (False, 5, 5)):
        inputs = (np.array(c), numbers(n), numbers(m))
        assert_same(list(compiled(*inputs)), run_peer(model(graph), *inputs))
    for c, n, m, word in ((True, 3, 3, "divide"), (False, 4, 3, "broadcast")):
        with pytest.raises(InputError, match=word):
            compiled(np.array(c), numbers(n), numbers(m))


def test_what_follows_may_not_rely_on_what_a_branch_needs() -> None:
    """The first branch needs 4 elements and more; the slice after it is of fewer, too."""
    graph = """(bool c, float[n] x) => (float s, float[k] y)
      <int64[1] zero = {0}, int64[1] four = {4}, int64[1] axes = {0},
       float[1, 1, 4] w = {1, 1, 1, 1}, int64[3] three = {1, 1, -1}> {
      s = If (c) <
        then_branch = t () => (float p) { u = Reshape(x, three)  v = Conv(u, w)  p = ReduceSum<keepdims = 0>(v) },
        else_branch = e () => (float q) { q = ReduceSum<keepdims = 0>(x) }>
      y = Slice(x, zero, four, axes) }"""
    compiled = gcomp.compile(model(graph))
    for c, n in ((True, 4), (True, 6), (False, 6), (False, 2)):
        inputs = (np.array(c), numbers(n))
        assert_same(list(compiled(*inputs)), run_peer(model(graph), *inputs))


# ---- functions ---------------------------------------------------------------------------------------------------

CALLS = {
    "itself": "F (u) => (v) { w = Neg(u)  v = local.F(w) }",
    "through another": 'F (u) => (v) { v = local.G(u) } <domain: "local", opset_import: ["" : 20, "local" : 1]> '
    "G (u) => (v) { v = local.F(u) }",
    "in a branch": """F (u) => (v) { z = Constant<value_float = 0.0>()  s = ReduceSum<keepdims = 0>(u)  c = Less(s, z)
      v = If (c) <then_branch = t () => (float[2] a) { a = local.F(u) },
                  else_branch = e () => (float[2] b) { b = Neg(u) }> }""",
}


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_functions_that_call_themselves_are_refused(calls: str) -> None:
    functions = f'<domain: "local", opset_import: ["" : 20, "local" : 1]> {calls}'
    proto = model("(float[2] x) => (float[2] y) { y = local.F(x) }", functions=functions, imports=', "local" : 1')
    with pytest.raises(InvalidModelError, match="calls itself") as caught:
        import_onnx(proto)
    assert "`F`" in str(caught.value)


def test_functions_may_call_one_another_often() -> None:
    functions = """<domain: "local", opset_import: ["" : 20, "local" : 1]> F (u) => (v) {
          w = local.G(u)  v = local.G(w) }
        <domain: "local", opset_import: ["" : 20]> G (u) => (v) { v = Add(u, u) }"""
    proto = model(
        "(float[2] x) => (float[2] y) { z = local.G(x) y = local.F(z) }", functions=functions, imports=', "local" : 1'
    )
    assert_same(run(proto, numbers(2)), [numbers(2) * 8])
