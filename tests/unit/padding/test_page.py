"""The code of docs/guides/variable_lengths.md runs, and its table has the kinds of rows that there are."""

from __future__ import annotations

from pathlib import Path

from gcomp.padding.table import KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "variable_lengths.md").read_text("utf-8")


def test_the_page_runs() -> None:
    blocks = [block.split("```")[0] for block in PAGE.split("```python\n")[1:]]
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/guides/variable_lengths.md", "exec"), {})  # noqa: S102


def test_the_page_has_all_kinds() -> None:
    assert all(f"| `{kind}` |" in PAGE for kind in KINDS)
