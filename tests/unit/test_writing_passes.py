"""writing_passes.md tells the truth: its pass is short, works, and passes the tests that stand beside it."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.testing.filetests import filecheck
from tests.support.trees import Tree, copied

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "writing_passes.md"


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
    path = tmp_path / "join-complements.mlir"
    path.write_text(text, "utf-8")
    program = Program.parse(text)
    assert example.JoinComplements().run(program, PassContext())
    filecheck(program.text(), path, [])


def test_its_property_test_passes(example: ModuleType) -> None:
    example.test_join_complements()


def test_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?:gcomp|tests|tools)/[\w/.]+)`", PAGE.read_text("utf-8"))) | {"docs/generated/rules.md"}
    missing = [name for name in named if not (ROOT / name).exists() and "join" not in name]
    assert not missing


# ---- in a copy of the tree ----


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree with the page's files where the page names them, and the pages renewed by its commands."""
    made = copied(tmp_path_factory.mktemp("tree"))
    renew, _ = blocks("console")
    for path, text in (
        ("gcomp/passes/graph/join_complements.py", blocks("python")[0]),
        ("tests/filetests/graph/join-complements.mlir", blocks("mlir")[0]),
    ):
        assert f"`{path}`" in PAGE.read_text("utf-8")
        made.write(path, text)
    for line in renew.splitlines():
        made.run(*shlex.split(line))
    return made


def test_the_new_pass_is_in_the_pages_and_proved(tree: Tree) -> None:
    assert "| [join-complements](#join-complements) |" in tree.read("docs/generated/passes.md")
    (row,) = [line for line in tree.read("docs/generated/rules.md").splitlines() if line.startswith("| and-of-nots ")]
    assert "| proved |" in row


def test_what_the_page_says_must_pass(tree: Tree) -> None:
    _, checks = blocks("console")
    for line in checks.splitlines():
        tree.run(*shlex.split(line))
