"""Results that lie elsewhere than those of the op that a kernel is built around: nothing is computed twice."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.schedules import schedule
from gcomp.testing.tiles import as_kernel, check_kernel

UNFOLD = """%m = stablehlo.transpose %v, dims = [0, 3, 1, 2] : (tensor<1x4x8x6xf32>) -> tensor<1x6x4x8xf32>
      %r = stablehlo.reshape %m : (tensor<1x6x4x8xf32>) -> tensor<12x2x4x2xf32>
      %t = stablehlo.transpose %r, dims = [0, 2, 1, 3] : (tensor<12x2x4x2xf32>) -> tensor<12x4x2x2xf32>
      %u = stablehlo.reshape %t : (tensor<12x4x2x2xf32>) -> tensor<1x6x8x4xf32>
      %y = stablehlo.transpose %u, dims = [0, 3, 2, 1] : (tensor<1x6x8x4xf32>) -> tensor<1x4x8x6xf32>
      return %y : tensor<1x4x8x6xf32>"""
"""Patches of two rows and two columns."""

PRODUCT = f"""func.func @main(%x: tensor<1x4x8x5xf32>, %w: tensor<5x6xf32>, %b: tensor<1x4x8x6xf32>)
      -> tensor<1x4x8x6xf32> {{
      %d = stablehlo.dot_general %x, %w, contracting_dims = [3] x [0]
        : (tensor<1x4x8x5xf32>, tensor<5x6xf32>) -> tensor<1x4x8x6xf32>
      %v = stablehlo.add %d, %b : tensor<1x4x8x6xf32>
      {UNFOLD}
    }}"""

MEANS = f"""func.func @main(%x: tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [3]
        : (tensor<1x4x8x6xf32>, tensor<f32>) -> tensor<1x4x8xf32>
      %b = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2] : (tensor<1x4x8xf32>) -> tensor<1x4x8x6xf32>
      %v = stablehlo.subtract %x, %b : tensor<1x4x8x6xf32>
      {UNFOLD}
    }}"""


@pytest.mark.parametrize(
    ("kind", "text", "sum_op"), [("matmul", PRODUCT, tile.DotOp), ("reduction", MEANS, combining.ReduceOp)]
)
def test_sums_are_computed_once(kind: str, text: str, sum_op: type[Operation]) -> None:
    program = Program.parse(text)
    (launch,) = (op for op in as_kernel(program, kind).ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 256)
    (step,) = schedule(launch, "kernel", program.ranges, settings).steps
    ops = list(step.kernel.walk())
    assert sum(isinstance(op, sum_op) for op in ops) == 1
    assert not any(isinstance(op, tile.ForOp) for op in ops)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape_of(x)).astype(np.float32) for x in program.block.args]
    assert check_kernel(program, kind, inputs, settings) == []
