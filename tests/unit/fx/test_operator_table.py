"""torch_operators.md is up to date, and says of every core operator of the installed torch what becomes of it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from tools.torch_table import PAGE, core_operators, decomposed_operators, fate, page  # noqa: E402

NOT_YET = {"aten::resize_", "aten::sym_storage_offset"}
"""Core operators that gcomp lacks. A new one, of a new torch, fails the test."""


def test_the_page_is_up_to_date() -> None:
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"the page is written with torch 2.13, and this is {torch.__version__}")
    assert PAGE.read_text("utf-8") == page(), "run python -m tools.torch_table"


def test_every_core_operator_has_a_fate() -> None:
    decomposed = decomposed_operators()
    assert {name for name in core_operators() if not fate(name, decomposed)} == NOT_YET
