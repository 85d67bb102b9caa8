"""What stands behind a verdict: edges and sizes are tried on users' models, and the report says which were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from gcomp.errors import VerificationError
from gcomp.passes.base import Pass
from gcomp.passes.judging import Work
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import all_passes, load_passes, parse_pipeline
from gcomp.passes.verifying import Follower, JudgeEach
from gcomp.sources import import_model
from gcomp.testing.bisect import bisect_pipeline
from gcomp.testing.check import check_pass
from tests.verdicts import FILES, WRONG, Wrong


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    known = cast("dict[str, type[Pass]]", all_passes())
    names = [name for file in FILES for name in load_passes(file)]
    yield
    for name in names:
        del known[name]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_every_judge_refutes_what_ordinary_inputs_do_not_show(wrong: Wrong) -> None:
    program = wrong.parsed()
    failure = check_pass(wrong.name, program)
    culprit = bisect_pipeline(program, parse_pipeline(wrong.name))
    assert failure is not None and culprit is not None
    assert failure.rule == culprit.failure.rule == wrong.name and culprit.applications == 1
    with pytest.raises(VerificationError, match="changed what the program computes") as caught:
        PassManager(parse_pipeline(wrong.name), [JudgeEach()]).run(program)
    assert f"the rewrite {wrong.name}" in (caught.value.where or "")


def test_sizes_that_a_pass_compares_are_tried_on_both_sides() -> None:
    """The rewrite is wrong from n = 701 on, where nothing else changes, and asks whether n <= 700."""
    program = import_model(WRONG_FROM_701)
    failure = check_pass("size-at-most", program)
    assert failure is not None and failure.kind == "meaning" and "n = 701" in failure.message, failure
    follower = Follower()
    assert bisect_pipeline(program, parse_pipeline("size-at-most"), follower=follower) is not None
    assert 701 in follower.compared.sizes["n"]


WRONG_FROM_701 = """
func.func @main(%x: tensor<?xf32, ["n"]> {gcomp.name = "x"}) -> tensor<i64> {
  %0 = gcomp.dim "n" : tensor<i64>
  %1 = stablehlo.constant dense<700> : tensor<i64>
  %2 = stablehlo.minimum %0, %1 : tensor<i64>
  return %2 : tensor<i64>
}"""


def test_rewrites_that_a_pass_took_back_are_not_counted() -> None:
    program, follower = import_model(WRONG_FROM_701), Follower()
    (step,) = parse_pipeline("canonicalize")
    assert follower.judge(step, follower.reference(program.clone()), program, Work(changed=False), 2) is None
    assert "0 of which changed the program (0 rewrites)" in follower.told()


def test_a_beginning_that_is_ignored_shows_in_rows_of_one_value() -> None:
    """No row of ordinary or mixed values is less than the least finite number."""
    program = import_model("""
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %low = stablehlo.constant dense<0xFF7FFFFF> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}""")
    found = [check_pass("maximum-without-init", program, seed=seed) for seed in range(6)]
    assert any(failure is not None and failure.kind == "meaning" for failure in found)


def test_what_was_compared_is_told() -> None:
    program = import_model("""
func.func @main(%x: tensor<?xf32, ["n"]> {gcomp.name = "x"}, %i: tensor<3xi32> {gcomp.name = "i"})
    -> (tensor<?xf32, ["n"]>, tensor<3xi32>) {
  %0 = stablehlo.negate %x : tensor<?xf32, ["n"]>
  %1 = stablehlo.negate %0 : tensor<?xf32, ["n"]>
  return %1, %i : tensor<?xf32, ["n"]>, tensor<3xi32>
}""", dims={"n": "0..9"})  # fmt: skip
    judge = JudgeEach()
    PassManager(parse_pipeline("canonicalize,dce"), [judge]).run(program)
    compared = judge.follower.compared
    assert (compared.passes, compared.changing, compared.rewrites) == (2, 1, 1)
    assert {"plain", "edges", "whole", "integers", "mixed"} == set(compared.sets)
    assert {0, 1, 3, 9} <= compared.sizes["n"] and not compared.left_out
    told = judge.follower.told()
    assert "2 passes, 1 of which changed the program (1 rewrite)" in told and "n = 0, 1, " in told and "0..9" in told


def test_inputs_that_would_take_too_long_are_left_out_and_said() -> None:
    program = import_model(SIZES, dims={"n": f"1..{1 << 24}"})
    judge = JudgeEach(seconds=0.05)
    PassManager(parse_pipeline("canonicalize"), [judge]).run(program)
    assert 1 << 24 not in judge.follower.compared.sizes["n"]
    assert "left out" in judge.follower.told() and "it would take too long" in judge.follower.told()


SIZES = """
func.func @main(%x: tensor<?xf32, ["n"]> {gcomp.name = "x"}) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.negate %x : tensor<?xf32, ["n"]>
  %1 = stablehlo.negate %0 : tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}"""
