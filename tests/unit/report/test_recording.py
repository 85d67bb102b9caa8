"""What is noted of passes: differences tell one program from the other, errors are what the reference says."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.report.changes import changes
from gcomp.report.recording import WORST, Recorder, relative_error

PIPELINE = "canonicalize,cse,dce,decompose,canonicalize,fold-constants,dce"
CHAIN = """func.func @main(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<3x2x5xf32>) -> tensor<2x3x5xf32>
  %2 = stablehlo.exponential %1 : tensor<2x3x5xf32>
  return %2 : tensor<2x3x5xf32>
}"""


def recorded(program: Program, pipeline: str = PIPELINE) -> Recorder:
    watch = Recorder(lambda _: None, lambda _: None, errors=True)
    PassManager(parse_pipeline(pipeline), [watch]).run(program)
    watch.finish(program)
    return watch


@pytest.mark.parametrize("text", [CHAIN])
def test_a_difference_gives_both_programs_again(text: str) -> None:
    watch = recorded(Program.parse(text), f"{PIPELINE},fuse,order-for-memory,plan-memory")
    seen = 0
    for record in watch.passes:
        if record.change is not None:
            rows = record.change.difference.rows
            assert [line for sign, line in rows if sign != "+"] == record.change.old.lines
            assert [line for sign, line in rows if sign != "-"] == record.change.new.lines
            seen += 1
    assert seen >= 3


def test_ops_rewrites_errors_and_verdicts_are_there() -> None:
    watch = recorded(Program.parse(CHAIN), "canonicalize")
    (record,) = watch.passes
    assert (record.before.ops, record.after.ops) == (4, 2)
    assert record.after.bytes < record.before.bytes and record.verdict == "valid"
    assert record.rewrites and all("transpose" in where for _, where in record.rewrites)
    assert record.error is not None and 0 < record.error < 1e-6 and record.error == watch.first_error


class Doubles(Pass):
    """A pass that is wrong: exponentials become sines."""

    name: ClassVar[str] = "doubles"

    def run(self, program: Program, context: PassContext) -> bool:
        (op,) = [op for op in program.ops() if isinstance(op, hlo.ExponentialOp)]
        new = hlo.SineOp.of(op.operands[0])
        op.parent_block().insert_op_before(new, op)  # pyright: ignore
        op.results[0].replace_all_uses_with(new.results[0])
        op.detach()
        return True


def test_a_pass_that_changes_the_meaning_is_told_apart() -> None:
    watch = Recorder(lambda _: None, lambda _: None, errors=False)
    PassManager([*parse_pipeline("canonicalize"), Doubles()], [watch]).run(Program.parse(CHAIN))
    good, bad = watch.passes
    assert good.meaning == "same bits" and good.verdict == bad.verdict == "valid"
    assert bad.meaning.startswith("wrong: bits at [") and bad.error is not None and bad.error > 0.01


def test_what_the_reference_would_take_long_for_is_said() -> None:
    big = CHAIN.replace("2x3x5", "2000x3x5000").replace("3x2x5", "3x2000x5000")
    watch = Recorder(lambda _: None, lambda _: None, errors=False)
    PassManager(parse_pipeline("canonicalize"), [watch]).run(Program.parse(big))
    assert "flops in the reference" in watch.error_note
    assert watch.passes[0].error is None and watch.passes[0].meaning == ""


def test_a_change_is_drawn_as_what_went_and_what_came() -> None:
    watch = recorded(Program.parse(CHAIN), "canonicalize")
    change = watch.passes[0].change
    assert change is not None
    (kind, *_) = changes(change, watch.lines)
    titles = [box[0] for box in kind["before"]["n"]]
    assert titles[:3] == ["transpose", "transpose", "exponential"]
    assert [box[1] for box in kind["before"]["n"]][:2] == [1, 1]
    for side in (kind["before"], kind["after"]):
        assert all(side["p"][a][1] < side["p"][b][1] for a, b, _ in side["e"])


def test_equal_changes_are_drawn_once() -> None:
    lines = [f"  %a{i} = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
             f"  %b{i} = stablehlo.transpose %a{i}, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>\n"
             f"  %c{i} = stablehlo.power %b{i}, %x : tensor<2x3xf32>" for i in range(7)]  # fmt: skip
    results = ", ".join(f"%c{i}" for i in range(7))
    types = ", ".join(["tensor<2x3xf32>"] * 7)
    text = (
        f"func.func @main(%x: tensor<2x3xf32>) -> ({types}) {{\n{chr(10).join(lines)}\n  return {results} : {types}\n}}"
    )
    watch = recorded(Program.parse(text), "canonicalize")
    change = watch.passes[0].change
    assert change is not None
    assert [kind["count"] for kind in changes(change, watch.lines)] == [7]


def test_errors_are_of_the_largest_element() -> None:
    exact = np.array([1.0, -4.0, np.inf])
    assert relative_error(exact, np.array([1.5, -4.0, np.inf], np.float32)) == 0.125
    assert relative_error(exact, np.array([1.0, -4.0, np.nan], np.float32)) == WORST
    assert relative_error(np.array([1, 2]), np.array([1, 3])) == WORST


def test_each_value_has_its_error() -> None:
    """The sine of a large number has the error of the number, and what follows has it, too."""
    text = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %big = stablehlo.constant dense<1.0e6> : tensor<8xf32>
      %0 = stablehlo.multiply %x, %big : tensor<8xf32>
      %1 = stablehlo.sine %0 : tensor<8xf32>
      %2 = stablehlo.transpose %1, dims = [0] : (tensor<8xf32>) -> tensor<8xf32>
      return %2 : tensor<8xf32>
    }"""
    watch = recorded(Program.parse(text), "canonicalize")
    (record,) = watch.passes
    errors = {op.name: error for op, error in record.new_errors.items()}
    assert errors["stablehlo.constant"] == 0 and errors["stablehlo.multiply"] < 1e-6
    assert errors["stablehlo.sine"] > 1e-4 and record.error == errors["stablehlo.sine"]
    assert {op.name for op in record.old_errors} == {*errors, "stablehlo.transpose"}
