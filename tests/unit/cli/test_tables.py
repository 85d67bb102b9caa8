"""In a terminal of 80 columns, tables keep names and numbers; long places lose their middle."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from gcomp.cli.tables import FittedTable, elide
from tests.unit.cli.commands import Cli

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(table: FittedTable, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_both_ends_of_a_text_are_kept() -> None:
    assert elide("abcdefghij", 10) == "abcdefghij"
    assert elide("abcdefghij", 9) == "abcd…ghij"
    assert elide("abcdefghij", 1) == "…"


@pytest.mark.parametrize("width", [240, 100, 80, 60])
def test_numbers_are_whole_and_places_give_way(width: int) -> None:
    table = FittedTable("name", "bytes in", "reason", "where", names=("name",), places=("where",), prose=("reason",),
                        numbers=("bytes in",))  # fmt: skip
    place = "/layers.0/" + "x" * 150 + "/MatMul"
    table.add("convolution_add", "1,234,567,890", "a reason of several words", place)
    text = shown(table, width)
    assert max(map(len, text.splitlines())) <= width
    assert "1,234,567,890" in text and "convolution_add" in text
    assert (place in text) == (width == 240)
    assert width == 240 or re.search(r"/la\S*…\S*tMul", text)
    assert place in shown(table, 240)  # a narrow look leaves nothing behind


def test_markup_in_a_name_is_text() -> None:
    table = FittedTable("name", "shape", names=("name",))
    table.add("[red]x", "[3, 4]")
    assert "[red]x" in shown(table, 80) and "[3, 4]" in shown(table, 80)


def test_commands_at_80_columns_show_the_numbers_of_wide_ones(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    compile = ("compile", "digits.onnx", "-t", "triton:sm_90", "--dim", "batch=32", "-o", "d.gcomp", "--timing")
    commands = (("explain", "digits.onnx", "--dim", "batch=32"), ("inspect", "d.gcomp"))
    monkeypatch.setenv("COLUMNS", "80")
    result = cli(*compile)
    assert result.code == 0 and "order-for-memory" in result.err and "between passes: checks, weights" in result.err
    for command in commands:
        looks: list[str] = []
        for columns in ("240", "80"):
            monkeypatch.setenv("COLUMNS", columns)
            result = cli(*command)
            assert result.code == 0, result.err
            looks.append(result.out)
        wide, narrow = (re.findall(r"(?<![\w,.])\d+(?:,\d{3})+(?![\w,.])", look) for look in looks)
        assert wide == narrow and len(wide) > 20
        assert max(map(len, looks[1].splitlines())) <= 80
