"""How much work ops are."""

from __future__ import annotations

from gcomp.analysis.work import Nominal, anchor_flops, flops_per_element
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program

ATTENTION = """
func.func @main(%q: tensor<2x16x8xf32>, %k: tensor<2x32x8xf32>) -> tensor<2x16x8xf32> {
  %0 = stablehlo.composite "gcomp.attention" %q, %k, %k {decomposition = @attention} :
    (tensor<2x16x8xf32>, tensor<2x32x8xf32>, tensor<2x32x8xf32>) -> tensor<2x16x8xf32>
  return %0 : tensor<2x16x8xf32>
}
func.func private @attention(%q: tensor<2x16x8xf32>, %k: tensor<2x32x8xf32>, %v: tensor<2x32x8xf32>)
    -> tensor<2x16x8xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] :
    (tensor<2x16x8xf32>, tensor<2x32x8xf32>) -> tensor<2x16x32xf32>
  %1 = stablehlo.exponential %0 : tensor<2x16x32xf32>
  %2 = stablehlo.dot_general %1, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] :
    (tensor<2x16x32xf32>, tensor<2x32x8xf32>) -> tensor<2x16x8xf32>
  return %2 : tensor<2x16x8xf32>
}
"""


def test_a_composite_is_as_much_work_as_its_decomposition() -> None:
    program = Program.parse(ATTENTION)
    composite = next(op for op in program.ops() if isinstance(op, hlo.CompositeOp))
    exponential = next(op for op in program.ops() if isinstance(op, hlo.ExponentialOp))
    scores = 2 * 16 * 32
    expected = 2 * (2 * scores * 8) + flops_per_element(exponential) * scores
    assert anchor_flops(composite, Nominal(program.ranges)) == expected
