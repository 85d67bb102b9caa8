"""docs/guides/sharding.md tells the truth: its commands and its Python run, and print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.test_launch import ENVIRONMENT, ended, start

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "sharding.md").read_text("utf-8")
SESSIONS = re.findall(r"^    \$ gcomp (.*)\n((?:    (?!\$).*\n)*)", PAGE, flags=re.M)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (program,) = re.findall(r"^```mlir\n(.*?)^```$", PAGE, flags=re.M | re.S)
    (tmp_path / "net.mlir").write_text(program, "utf-8")
    return tmp_path


def told(text: str) -> list[str]:
    """Lines, but for times, processors and spaces at the ends."""
    return [re.sub(r"\d+\.\d+ s|cpu:[\w+-]+", "_", line).strip() for line in text.splitlines()]


def test_the_commands_print_what_the_page_says(folder: Path) -> None:
    assert len(SESSIONS) > 5
    for command, printed in SESSIONS:
        if "host0" in command:  # another machine
            continue
        _, out, err = ended(start(folder, *shlex.split(command)))
        there = told(out + err)
        assert [line for line in told(printed) if line not in there] == [], (command, out, err)


def test_the_python_prints_what_the_page_says(folder: Path) -> None:
    script = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S))
    (folder / "page.py").write_text(script, "utf-8")
    run = subprocess.run([sys.executable, "page.py"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    printed = re.findall(r"^print.*  # (.*)$", script, flags=re.M)
    assert len(printed) == 3 and [line for line in printed if line not in run.stdout.splitlines()] == [], run.stdout
