"""docs/guides/tiles.md tells the truth: its code runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[4] / "docs" / "guides" / "tiles.md"


def test_the_code_runs_and_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```(python)?\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)
    scope: dict[str, Any] = {}
    said = [text for language, text in blocks if not language]
    for language, text in blocks:
        if language:
            exec(text, scope)  # noqa: S102 - the page's own code
    assert [capsys.readouterr().out.rstrip() + "\n"] == said
