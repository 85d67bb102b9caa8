"""docs/guides/torch.md: its example runs, and its table has the options that there are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from gcomp import dynamo

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "torch.md").read_text("utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE, re.S)
    assert found is not None
    (tmp_path / "example.py").write_text(found[1], "utf-8")
    runpy.run_path(str(tmp_path / "example.py"))


def test_the_table_has_all_options() -> None:
    table = PAGE.partition("| option |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", re.sub(r"\|[^|\n]*\|\n", "|\n", table))) >= {
        *dynamo.OPTIONS,
    }
