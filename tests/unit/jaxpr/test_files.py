"""Exports of JAX, as objects and as files: what is read, what is refused, and damage."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

jax: Any = pytest.importorskip("jax", reason="jax is not installed")

import jax.export as jax_export  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import gcomp  # noqa: E402
from gcomp.errors import InvalidModelError, UnsupportedError, UsageError  # noqa: E402
from gcomp.ir.locations import places  # noqa: E402
from gcomp.ir.program import Program  # noqa: E402
from gcomp.reference.interpreter import interpret  # noqa: E402

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


def test_calls_of_lapack_keep_their_settings() -> None:
    """JAX writes them under MHLO's name."""
    lower = np.tril(W) + 4 * np.eye(4, dtype=np.float32)
    solve = functools.partial(jax.lax.linalg.triangular_solve, left_side=True, lower=True)
    program = gcomp.import_model(exported(solve, lower, W))
    np.testing.assert_allclose(interpret(program, [lower, W])[0], np.linalg.solve(lower, W), rtol=1e-5, atol=1e-6)


def _lines(program: Program) -> set[str]:
    return {place for op in program.ops() for place in places(op.location) if "test_files.py" in place}


def test_exports_keep_their_lines_and_their_keys() -> None:
    key = jax.random.key(1)
    export = exported(lambda k, x: (jnp.sin(x), jax.random.split(k)), key, X)
    assert any("sin" in line and f"{__file__}:" in line for line in _lines(gcomp.import_model(export)))
    x, keys = gcomp.compile(export)(key, X)
    np.testing.assert_allclose(x, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(key)))


def test_text_with_aliases_of_locations_keeps_the_lines() -> None:
    lowered = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(X)
    text = lowered.as_text(debug_info=True)
    assert text.index("loc(#loc") < text.rindex("\n#loc")
    program = Program.parse(text)
    assert any("sin" in line and f"{__file__}:" in line for line in _lines(program))
    assert any("dot_general" in line for line in _lines(program))
    again = Program.parse(program.text(locations=True))
    assert _lines(again) == _lines(program)
    np.testing.assert_allclose(gcomp.compile(text)(X)[0], np.sin(X) @ X.T, rtol=1e-5)


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
