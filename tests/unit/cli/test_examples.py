"""Examples that `--help` shows run as printed, on the demo's model and small files of the names in them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.unit.cli.commands import Cli, all_commands

DIGITS = Path(__file__).parents[3] / "examples/digits"
LEFT_OUT = re.compile("(fuzz|try|bench|train|train-step|write-parameters|tune|reduce|launch) |.* --tuned ")
"""Examples that take minutes, a GPU, a failure to begin with, what the one before them wrote, or several processes."""


def examples() -> list[str]:
    found: list[str] = []
    for command in all_commands().values():
        found += re.findall(r"^\s*gcomp (.+)$", command.help or "", re.MULTILINE)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("model", "old", "new"):
        shutil.copy(DIGITS / "digits.onnx", tmp_path / f"{name}.onnx")
    np.savez(tmp_path / "x.npz", images=np.random.default_rng(0).random((2, 1, 8, 8), np.float32))
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}"
    (tmp_path / "case.mlir").write_text(text)
    return tmp_path


@pytest.mark.parametrize("example", [e for e in examples() if not LEFT_OUT.match(e)])
def test_an_example_runs(example: str, cli: Cli, folder: Path) -> None:
    result = cli(*shlex.split(example))
    assert result.code == 0, result.err


def test_examples_are_found() -> None:
    assert {"explain", "bisect", "fuzz", "reduce", "train-step"} <= {example.split()[0] for example in examples()}
