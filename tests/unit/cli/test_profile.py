"""`gcomp run --profile`: a row for each step, the columns that say something, and a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.commands import Cli
from tests.unit.cli.test_report import PROGRAM


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("target", "predicted"), [("cpu", True), ("xla:cpu", False)])
def test_steps_are_listed_and_traced(target: str, predicted: bool, cli: Cli, folder: Path) -> None:
    (folder / "m.mlir").write_text(PROGRAM)
    assert cli("compile", "m.mlir", "-o", "m.gcomp", "--target", target).code == 0
    done = cli("run", "m.gcomp", "--random", "--profile", "--trace", "t.json", "--repeat", "2")
    assert done.code == 0, done.err
    assert "medians of 2 calls" in " ".join(done.out.split()) and "kernel" in done.out
    assert ("predicted" in done.out) is predicted
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) >= 1
    assert cli("run", "m.gcomp", "--random", "--trace", "nowhere/t.json").code == 2
