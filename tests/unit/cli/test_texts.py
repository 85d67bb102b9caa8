"""Text and its weights: what `gcomp opt -o` writes runs, and what is missing is said by every command that needs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.errors import GcompError, UsageError
from gcomp.texts import read_program, require_weights, weights_path, write_weights
from tests.unit.cli.commands import Cli

DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
WEIGHTS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.array(3 - 4j, np.complex128),
    "c": np.array([True, False]),
    "d": np.array([[1, 2]], "bfloat16") if "bfloat16" in np.sctypeDict else np.zeros((0, 5), np.float16),
}
TYPES = {"bool": "i1", "float32": "f32", "float16": "f16", "complex128": "complex<f64>", "bfloat16": "bf16"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS, tmp_path / "digits.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((2, 1, 8, 8), np.float32))
    return tmp_path


def test_text_runs_with_the_weights_beside_it(cli: Cli, folder: Path) -> None:
    written = cli("opt", "digits.onnx", "-p", "canonicalize", "-o", "a.mlir")
    assert written.code == 0 and "a.weights.safetensors" in written.err
    for model, file in (("digits.onnx", "first"), ("a.mlir", "second")):
        assert cli("run", model, "-i", "images=x.npy", "-o", f"probabilities={file}.npy").code == 0
    np.testing.assert_array_equal(np.load("first.npy"), np.load("second.npy"))
    assert cli("opt", "a.mlir", "-o", "b.mlir").code == 0
    assert (folder / "a.weights.safetensors").read_bytes() == (folder / "b.weights.safetensors").read_bytes()


NEEDED = (
    "run a.mlir --random", "compile a.mlir -o a.gcomp", "bisect a.mlir", "opt a.mlir --export --dim batch=1",
    "train-step a.mlir -o s.gcomp",
)  # fmt: skip


def test_weights_that_are_missing_are_named_at_once(cli: Cli, folder: Path) -> None:
    assert cli("opt", "digits.onnx", "-o", "a.mlir").code == 0
    (folder / "a.weights.safetensors").unlink()
    for command in NEEDED:
        result = cli(*command.split())
        assert result.code == 2 and "_6.weight" in result.err and "gcomp opt MODEL -o" in result.err, command
        assert "Traceback" not in result.err and not (folder / "a.gcomp").exists()
    assert cli("opt", "a.mlir", "-p", "canonicalize").code == 0, "passes run without data"
    assert "there are none to write" in cli("opt", "a.mlir", "-o", "b.mlir").err


def test_text_that_goes_on_without_its_weights_says_so(cli: Cli, folder: Path) -> None:
    assert "-o FILE.mlir writes them beside it" in cli("opt", "digits.onnx").err


def program() -> gcomp.Program:
    """A program that reads a weight of each kind of element."""
    types = {
        name: f"tensor<{''.join(f'{n}x' for n in array.shape)}{TYPES[array.dtype.name]}>"
        for name, array in WEIGHTS.items()
    }
    reads = "\n".join(f"  %{name} = gcomp.weight @{name} : {type}" for name, type in types.items())
    names, listed = ", ".join(f"%{name}" for name in types), ", ".join(types.values())
    made = gcomp.Program.parse(f"func.func @main() -> ({listed}) {{\n{reads}\n  return {names} : {listed}\n}}")
    for name, array in WEIGHTS.items():
        made.weights.add(name, array)
    return made


def test_every_kind_of_element_comes_back(tmp_path: Path) -> None:
    made, path = program(), tmp_path / "m.mlir"
    path.write_text(made.text())
    assert write_weights(path, made) == weights_path(path)
    read = read_program(path)
    assert {name: array.dtype for name, array in read.weights.items()} == {n: a.dtype for n, a in WEIGHTS.items()}
    for name, array in WEIGHTS.items():
        assert read.weights[name].tobytes() == array.tobytes() and read.weights[name].shape == array.shape
    require_weights(read)


@pytest.mark.parametrize("change", ["shape", "type", "bytes", "none"])
def test_weights_of_something_else_are_refused(change: str, tmp_path: Path) -> None:
    made, path = program(), tmp_path / "m.mlir"
    write_weights(path, made)
    text = made.text()
    if change == "shape":
        text = text.replace("3x4xf32", "4x3xf32")
    elif change == "type":
        text = text.replace("3x4xf32", "3x4xi32")
    elif change == "bytes":
        weights_path(path).write_bytes(weights_path(path).read_bytes()[:-1])
    else:
        text = text.replace("@a ", "@z ")
    path.write_text(text)
    with pytest.raises(GcompError, match="m.weights.safetensors" if change != "none" else "@z"):
        require_weights(read_program(path), path)


def test_text_without_weights_has_no_file_beside_it(tmp_path: Path) -> None:
    made = gcomp.Program.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}")
    assert write_weights(tmp_path / "m.mlir", made) is None and not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="@a, @b, @c and 1 more"):
        require_weights(gcomp.Program.parse(program().text()))
