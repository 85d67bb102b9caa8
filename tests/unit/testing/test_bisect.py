"""Bisecting names the first pass and rewrite that change the answer, and the first op that makes a NaN."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.passes.base import PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.testing.bisect import bisect_pipeline, describe, find_nonfinite, first_op
from tests.unit.testing.wrong_passes import WRONG, program_of

WRONG_MEANINGS = [
    "transposes composed the wrong way round", "a slice forgets an offset", "max and min swapped",
    "select's cases swapped", "a padding on the wrong side", "cse that ignores attributes",
]  # fmt: skip


@pytest.mark.parametrize("name", WRONG_MEANINGS)
def test_the_first_wrong_pass_and_rewrite_are_found(name: str) -> None:
    step, rule = WRONG[name]
    program = program_of(name)
    text = program.text(locations=True)
    passes = [*parse_pipeline("fold-constants,dce"), step, *parse_pipeline("canonicalize,cse")]
    told: list[int] = []
    culprit = bisect_pipeline(program, passes, report=lambda position, _: told.append(position))
    assert culprit is not None and culprit.position == 2 and culprit.step is step and told == [0, 1, 2]
    assert culprit.failure.rule == rule and culprit.failure.where.endswith(" at the pattern")
    assert program.text(locations=True) == text
    assert all(sign in culprit.change for sign in ("-    %", "+    %")) or "-    %" in culprit.change

    def wrong_at(limit: int) -> bool:
        copy, context = program.clone(), PassContext(bisect_limit=limit)
        for one in passes[:3]:
            one.run(copy, context)
        return bisect_pipeline(program, [_Fixed(copy)]) is not None

    assert wrong_at(culprit.applications) and not wrong_at(culprit.applications - 1), "--bisect-limit shows the same"


class _Fixed:
    """Stands for a pass that replaces a program by another."""

    name = "fixed"
    exactness = WRONG["max and min swapped"][0].exactness
    places_values = False

    def __init__(self, result: Program) -> None:
        self.result = result

    def spec(self) -> str:
        return self.name

    def run(self, program: Program, context: PassContext) -> bool:
        program.module = self.result.module.clone()
        return True

    def broken_law(self, program: Program) -> None:
        return None


def test_right_passes_are_acquitted() -> None:
    passes = parse_pipeline("infer-shapes,canonicalize,cse,fold-constants,dce")
    assert bisect_pipeline(program_of("max and min swapped"), passes) is None


def test_passes_that_only_lie_do_not_change_the_answer() -> None:
    for name in ("a pass that hides a change", "a pass that never settles"):
        assert bisect_pipeline(program_of(name), [WRONG[name][0]]) is None


def test_crashes_are_found() -> None:
    name = "a crash"
    culprit = bisect_pipeline(program_of(name), [*parse_pipeline("cse"), WRONG[name][0]])
    assert culprit is not None and (culprit.position, culprit.failure.kind) == (1, "crash")
    assert culprit.failure.rule == WRONG[name][1]


def test_inputs_decide() -> None:
    name = "x * 0 is 0 for floats"
    program = program_of(name)
    ones = {p.name: np.ones(p.shape, bool if p.dtype == "i1" else np.float32) for p in program.inputs()}
    nans = {p.name: ones[p.name] if p.dtype == "i1" else ones[p.name] * np.float32("nan") for p in program.inputs()}
    assert bisect_pipeline(program, [WRONG[name][0]], nans) is not None
    with pytest.raises(UsageError, match="not known"):
        bisect_pipeline(program, [WRONG[name][0]], {**ones, "z": ones["a"]})


# ---- NaN ----

NANS = """
func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}, %n: tensor<i32> {gcomp.name = "n"}) -> tensor<4xf32> {
  %w = gcomp.weight @scale : tensor<4xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %low : tensor<4xf32> loc("relu")
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %0) : tensor<i32>, tensor<4xf32>
  cond {
    %k = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %k : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.multiply %s, %w : tensor<4xf32> loc("grow")
    stablehlo.return %j, %d : tensor<i32>, tensor<4xf32>
  }
  %1 = stablehlo.subtract %r#1, %r#1 : tensor<4xf32> loc("center")
  %2 = stablehlo.log %1 : tensor<4xf32> loc("last")
  return %2 : tensor<4xf32>
}
"""


def nans(x: list[float], n: int, scale: float = 1e20) -> dict[str, tuple[str, list[str]]]:
    program = Program.parse(NANS)
    program.weights.add("scale", np.full(4, scale, np.float32))
    found = find_nonfinite(program, [np.array(x, np.float32), np.array(n, np.int32)])
    return {origin.what: (origin.where, [str(o) for o in origin.operands]) for origin in found}


def test_the_op_that_makes_the_first_nan_is_named() -> None:
    """x grows past the largest f32 in the loop's second turn; inf - inf is NaN after it."""
    found = nans([1, 2, 3, 4], 2)
    assert found["inf"] == (
        "stablehlo.multiply at grow",
        ["f32[4] in 1e+20 .. 4e+20", "f32[4] in 1e+20 .. 1e+20"],
    )
    assert found["NaN"] == ("stablehlo.subtract at center", ["f32[4], 4 inf", "f32[4], 4 inf"])


def test_constants_that_are_infinite_are_meant() -> None:
    assert set(nans([1, 2, 3, 4], 0)) == {"inf"}
    assert nans([1, 2, 3, 4], 0)["inf"] == ("stablehlo.log at last", ["f32[4] in 0 .. 0"])


def test_nan_that_comes_in_is_told_of_its_source() -> None:
    assert nans([1, float("nan"), 3, 4], 1)["NaN"] == ("the input 'x'", [])
    assert "gcomp.weight" in nans([1, 2, 3, 4], 1, float("nan"))["NaN"][0]


def test_programs_without_any_have_no_origin() -> None:
    program = Program.parse("func.func @main(%x: tensor<3xbf16>) -> tensor<3xbf16> { return %x : tensor<3xbf16> }")
    assert find_nonfinite(program) == []
    assert str(describe(np.array([1 + 1j, np.nan]))) == "complex<f64>[2] in 1.41421 .. 1.41421, 1 NaN"


# ---- targets ----


def test_the_first_op_that_is_computed_otherwise_is_found() -> None:
    program = program_of("max and min swapped")
    wrong = program.block.first_op
    for _ in range(9):
        assert wrong is not None
        wrong = wrong.next_op
    asked: list[int] = []

    def has_op(part: Program) -> bool:
        asked.append(1)
        return any(op.location == wrong.location and op.name == wrong.name for op in part.ops())  # type: ignore[union-attr]

    found = first_op(program, has_op)
    assert found is not None and found[1] == 0
    assert found[0].location == wrong.location and found[0].name == wrong.name  # type: ignore[union-attr]
    assert len(asked) <= 7
    assert first_op(program, lambda part: False) is None


def test_the_search_for_an_op_ends_with_its_time() -> None:
    program = program_of("max and min swapped")
    deadline = Deadline(0)
    found = first_op(program, lambda part: True, deadline)
    assert found is not None and found[1] > 5, "so many ops before it may be the first as well"
