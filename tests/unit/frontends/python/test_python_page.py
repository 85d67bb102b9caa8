"""docs/guides/python.md tells the truth: its Python runs, in order, and what it names exists."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import gcomp
from gcomp.tensors.operation import VOCABULARY

PAGE = Path(__file__).resolve().parents[4] / "docs" / "guides" / "python.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)
    path = tmp_path / "python_page_example.py"
    path.write_text("\n\n".join(blocks), "utf-8")
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    assert "axis: 0 -> 1" in capsys.readouterr().out
    assert (tmp_path / "logits.gcomp").exists()


def test_operations_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`ops\.(?:random\.)?(\w+)", PAGE.read_text("utf-8"))) - {"random"}
    assert named and named <= VOCABULARY.keys()


def test_the_public_vocabulary_is_all_of_it() -> None:
    from gcomp.ops import random

    public = {name for name in gcomp.ops.__all__ if name not in ("Tensor", "random")}
    hidden = {"assign", "gradients"}  # methods of graphs
    assert public | {name for name in VOCABULARY if hasattr(random, name)} | hidden == {*VOCABULARY} | hidden
    assert all(VOCABULARY[name].__doc__ for name in VOCABULARY)
