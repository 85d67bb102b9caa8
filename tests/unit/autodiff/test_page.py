"""The code of docs/guides/autodiff.md runs."""

from __future__ import annotations

from pathlib import Path


def test_the_page_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "autodiff.md").read_text("utf-8")
    blocks = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/guides/autodiff.md", "exec"), {})  # noqa: S102
