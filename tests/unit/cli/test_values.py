"""Options and arguments have the values that typer gives them, and pydantic is loaded for few of these."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from gcomp.cli.app import Command
from gcomp.cli.values import _HARD, _convert_one

GIVEN: list[list[str]] = [
    ["a.onnx"],
    ["a.onnx", "-o", "b"],
    ["a.onnx", "--name", "x", "--name", "y"],
    ["a.onnx", "--folder", "f", "--folder", "g"],
    ["a.onnx", "--pair", "x", "y"],
    ["a.onnx", "--count", "3", "--rate", "0.5", "--flag"],
    ["a.onnx", "--name", ""],
    [],
    ["a.onnx", "--count", "0"],
    ["a.onnx", "--count", "many"],
    ["a.onnx", "--pair", "x"],
    ["--help"],
]


def run(command: type | None, given: list[str]) -> tuple[int, str, list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command(cls=command)  # type: ignore[arg-type]
    def compile(
        model: Path,
        output: Annotated[Path, typer.Option("-o")] = Path("out"),
        name: list[str] | None = None,
        folder: list[Path] | None = None,
        pair: tuple[str, Path] | None = None,
        count: Annotated[int, typer.Option(min=1)] = 1,
        rate: float | None = None,
        flag: bool = False,
    ) -> None:
        seen.append(dict(locals()))

    result = CliRunner().invoke(app, given)
    for values in seen:
        values.pop("seen", None)
    return result.exit_code, result.output, seen


@pytest.mark.parametrize("given", GIVEN, ids=" ".join)
def test_values_are_typer_s(given: list[str]) -> None:
    assert run(Command, given) == run(None, given)


def test_what_exists_and_cannot_be_read_is_left_to_typer(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").write_text("")
    assert _convert_one(Path, str(tmp_path / "a")) == tmp_path / "a"
    monkeypatch.setattr("os.access", lambda *_: False)
    assert _convert_one(Path, str(tmp_path / "a")) is _HARD
    assert _convert_one(Path, "not there") == Path("not there")
