"""writing_passes.md tells the truth: its pass is short, works, and passes the tests that stand beside it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gcomp.making.kinds import Names
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


def test_it_is_what_the_command_writes() -> None:
    names = Names("join-complements")
    assert blocks("python")[0] == names.fill("pass.py")
    assert blocks("mlir") == [names.fill("pass.mlir", LOAD=" --load %S/join_complements.py")]


def test_its_property_test_passes(example: ModuleType) -> None:
    example.test_join_complements()


def test_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?:gcomp|tests|tools)/[\w/.]+)`", PAGE.read_text("utf-8"))) | {"docs/generated/rules.md"}
    missing = [name for name in named if not (ROOT / name).exists() and "join" not in name]
    assert not missing


# ---- five minutes, from an empty folder ----


def run(folder: Path, line: str) -> str:
    """Run a line of the page's in a folder; what it printed."""
    program, *words = shlex.split(line)
    around = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    around.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", program, *words]
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_a_newcomer_gets_from_an_empty_folder_to_a_verdict(tmp_path: Path) -> None:
    new, test, judge = blocks("console")[0].splitlines()
    assert f"  {judge}" in run(tmp_path, new).splitlines()
    assert "passed" in run(tmp_path, test)
    said = run(tmp_path, f"{judge} --seconds 20 --corpus onnx/forest")
    assert "join-complements: right, 1 of 1 rewrites proved" in said
    assert (tmp_path / "try" / "join-complements-1.html").exists()


# ---- in a copy of the tree ----


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree with the page's files where the command writes them, and the pages renewed by its commands."""
    made = copied(tmp_path_factory.mktemp("tree"))
    new, renew = blocks("console")[0].splitlines()[0], blocks("console")[1]
    said = made.run("python", "-m", *shlex.split(new))
    for path in ("gcomp/passes/graph/join_complements.py", "tests/filetests/graph/join-complements.mlir"):
        assert f"`{path}`" in PAGE.read_text("utf-8") and f"wrote {path}" in said
    for line in renew.splitlines():
        made.run(*shlex.split(line))
    return made


def test_the_new_pass_is_in_the_pages_and_proved(tree: Tree) -> None:
    assert "| [join-complements](#join-complements) |" in tree.read("docs/generated/passes.md")
    rows = tree.read("docs/generated/rules.md").splitlines()
    (row,) = [line for line in rows if line.startswith("| join-complements-rule ")]
    assert "| proved |" in row


def test_what_the_page_says_must_pass(tree: Tree) -> None:
    for line in blocks("console")[2].splitlines():
        tree.run(*shlex.split(line))
