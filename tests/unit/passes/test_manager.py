"""The manager holds passes to their word, and writes down what is needed to repeat a crash."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pytest

from gcomp.errors import InvalidModelError, UserCodeError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Op, Rule, Var
from gcomp.passes import registry
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, PrintAfterChange, Timing, VerifyEach
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.rewriting import apply_rewrites

TEXT = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = stablehlo.subtract %1, %b : tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""
x, y = Var("x"), Var("y")


@dataclass(frozen=True)
class Crash(Pass):
    """Divides by zero at the first subtraction."""

    name: ClassVar[str] = "crash"
    by: int = 0

    def run(self, program: Program, context: PassContext) -> bool:
        return any(op.name == "stablehlo.subtract" and 1 // self.by for op in program.ops())


@dataclass(frozen=True)
class Swap(Pass):
    """Wrong: `x - y` is not `y - x`."""

    name: ClassVar[str] = "swap"

    def run(self, program: Program, context: PassContext) -> bool:
        op = next(op for op in program.ops() if op.name == "stablehlo.subtract")
        op.operands = (op.operands[1], op.operands[0])
        return True


@dataclass(frozen=True)
class Reassociate(Pass):
    """`-(-x) - y` as `-(y + -x)`: right for reals, and wrong by the sign of a zero."""

    name: ClassVar[str] = "reassociate"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        rhs = Op(hlo.NegateOp, Op(hlo.AddOp, y, Op(hlo.NegateOp, x)))
        return apply_rewrites(program, [Rule("r", Op(hlo.SubtractOp, x, y), rhs)], context)


@dataclass(frozen=True)
class Liar(Swap):
    """Changes the program and does not say so."""

    name: ClassVar[str] = "liar"

    def run(self, program: Program, context: PassContext) -> bool:
        return not super().run(program, context)


@dataclass(frozen=True)
class Breaker(Pass):
    """Leaves an op that its verifier refuses."""

    name: ClassVar[str] = "breaker"

    def run(self, program: Program, context: PassContext) -> bool:
        op = next(op for op in program.ops() if op.name == "stablehlo.subtract")
        op.operands = (op.operands[0],)
        return True


@dataclass(frozen=True)
class Refuse(Pass):
    """Finds the model at fault."""

    name: ClassVar[str] = "refuse"

    def run(self, program: Program, context: PassContext) -> bool:
        raise InvalidModelError("shapes do not fit")


@pytest.fixture
def with_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry, with the pass `crash`."""
    monkeypatch.setitem(cast("dict[str, type[Pass]]", registry.all_passes()), "crash", Crash)


@pytest.mark.usefixtures("with_crash")
def test_a_crash_leaves_a_reproducer_that_crashes_alike(tmp_path: Path) -> None:
    path, program = tmp_path / "m.crash.mlir", Program.parse(TEXT)
    passes = parse_pipeline("canonicalize,crash{by=0},dce")
    with pytest.raises(UserCodeError, match="the pass crash failed") as first:
        PassManager(passes, reproducer=path).run(program)
    assert str(path) in str(first.value) and "ZeroDivisionError" in str(first.value)

    text = path.read_text("utf-8")
    command = re.match(r'// gcomp opt (\S+) -p "(.*)"\n', text)
    assert command is not None and command[1] == str(path)
    rest = parse_pipeline(command[2])
    assert [step.name for step in rest] == ["crash", "dce"]
    with pytest.raises(UserCodeError) as second:
        PassManager(rest).run(Program.parse(text))
    assert (second.value.what, second.value.why) == (first.value.what, first.value.why)


@pytest.mark.usefixtures("with_crash")
def test_a_reproducer_repeats_the_limits_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "m.crash.mlir"
    twice = TEXT.replace("%1, %b", "%1, %3").replace(
        "  %2 = ", "  %4 = stablehlo.negate %b : tensor<4xf32>\n  %3 = stablehlo.negate %4 : tensor<4xf32>\n  %2 = "
    )
    program, context = Program.parse(twice), PassContext(bisect_limit=1)
    with pytest.raises(UserCodeError):
        PassManager(parse_pipeline("canonicalize,crash{by=0}"), reproducer=path).run(program, context)
    text = path.read_text("utf-8")
    assert context.applications == 1
    assert text.splitlines()[0].endswith(' -p "crash" --bisect-limit 0')
    assert Program.parse(text).text() == program.text()


def test_a_crash_is_told_also_where_nothing_can_be_written(tmp_path: Path) -> None:
    passes, program = parse_pipeline("cse"), Program.parse(TEXT)
    with pytest.raises(UserCodeError, match="failed"):
        PassManager([*passes, Crash(by=0)], reproducer=tmp_path / "missing" / "crash.mlir").run(program)


def test_no_reproducer_unless_a_pass_crashes(tmp_path: Path) -> None:
    path = tmp_path / "m.crash.mlir"
    PassManager(parse_pipeline("canonicalize,cse,dce"), reproducer=path).run(Program.parse(TEXT))
    assert not path.exists()


def test_an_error_of_the_model_is_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "m.crash.mlir"
    with pytest.raises(InvalidModelError):
        PassManager([Refuse()], reproducer=path).run(Program.parse(TEXT))
    assert not path.exists()


def test_a_pass_that_hides_a_change_is_caught() -> None:
    with pytest.raises(UserCodeError, match="liar changed the program and did not say so"):
        PassManager([Liar()], [CheckUnchanged()]).run(Program.parse(TEXT))


def test_a_pass_that_leaves_invalid_ir_is_caught() -> None:
    with pytest.raises(VerificationError, match="after the pass breaker"):
        PassManager([Breaker()], [VerifyEach()]).run(Program.parse(TEXT))


def test_a_wrong_pass_is_caught_by_its_meaning() -> None:
    with pytest.raises(VerificationError, match="the pass swap changed what the program computes"):
        PassManager([Swap()], [VerifyEach(), CheckEach(MeaningCheck())]).run(Program.parse(TEXT))


def test_a_pass_that_claims_too_much_exactness_is_caught() -> None:
    def zeros(program: Program) -> list[np.ndarray]:
        return [np.zeros(port.shape, np.float32) for port in program.inputs()]

    check = MeaningCheck(inputs=zeros)
    with pytest.raises(VerificationError, match="E0: bit-identical"):
        PassManager([Reassociate()], [CheckEach(check)]).run(Program.parse(TEXT))


def test_a_pass_is_not_run_again_where_nothing_changed() -> None:
    timing = Timing()
    PassManager(parse_pipeline("canonicalize,cse,canonicalize,dce,cse"), [timing]).run(Program.parse(TEXT))
    assert [(name, changed) for name, _, _, changed in timing.rows] == [
        ("canonicalize", True), ("cse", False), ("dce", False),
    ]  # fmt: skip


def test_the_program_is_printed_after_each_change() -> None:
    printed: list[str] = []
    program = Program.parse(TEXT)
    PassManager(parse_pipeline("canonicalize,cse"), [PrintAfterChange(printed.append)]).run(program)
    assert printed == [f"// ----- after canonicalize\n{program.text()}"]
