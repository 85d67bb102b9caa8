"""Planned programs, run kernel by kernel by the evaluator of tile programs."""

from __future__ import annotations

import numpy as np

from gcomp.ir.program import Program
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named
from gcomp.testing.targets import TargetCheck

UNREAD = """
func.func @main(%x: tensor<1x3xui64>, %u: tensor<1x2xui64>, %at: tensor<i16>, %v: tensor<4x2xui64>,
    %y: tensor<1x3xui64>)
    -> (tensor<1x3xui64>, tensor<1x3xui64>) {
  %a = stablehlo.dynamic_update_slice %x, %u, %at, %at
    : (tensor<1x3xui64>, tensor<1x2xui64>, tensor<i16>, tensor<i16>) -> tensor<1x3xui64>
  %none = stablehlo.constant dense<> : tensor<0x4xi64>
  %b = "stablehlo.scatter"(%y, %none, %v) <{indices_are_sorted = false, unique_indices = false,
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0]>}> ({
  ^bb0(%p: tensor<ui64>, %q: tensor<ui64>):
    %m = stablehlo.minimum %p, %q : tensor<ui64>
    stablehlo.return %m : tensor<ui64>
  }) : (tensor<1x3xui64>, tensor<0x4xi64>, tensor<4x2xui64>) -> tensor<1x3xui64>
  func.return %a, %b : tensor<1x3xui64>, tensor<1x3xui64>
}
"""
"""Both updates begin with a copy of three numbers: one kernel, which reads nothing of what else it is given."""


def test_kernels_of_equal_code_may_be_given_other_types_where_they_do_not_read() -> None:
    inputs = [np.arange(3, dtype="u8")[None], np.full((1, 2), 7, "u8"), np.asarray(0, "i2"), np.ones((4, 2), "u8")]
    inputs.append(inputs[0] + 5)
    with TargetCheck("cpu", parse_pipeline(target_named("cpu").pipeline())) as check:
        assert check.failure(Program.parse(UNREAD), inputs) is None
