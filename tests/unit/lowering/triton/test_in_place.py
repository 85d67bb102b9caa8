"""Kernels whose results lie over operands: what a schedule reads after it wrote is found, and by values alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.ir import SSAValue

from gcomp.analysis import overwriting
from gcomp.ir.buffer import set_arena, set_places
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.lowering.tiles.schedules.kernel import KernelWriter
from gcomp.reference.planned import PlannedExecutor
from gcomp.testing.tiles import as_kernel, check_kernel, in_place

TWO_PASSES = """
func.func @main(%x: tensor<4x8xf32> {gcomp.name = "x"}, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.add %x, %2 : tensor<4x8xf32>
  %4 = stablehlo.multiply %x, %2 : tensor<4x8xf32>
  return %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>
}"""
"""The sums take a pass over %y; both results are written in the one after it, each from %x at its own place."""
SHIFTED = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
TWO_RESULTS = """
func.func @main(%x: tensor<8xf32> {gcomp.name = "x"}, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %x : tensor<8xf32>
  %1 = stablehlo.multiply %x, %y : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}"""
SMALL = Settings({"persistent": 0, "columns": 2, "rows": 1, "block": 1, "pieces": 1})


def kernel_of(program: Program) -> LaunchOp:
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    return launch


def inputs_of(program: Program) -> list[np.ndarray]:
    return [np.arange(1, 1 + np.prod(p.shape), dtype=np.float32).reshape(p.shape) for p in program.inputs()]  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "kind"), [(TWO_PASSES, "reduction"), (TWO_RESULTS, "loop"), (SHIFTED, "loop")])
def test_right_schedules_stay_right_in_place(text: str, kind: str) -> None:
    program = Program.parse(text)
    assert check_kernel(program, kind, inputs_of(program), SMALL) == []


def test_a_result_over_places_that_others_read_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def anything(*_: object) -> frozenset[int]:
        return frozenset(range(9))

    program = Program.parse(SHIFTED)
    monkeypatch.setattr(overwriting, "_at_their_own_place", anything)
    assert in_place(kernel_of(as_kernel(program, "loop")))
    found = check_kernel(program, "loop", inputs_of(program), SMALL)
    assert found
    assert "in-place" in found[0].reason


def test_a_result_that_is_written_before_another_reads_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> Sequence[SSAValue]:
        return []

    program = Program.parse(TWO_RESULTS)
    monkeypatch.setattr(KernelWriter, "_below", nothing)
    # The plan is right, and the arena shows nothing: what is wrong is the order in the kernel.
    planned = as_kernel(program, "loop")
    launch = kernel_of(planned)
    assert (0, 0) in in_place(launch)
    planned.donate({"x"})
    set_places(launch, [0, 0], [0, -1])
    set_arena(planned.module, 256)
    PlannedExecutor(planned).run(inputs_of(program))
    found = check_kernel(program, "loop", inputs_of(program), SMALL)
    assert found
    assert "in-place" in found[0].reason
