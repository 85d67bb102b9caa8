"""`package.module:factory` as a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.errors import UsageError
from gcomp.factories import is_reference, run_factory

SOURCE = """
import jax.numpy as jnp
import numpy as np

def f(x, w):
    return jnp.tanh(x @ w)

def make():
    return f, (np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))

class Models:
    make = staticmethod(make)

def text():
    return "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\\n return %x : tensor<2xf32>\\n}"

def odd():
    return f, np.ones(3)

number = 3
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models.py").write_text(SOURCE, "utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["make", "Models.make"])
def test_a_factory_gives_a_function_and_its_arguments(name: str) -> None:
    model = gcomp.compile(f"own_models:{name}")
    x, w = np.full((2, 3), 0.1, np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_allclose(model(x, w), np.tanh(x @ w), rtol=1e-6)


def test_a_factory_may_give_any_source() -> None:
    (result,) = gcomp.compile("own_models:text")(np.ones(2, np.float32))
    np.testing.assert_array_equal(result, np.ones(2))


@pytest.mark.parametrize(
    "reference, message",
    [
        ("own_models:missing", "has no 'missing'"),
        ("own_models:number", "is no function"),
        ("own_models:odd", "does not return a model"),
        ("no_such_module:make", "no module 'no_such_module'"),
    ],
)
def test_what_is_no_factory_is_refused(reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_factory(reference)


@pytest.mark.parametrize("text", ["model.onnx", "a/b.mlir", "C:\\models\\a", "a:b:c", "a: b", ""])
def test_paths_are_no_references(text: str) -> None:
    assert not is_reference(text)


def test_an_existing_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "own_models:make").write_text("")
    assert not is_reference("own_models:make")
