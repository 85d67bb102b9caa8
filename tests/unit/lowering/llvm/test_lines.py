"""Sums across rows that lie beside each other in lines: blocks of them end with a line, and read neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.schedules import schedule
from gcomp.reference.interpreter import interpret
from gcomp.runtime.cpu.variants import Variant
from gcomp.testing.machine import Kernels, all_differences
from gcomp.testing.tiles import as_kernel
from tests.support.cpu import HERE, of_each_width


@pytest.mark.parametrize("variant", of_each_width(HERE), ids=lambda v: v.name)
@pytest.mark.parametrize(
    ("lines", "line", "grid"), [(5, 100, 2), (3, 64, None), (2, 130, 3), (4, 7, None), (1, 90, None)]
)
def test_sums_of_lines_are_the_graphs(variant: Variant, lines: int, line: int, grid: int | None) -> None:
    program = as_kernel(Program.parse(f"""
func.func @main(%x: tensor<{lines}x9x{line}xf32>) -> (tensor<{lines}x{line}xf32>, tensor<{lines}x9x{line}xf32>) {{
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<{lines}x9x{line}xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<{lines}x9x{line}xf32>, tensor<f32>) -> tensor<{lines}x{line}xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 2] : (tensor<{lines}x{line}xf32>) -> tensor<{lines}x9x{line}xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<{lines}x9x{line}xf32>
  return %1, %3 : tensor<{lines}x{line}xf32>, tensor<{lines}x9x{line}xf32>
}}"""), "reduction")  # fmt: skip
    launch = next(op for op in program.ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    scheduled = schedule(launch, "kernel", program.ranges, settings)
    assert scheduled.steps[0].grid == (
        (grid, lines) if grid else (-(-lines * line // min(64, 1 << (lines * line - 1).bit_length())),)
    )
    x = np.random.default_rng(0).integers(-9, 9, (lines, 9, line)).astype(np.float32)
    kernels = Kernels(scheduled, variant.bits, variant.words)
    kernels.compile(variant)
    found = kernels.run(launch, [x], {})
    assert all_differences(execute(launch, kernels.scheduled, [x], {}), found) == []
    for old, new in zip(interpret(program, [x]), found, strict=True):
        assert (old == new.reshape(old.shape)).all()
