"""Errors of the user's own code, which gcomp calls: exit status 1, with their file and line, and nothing to report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.passes.registry import all_passes
from tests.unit.cli.commands import Cli

MODEL = """
func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}) -> (tensor<4xf32> {gcomp.name = "y"}) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
PASS = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import Pattern, apply_rewrites

x, y = Var("x"), Var("y")


def broken(x):
    return {BROKEN}  # here


SWAP = Rule("swap", Op(hlo.AddOp, x, y), Op(hlo.AddOp, y, x), where=Calc(broken))


class Square(Pattern):
    name = "square"
    roots = (hlo.AddOp,)

    def rewrite(self, op, b):
        return {REWRITE}  # there


@dataclass(frozen=True)
class Mine(Pass):
    name: ClassVar[str] = "mine"

    def run(self, program, context):
        return apply_rewrites(program, (SWAP, Square()), context)


def make():
    return {MADE}  # then
"""
SOUND = {"BROKEN": "False", "REWRITE": "None", "MADE": "'m.mlir'"}
FAULTS = {
    "a condition": ({"BROKEN": "x.nothing"}, "# here", "AttributeError"),
    "a pattern": ({"REWRITE": "1 / 0"}, "# there", "ZeroDivisionError"),
    "what gcomp is given": ({"REWRITE": "[b.emit(hlo.MultiplyOp)]"}, "# there", "IndexError"),
    "a library": ({"REWRITE": "[np.ones(2) @ np.ones(3)]"}, "# there", "ValueError"),
}
COMMANDS = (
    "opt m.mlir -p mine",
    "opt m.mlir -p mine --check-each",
    "compile m.mlir -p mine -o m.gcomp",
    "compile m.mlir -p mine -o m.gcomp --verify each",
    "bisect m.mlir -p mine",
    "explain m.mlir -p mine",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose name is gcomp's: paths say nothing of whose code it is."""
    (folder := tmp_path / "gcomp").mkdir()
    monkeypatch.chdir(folder)
    (folder / "m.mlir").write_text(MODEL)
    yield folder
    all_passes().pop("mine", None)  # type: ignore[attr-defined]


def write(folder: Path, name: str, fault: dict[str, str]) -> str:
    text = PASS
    for place, code in {**SOUND, **fault}.items():
        text = text.replace(f"{{{place}}}", code)
    (folder / name).write_text(text)
    return text


def line_of(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if mark in line)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_pass_is_the_users(name: str, command: str, cli: Cli, folder: Path) -> None:
    fault, mark, error = FAULTS[name]
    text = write(folder, "mine.py", fault)
    result = cli(*command.split(), "--load", "mine.py")
    said = result.out + result.err
    assert result.code == 1, said
    assert f"mine.py:{line_of(text, mark)}" in said and error in said
    assert "report" not in said and "Traceback" not in said


def test_a_fault_in_what_makes_a_model_is_the_users(cli: Cli, folder: Path) -> None:
    text = write(folder, "made_wrong.py", {"MADE": "{}['missing']"})
    for command in ("compile made_wrong:make", "opt made_wrong:make", "explain made_wrong:make"):
        result = cli(*command.split())
        assert result.code == 1, result.err
        assert f"made_wrong.py:{line_of(text, '# then')}" in result.err and "KeyError: 'missing'" in result.err
        assert "report" not in result.err


def test_a_condition_that_is_no_condition_is_refused_where_the_rule_is(cli: Cli, folder: Path) -> None:
    """Generated code (the `__init__` of Rule, a dataclass) is not the user's."""
    (folder / "mine.py").write_text(
        (text := write(folder, "mine.py", {})).replace("where=Calc(broken)", "where=broken")
    )
    result = cli("opt", "m.mlir", "-p", "mine", "--load", "mine.py")
    assert result.code == 1 and f"mine.py:{line_of(text, 'SWAP =')}" in result.err and "Calc(function)" in result.err


@pytest.mark.parametrize("text", ["1 / 0", "def f(:", "import nothing_of_this_name"])
def test_a_file_that_cannot_be_loaded_is_the_users(text: str, cli: Cli, folder: Path) -> None:
    (folder / "mine.py").write_text(text)
    result = cli("opt", "m.mlir", "--load", "mine.py")
    assert result.code == 1 and "mine.py" in result.err and "report" not in result.err


def test_the_next_step_loads_what_was_loaded(cli: Cli, folder: Path) -> None:
    """What bisect prints runs as it is printed."""
    write(folder, "mine.py", FAULTS["a pattern"][0])
    said = cli("bisect", "m.mlir", "-p", "mine", "--load", "mine.py")
    (line,) = [line for line in said.out.splitlines() if line.startswith("make it small:")]
    assert "--load mine.py" in line
    all_passes().pop("mine", None)  # type: ignore[attr-defined]
    assert cli(*shlex.split(line.partition("gcomp ")[2])).code == 0


ENDLESS = """
from dataclasses import dataclass
from typing import ClassVar

from gcomp.ir import stablehlo as hlo
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Swap(Pattern):
    name = "swap-operands"
    roots = (hlo.AddOp,)

    def rewrite(self, op, b):
        return [b.add(op.rhs, op.lhs)]


@dataclass(frozen=True)
class Mine(Pass):
    name: ClassVar[str] = "endless"

    def run(self, program, context):
        return apply_rewrites(program, (Swap(),), context)
"""


def test_rewrites_without_end_are_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MODEL)
    (tmp_path / "endless.py").write_text(ENDLESS)
    for words in (("opt", "m.mlir"), ("opt", "m.mlir", "--check-each"), ("bisect", "m.mlir")):
        result = cli(*words, "-p", "endless", "--load", "endless.py")
        said = result.out + result.err
        assert result.code == 1 and "not end" in said and "swap-operands" in said, said
    all_passes().pop("endless")  # type: ignore[attr-defined]
