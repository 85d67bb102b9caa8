"""`gcomp.function`: what is an input, what is static, when it is traced again, and that no answer is ever stale."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gcomp
from gcomp import ops
from gcomp.errors import InputError, UnsupportedError, UsageError
from gcomp.frontends.python.function import Traceable
from gcomp.functions import Function, RetraceWarning

X = np.arange(3, dtype=np.float32)


def key(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What decides which trace a call needs."""
    return Traceable(function, {}).call(args, kwargs).key


def test_a_function_is_compiled_once_for_each_kind_of_arguments() -> None:
    f = gcomp.function(lambda x, y: x + y)
    assert f(X, X).numpy().tolist() == [0, 2, 4] and f(X, 1).dtype == np.float32
    f(X + 1, X), f(ops.asarray(X), X)
    assert len(f.traces) == 2 and [t.calls for t in f.traces] == [3, 1]


def test_keys() -> None:
    def f(x, n=2, *rest, flag=None, **more):
        return x

    same = key(f, X)
    assert key(f, X + 1) == same == key(f, ops.asarray(X)) == key(f, X, 2, flag=None)
    others = [key(f, X[:2]), key(f, X.astype(float)), key(f, X, 3), key(f, X, 2.0), key(f, X, True), key(f, X, -0.0),
              key(f, X, 0.0), key(f, X, "a"), key(f, X, 2, 1), key(f, X, flag=X), key(f, X, a=1), key(f, [X]),
              key(f, (X,)), key(f, {"a": X}), key(f, X, np.float32(2)), key(f, X, len)]  # fmt: skip
    assert len({same, *others}) == len(others) + 1
    assert key(f, X, float("nan")) == key(f, X, float("nan"))


class Pair(NamedTuple):
    a: Any
    b: Any


def test_structures_go_in_and_out() -> None:
    @gcomp.function
    def f(x, pair, *rest, **more):
        return Pair(pair.b, {"sum": sum(rest, x), "static": (1, None, "text")}), more["y"] * 2

    pair, y = f(X, Pair(1, X), X, X, y=X)
    assert pair.a.numpy().tolist() == X.tolist() and pair.b["sum"].numpy().tolist() == [0, 3, 6]
    assert pair.b["static"] == (1, None, "text") and y.numpy().tolist() == [0, 2, 4]


def test_a_function_without_tensors_runs_nothing() -> None:
    f = gcomp.function(lambda n: n + 1)
    assert f(2) == 3 and f.traces[0].model is None
    with pytest.raises(UsageError, match="no tensor"):
        f.model(2)


# ---- state ----------------------------------------------------------------------------------------------------------

SCALE = 2
TABLE = {"a": [1, 2]}
ARRAY = np.ones(3, np.float32)
WEIGHT = ops.asarray(X)


def test_globals_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        return x * SCALE + TABLE["a"][0] + ARRAY + helper(x)

    first = key(f, X)
    for name, value in {"SCALE": 3, "TABLE": {"a": [7, 2]}, "helper": lambda x: x}.items():
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            assert key(f, X) != first, name
    assert key(f, X) == first
    ARRAY[0] = 5
    assert key(f, X) != first
    ARRAY[0] = 1
    TABLE["a"].append(3)
    assert key(f, X) != first
    TABLE["a"].pop()


def helper(x):
    return x + OFFSET


OFFSET = 1


def test_globals_of_called_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    f = gcomp.function(lambda x: helper(x))
    assert f(X).numpy().tolist() == [1, 2, 3]
    monkeypatch.setitem(globals(), "OFFSET", 10)
    assert f(X).numpy().tolist() == [10, 11, 12]
    assert "OFFSET: 1 -> 10" in f.traces[-1].reason


def test_closures_are_read_anew() -> None:
    factor, inner = 2, functools.partial(np.multiply, 3)

    def f(x):
        return x * factor + len(str(inner))

    before = key(f, X)
    factor = 3
    assert key(f, X) != before
    factor = 2
    assert key(f, X) == before
    inner = functools.partial(np.multiply, 4)
    assert key(f, X) != before


def test_attributes_are_read_anew() -> None:
    class Config:
        rate = 1

        def __init__(self) -> None:
            self.items = [1, 2]

        @property
        def doubled(self):
            return self.rate * 2

    config = Config()

    def f(x):
        return x * config.rate + config.items[0] + config.doubled

    before = key(f, X)
    config.items[0] = 5
    assert key(f, X) != before
    config.items[0] = 1
    assert key(f, X) == before
    Config.rate = 3
    assert key(f, X) != before


def test_defaults_are_read_anew() -> None:
    def inner(x, n=2):
        return x * n

    def f(x):
        return inner(x)

    before = key(f, X)
    inner.__defaults__ = (3,)
    assert key(f, X) != before


def test_generators_of_random_numbers_are_state() -> None:
    for generator in (np.random.default_rng(0), random.Random(0)):
        f = gcomp.function(lambda x, g=generator: x * g.random())
        with pytest.raises(UnsupportedError, match="changes Python state"):
            f(X)


@pytest.mark.parametrize("draw", [lambda x: x * np.random.rand(), lambda x: x * random.random()])
def test_hidden_generators_are_refused(draw: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"ops\.random"):
        gcomp.function(draw)(X)


def test_tensors_that_a_function_sees_are_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    f = gcomp.function(lambda x: x * WEIGHT)
    assert f(X).numpy().tolist() == [0, 1, 4]
    monkeypatch.setitem(globals(), "WEIGHT", ops.asarray(X + 1))
    assert f(X).numpy().tolist() == [0, 2, 6] and len(f.traces) == 1


