"""docs/guides/adding_an_op.md tells the truth: an op that is added to its letter lacks nothing, and its tests pass."""

from __future__ import annotations

import re
import shlex

import pytest

from gcomp.making.pages import steps_of
from tests.support.trees import ROOT, Tree, copied

PAGE = (ROOT / "docs" / "guides" / "adding_an_op.md").read_text("utf-8")


def apply(tree: Tree, page: str) -> list[str]:
    """Do what a page says, in its order: each block belongs to the file named last. The commands that are left."""
    commands = list[str]()
    for step in steps_of(page):
        if step.language == "diff":
            tree.patch(step.path, step.text)
        elif step.language == "python":
            tree.write(step.path, step.text)
        else:
            commands += step.text.splitlines()
    return commands


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree."""
    return copied(tmp_path_factory.mktemp("tree"))


def test_an_op_made_to_the_letter_lacks_nothing(tree: Tree) -> None:
    before = tree.run("python", "-m", "tools.audit", "gcomp.softplus", expect=2)
    assert "there is no op gcomp.softplus" in before
    form, head, others = PAGE.partition("## Its meaning\n")
    assert apply(tree, form) == []
    bare = tree.run("python", "-m", "tools.audit", "gcomp.softplus", expect=1)
    for facet in ("meaning", "error bound", "derivative", "tile", "samples"):
        assert re.search(rf"{facet} +MISSING: add it to ", bare), bare
    commands = apply(tree, head + others)
    assert len(commands) == 2
    said = tree.run("python", "-m", "tools.audit", "gcomp.softplus")
    assert "4 ulp" in said and "partials" in said and "MISSING" not in said
    for command in commands:
        tree.run(*shlex.split(command))
