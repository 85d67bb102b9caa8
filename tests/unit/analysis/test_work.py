"""How much work ops are."""

from __future__ import annotations

import pytest

from gcomp.analysis.work import (
    COSTED,
    LARGEST_NOMINAL,
    Nominal,
    anchor_flops,
    flops_formula,
    flops_of,
    flops_per_element,
)
from gcomp.dims import symbol
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import grow

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

CONVOLUTION = """
func.func @main(%x: tensor<?x3x8x8xf32, ["n", "3", "8", "8"]>, %w: tensor<8x3x3x3xf32>)
    -> tensor<?x8x6x6xf32, ["n", "8", "6", "6"]> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
    (tensor<?x3x8x8xf32, ["n", "3", "8", "8"]>, tensor<8x3x3x3xf32>)
    -> tensor<?x8x6x6xf32, ["n", "8", "6", "6"]>
  return %0 : tensor<?x8x6x6xf32, ["n", "8", "6", "6"]>
}
"""


def test_a_composite_is_as_much_work_as_its_decomposition() -> None:
    program = Program.parse(ATTENTION)
    composite = next(op for op in program.ops() if isinstance(op, hlo.CompositeOp))
    exponential = next(op for op in program.ops() if isinstance(op, hlo.ExponentialOp))
    scores = 2 * 16 * 32
    expected = 2 * (2 * scores * 8) + flops_per_element(exponential) * scores
    assert anchor_flops(composite, Nominal(program.ranges)) == expected


@pytest.mark.parametrize("seed", range(60))
def test_work_in_the_sizes_of_a_call_is_that_in_nominal_sizes(seed: int) -> None:
    program = grow(Seeded(seed), 15, symbolic=1.0).program
    nominal = Nominal(program.ranges)
    for op in program.ops():
        if isinstance(op, GraphOp) and type(op) in COSTED:
            assert nominal.size(flops_formula(op, nominal)) == flops_of(op, nominal), op.name


def test_work_of_a_symbolic_convolution_follows_the_batch() -> None:
    program = Program.parse(CONVOLUTION)
    nominal = Nominal(program.ranges)
    (convolution,) = (op for op in program.ops() if isinstance(op, hlo.ConvolutionOp))
    assert flops_formula(convolution, nominal) == 2 * symbol("n") * 8 * 6 * 6 * 27
    assert flops_of(convolution, nominal) == 2 * LARGEST_NOMINAL * 8 * 6 * 6 * 27
