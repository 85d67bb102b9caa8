"""Trained parameters as initializers again: the same file, but for their data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import gcomp
from gcomp.errors import GcompError
from tests.unit.training.models import MLP, X, Y

Array = np.ndarray[Any, Any]


def without_data(source: onnx.ModelProto) -> bytes:
    """A model's bytes, its initializers' data left out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    for tensor in copy.graph.initializer:
        for field in ("raw_data", "float_data"):
            tensor.ClearField(field)
    return copy.SerializeToString(deterministic=True)


@pytest.mark.parametrize("held", ["raw", "numbers", "external"])
def test_only_the_data_differ(held: str, tmp_path: Path) -> None:
    source = onnx.ModelProto()
    source.CopyFrom(MLP)
    if held == "numbers":
        for tensor in source.graph.initializer:
            tensor.float_data.extend(np.frombuffer(tensor.raw_data, np.float32).tolist())
            tensor.ClearField("raw_data")
    before, after = tmp_path / "model.onnx", tmp_path / "trained" / "model.onnx"
    after.parent.mkdir()
    onnx.save(source, before, save_as_external_data=held == "external", size_threshold=0, location="weights.bin")
    step = gcomp.train_step(before, dims={"n": 6})
    step(X, Y)
    step.save_state(tmp_path / "state.safetensors")
    for state in (step.state, tmp_path / "state.safetensors"):
        assert sorted(gcomp.write_parameters(before, state, after)) == ["b1", "b2", "w1", "w2"]
        trained = onnx.load(after)
        for tensor in trained.graph.initializer:
            assert np.array_equal(numpy_helper.to_array(tensor), step.state[tensor.name])
    old, new = before.read_bytes(), after.read_bytes()
    if held == "raw":
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) <= sum(
            a.nbytes for a in map(step.state.get, MLP_NAMES)
        )
    elif held == "external":
        assert old == new and (tmp_path / "weights.bin").read_bytes() != (after.parent / "weights.bin").read_bytes()
    assert without_data(onnx.load(before)) == without_data(onnx.load(after))


MLP_NAMES = ["w1", "b1", "w2", "b2"]


def test_a_trained_model_computes_what_the_step_does(tmp_path: Path) -> None:
    onnx.save(MLP, tmp_path / "model.onnx")
    step = gcomp.train_step(tmp_path / "model.onnx", optimizer="sgd:lr=0.1", dims={"n": 6})
    for _ in range(3):
        step(X, Y)
    gcomp.write_parameters(tmp_path / "model.onnx", step.state, tmp_path / "trained.onnx")
    expected = step(X, Y)
    (logits,) = gcomp.compile(tmp_path / "trained.onnx")(X)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert expected == pytest.approx(-logs[np.arange(6), Y].mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"w9": X}, "w9"),
        ({"mean(w9)": X}, "w9"),
        ({"step": np.int64(3)}, "no parameters"),
        ({"w1": X}, "w1"),
        ({"w1": np.zeros((4, 8))}, "float64"),
    ],
)
def test_the_state_of_another_model_is_refused(state: dict[str, Array], words: str, tmp_path: Path) -> None:
    onnx.save(MLP, tmp_path / "model.onnx")
    with pytest.raises(GcompError, match=words):
        gcomp.write_parameters(tmp_path / "model.onnx", state, tmp_path / "trained.onnx")
    assert not (tmp_path / "trained.onnx").exists()


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff\xff\xff")
    for name in ("model.onnx", "none.onnx"):
        with pytest.raises(GcompError):
            gcomp.write_parameters(tmp_path / name, {"w1": X}, tmp_path / "trained.onnx")
