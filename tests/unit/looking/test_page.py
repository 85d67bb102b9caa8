"""docs/guides/looking_inside.md tells the truth: its transcript is what the commands print, and its code runs."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gcomp.cli import main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "looking_inside.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def said(line: str, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What a command prints, its paths without the folder."""
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with suppress(SystemExit):
        main()
    out, err = capfd.readouterr()
    errors = err[err.index("error: ") :] if "error: " in err else ""
    return f"{out}{errors}".replace(f"{here}{os.sep}", "").splitlines()


def test_the_transcript(here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "model.py").write_text(blocks("python")[0], "utf-8")
    runpy.run_path(str(here / "model.py"))
    capfd.readouterr()
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks("text")[0], flags=re.M)
    assert [line.split()[1] for line, _ in steps] == ["run"] * 3
    for line, shown in steps:
        assert said(line, here, monkeypatch, capfd) == shown.splitlines(), line


def test_the_code(here: Path) -> None:
    (here / "code.py").write_text("\n\n".join(blocks("python")[1:]), "utf-8")
    found: dict[str, Any] = runpy.run_path(str(here / "code.py"))
    assert found["lines"] and (here / "seen.gcomp").exists()
