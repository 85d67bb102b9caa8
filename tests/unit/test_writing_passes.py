"""writing_passes.md tells the truth: its pass is short, works, and passes the tests that stand beside it."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.testing.filetests import filecheck

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "writing_passes.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)


@pytest.fixture
def example(tmp_path: Path) -> Iterator[ModuleType]:
    """The page's Python as one module."""
    path = tmp_path / "pass_of_the_page.py"
    path.write_text("\n\n".join(blocks("python")), "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]


def test_the_pass_is_short() -> None:
    assert blocks("python")[0].count("\n") <= 25


def test_its_filetest_passes(example: ModuleType, tmp_path: Path) -> None:
    (text,) = blocks("mlir")
    path = tmp_path / "add-negated.mlir"
    path.write_text(text, "utf-8")
    program = Program.parse(text)
    assert example.AddNegated().run(program, PassContext())
    filecheck(program.text(), path, [])


def test_its_property_test_passes(example: ModuleType) -> None:
    example.test_add_negated()


def test_files_that_the_page_names_exist() -> None:
    root = PAGE.parents[2]
    named = set(re.findall(r"`((?:gcomp|tests|tools)/[\w/.]+)`", PAGE.read_text("utf-8"))) | {"docs/generated/rules.md"}
    missing = [name for name in named if not (root / name).exists() and "add-negated" not in name]
    assert not missing
