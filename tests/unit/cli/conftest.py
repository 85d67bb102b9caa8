"""Commands run in this process, in the working folder of the test file's fixture `folder`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from gcomp.cli import main
from tests.unit.cli.commands import Cli, Result


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    monkeypatch.setattr(gc, "freeze", lambda: None)  # what a command leaves is garbage here: the process goes on

    def run(*args: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["gcomp", *args])
        with pytest.raises(SystemExit) as caught:
            main()
        assert isinstance(caught.value.code, int)
        return Result(caught.value.code, *capfd.readouterr())

    return run


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the width of the terminal that runs the tests, output is as in a pipe; tests of widths set their own."""
    monkeypatch.delenv("COLUMNS", raising=False)
