"""`gcomp report` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcomp.cli.reporting import titles
from tests.unit.cli.commands import Cli

PROGRAM = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %x : tensor<4x8xf32>
  %1 = stablehlo.tanh %x : tensor<4x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_page_is_written_and_named(cli: Cli, folder: Path) -> None:
    (folder / "m.mlir").write_text(PROGRAM)
    done = cli("report", "m.mlir")
    assert done.code == 0, done.err
    assert "m.report.html" in done.out
    page = (folder / "m.report.html").read_text("utf-8")
    assert "<title>m.mlir</title>" in page and 'id="data"' in page and "src=" not in page.replace("data:,", "")


def test_two_pipelines_or_two_models_are_shown_beside_each_other(cli: Cli, folder: Path) -> None:
    (folder / "m.mlir").write_text(PROGRAM)
    (folder / "n.mlir").write_text(PROGRAM.replace("tanh %x", "sine %x", 1))
    for options in (("--against", "dce"), ("--diff", "n.mlir"), ("--profile",), ("--errors", "-p", "cse")):
        done = cli("report", "m.mlir", "-o", "page.html", *options)
        assert done.code == 0, done.err
        assert (folder / "page.html").stat().st_size > 10_000


def test_what_cannot_be_reported_is_said(cli: Cli, folder: Path) -> None:
    (folder / "m.mlir").write_text(PROGRAM)
    assert cli("compile", "m.mlir", "-o", "m.gcomp").code == 0
    for arguments, said in (
        (("m.gcomp",), "compiled already"), (("none.onnx",), "no file none.onnx"),
        (("m.mlir", "-o", "nowhere/x.html"), "no folder nowhere"),
        (("m.mlir", "--diff", "m.mlir", "--against", "cse"), "exclude each other"),
    ):  # fmt: skip
        done = cli("report", *arguments)
        assert done.code == 2 and said in done.err


def test_titles_tell_files_apart() -> None:
    assert titles(Path("a/m.onnx"), None)[0] == "m.onnx"
    assert titles(Path("/x/a/m.onnx"), Path("/x/b/m.onnx")) == ("a/m.onnx", "b/m.onnx")
