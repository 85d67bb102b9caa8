"""The corpus: forty models of three kinds, made from seeds, kept, and skipped loudly where they cannot be made."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gcomp.corpus import store
from gcomp.corpus.entries import NAMES, entry, missing_packages, names
from gcomp.corpus.making import make
from gcomp.corpus.store import corpus
from gcomp.texts import require_weights, weights_path


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("GCOMP_CACHE_DIR", str(tmp_path))
    store._folder.cache_clear()
    yield tmp_path
    store._folder.cache_clear()


def test_there_are_forty() -> None:
    assert len(names()) == len(set(names())) == 40
    assert set(NAMES) == {"onnx", "torch", "jax"}


@pytest.mark.parametrize("kind", NAMES)
def test_the_names_are_those_of_the_tables(kind: str) -> None:
    if kind in missing_packages():
        pytest.skip(f"SKIPPED: {kind} is not installed")
    assert all(entry(f"{kind}/{name}").what for name in NAMES[kind])


def test_a_model_is_made_once_and_kept_whole(own_cache: Path) -> None:
    said: list[str] = []
    (made,) = corpus(["onnx/bert"], report=said.append).members
    assert any("onnx/bert" in one for one in said)
    program = made.program()
    program.verify()
    assert {size for port in program.inputs() for size in map(str, port.shape)} == {"batch", "seq"}
    require_weights(program)
    said.clear()
    assert corpus(["onnx/bert"], report=said.append).members[0].path == made.path
    assert not said


def test_seeds_give_the_same_program(tmp_path: Path) -> None:
    for name in ("first", "second"):
        make("onnx/quantized", tmp_path / f"{name}.mlir")
    first, second = (tmp_path / f"{name}.mlir" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert weights_path(first).read_bytes() == weights_path(second).read_bytes()


def test_what_cannot_be_made_is_named(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    found = corpus(["torch/vae", "onnx/forest"])
    assert [member.name for member in found.members] == ["onnx/forest"]
    assert found.skipped == {"torch": "1 models of torch: torch is not installed"}
