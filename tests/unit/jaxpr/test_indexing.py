"""Gather, scatter and dynamic slices: bounds, modes, windows, keys, symbolic sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gcomp
from gcomp.frontends.jaxpr import import_jax
from gcomp.reference.interpreter import interpret

from .agreement import agree, together

X = np.arange(30, dtype=np.float32).reshape(6, 5)
PLACES = np.array([[0, 4], [5, 0], [4, 3], [-1, 0], [6, 0], [2, 9], [-7, -7], [2**31 - 1, 0]], np.int32)
MODES = ("clip", "fill", "promise_in_bounds")


def windows_at(x: Any, places: Any, mode: str, **keywords: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
    return lax.gather(x, places, numbers, (2, 3), mode=mode, **keywords)


def put_windows(x: Any, places: Any, updates: Any, mode: str, put: Any = lax.scatter) -> Any:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)
    )
    return put(x, places, updates, numbers, mode=mode)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.uint32])
def test_gather_in_all_modes(dtype: type) -> None:
    functions = {mode: lambda x, i, mode=mode: windows_at(x, i, mode) for mode in MODES}
    agree(together(functions), X, PLACES.astype(dtype), ulps=0)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_, np.complex64, jnp.bfloat16])
def test_what_does_not_fit_is_filled(dtype: Any) -> None:
    functions = {
        "default": lambda x, i: windows_at(x, i, "fill"),
        "given": lambda x, i: windows_at(x, i, "fill", fill_value=1),
        "take": lambda x, i: jnp.take(x, i[:, 0], axis=1),
    }
    agree(together(functions), X.astype(dtype), PLACES, ulps=0)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8])
def test_windows_that_do_not_fit_are_left_out_as_a_whole(dtype: type) -> None:
    updates = -1 - np.arange(48, dtype=np.float32).reshape(8, 2, 3)
    functions = {mode: lambda x, i, u, mode=mode: put_windows(x, i, u, mode) for mode in ("clip", "fill")}
    agree(together(functions), X, PLACES.astype(dtype), updates, ulps=0)


def test_the_reference_agrees_about_windows_out_of_bounds() -> None:
    updates = -1 - np.arange(48, dtype=np.float32).reshape(8, 2, 3)
    program = import_jax(lambda x, i, u: put_windows(x, i, u, "fill"), X, PLACES, updates)
    (found,) = interpret(program, [X, PLACES, updates])
    np.testing.assert_array_equal(found, put_windows(X, PLACES, updates, "fill"))


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex64])
def test_scatters_combine(dtype: type) -> None:
    rows, values = np.array([0, 5, 0, 7, -1, 3]), np.arange(1, 31).reshape(6, 5).astype(dtype)
    functions: dict[str, Any] = {
        name: lambda x, v, name=name: getattr(x.at[rows], name)(v) for name in ("add", "multiply", "subtract")
    }
    if dtype is not np.complex64:
        functions |= {name: lambda x, v, name=name: getattr(x.at[rows], name)(v) for name in ("min", "max")}
    functions["apply"] = lambda x, v: x.at[rows[1:4]].apply(lambda e: e * e + 1)
    agree(together(functions), X.astype(dtype), values, ulps=4)


def test_batched_gathers_and_scatters() -> None:
    rows = np.array([[3, 1], [0, 9]], np.int32)
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    functions = {
        "gather": jax.vmap(lambda x, i: x[i]),
        "scatter": jax.vmap(lambda x, i: x.at[i].add(10.0)),
        "gradient": jax.grad(lambda x, i: jax.vmap(lambda x, i: x[i] ** 2)(x, i).sum()),
        "along": lambda x, i: jnp.take_along_axis(x, i[:, :, None], axis=1),
    }
    agree(together(functions), x, rows)


def test_dynamic_slices_are_clamped() -> None:
    functions = {
        "slice": lambda x, i: [lax.dynamic_slice(x, (i, i - 3), (2, 4)) for i in (i, i - 5, i + 5, -i)],
        "narrow": lambda x, i: lax.dynamic_slice(x, (i.astype(jnp.uint8), jnp.uint8(200)), (3, 1)),
        "update": lambda x, i: [lax.dynamic_update_slice(x, x[:2, :2] - 99, (i, i)) for i in (i, i + 9, i - 9)],
    }
    agree(together(functions), X, np.int32(2), ulps=0)


def test_keys_move_as_numbers_do() -> None:
    def moved(key: Any, i: Any) -> Any:
        keys = jax.random.split(key, 6).reshape(3, 2)
        return {
            "gather": keys[:, i],
            "slice": lax.dynamic_slice(keys, (i[0], 0), (2, 1)),
            "scatter": keys.at[i[0]].set(keys[1]),
            "update": lax.dynamic_update_slice(keys, keys[:1], (i[1], 0)),
            "where": jnp.where(i[0] > 0, keys[0], keys[1]),
            "together": jnp.concatenate([keys, keys[::-1]]).T,
        }

    agree(moved, jax.random.key(7), np.array([1, 0, 5], np.int32))


def test_symbolic_sizes() -> None:
    n, m = jax.export.symbolic_shape("n, m", constraints=["n >= 2"])

    def indexed(x: Any, i: Any) -> Any:
        zeros = jnp.zeros((i.shape[0], 2, 2))
        return {
            "fill": jnp.take(x, i, axis=0, mode="fill"),
            "clip": jnp.take(x, i, axis=0, mode="clip"),
            "set": x.at[i].set(-1.0, mode="drop"),
            "clipped": x.at[i].set(-1.0, mode="clip"),
            "windows": put_windows(x, jnp.stack([i, i], 1), zeros, "fill"),
        }

    types = jax.ShapeDtypeStruct((n, 3), jnp.float32), jax.ShapeDtypeStruct((m,), jnp.int32)
    model = gcomp.compile(import_jax(indexed, *types), dims={"n": (2, 64)})
    for size in (2, 6):
        x, i = X[:size, :3], np.array([0, 5, -1, 1, 9, -9], np.int32)
        jax.tree.map(np.testing.assert_array_equal, model(x, i), jax.tree.map(np.asarray, jax.jit(indexed)(x, i)))
