"""Whole artifacts with their real kernels, run by Triton's interpreter where the runtime launches them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.ir.program import Program
from gcomp.runtime.model import Model
from tests.unit.runtime.cuda.interpreted import run
from tests.unit.runtime.cuda.models import WEIGHT, plan_of_two, rows, two


@pytest.mark.parametrize("count", [3, 8])
def test_an_artifact_computes_what_its_kernels_say(count: int, tmp_path: Path) -> None:
    path = tmp_path / "two.gcomp"
    Model(plan_of_two(), {"w": WEIGHT}).save(path)
    found = run(path, {"x0": rows(count)}, tmp_path, calls=3)
    np.testing.assert_allclose(found["y0"], two(rows(count)), rtol=1e-5)


PROGRAM = """
module attributes {gcomp.ranges = {n = "1..6"}} {
func.func public @main(%x: tensor<?x16xf32, ["n", "16"]> {gcomp.name = "x"})
    -> (tensor<?x16xf32, ["n", "16"]> {gcomp.name = "y"}, tensor<i32> {gcomp.name = "turns"}) {
  %w = gcomp.weight @w : tensor<16x16xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<?x16xf32, ["n", "16"]>):
    %four = stablehlo.constant dense<4> : tensor<i32>
    %more = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<?x16xf32, ["n", "16"]>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<?x16xf32, ["n", "16"]>, tensor<16x16xf32>) -> tensor<?x16xf32, ["n", "16"]>
    %t = stablehlo.tanh %p : tensor<?x16xf32, ["n", "16"]>
    stablehlo.return %next, %t : tensor<i32>, tensor<?x16xf32, ["n", "16"]>
  }) : (tensor<i32>, tensor<?x16xf32, ["n", "16"]>) -> (tensor<i32>, tensor<?x16xf32, ["n", "16"]>)
  func.return %r#1, %r#0 : tensor<?x16xf32, ["n", "16"]>, tensor<i32>
}
}
"""


def test_a_compiled_program_computes_what_it_says(tmp_path: Path) -> None:
    """From a program with a loop and a symbolic size to the results of the artifact that is made of it."""
    program = Program.parse(PROGRAM)
    w = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
    program.weights.add("w", w)
    path = tmp_path / "loop.gcomp"
    gcomp.compile(program, target="triton:sm_90").save(path)
    x = np.random.default_rng(2).standard_normal((5, 16)).astype(np.float32)
    found = run(path, {"x": x}, tmp_path, calls=2)
    for _ in range(4):
        x = np.tanh(x @ w)
    assert found["turns"] == 4
    np.testing.assert_allclose(found["y"], x, atol=1e-4)
