"""Loop in every form against ONNX Runtime: trip counts, conditions, rows, growing and constant values, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import imported, model, numbers, op_names, shapes
from tests.unit.onnx.structured import assert_same, run, run_peer, run_xla

I = np.array


def check(graph: str, *inputs: Any, **options: Any) -> list[Any]:
    """gcomp's outputs, interpreted and compiled, which are ONNX Runtime's."""
    proto = model(graph)
    got, want = run(proto, *inputs, **options), run_peer(proto, *inputs)
    for a, b, c in zip(got, run_xla(proto, *inputs, **options), want, strict=True):
        assert_same(a, c)
        assert_same(b, c)
    return got


# ---- how often ---------------------------------------------------------------------------------------------------

DOUBLING = """(int64 n, bool c, float[2] x, float t) => (float[2] last, float[r, 2] rows) {
  last, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] u, float[2] row) {
    u = Add(s, s)  row = Neg(s)  a = Abs(u)  m = ReduceMax<keepdims = 0>(a)  on = Less(m, t) }> }"""
STATES = DOUBLING.replace(", float[r, 2] rows", "").replace("last, rows =", "last =").replace(", float[2] row)", ")")


@pytest.mark.parametrize("graph", [DOUBLING, STATES], ids=["rows", "states"])
@pytest.mark.parametrize(
    ("n", "c", "t"),
    [(10, True, 30.0), (3, True, 1e9), (0, True, 1e9), (-2, True, 30.0), (9, False, 30.0), (9, True, 0)],
)
def test_the_trip_count_and_the_condition_may_both_be_data(graph: str, n: int, c: bool, t: float) -> None:
    check(graph, I(n), I(c), np.float32([1, -2]), I(t, np.float32))


ENDLESS = """(int64 n, bool c, float[2] x) => (float[2] last, float[r, 2] rows) {
  last, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] u, float[2] row) {
    u = Add(s, s)  row = Neg(s)  on = Identity(go) }> }"""


@pytest.mark.parametrize(("n", "c"), [(4, True), (1, True), (0, True), (-1, True), (4, False)])
@pytest.mark.parametrize("known", ["", "n", "c", "nc"])
def test_a_body_that_always_goes_on(n: int, c: bool, known: str) -> None:
    proto, x = model(ENDLESS), np.float32([1, -2])
    given = {"n": I(n), "c": I(c)}
    fixed = {k: v for k, v in given.items() if k in known}
    got = run(proto, *[v for k, v in given.items() if k not in known], x, constants=fixed)
    for a, b in zip(got, run_peer(proto, I(n), I(c), x), strict=True):
        assert_same(a, b)


def test_a_false_condition_at_run_time_leaves_no_rows() -> None:
    # The rows were zeros once, as many as the trip count.
    got = run(model(ENDLESS), I(False), np.float32([1, -2]), constants={"n": I(3)})
    assert got[1].shape == (0, 2)


def test_loops_without_a_trip_count_end_by_their_condition() -> None:
    check(
        """(float x) => (float y, float[r] rows) <bool c = {1}> {
        y, rows = Loop ( , c, x) <body = b (int64 i, bool go, float s) => (bool on, float u, float row) {
            u = Add(s, s)  row = Identity(u)  k = Constant<value_float = 20.0>()  on = Less(u, k) }> }""",
        I(1, np.float32),
    )


def test_numbers_of_shape_1_are_scalars() -> None:
    # ONNX Runtime takes these, too.
    check(
        """(int64[1] n, bool[1] c, float[2] x) => (float[2] y, float[r, 2] rows) {
        y, rows = Loop (n, c, x) <body = b (int64 i, bool[1] go, float[2] s) => (bool[1] on, float[2] u, float[2] row) {
            on = Identity(go)  u = Add(s, s)  row = Neg(u) }> }""",
        I([3]), I([True]), numbers(2),
    )  # fmt: skip


def test_the_iteration_is_known_to_the_body() -> None:
    check(
        """(int64 n, float[2] x) => (float[2] y, int64[r] rows) <bool c = {1}> {
        y, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] u, int64 row) {
            on = Identity(go)  f = Cast<to = 1>(i)  u = Add(s, f)  row = Mul(i, i) }> }""",
        I(5), numbers(2),
    )  # fmt: skip


def test_symbolic_trip_counts_give_symbolic_rows() -> None:
    graph = """(float[n, 2] x) => (float[2] y, float[k, 2] rows) <bool c = {1}> {
        zero = Constant<value_int = 0>()  all = Shape(x)  n = Gather(all, zero)  s0 = Gather(x, zero)
        y, rows = Loop (n, c, s0) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] u, float[2] row) {
            on = Identity(go)  v = Gather(x, i)  u = Add(s, v)  row = Identity(u) }> }"""
    assert shapes(imported(graph)) == [["2"], ["n", "2"]]
    for n in (1, 4):
        check(graph, numbers(n, 2))


# ---- what is carried ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("concat", "init", "part"),
    [
        ("Concat <axis = 0> (s, p)", (1, 2), (1, 2)), ("Concat <axis = 0> (p, s)", (1, 2), (1, 2)),
        ("Concat <axis = 1> (s, p)", (2, 3), (2, 2)), ("Concat <axis = -1> (p, s)", (2, 0), (2, 3)),
        ("Concat <axis = -2> (p, s)", (0, 3), (2, 3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [0, 1, 3])
def test_growing_values_are_rows(concat: str, init: tuple[int, ...], part: tuple[int, ...], n: int) -> None:
    graph = f"""(int64 n, float{list(init)} x, float{list(part)} z) => (float[a, d] y, float{list(part)} last)
      <bool c = {{1}}> {{
      y, last = Loop (n, c, x, z) <body = b (int64 i, bool go, float[a, d] s, float[e, f] w)
        => (bool on, float[g, h] t, float[j, k] p) {{
        on = Identity(go)  p = Add(w, w)  t = {concat} }}> }}"""
    check(graph, I(n), numbers(*init), numbers(*part))
    proto = model(graph)
    constant = run(proto, numbers(*init), numbers(*part), constants={"n": I(n)})
    for a, b in zip(constant, run_peer(proto, I(n), numbers(*init), numbers(*part)), strict=True):
        assert_same(a, b)


def test_growth_of_a_symbolic_number_of_parts() -> None:
    graph = """(float[n, 2] x) => (float[m, 2] y) <bool c = {1}> {
        zero = Constant<value_int = 0>()  all = Shape(x)  n = Gather(all, zero)
        y = Loop (n, c, x) <body = b (int64 i, bool go, float[k, 2] s) => (bool on, float[l, 2] t) {
            on = Identity(go)  t = Concat<axis = 0>(s, x) }> }"""
    assert shapes(imported(graph)) == [["n^2 + n", "2"]]
    check(graph, numbers(3, 2))


USED = [
    "t = Concat<axis = 0>(s, s)",
    "u = Neg(s)  t = Concat<axis = 0>(s, u)",
    "one = Constant<value_ints = [-1]>()  two = Constant<value_ints = [999]>()  u = Slice(s, one, two)"
    "  t = Concat<axis = 0>(s, u)",
    "f = Cast<to = 1>(i)  one = Constant<value_ints = [1]>()  v = Reshape(f, one)  t = Concat<axis = 0>(v, s, v)",
]


@pytest.mark.parametrize("nodes", USED)
def test_growing_values_that_are_read_are_unrolled(nodes: str) -> None:
    graph = f"""(float[1] x) => (float[k] y) <int64 n = {{3}}, bool c = {{1}}> {{
      y = Loop (n, c, x) <body = b (int64 i, bool go, float[m] s) => (bool on, float[p] t) {{
        on = Identity(go)  {nodes} }}> }}"""
    assert "stablehlo.while" not in op_names(imported(graph))
    check(graph, numbers(1))


def test_growing_values_that_a_branch_reads_are_unrolled() -> None:
    graph = """(float[1] x, bool q) => (float[k] y, float z) <int64 n = {3}, bool c = {1}, float z0 = {0}> {
      y, z = Loop (n, c, x, z0) <body = b (int64 i, bool go, float[m] s, float w) => (bool on, float[p] t, float v) {
        on = Identity(go)  t = Concat<axis = 0>(s, x)
        v = If (q) <then_branch = d () => (float e) { e = ReduceSum<keepdims = 0>(s) },
                    else_branch = f () => (float g) { g = Identity(w) }> }> }"""
    check(graph, numbers(1), I(True))


def test_values_that_grow_and_are_results_of_their_body_twice_are_right() -> None:
    check(
        """(float[1] x) => (float[k] y, float[r, j] rows) <int64 n = {1}, bool c = {1}> {
        y, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[m] s) => (bool on, float[p] t, float[q] row) {
            on = Identity(go)  t = Concat<axis = 0>(s, x)  row = Identity(t) }> }""",
        numbers(1),
    )


def test_a_value_passed_on_stays_known() -> None:
    # The shape that Reshape gets is carried through the loop, as exporters write it.
    graph = """(int64 n, float[2, 3] x) => (float[2, 3] y, int64[1] t) <bool c = {1}, int64[1] shape = {6}> {
      y, t = Loop (n, c, x, shape) <body = b (int64 i, bool go, float[2, 3] s, int64[1] k)
        => (bool on, float[2, 3] u, int64[1] l) {
        on = Identity(go)  m = Identity(k)  l = Identity(m)  f = Reshape(s, k)  g = Neg(f)  h = Shape(s)
        u = Reshape(g, h) }> }"""
    check(graph, I(3), numbers(2, 3))


SHAPE_BUILDING = """(float[n, 2, 3] x) => (float[a, b] y) <int64 m = {2}, bool c = {1}, int64[0] none = {}> {
      zero = Constant<value_ints = [0]>()  first = Constant<value_ints = [1]>()  all = Shape(x)
      sizes, twice = Loop (m, c, none) <body = b (int64 i, bool go, int64[k] s) => (bool on, int64[l] t, int64[1] row) {
        on = Identity(go)  one = Constant<value_ints = [1]>()  j = Reshape(i, one)  d = Gather(all, j)
        t = Concat<axis = 0>(s, d)  row = Add(d, d) }>
      wide = Constant<value_ints = [-1]>()  half = Slice(sizes, zero, first)  shape = Concat<axis = 0>(half, wide)
      y = Reshape(x, shape) }"""


def test_shapes_built_in_a_loop_are_known() -> None:
    program = imported(SHAPE_BUILDING)
    assert shapes(program) == [["n", "6"]]
    assert "stablehlo.while" not in op_names(program)
    check(SHAPE_BUILDING, numbers(4, 2, 3))


def test_constants_that_meet_data_are_carried() -> None:
    graph = """(float[2] x) => (float[2] y, int64 k) <int64 n = {3}, bool c = {1}, int64 z = {0}, float[2] o = {1, 1}> {
        y, k = Loop (n, c, o, z) <body = b (int64 i, bool go, float[2] s, int64 j)
          => (bool on, float[2] t, int64 l) { on = Identity(go)  t = Mul(s, x)  l = Add(j, i) }> }"""
    assert "stablehlo.while" in op_names(imported(graph))
    check(graph, numbers(2))


def test_values_that_change_places_are_carried() -> None:
    check(
        """(int64 n, float[2] x, float[2] z) => (float[2] y, float[2] w) <bool c = {1}> {
        y, w = Loop (n, c, x, z) <body = b (int64 i, bool go, float[2] s, float[2] t)
            => (bool on, float[2] u, float[2] v) { on = Identity(go)  u = Identity(t)  v = Identity(s) }> }""",
        I(3), numbers(2), numbers(2) + 9,
    )  # fmt: skip


def test_loops_in_loops_and_branches_see_all_names_around_them() -> None:
    check(
        """(int64 n, float[2] x, float[2] z) => (float[2] y, float[r, 2] rows) <bool c = {1}, int64 m = {2}> {
        y, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] u, float[2] row) {
            on = Identity(go)  w = Mul(s, z)
            v = Loop (m, c, s) <body = d (int64 j, bool gp, float[2] a) => (bool op, float[2] e) {
                op = Identity(gp)  f = Add(a, w)  k = Mul(i, j)  l = Cast<to = 1>(k)  e = Add(f, l) }>
            k0 = Constant<value_int = 1>()  big = Less(k0, i)
            u = If (big) <then_branch = p () => (float[2] q) { q = Sub(v, s) },
                          else_branch = o () => (float[2] t) { t = Add(v, x) }>
            row = Neg(u) }> }""",
        I(4), numbers(2), numbers(2) / 8,
    )  # fmt: skip


def test_rows_may_have_symbolic_sizes() -> None:
    graph = """(int64 n, float[k] x) => (float[k] y, float[r, k] rows) <bool c = {1}> {
      y, rows = Loop (n, c, x) <body = b (int64 i, bool go, float[k] s) => (bool on, float[k] u, float[k] row) {
        on = Identity(go)  u = Add(s, s)  row = Neg(s) }> }"""
    check(graph, I(3), numbers(4))
    assert shapes(imported(graph, constants={"n": I(3)})) == [["k"], ["3", "k"]]


def test_a_failed_attempt_leaves_no_constraint() -> None:
    # The body is tried as one iteration of a while first; what that asks of sizes must not bind the unrolled loop.
    graph = """(float[a] x, float[d] z) => (float[k] y) <int64 n = {2}, bool c = {1}> {
      y = Loop (n, c, x) <body = b (int64 i, bool go, float[m] s) => (bool on, float[p] t) {
        on = Identity(go)  zero = Constant<value_int = 0>()  first = Equal(i, zero)
        t = If (first) <then_branch = e () => (float[p] f) { f = Concat<axis = 0>(s, s) },
                        else_branch = g () => (float[p] h) { h = Add(s, z) }> }> }"""
    check(graph, numbers(3), numbers(6))


# ---- errors ------------------------------------------------------------------------------------------------------


def loop(body: str, graph: str = "(float[2] x) => (float[2] y)", call: str = "n, c, x") -> str:
    """A graph of a loop with a body."""
    return f"{graph} <int64 n = {{3}}, bool c = {{1}}> {{ y = Loop ({call}) <body = b {body}> }}"


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (loop("(int64 i, bool go) => (bool on) { on = Identity(go) }"), "1 values are carried"),
        (loop("(int64 i, bool go, float[2] s) => (bool on) { on = Identity(go) }"), "1 values are carried"),
        (loop("(int64 i, bool go, float[2] s) => (float[2] on, float[2] t) { on = Neg(s)  t = Neg(s) }"), "boolean"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, int64[2] t) { on = Identity(go)  t = Cast<to = 7>(s) }"),
         "goes from tensor(float) to tensor(int64)"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Cast<to = 7>(s) }"),
         "output `t` of its graph `b` is tensor(int64)"),
        (loop("(int64 i, bool go, int64[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Cast<to = 1>(s) }"),
         "input `s` of its graph `b` is tensor(float)"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Add(s, nowhere) }"),
         "'nowhere'"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go) }"), "'t'"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Neg(s) }",
              call=", c, x"),
         "never ends"),
        (loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Neg(s) }",
              call="x, c, x"),
         "tensor(float)"),
    ],
)  # fmt: skip
def test_bodies_that_contradict_the_node_are_refused(graph: str, text: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(graph))
    assert text in str(caught.value) and "Loop" in str(caught.value)


def test_a_node_without_its_body_is_refused() -> None:
    proto = model(loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Neg(s) }"))
    del proto.graph.node[0].attribute[:]
    with pytest.raises(InvalidModelError, match="body is missing"):
        import_onnx(proto)


def test_undeclared_dtypes_that_change_are_refused() -> None:
    proto = model(
        loop("(int64 i, bool go, float[2] s) => (bool on, float[2] t) { on = Identity(go)  t = Cast<to = 7>(s) }")
    )
    body = proto.graph.node[0].attribute[0].g
    for value in (*body.input, *body.output):
        value.ClearField("type")
    with pytest.raises(InvalidModelError, match="dtype must stay the same"):
        import_onnx(proto)


def test_shapes_that_change_for_an_unknown_time_say_so() -> None:
    graph = """(int64 n, float[1] x) => (float[k] y) <bool c = {1}> {
      y = Loop (n, c, x) <body = b (int64 i, bool go, float[m] s) => (bool on, float[p] t) {
        on = Identity(go)  t = Concat<axis = 0>(s, s) }> }"""
    with pytest.raises(
        UnsupportedError, match=r"Loop:y.*\n.*shape of a value that it carries goes from \[1\] to \[2\]"
    ):
        import_onnx(model(graph))
    with pytest.raises(UnsupportedError, match="the trip count is 129"):
        import_onnx(model(graph), constants={"n": I(129)})


def test_two_readings_of_an_absent_condition_are_not_guessed() -> None:
    graph = loop(
        "(int64 i, bool go, float[2] s) => (bool on, float[2] t)"
        " { t = Neg(s)  m = ReduceMax<keepdims = 0>(t)  z = Constant<value_float = 0.0>()  on = Less(m, z) }",
        call="n, , x",
    )
    with pytest.raises(UnsupportedError, match="has no condition"):
        import_onnx(model(graph))


def test_no_limit_is_no_number_of_rows() -> None:
    constants = {"n": I(np.iinfo(np.int64).max), "c": I(True)}
    with pytest.raises(UnsupportedError, match="9223372036854775807 rows"):
        import_onnx(model(ENDLESS), constants=constants)
    proto = model(DOUBLING)
    got = run(proto, I(True), np.float32([1, -2]), I(30, np.float32), constants={"n": constants["n"]})
    want = run_peer(proto, constants["n"], I(True), np.float32([1, -2]), I(30, np.float32))
    for a, b in zip(got, want, strict=True):
        assert_same(a, b)
