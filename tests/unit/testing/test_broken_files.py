"""`gcomp fuzz --what files`: broken files are refused as a whole, and a reader that fails at one is found and named."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gcomp.errors import GcompError, InvalidModelError
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.testing.fuzz import Coverage, Found, Plan
from gcomp.testing.fuzz.broken import BrokenFiles
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.doors import door_of
from gcomp.testing.fuzz.frontend import Frontend
from tests.support.thinning import examples

PLAN = Plan.of(what="files")
COUNT = examples(300)


def first_found(count: int = 200) -> Found:
    door = door_of("files")
    return next(found for number in range(count) if (found := door.attempt(number, 15, Coverage())) is not None)


def test_broken_files_are_read_or_refused() -> None:
    door, coverage = door_of("files"), Coverage()
    assert [found for number in range(COUNT) if (found := door.attempt(number, 15, coverage)) is not None] == []
    assert coverage.judged == COUNT


def test_files_are_broken_and_some_can_be_read() -> None:
    refused = 0
    for number in range(60):
        with suppress(GcompError):
            BrokenFiles().sample(number).load()
            refused -= 1
        refused += 1
    assert 15 < refused < 55


def test_a_number_names_a_file() -> None:
    first, again, other = (BrokenFiles().sample(number) for number in (30, 30, 45))
    assert (first.text, first.about) == (again.text, again.about) and first.text != other.text


def test_files_are_a_part_of_the_door_of_frontends() -> None:
    assert "files" in {Frontend().at(number)[0].name for number in range(len(Frontend.origins))}


def _forgets(self: NodeContext, what: str, why: str = "", *more: Any) -> Any:
    raise LookupError(what)


def _says_nothing(self: NodeContext, what: str, why: str = "", *more: Any) -> Any:
    raise InvalidModelError("It is wrong.")


@pytest.mark.parametrize(("refusal", "said"), [(_forgets, "LookupError"), (_says_nothing, "neither where nor why")])
def test_a_reader_that_fails_at_a_broken_file_is_found(
    refusal: Any, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(NodeContext, "invalid", refusal)
        found = first_found()
        assert found.key[:2] == ("files", "crash") and said in found.message
        path = write_case(found, PLAN, tmp_path)
        assert said in door_of("files").again(path, found.number)
    assert door_of("files").again(path, found.number) == ""
