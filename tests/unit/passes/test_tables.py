"""The generated pages are up to date, and what they say of exactness holds together."""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType

import pytest

from gcomp.exactness import Exactness
from tools import pass_table, rules_table

ORDER = list(Exactness)


@pytest.mark.parametrize("tool", [rules_table, pass_table], ids=["docs/generated/rules.md", "docs/generated/passes.md"])
def test_page_is_up_to_date(tool: ModuleType) -> None:
    assert tool.PAGE.read_text("utf-8") == tool.render(), f"stale: run python -m {tool.__name__}"


def test_names_of_rewrites_are_unique_and_kebab_case() -> None:
    lists = [rules_table.rewrites_of(cls) for cls in rules_table.own_passes().values()]
    names = Counter(rewrite.name for rules, patterns in lists for rewrite in (*rules, *patterns))
    assert not [name for name, count in names.items() if count > 1]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("name", rules_table.own_passes())
def test_a_pass_is_as_inexact_as_its_weakest_rewrite(name: str) -> None:
    cls = rules_table.own_passes()[name]
    rules, patterns = rules_table.rewrites_of(cls)
    classes = [rewrite.exactness for rewrite in (*rules, *patterns)]
    assert not classes or cls.exactness is max(classes, key=ORDER.index)


@pytest.mark.parametrize("name", rules_table.own_passes())
def test_a_pass_states_its_law(name: str) -> None:
    law = __import__(rules_table.own_passes()[name].__module__, fromlist=["_"]).__doc__ or ""
    assert re.match(r"[A-Z].*\.$", " ".join(law.split("\n\n")[0].split()))
