"""Copies of the tree, for tests that do what a guide says and run what it says must pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gcomp.making.pages import patched

ROOT = Path(__file__).resolve().parents[2]
_PARTS = ("gcomp", "tests", "tools", "docs", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class Tree:
    """A copy that may be changed."""

    root: Path

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self.root / path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        """Write a new file. ValueError where there is one already."""
        if (self.root / path).exists():
            raise ValueError(f"{path} is in the tree already")
        (self.root / path).write_text(text, "utf-8")

    def patch(self, path: str, diff: str) -> None:
        """Change a file: lines that begin with a minus go, those with a plus come. ValueError where it does not fit."""
        found = patched(self.read(path), diff)
        if found is None:
            raise ValueError(f"{path} does not hold these lines once:\n{diff}")
        (self.root / path).write_text(found, "utf-8")

    def run(self, python: str, *arguments: str, expect: int = 0) -> str:
        """The output of `python ...` in the copy; it must end with the status that is expected."""
        assert python == "python", python
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        found = subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, timeout=600
        )
        output = re.sub(r"\x1b\[\d*m", "", found.stdout + found.stderr)
        assert found.returncode == expect, f"python {' '.join(arguments)}\n{output[-6000:]}"
        return output


def copied(place: Path) -> Tree:
    """A copy of the tree in a folder, with its compiled modules: to compile them takes longer than most commands."""
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, place / part)
        else:
            shutil.copy(source, place / part)
    return Tree(place)
