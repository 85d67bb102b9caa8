"""`check_pass` finds every wrong pass, says what it broke and names the rewrite, and lets right passes through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import gcomp
from gcomp.dims import Constraint, parse
from gcomp.errors import InvalidModelError, UsageError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Op, Rule, Var
from gcomp.passes.base import PassContext
from gcomp.passes.graph.infer_shapes import InferShapes
from gcomp.passes.judging import Reference, judge, sets_for, structure
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.passes.verifying import JudgeEach
from gcomp.reference.inputs import input_sets
from gcomp.reference.sizes import ordinary_sizes
from gcomp.testing.check import check_pass
from tests.unit.testing.wrong_passes import KINDS, WRONG, program_of, wrong


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
    monkeypatch.setattr(type(step), "required_fields", lambda: {"rule"})  # or it would be made without `from_spec`
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
    reference = Reference(program, sets_for(step, program, 0))
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


# ---- what is compared, and how strictly ----


@pytest.mark.parametrize(("claimed", "found"), [(Exactness.E0, True), (Exactness.E1, False)])
def test_a_rewrite_is_held_to_its_own_class_within_a_weaker_pass(claimed: Exactness, found: bool) -> None:
    """max(x, x) is x up to the payload of NaN."""
    rule = Rule("maximum-of-same", Op(hlo.MaximumOp, Var("x"), Var("x")), Var("x"), exactness=claimed)
    step = wrong("same", rule, exactness=Exactness.E1)
    program = Program.parse("""
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.maximum %x, %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}""")
    failure = check_pass(step, program)
    assert (failure is not None) == found
    assert failure is None or (failure.error, failure.rule) == ("E0", "maximum-of-same")


def test_made_inputs_have_the_edges_of_every_type() -> None:
    types = ("f32", "f64", "f16", "bf16", "f8E4M3FN", "f8E8M0FNU", "i8", "ui64", "i4", "i1", "complex<f32>")
    arguments = ", ".join(f"%a{i}: tensor<400x{t}>" for i, t in enumerate(types))
    program = Program.parse(f"func.func @main({arguments}) -> tensor<400xf32> {{ return %a0 : tensor<400xf32> }}")
    (edges,) = input_sets(program, kinds=["edges"])
    arrays = dict(zip(types, edges.arrays, strict=True))
    assert [port.dtype for port in program.inputs()] == list(types)
    for text in ("f32", "f64", "f16", "bf16"):
        wide = arrays[text].astype(np.float64)
        assert np.isnan(wide).any() and np.isinf(wide).any() and (np.signbit(wide) & (wide == 0)).any()
        bits = arrays[text].view(f"u{arrays[text].itemsize}")[np.isnan(wide)]
        assert len(set(bits.tolist())) > 1, "NaN of several payloads"
    assert {-128, 127, -1} <= set(arrays["i8"].tolist()) and arrays["ui64"].max() == 2**64 - 1
    assert np.isnan(arrays["complex<f32>"].imag).any() and np.isinf(arrays["complex<f32>"].real).any()


def test_made_sizes_meet_the_program_s_constraints() -> None:
    program = Program.parse("func.func @main(%x: tensor<?xf32, [\"n\"]>) -> tensor<?xf32, [\"n\"]> "
                            "{ return %x : tensor<?xf32, [\"n\"]> }")  # fmt: skip
    assert ordinary_sizes(program) == {"n": 3}
    program.constraints = [Constraint("le", 65, parse("n"), "a window")]
    assert ordinary_sizes(program)["n"] >= 65
    assert check_pass("canonicalize", program) is None


def test_one_judge_may_serve_several_compilations() -> None:
    """What it remembers of one program must not pass for what another computes."""
    judge_each = JudgeEach()
    for name in ("max and min swapped", "select's cases swapped"):
        program = program_of(name)
        PassManager(parse_pipeline("canonicalize,cse,dce,canonicalize"), [judge_each]).run(program)
        with pytest.raises(VerificationError, match="changed what the program computes"):
            PassManager([*parse_pipeline("cse"), WRONG[name][0]], [judge_each]).run(program_of(name))


@dataclass(frozen=True)
class Forgetful(InferShapes):
    """Infers nothing inside of regions."""

    name: ClassVar[str] = "forgetful"

    def run(self, program: Program, context: PassContext) -> bool:
        nested = [(r, r.type) for op in program.ops() for g in op.regions if op.parent_op() is not None
                  and not isinstance(op, FuncOp) for inner in g.walk() for r in inner.results]  # fmt: skip
        super().run(program, context)
        for value, type in nested:
            object.__setattr__(value, "_type", type)
        return True


def test_a_pass_is_held_to_its_law() -> None:
    """What a pass says that it does is more than that it keeps the meaning: no `?` is left that could be known."""
    program = Program.parse("""
func.func @main(%x: tensor<2x3xf32>, %p: tensor<i1>) -> tensor<?x3xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : (tensor<2x3xf32>) -> tensor<?x3xf32>
    stablehlo.return %1 : tensor<?x3xf32>
  }, {
    stablehlo.return %x : tensor<2x3xf32>
  }) : (tensor<i1>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}""")
    assert check_pass("infer-shapes", program) is None
    failure = check_pass(Forgetful(), program)
    assert failure is not None and failure.kind == "law" and "stablehlo.negate" in failure.message
