"""fusion.md tells the truth about indexing maps: its example prints what it says, its row is the table's."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

from gcomp.analysis.indexing import movement

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "fusion.md"


def test_the_example_prints_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = PAGE.read_text("utf-8").partition("## Indexing maps")[2].partition("\n## ")[0]
    code, printed = re.findall(r"^```(?:python)?\n(.*?)^```$", section, flags=re.M | re.S)[:2]
    (tmp_path / "example.py").write_text(code, "utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out == printed


def test_the_row_is_the_table_s() -> None:
    assert inspect.getsource(movement.transpose) in PAGE.read_text("utf-8")
