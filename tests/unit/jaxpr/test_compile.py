"""Compiling JAX functions ahead of time: names, structures, symbolic dims, artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError, UnsupportedError, UsageError
from gcomp.frontends.jaxpr import import_jax


def model(x: Any, params: Any) -> Any:
    return {"y": jax.nn.softmax(x @ params["w"] + params["b"]), "n": (x.sum(), None)}


X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
PARAMS = {"w": np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}


def symbolic(text: str, *shape: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*jax.export.symbolic_shape(text), *shape), jnp.float32)


def test_inputs_and_outputs_have_the_names_of_the_source() -> None:
    program = import_jax(model, X, PARAMS)
    assert [port.name for port in program.inputs()] == ["x", "params.b", "params.w"]
    assert [port.name for port in program.outputs()] == ["n.0", "y"]


def test_ops_carry_the_users_line() -> None:
    text = import_jax(model, X, PARAMS).text(locations=True)
    assert "test_compile.py" in text


def test_an_artifact_keeps_the_structures(tmp_path: Path) -> None:
    compiled = gcomp.compile(model, X, PARAMS)
    compiled.save(tmp_path / "f.gcomp")
    loaded = gcomp.load(tmp_path / "f.gcomp")
    wanted = jax.jit(model)(X, PARAMS)
    for got in (compiled(X, PARAMS), loaded(X, PARAMS), loaded(X, PARAMS["b"], PARAMS["w"])):
        assert got["n"][1] is None
        np.testing.assert_allclose(got["y"], wanted["y"], rtol=1e-6)
    flat = loaded(x=X, **{"params.b": PARAMS["b"], "params.w": PARAMS["w"]})
    np.testing.assert_array_equal(flat["y"], loaded(X, PARAMS)["y"])


@pytest.mark.parametrize("bad", [(X,), (X, [1]), (X, {"w": 1}), (X, PARAMS, X)])
def test_arguments_of_another_structure_are_refused(bad: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="structure of args"):
        gcomp.compile(model, X, PARAMS)(*bad)


def test_symbolic_dims() -> None:
    compiled = gcomp.compile(model, symbolic("batch", 4), PARAMS, dims={"batch": (1, 64)})
    for count in (1, 5, 64):
        x = np.resize(X, (count, 4))
        np.testing.assert_allclose(compiled(x, PARAMS)["y"], jax.jit(model)(x, PARAMS)["y"], rtol=1e-5)
    with pytest.raises(InputError, match="outside its range"):
        compiled(np.ones((65, 4), np.float32), PARAMS)
    with pytest.raises(UsageError, match="no symbolic dimension 'rows'"):
        gcomp.compile(model, symbolic("batch", 4), PARAMS, dims={"rows": 3})


@pytest.mark.parametrize(
    ("size", "constraint", "function", "good", "bad"),
    [
        ("n", "mod(n, 2) == 0", lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), [(4,), (6,)], [(5,), (1,)]),
        ("n", "n >= 5", lambda x: x[:5] + x[-5:], [(5,), (8,)], [(3,)]),
        ("n, m", "n <= m", lambda x: x[:, : x.shape[0]] + 1, [(2, 3), (3, 3)], [(4, 3)]),
        ("n, m", "n == m", lambda x: x + x.T, [(2, 2)], [(4, 2)]),
    ],
)
def test_what_is_said_of_symbols_must_hold(
    size: str, constraint: str, function: Any, good: list[tuple[int, ...]], bad: list[tuple[int, ...]]
) -> None:
    sizes = jax.export.symbolic_shape(size, constraints=[constraint])
    compiled = gcomp.compile(function, jax.ShapeDtypeStruct(sizes, jnp.float32))
    for shape in good:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(compiled(x), function(x))
    for shape in bad:
        with pytest.raises(InputError):
            compiled(np.zeros(shape, np.float32))


def test_a_function_that_decides_by_a_symbol_is_refused_with_the_line() -> None:
    with pytest.raises(UnsupportedError, match=r"test_compile\.py:\d+[\s\S]*symbolic_shape") as caught:
        import_jax(lambda x: x[:2] if x.shape[0] > 2 else x, symbolic("n"))
    assert "n" in str(caught.value)


def test_sizes_computed_from_symbols() -> None:
    def f(x: Any) -> Any:
        y = jnp.concatenate([x, x[1:]], axis=0).reshape(-1)
        return y[: y.shape[0] // 2], jnp.arange(x.shape[0]) * x.shape[0], jnp.mean(x, axis=0)

    compiled = gcomp.compile(f, symbolic("n", 2))
    for count in (2, 3, 7):
        x = np.arange(2 * count, dtype=np.float32).reshape(count, 2)
        for got, wanted in zip(compiled(x), jax.jit(f)(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
