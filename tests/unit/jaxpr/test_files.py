"""Exports of JAX, as objects and as files: what is read, what is refused, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

jax: Any = pytest.importorskip("jax", reason="jax is not installed")

import jax.export as jax_export  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import gcomp  # noqa: E402
from gcomp.errors import InvalidModelError, UnsupportedError, UsageError  # noqa: E402

X, W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.linspace(2, -2, 16, dtype=np.float32).reshape(4, 4)


def step(params: Any, x: Any, unused: Any) -> Any:
    last, rows = jax.lax.scan(lambda c, r: (jnp.tanh(c @ params["w"] + r), c.sum()), x[0], x)
    picked = jax.lax.cond(x.sum() > 0, lambda x: jnp.sort(x), lambda x: -x, x)
    return {"last": jax.nn.softmax(last), "rest": (rows, picked)}


def exported(function: Any, *args: Any, **keywords: Any) -> Any:
    return jax_export.export(jax.jit(function), **keywords)(*args)


def test_objects_and_files_give_what_the_function_gives(tmp_path: Path) -> None:
    args = ({"w": W}, X, np.int32(3))
    export = exported(step, *args)
    path = tmp_path / "step.jax_export"
    path.write_bytes(export.serialize())
    wanted = jax.tree.leaves_with_path(step(*args))
    for source in (export, path):
        model = gcomp.compile(source)
        got = jax.tree.leaves_with_path(model(*args))
        assert [where for where, _ in got] == [where for where, _ in wanted]
        for (_, x), (_, y) in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    assert [port.name for port in gcomp.import_model(export).inputs()] == ["x0.w", "x1", "x2"]


def test_what_is_refused_has_a_way_out(tmp_path: Path) -> None:
    (n,) = jax_export.symbolic_shape("n")
    symbolic = exported(jnp.sin, jax.ShapeDtypeStruct((n, 4), jnp.float32))
    path = tmp_path / "f.jax_export"
    path.write_bytes(symbolic.serialize())
    for source in (symbolic, path):
        with pytest.raises(UnsupportedError, match=r"symbolic sizes[\s\S]*ShapeDtypeStruct"):
            gcomp.import_model(source)
    with pytest.raises(UnsupportedError, match=r"tpu[\s\S]*platforms"):
        gcomp.import_model(exported(jnp.sin, X, platforms=["tpu"]))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = bytes(exported(jnp.sin, X).serialize())
    path = tmp_path / "bad.jax_export"
    for data in (b"", whole[: len(whole) // 2], whole[:300] + bytes(200) + whole[500:]):
        path.write_bytes(data)
        with pytest.raises(InvalidModelError, match=r"bad\.jax_export"):
            gcomp.import_model(path)
    with pytest.raises(UsageError, match="cannot read"):
        gcomp.import_model(tmp_path / "none.jax_export")
