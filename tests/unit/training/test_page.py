"""docs/guides/train_step.md tells the truth: its Python and its commands run, and its tables are complete."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.cli import main
from gcomp.runtime.folders import CACHE
from gcomp.runtime.stateful import StatefulModel
from gcomp.training.scoring import LOSSES
from gcomp.training.step import OPTIMIZERS, SCHEDULES

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "guides" / "train_step.md").read_text("utf-8")


@pytest.fixture(scope="module")
def executables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache of this module's own: XLA compiles a step of these tests once, as for a user who runs commands again."""
    return str(tmp_path_factory.mktemp("executables"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executables: str) -> Path:
    """A working folder with the digits."""
    monkeypatch.setenv(CACHE, executables)
    for name in ("digits.onnx", "heldout.npz"):
        shutil.copy(ROOT / "examples" / "digits" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_runs(folder: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S)
    (folder / "page.py").write_text("\n\n".join(blocks), "utf-8")
    with pytest.warns(match="statistics"):  # the second step has no train_mode
        runpy.run_path(str(folder / "page.py"))
    assert (folder / "trained.onnx").stat().st_size == (folder / "digits.onnx").stat().st_size


def test_the_commands_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with np.load("heldout.npz") as file:
        np.savez("data.npz", images=file["images"], labels=file["labels"])
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)
    for line in block.splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 0, capfd.readouterr().err
    text = capfd.readouterr().err
    assert "statistics" in text and "trains" in text and "33 steps" in text and "16 of its initializers" in text
    rows = (folder / "loss.csv").read_text().splitlines()
    assert rows[0] == "step,loss,accuracy" and len(rows) == 34


def test_a_checked_step_stops_with_the_state_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was learned until then is written."""
    with np.load("heldout.npz") as file:
        images = file["images"].copy()
        np.savez("data.npz", images=images, labels=file["labels"])
    images[5] = np.nan
    np.savez("spoilt.npz", images=images, labels=np.load("data.npz")["labels"])
    for line, status in (
        ("gcomp train-step digits.onnx --check nan --freeze 'val_*' --dim batch=32 -o step.gcomp", 0),
        ("gcomp train step.gcomp --data spoilt.npz --epochs 2 --state trained.safetensors", 1),
        ("gcomp train step.gcomp --data data.npz --steps 1 --from trained.safetensors", 0),
    ):
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as caught:
            main()
        error = capfd.readouterr().err
        assert caught.value.code == status, error
        assert status == 0 or "the input 'images' holds a NaN" in error
        assert status == 0 or ("samples" in error and "the last good one, is in trained.safetensors" in error)


def spoil_a_label(images: Array, labels: Array) -> None:
    labels[7] = 10


def spoil_a_pixel(images: Array, labels: Array) -> None:
    images[7, 0, 3, 3] = np.inf


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(spoil_a_label, "to 10; a label that is no class"), (spoil_a_pixel, "images has values that are not finite")],
)
def test_training_stops_at_the_first_loss_that_is_none(
    spoil: Callable[[Array, Array], None], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The state written is that of the steps before, to the bit; steps are repeated from one that was kept."""
    monkeypatch.setattr("gcomp.cli.training._KEPT_STEPS", 2)
    with np.load("heldout.npz") as file:
        images, labels = file["images"][:320].copy(), file["labels"][:320].copy()
    np.savez("data.npz", images=images, labels=labels)
    spoil(images, labels)
    np.savez("spoilt.npz", images=images, labels=labels)

    def run(line: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, capfd.readouterr().err

    assert run("gcomp train-step digits.onnx --freeze 'val_*' --dim batch=32 -o step.gcomp")[0] == 0
    code, error = run("gcomp train step.gcomp --data spoilt.npz --epochs 3 --state s.safetensors --log l.csv")
    *rows, last = (folder / "l.csv").read_text().splitlines()[1:]
    good = len(rows)
    assert code == 1 and f"the loss of step {good} is nan" in error and said in error
    assert f"The state after {good} steps" in error and "nan" in last and "nan" not in "".join(rows)
    if good:
        assert run(f"gcomp train step.gcomp --data data.npz --steps {good} --state clean.safetensors")[0] == 0
        assert (folder / "s.safetensors").read_bytes() == (folder / "clean.safetensors").read_bytes()
    assert run("gcomp train step.gcomp --data data.npz --steps 1 --from s.safetensors")[0] == 0


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_an_update_that_is_not_finite_is_not_written(
    target: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Though the loss of the last step, which was computed before it, is finite."""
    with np.load("heldout.npz") as file:
        np.savez("wrong.npz", images=file["images"], labels=(file["labels"] + 1) % 10)
    for line, status in (
        (f"gcomp train-step digits.onnx --optimizer sgd:lr=3e38 --dim batch=32 -t {target} -o step.gcomp", 0),
        ("gcomp train step.gcomp --data wrong.npz --steps 1 --state s.safetensors", 1),
    ):
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as caught:
            main()
        error = capfd.readouterr().err
        assert caught.value.code == status, error
    assert "step 0 makes parameters that are not finite" in error and "The state after 0 steps" in error
    model = gcomp.load("step.gcomp")
    assert isinstance(model, StatefulModel)
    first = {name: array.tobytes() for name, array in model.state.items()}
    model.load_state("s.safetensors")
    assert {name: array.tobytes() for name, array in model.state.items()} == first


def test_the_tables_are_complete() -> None:
    for name in (*LOSSES, *OPTIMIZERS, *SCHEDULES):
        assert f"`{name}" in PAGE, name
    for name, rule in OPTIMIZERS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        for setting in inspect.signature(rule).parameters:
            assert f"`{setting}`" in row or (name, setting) == ("adafactor", "eps")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train-step digits.onnx --loss nothing", "no loss"),
        ("train-step digits.onnx --freeze nothing", "nothing"),
        ("train-step none.onnx", "none.onnx"),
        ("train digits.onnx --data heldout.npz", "digits.onnx"),
        ("train none.gcomp --data heldout.npz", "none.gcomp"),
        ("write-parameters digits.onnx none.safetensors -o out.onnx", "none.safetensors"),
    ],
)
def test_wrong_commands_say_why(
    arguments: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gcomp", *arguments.split()])
    with pytest.raises(SystemExit) as caught:
        main()
    error = capfd.readouterr().err
    assert caught.value.code in (1, 2) and words in error and "Traceback" not in error
