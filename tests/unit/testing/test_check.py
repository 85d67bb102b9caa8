"""`check_pass` finds every wrong pass, says what it broke and names the rewrite, and lets right passes through."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.errors import InvalidModelError, UsageError, VerificationError
from gcomp.ir.program import Program
from gcomp.passes.judging import Reference, judge, made_inputs, structure
from gcomp.passes.registry import all_passes
from gcomp.testing.check import check_pass
from tests.unit.testing.wrong_passes import KINDS, WRONG, program_of


@pytest.mark.parametrize("name", WRONG)
def test_wrong_passes_are_found_and_blamed(name: str) -> None:
    step, rule = WRONG[name]
    program = program_of(name)
    before = program.text(locations=True)
    failure = check_pass(step, program)
    assert failure is not None
    assert (failure.kind, failure.rule) == (KINDS.get(name, "meaning"), rule)
    assert failure.step == str(step.spec()) and failure.step in str(failure) and rule in str(failure)
    if rule and name != "a pass that hides a change":
        assert failure.where.endswith(" at the pattern"), "its location names the op that the rewrite was applied to"
        assert failure.fingerprint()[1:] == (failure.step, rule, failure.where.split()[0])
    assert program.text(locations=True) == before


@pytest.mark.parametrize("name", WRONG)
def test_right_passes_are_not_blamed(name: str) -> None:
    program = program_of(name, seed=1)
    for step in ("canonicalize", "cse", "dce", "fold-constants", "infer-shapes"):
        assert check_pass(step, program) is None
    assert check_pass("infer-shapes,canonicalize,cse,fold-constants,canonicalize,cse,dce", program) is None


def test_the_blame_is_the_first_application_that_breaks_the_meaning() -> None:
    name = "subtraction taken to commute"
    failure = check_pass(WRONG[name][0], program_of(name))
    assert failure is not None and failure.application > 1, "right rewrites came before it"


def test_a_pass_may_be_wrong_only_on_given_inputs() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<2xf32> {gcomp.name = "x"}) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2xf32>
  %1 = stablehlo.sqrt %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}""")
    step, _ = WRONG["sqrt of a square is its root"]
    positive, mixed = np.array([1, 4], np.float32), np.array([1, -4], np.float32)
    assert check_pass(step, program, [positive]) is None
    failure = check_pass(step, program, {"x": mixed})
    assert failure is not None and "expected 4.0, got -4.0" in failure.message and "x = [1.0, -4.0]" in failure.message
    assert check_pass(step, program, lambda p: [mixed]) == failure
    with pytest.raises(UsageError, match="'x' is missing"):
        check_pass(step, program, {"y": mixed})


def test_a_pipeline_is_checked_pass_by_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    step, rule = WRONG["max and min swapped"]
    monkeypatch.setitem(all_passes(), "clamp", type(step))  # type: ignore[arg-type]
    monkeypatch.setattr(type(step), "from_spec", lambda spec: step)
    failure = check_pass("canonicalize,clamp,dce", program_of("max and min swapped"))
    assert failure is not None and (failure.step, failure.rule) == ("clamp", rule)


def test_what_the_reference_cannot_run_is_not_the_pass_s_fault() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = gcomp.weight @lost : tensor<4xf32>
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = stablehlo.add %1, %w : tensor<4xf32>
  return %2 : tensor<4xf32>
}""")
    with pytest.raises(InvalidModelError, match="@lost"):
        check_pass("canonicalize", program)


def test_reference_results_serve_any_number_of_passes() -> None:
    program = program_of("max and min swapped")
    step, _ = WRONG["max and min swapped"]
    reference = Reference(program, made_inputs(step, program, 0))
    assert judge(step, reference) == judge(step, reference) == check_pass(step, program)


def test_the_structure_of_a_program_tells_what_changed() -> None:
    program = program_of("cse that ignores attributes")
    same, other = program.clone(), program.clone()
    assert structure(same) == structure(program)
    other.block.first_op.operands = (other.block.args[0],)  # type: ignore[union-attr]
    assert structure(other) != structure(program)
    named = program.clone()
    named.block.args[0].name_hint = "renamed"
    assert structure(named) == structure(program), "names mean nothing"


# ---- on a user's model, during compilation ----


def compile_wrong(name: str, monkeypatch: pytest.MonkeyPatch, **options: object) -> VerificationError:
    step, _ = WRONG[name]
    monkeypatch.setattr("gcomp.driver.parse_pipeline", lambda text: [step])
    with pytest.raises(VerificationError) as caught:
        gcomp.compile(program_of(name), verify="each", **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("name", ["max and min swapped", "a padding on the wrong side", "cse that ignores attributes"])
def test_a_compilation_names_the_rewrite_and_the_op(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = compile_wrong(name, monkeypatch)
    assert WRONG[name][0].name in error.what and error.where is not None
    assert f"the rewrite {WRONG[name][1]} (application " in error.where and error.where.endswith(" at the pattern")


def test_a_compilation_compares_on_given_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "x * 0 is 0 for floats"  # log of a number below zero is NaN
    program = program_of(name)
    inputs = {port.name: np.full(port.shape, np.nan, np.float32) for port in program.inputs() if port.dtype == "f32"}
    inputs["p"] = np.zeros((4, 4, 4), bool)
    inputs = {port.name: inputs[port.name] for port in program.inputs()}
    assert "expected nan" in (compile_wrong(name, monkeypatch, verify_inputs=inputs).why or "")
