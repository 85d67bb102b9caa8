"""Kernels whose sizes are known at the call: they are cut as those of known sizes are."""

from __future__ import annotations

import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.schedules import schedule
from gcomp.testing.tiles import as_kernel

PANELS = """func.func @main(%x: tensor<{x}x40xf32, {dims}"40"]>, %w: tensor<2x40x32xf32>, %b: tensor<60xf32>)
      -> tensor<{x}x60xf32, {dims}"60"]> {{
      %d = stablehlo.dot_general %x, %w, contracting_dims = [{last}] x [1]
        : (tensor<{x}x40xf32, {dims}"40"]>, tensor<2x40x32xf32>) -> tensor<{x}x2x32xf32, {dims}"2", "32"]>
      %r = stablehlo.reshape %d : (tensor<{x}x2x32xf32, {dims}"2", "32"]>) -> tensor<{x}x64xf32, {dims}"64"]>
      %s = stablehlo.slice %r [{all}, 0:60] : (tensor<{x}x64xf32, {dims}"64"]>) -> tensor<{x}x60xf32, {dims}"60"]>
      %c = stablehlo.broadcast_in_dim %b, dims = [{last}] : (tensor<60xf32>) -> tensor<{x}x60xf32, {dims}"60"]>
      %y = stablehlo.add %s, %c : tensor<{x}x60xf32, {dims}"60"]>
      return %y : tensor<{x}x60xf32, {dims}"60"]>
    }}"""
"""A product with panels of weights, some columns of which are filled up, and what follows it."""


@pytest.mark.parametrize("names", [("n",), ("n", "m"), ("n", "m", "k")])
def test_products_of_symbolic_rows_are_products_of_tiles(names: tuple[str, ...]) -> None:
    text = PANELS.format(
        x="x".join("?" * len(names)), dims="[" + "".join(f'"{name}", ' for name in names), last=len(names),
        all=", ".join(f'0:"{name}"' for name in names),
    )  # fmt: skip
    program = Program.parse(text)
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    (step,) = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512)).steps
    assert any(isinstance(op, tile.DotOp) for op in step.kernel.walk())
