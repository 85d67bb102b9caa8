"""`gcomp new`: what it writes passes its own tests at once, outside of gcomp's tree and inside of a copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gcomp.errors import UsageError
from gcomp.making.kinds import KINDS, plan_of, write
from tests.support.trees import ROOT, Tree, copied


def run(folder: Path, *words: str) -> None:
    """Run a command of Python in a folder; it must succeed."""
    around = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "PYTHONDONTWRITEBYTECODE": "1"}
    around.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run([sys.executable, *words], cwd=folder, env=around, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "op"])
def test_outside_of_the_tree_the_tests_pass_at_once(kind: str, tmp_path: Path) -> None:
    plan = plan_of(kind, "my-thing", tmp_path)
    written = [made.path for made in write(plan)]
    assert all(path.exists() for path in written)
    tests = [str(path) for path in written if path.suffix == ".mlir" or path.name.startswith("test_")]
    run(tmp_path, "-m", "pytest", "-q", *tests)


def test_an_operator_in_the_tree(tree: Tree) -> None:
    plan = plan_of("onnx-operator", "MySwish", tree.root)
    list(write(plan))
    tree.run("python", *plan.commands[0].split()[1:])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree."""
    return copied(tmp_path_factory.mktemp("tree"))


@pytest.mark.slow
def test_an_op_in_the_tree_lacks_nothing(tree: Tree) -> None:
    plan = plan_of("op", "my-softplus", tree.root)
    list(write(plan))
    assert "MISSING" not in tree.run("python", "-m", "tools.audit", "gcomp.my_softplus")
    for command in plan.commands[1:]:
        tree.run(*command.split())


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    list(write(plan_of("pass", "my-pass", tmp_path)))
    with pytest.raises(UsageError, match="is there already"):
        plan_of("pass", "my_pass", tmp_path)


@pytest.mark.parametrize(("kind", "name", "why"), [
    ("pass", "1x", "is no name"), ("pas", "x", "there is no kind"), ("op", "x", "own source"),
])  # fmt: skip
def test_wrong_words_are_named(kind: str, name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        plan_of(kind, name, tmp_path)


def test_the_target_is_the_one_of_the_guide() -> None:
    page = (ROOT / "docs/guides/adding_a_target.md").read_text("utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)
    (made,) = [
        made.text
        for made in plan_of("target", "numpy", ROOT / "docs").files
        if made.path.suffix == ".py" and made.path.name == "__init__.py"
    ]
    assert made == shown
