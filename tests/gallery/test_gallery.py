"""`gcomp try` gives the right verdict on twenty wrong passes and ten right ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gallery import RIGHT, WRONG, Exhibit, exhibits
from tests.gallery.__main__ import PAGE, SMALL, tried


def test_there_are_thirty() -> None:
    found = exhibits()
    assert len(WRONG) == len({*WRONG}) == 20 and sum(one.is_right for one in found) == 10
    assert all(Path(one.file).exists() for one in found) and RIGHT.exists()


def test_the_page_shows_them_all_with_the_right_verdict() -> None:
    rows = dict(
        re.findall(r"^\| \[?([\w-]+)\]?.*? \| (wrong|right|unknown|misbehaves) \|", PAGE.read_text("utf-8"), re.M)
    )
    assert rows == {one.name: "right" if one.is_right else "wrong" for one in exhibits()}


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", exhibits(), ids=lambda one: one.name)
def test_the_verdict_is_right(exhibit: Exhibit) -> None:
    shown = tried(exhibit)
    assert shown.is_right, (shown.verdict, shown.why, shown.seconds)
    if not exhibit.is_right:
        assert shown.ops is not None and shown.ops <= SMALL + 2, shown.text
