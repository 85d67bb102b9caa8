"""`gcomp.graph`: graphs by hand, and any part of them run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import gcomp
from gcomp import ops
from gcomp.errors import GcompError, InputError, UnsupportedError, UsageError
from gcomp.graph import Graph, Session, cond, gradients, name, placeholder, scan, variable, while_loop

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Model:
    """A small graph: a linear layer, what is made of it, and a training step."""

    def __init__(self) -> None:
        with Graph(dims={"batch": "1..8"}) as self.graph:
            self.x = placeholder("float32", ("batch", 3), name="x")
            self.w = variable(np.ones((3, 2), np.float32), name="w")
            self.h = self.x @ self.w
            self.y = name(ops.softmax(self.h), "probabilities")
            self.step = self.w.assign(self.w - 0.5)
            self.other = placeholder("int32", name="other")
            self.unrelated = self.other + 1
        self.session = Session(self.graph)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


def test_fetches_are_nodes_names_lines_and_structures(model: Model) -> None:
    h, y = model.session.run([model.h, "probabilities"], {model.x: X})
    assert h.tolist() == [[3, 3], [12, 12]] and y.tolist() == [[0.5, 0.5]] * 2
    line = Model.__init__.__code__.co_firstlineno + 4
    found = model.session.run({"h": "matmul", "nested": (f"test_graph.py:{line}", "x")}, {"x": X})
    assert np.array_equal(found["h"], h) and np.array_equal(found["nested"][0], h)
    assert np.array_equal(found["nested"][1], X)


def test_only_what_is_needed_runs(model: Model) -> None:
    """Nothing of the graph but what leads from feeds to fetches is in the program."""
    program = model.session.program(model.h)
    assert [port.name for port in program.inputs()] == ["x"] and "softmax" not in program.text()
    assert model.session.run(model.unrelated, {"other": 2}) == 3
    assert "stablehlo.dot_general" not in model.session.program(model.y, [model.h]).text()


def test_any_node_can_be_fed(model: Model) -> None:
    assert model.session.run("probabilities", {model.h: np.zeros((1, 2), np.float32)}).tolist() == [[0.5, 0.5]]
    assert model.session.run(model.h, {"x": X, "w": np.zeros((3, 2), np.float32)}).tolist() == [[0, 0]] * 2


def test_models_are_compiled_once(model: Model) -> None:
    session = Session(model.graph)
    for n in (1, 2, 1):
        session.run(model.unrelated, {"other": n})
    entries = vars(session)["_entries"]
    assert len(entries) == 1
    session.run([model.unrelated], {"other": 1})
    assert len(entries) == 1
    session.run([model.unrelated, model.other], {"other": 1})
    assert len(entries) == 2


def test_variables_change_between_runs() -> None:
    with Graph() as graph:
        count = variable(0, name="count")
        total = variable(np.zeros(2), name="total")
        more = count.assign(count + 1)
        add = total.assign(total + count)
    first, second = Session(graph), Session(graph)
    for i in range(3):
        seen, after, _ = first.run([count, more, add])
        assert (seen, after) == (i, i + 1)  # within a run, a variable has its old value
    assert first.value(count) == 3 and first.value("total").tolist() == [3, 3] and second.value(count) == 0
    first.set("count", 10)
    assert first.run(count) == 10
    again = count.assign(count * 2)
    with pytest.raises(UsageError, match="two updates of the variable 'count'"):
        first.run([more, again])
    with pytest.raises(UsageError, match="has the shape"):
        total.assign(np.zeros(3))
    with pytest.raises(InputError, match="has the shape"):
        first.set(total, np.zeros(3))


def test_control_flow_declares_all_branches() -> None:
    with Graph() as graph:
        x = placeholder("float32", (None, 2), name="x")
        chosen = cond(x.sum() > 3, lambda: x * 2, lambda: -x)
        grown = while_loop(lambda s: s < 100, lambda s: s * 2, x.max())
        last, sums = scan(lambda c, row: (c + row, c), np.zeros(2, np.float32), x)
    rows = np.array([[1, 2], [3, 4]], np.float32)
    got = Session(graph).run([chosen, grown, last, sums], {x: rows})
    assert [g.tolist() for g in got] == [(rows * 2).tolist(), 128, [4, 6], [[0, 0], [1, 2]]]


def test_symbolic_sizes_are_values() -> None:
    with Graph() as graph:
        x = placeholder("float32", ("n",), name="x")
        mean = x.sum() / x.shape[0]
        zeros = ops.zeros((x.shape[0], 2))
    session = Session(graph)
    assert session.run(mean, {x: np.ones(4, np.float32)}) == 1
    assert session.run(zeros, {x: np.ones(3, np.float32)}).shape == (3, 2)
    with pytest.raises(InputError, match="'n' is not known"):
        session.run(zeros)


def test_operations_by_name() -> None:
    with Graph() as graph:
        x = placeholder("float32", (2,))
    y = graph.apply("exp", x)
    assert graph.node("exp") is y and graph.node("placeholder") is x
    with pytest.raises(UsageError, match="did you mean 'softmax'"):
        graph.apply("sofmax", x)


def test_nodes_carry_their_lines(model: Model) -> None:
    text = model.session.program(model.y).text(locations=True)
    line = Model.__init__.__code__.co_firstlineno + 4
    assert f'"matmul"({StringAttr(__file__)}:{line}:' in text


def test_programs_and_models(model: Model, tmp_path: Any) -> None:
    session = Session(model.graph)
    session.set("w", np.full((3, 2), 2, np.float32))
    session.model(model.h).save(tmp_path / "h.gcomp")
    (h,) = gcomp.load(tmp_path / "h.gcomp")(X)
    assert np.array_equal(h, X @ np.full((3, 2), 2, np.float32))


def wrong_cases(model: Model) -> dict[str, tuple[type[GcompError], str, Any]]:
    run, other = model.session.run, Model()
    return {
        "missing feed": (InputError, r"no value was fed for x \(", lambda: run(model.h)),
        "unknown feed": (UsageError, "no node 'y'", lambda: run(model.h, {"y": X})),
        "wrong shape": (InputError, r"expected f32\[batch, 3\]", lambda: run(model.h, {"x": X[:, :2]})),
        "wrong rank": (InputError, "rank", lambda: run(model.h, {"x": X[0]})),
        "wrong type": (InputError, "float64", lambda: run(model.h, {"x": X.astype(float)})),
        "out of range": (InputError, "outside its range", lambda: run(model.h, {"x": np.ones((9, 3), np.float32)})),
        "unknown fetch": (UsageError, "did you mean 'probabilities'", lambda: run("probabilites", {"x": X})),
        "unknown line": (UsageError, "no node", lambda: run("test_graph.py:1", {"x": X})),
        "no fetch": (UsageError, "a int is no node", lambda: run(3, {"x": X})),
        "fed twice": (UsageError, "fed twice", lambda: run(model.h, {"x": X, model.x: X})),
        "another graph": (UsageError, "no node of this graph", lambda: run(other.h, {"x": X})),
        "mixed graphs": (UnsupportedError, "one graph is used in another", lambda: model.x + other.x),
        "no graph": (UsageError, "no graph is open", lambda: placeholder("float32")),
        "name taken": (UsageError, "has a node 'x' already", lambda: model.graph.placeholder("float32", name="x")),
        "bad size": (UsageError, "is no size", lambda: model.graph.placeholder("float32", ("a b",))),
        "truth": (UnsupportedError, "Python bool", lambda: 1 if model.x else 2),
        "shapes": (UsageError, "broadcast", lambda: model.x + np.ones(4, np.float32)),
        "unknown variable": (UsageError, "no variable 'v'", lambda: model.session.value("v")),
    }


@pytest.mark.parametrize("case", wrong_cases(Model()))
def test_what_is_wrong_says_what_and_where(case: str, model: Model) -> None:
    kind, words, action = wrong_cases(model)[case]
    with pytest.raises(kind, match=words) as caught:
        action()
    if case not in ("wrong shape", "wrong rank", "out of range"):  # the model's own errors name the input
        assert __file__ in str(caught.value.where)


def test_values_of_a_branch_stay_in_it() -> None:
    kept: list[Any] = []
    with Graph():
        x = placeholder("float32")
        cond(x > 1, lambda: kept.append(x * 2) or x, lambda: x)
        with pytest.raises(UsageError, match="outside of the branch"):
            kept[0] + 1


def test_gradients_are_nodes() -> None:
    rng = np.random.default_rng(0)
    with Graph() as graph:
        x = placeholder("float64", ("batch", 3), name="x")
        w = variable(rng.standard_normal((3, 4)), name="w")
        b = variable(np.zeros(4), name="b")
        hidden = ops.tanh(x @ w + b)
        loss = (hidden * hidden).sum() / x.shape[0]
        slopes = gradients(loss, [w, b])
        (inner,) = gradients(loss, [hidden])
        (twice,) = gradients(slopes[1], [b])
        train = [w.assign(w - 0.1 * slopes[0]), b.assign(b - 0.1 * slopes[1])]
    session, data = Session(graph), rng.standard_normal((5, 3))
    dw, db, dh, h = session.run([*slopes, inner, hidden], {x: data})
    np.testing.assert_allclose(dh, 2 * h / 5)
    np.testing.assert_allclose(dw, data.T @ (dh * (1 - h * h)))
    np.testing.assert_allclose(db, (dh * (1 - h * h)).sum(0))
    step = 1e-6
    moved = [session.run(slopes[1], {x: data, b: np.full(4, s)}).sum() for s in (step, -step)]
    got = session.run(twice, {x: data}).sum()
    np.testing.assert_allclose(got, (moved[0] - moved[1]) / (2 * step), rtol=1e-4)
    losses = [session.run([loss, train], {x: data})[0] for _ in range(5)]
    assert losses == sorted(losses, reverse=True)


def test_gradients_in_functions_and_their_errors() -> None:
    @gcomp.function
    def f(x, w):
        y = ops.softmax(x * w).max()
        return gradients(y, [w, x])

    x, w = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.1, -0.3])
    dw, dx = f(x, w)
    np.testing.assert_allclose(dw.numpy() * w, dx.numpy() * x, rtol=1e-12)
    with pytest.raises(UsageError, match="traced tensors"):
        gradients(ops.asarray(x), [ops.asarray(w)])
    with Graph():
        p = placeholder("float32", (3,))
        with pytest.raises(UnsupportedError, match="outside of branches"):
            cond(p.sum() > 1, lambda: gradients((p * p).sum(), [p])[0], lambda: p)


def test_functions_become_parts_of_graphs() -> None:
    @gcomp.function
    def steps(v):
        while v < 50:
            v = v * 2
        return v

    with Graph() as graph:
        v = placeholder("float32", name="v")
        inside = steps(v)
    outside = steps(v + 1)
    assert Session(graph).run([inside, outside], {v: np.float32(3)}) == [96, 64] and not steps.traces