class Net:
    """A model whose weights are attributes."""

    def __init__(self) -> None:
        self.layers = [{"w": ops.asarray(np.ones((3, 2), np.float32)), "b": ops.asarray(np.zeros(2, np.float32))}]
        self.slope = 2

    @gcomp.function
    def __call__(self, x):
        for layer in self.layers:
            x = x @ layer["w"] * self.slope + layer["b"]
        return x

    def train(self) -> None:
        self.layers[0]["b"] = self.layers[0]["b"] + 1


def test_methods_and_new_weights() -> None:
    net, other = Net(), Net()
    assert net(X).numpy().tolist() == [6, 6]
    net.train()
    assert net(X).numpy().tolist() == [7, 7] and other(X).numpy().tolist() == [6, 6]
    function: Function = Net.__dict__["__call__"]
    traces = len(function.traces)
    net.slope = 3
    assert net(X).numpy().tolist() == [10, 10] and len(function.traces) == traces + 1


COUNTER = {"calls": 0}
LEAKED: list[Any] = []


def counts(x):
    COUNTER["calls"] += 1
    return x


def leaks(x):
    LEAKED.append(x * 2)
    return x


def sets_global(x):
    global OFFSET
    OFFSET = x * 1
    return x


@pytest.mark.parametrize("function", [counts, leaks, sets_global])
def test_changed_state_is_refused(function: Callable[..., Any]) -> None:
    global OFFSET
    with pytest.raises(UnsupportedError, match="changes Python state") as caught:
        gcomp.function(function)(X)
    assert Path(__file__).name in str(caught.value.where) and "gcomp.eager" in str(caught.value.fix)
    if LEAKED:
        with pytest.raises(UnsupportedError, match="another place"):
            LEAKED.pop() + 1
    OFFSET = 1


def test_changed_arguments_are_refused() -> None:
    def f(xs):
        xs.append(xs[0])
        return xs[0]

    with pytest.raises(UnsupportedError, match="changes a list or dict"):
        gcomp.function(f)([X])


def test_tensors_out_of_nowhere_are_refused() -> None:
    hidden = [ops.asarray(X)].__iter__().__reduce__  # an object of C, in which the tensor cannot be found again
    with pytest.raises(UnsupportedError, match="pass it as an argument"):
        gcomp.function(lambda x: x + hidden()[1][0][0])(X)


# ---- sizes, modes, inspection --------------------------------------------------------------------------------


def test_symbolic_sizes_have_one_trace() -> None:
    f = gcomp.function(
        lambda x, y: (x + y, x.shape[0]), shapes={"x": ("batch", 3), "y": ("batch", 1)}, dims={"batch": "1..4"}
    )
    for n in (1, 2):
        total, size = f(np.ones((n, 3)), np.ones((n, 1)))
        assert total.shape == (n, 3) and int(size) == n
    assert len(f.traces) == 1
    with pytest.raises(InputError, match="declared as"):
        f(np.ones((2, 4)), np.ones((2, 1)))
    with pytest.raises(InputError, match="batch"):
        f(np.ones((2, 3)), np.ones((3, 1)))
    with pytest.raises(InputError, match="range"):
        f(np.ones((5, 3)), np.ones((5, 1)))
    with pytest.raises(UsageError, match="no parameter 'z'"):
        gcomp.function(lambda x: x, shapes={"z": (1,)})


def test_op_by_op() -> None:
    seen: list[Any] = []

    @gcomp.function
    def f(x):
        seen.append(float(x.sum()))
        return x * 2

    with gcomp.eager():
        assert f(X).numpy().tolist() == [0, 2, 4]
    assert seen == [3.0] and not f.traces

    @gcomp.eager()
    def run():
        return f(X + 1)

    assert run().numpy().tolist() == [2, 4, 6] and seen[-1] == 6.0


def test_functions_in_functions_become_one_program() -> None:
    inner = gcomp.function(lambda x: x * 2)
    outer = gcomp.function(lambda x: inner(x) + inner(x + 1))
    assert outer(X).numpy().tolist() == [2, 6, 10] and not inner.traces


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    f = gcomp.function(lambda x, n=1: x * n)
    f(X), f(X[:2]), f(X, n=4), f(X)
    f.explain()
    lines = capsys.readouterr().out.splitlines()
    assert "it is the first call" in lines[2] and "x is float32[2], and was float32[3]" in lines[3]
    assert "n: 1 -> 4" in lines[4] and lines[2].split()[3] == "2"


def test_too_many_traces_warn() -> None:
    f = gcomp.function(lambda n: n + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(7):
            f(n)
    with pytest.warns(RetraceWarning, match="n: 6 -> 7") as caught:
        f(7)
    assert caught[0].filename == __file__


def test_the_model_can_be_saved(tmp_path: Path) -> None:
    f = gcomp.function(lambda x, p: {"y": x @ p["w"]}, shapes={"x": ("n", 2)})
    w = np.ones((2, 3), np.float32)
    f.model(np.ones((1, 2), np.float32), {"w": w}).save(tmp_path / "f.gcomp")
    model = gcomp.load(tmp_path / "f.gcomp")
    x = np.ones((4, 2), np.float32)
    assert model(x=x, **{"p.w": w})[0].tolist() == f(x, {"w": w})["y"].tolist()


def test_wrong_calls() -> None:
    f = gcomp.function(lambda x: x)
    with pytest.raises(TypeError):
        f()
    with pytest.raises(UsageError, match="no tensor"):
        gcomp.function(lambda x: x + "a")(X)
    with pytest.raises(UnsupportedError, match="returns a object"):
        gcomp.function(lambda x: object())(X)
    with pytest.raises(UsageError, match=r"test_functions\.py.*\n.*broadcast"):
        gcomp.function(lambda x: x + X[:2])(X)
