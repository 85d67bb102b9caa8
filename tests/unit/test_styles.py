"""One model in six styles: equal results, the same kernels, and a page that shows the code as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def models() -> Any:
    sys.path.insert(0, str(ROOT / "examples" / "styles"))
    try:
        import models  # pyright: ignore[reportMissingImports]

        return models
    finally:
        sys.path.pop(0)


def test_all_styles_compute_the_same(models: Any) -> None:
    results = {style: run() for style, run in models.runs().items()}
    for style, found in results.items():
        np.testing.assert_allclose(found, results["eager"], rtol=1e-5, atol=1e-6, err_msg=style)


def test_all_styles_become_the_same_kernels(models: Any) -> None:
    found = {style: models.kernels(program) for style, program in models.programs().items()}
    assert found["function"].total() == 7
    assert all(kernels == found["function"] for kernels in found.values()), found


def test_the_page_shows_the_code() -> None:
    page = (ROOT / "docs" / "guides" / "static_and_dynamic.md").read_text("utf-8")
    code = (ROOT / "examples" / "styles" / "models.py").read_text("utf-8")
    blocks = [part.split("\n```")[0].partition("\n")[2] for part in page.split("\n```")[1::2]]
    assert len(blocks) == 6
    for block in blocks:
        assert block in code, block
