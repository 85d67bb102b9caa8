"""`gcomp.jit` beside `jax.jit`: pytrees, static and donated arguments, transformations, keys, caching, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError, UnsupportedError
from gcomp.frontends.jaxpr import import_jax
from gcomp.ir.program import Program


class Pair(NamedTuple):
    a: Any
    b: Any


def same(got: Any, wanted: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert x.dtype == y.dtype and x.weak_type == y.weak_type
        np.testing.assert_array_equal(x, y)


def test_pytrees_in_and_out() -> None:
    def f(p: Any, x: Any, *rest: Any, scale: Any) -> Any:
        return {"sum": p["w"] + x * scale, "rest": Pair(sum(rest), None), "all": [p, (x,)]}

    p, x = {"w": jnp.arange(3.0), "n": {}}, jnp.ones(3)
    for _ in range(3):
        same(gcomp.jit(f)(p, x, x, 2 * x, scale=3), jax.jit(f)(p, x, x, 2 * x, scale=3))


def test_each_combination_of_types_is_compiled_once() -> None:
    traced = 0

    @gcomp.jit
    def f(x: Any) -> Any:
        nonlocal traced
        traced += 1
        return x + 1

    for x in (jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32), jnp.ones(4), jnp.ones(3, jnp.int32)):
        f(x)
    assert traced == 3


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_results_of_the_first_call_are_arguments_of_the_same_type(target: str) -> None:
    """As those of `jax.jit`, they are bound to no device: else a second call would be looked up, and kept, anew."""
    step = gcomp.jit(lambda x: (x + 1, x.sum()), target=target)
    for _ in range(2):
        assert [r.committed for r in step(jnp.ones(3))] == [r.committed for r in jax.jit(lambda x: (x, x))(1.0)]


def test_static_arguments_by_position_and_by_name() -> None:
    def f(n: int, x: Any, mode: str = "add") -> Any:
        return x + n if mode == "add" else x * n

    ours = gcomp.jit(f, static_argnums=0, static_argnames="mode")
    x = jnp.arange(4)
    same(ours(2, x), f(2, x))
    same(ours(3, x, mode="mul"), f(3, x, "mul"))
    same(ours(3, x, "mul"), f(3, x, "mul"))


@pytest.mark.parametrize("target", ["cpu", "xla:cpu"])
def test_donated_arguments_are_given_away(target: str) -> None:
    f = gcomp.jit(lambda state, x: {"m": state["m"] + x, "n": state["n"] * 2}, donate_argnums=0, target=target)
    for _ in range(2):
        state, x = {"m": jnp.ones(64), "n": jnp.ones(64)}, jnp.ones(64)
        after = f(state, x)
        assert state["m"].is_deleted() and state["n"].is_deleted() and not x.is_deleted()
        np.testing.assert_array_equal(after["m"], 2 * np.ones(64))


def test_arguments_that_are_results_too_may_be_donated() -> None:
    f = gcomp.jit(lambda x, y: (x, x + y, y), donate_argnums=0, target="cpu")
    x, y = jnp.arange(3.0), jnp.ones(3)
    found = f(x, y)
    assert x.is_deleted() and not y.is_deleted()
    assert [np.asarray(each).tolist() for each in found] == [[0, 1, 2], [1, 2, 3], [1, 1, 1]]


def test_arguments_are_donated_by_name_too() -> None:
    for f in (
        gcomp.jit(lambda x, m: m + x, donate_argnames="m"),
        gcomp.jit(lambda x, m: m + x, donate_argnums=1),
        gcomp.jit(lambda x, m: m + x, donate_argnums=-1),
    ):
        for _ in range(2):
            x, first, second = jnp.ones(64), jnp.ones(64), jnp.ones(64)
            f(x, first)
            f(x, m=second)
            assert first.is_deleted() and second.is_deleted() and not x.is_deleted()


def test_transformations_see_through() -> None:
    def f(w: Any, x: Any) -> Any:
        return jnp.tanh(x @ w).sum()

    w, x = jnp.linspace(0, 1, 12).reshape(4, 3), jnp.linspace(-1, 1, 8).reshape(2, 4)
    ours = gcomp.jit(f)
    np.testing.assert_allclose(jax.grad(ours)(w, x), jax.grad(f)(w, x), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(ours, (None, 0))(w, x), jax.vmap(f, (None, 0))(w, x), rtol=1e-6)
    np.testing.assert_allclose(gcomp.jit(jax.grad(f))(w, x), jax.grad(f)(w, x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda w: ours(w, x) * 2)(w), 2 * f(w, x), rtol=1e-6)


def test_weak_types_and_python_scalars() -> None:
    f = gcomp.jit(lambda x, y: (x * 2, y + 1, x + y))
    for x in (1.5, 2, True):
        for _ in range(2):
            same(f(x, jnp.float16(1)), jax.jit(lambda x, y: (x * 2, y + 1, x + y))(x, jnp.float16(1)))


def test_constants_of_the_function_are_weights() -> None:
    table = np.arange(1000.0, dtype=np.float32)
    f = gcomp.jit(lambda i: jnp.asarray(table)[i] + jnp.asarray(table)[0])
    for i in (3, 700):
        assert f(i) == table[i]
    assert len(f.model(3).weights) == 1


def test_typed_keys_go_in_and_out() -> None:
    f = gcomp.jit(lambda key: (key, jax.random.key_data(key) + 1))
    key = jax.random.key(7)
    for _ in range(2):
        same_key, data = f(key)
        assert same_key.dtype == key.dtype and bool((jax.random.key_data(same_key) == jax.random.key_data(key)).all())
        np.testing.assert_array_equal(data, jax.random.key_data(key) + 1)


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_models_take_and_give_typed_keys(generator: str, tmp_path: Path) -> None:
    def f(key: Any, x: Any) -> Any:
        return {"next": jax.random.split(key, 3), "key": key, "x": jax.random.uniform(key, x.shape) + x}

    key, x = jax.random.key(7, impl=generator), jnp.ones(4)
    wanted = f(key, x)
    made = gcomp.compile(f, key, x)
    made.save(tmp_path / "f.gcomp")
    for model in (made, gcomp.load(tmp_path / "f.gcomp")):
        for found in (model(key, x), model(key=key, x=x), model(key, np.ones(4, np.float32))):
            assert jax.tree.structure(found) == jax.tree.structure(wanted)
            for name in ("next", "key"):
                assert found[name].dtype == key.dtype
                np.testing.assert_array_equal(jax.random.key_data(found[name]), jax.random.key_data(wanted[name]))
            np.testing.assert_array_equal(found["x"], wanted["x"])
        assert model.named(key, x)["key"].dtype == key.dtype
        data = np.asarray(jax.random.key_data(key))
        np.testing.assert_array_equal(model(data, np.ones(4, np.float32))["key"], data)
        other = jax.random.key(7, impl="threefry2x32" if generator == "rbg" else "rbg")
        with pytest.raises(InputError, match=f"keys of {generator}"):
            model(other, x)
        with pytest.raises(InputError, match="x"):
            model(key, jax.random.key(7, impl=generator))
    assert f"keys of {generator}" in repr(made)


def test_keys_survive_text_and_other_passes() -> None:
    key = jax.random.key(3)
    program = import_jax(lambda k: (jax.random.split(k), jnp.sum(jnp.log(jax.random.uniform(k)))), key)
    model = gcomp.compile(Program.parse(program.text()), checks=["nan"])
    assert [spec.key for spec in (*model.inputs, *model.outputs)] == ["threefry2x32", "threefry2x32", None]
    np.testing.assert_array_equal(jax.random.key_data(model(key)[0]), jax.random.key_data(jax.random.split(key)))


def test_python_deciding_by_a_traced_value_is_refused_with_the_line() -> None:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(UnsupportedError, match="known only at run time") as caught:
        gcomp.jit(f)(jnp.ones(3))
    assert "test_jit.py" in str(caught.value) and "jax.lax.cond" in str(caught.value)


def test_a_primitive_without_importer_is_named_with_its_line() -> None:
    with pytest.raises(UnsupportedError, match="pure_callback") as caught:
        gcomp.jit(lambda x: jax.pure_callback(np.sin, x, x))(jnp.ones(3))
    assert "test_jit.py" in str(caught.value)


def test_disable_jit_runs_eagerly() -> None:
    seen: list[Any] = []
    with jax.disable_jit():
        gcomp.jit(lambda x: seen.append(float(x[0])) or x)(jnp.ones(3))
    assert seen == [1.0]
