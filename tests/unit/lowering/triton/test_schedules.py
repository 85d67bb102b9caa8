"""Schedules over sizes and settings: static and symbolic, empty and one, whole blocks and partial ones."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import i32, i64

from gcomp.dims import Range, Ranges
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings, schedule
from gcomp.lowering.tiles.schedules.kernel import KernelWriter
from gcomp.testing.tiles import as_kernel, check_kernel, settings_for

Array = np.ndarray[Any, Any]

LOOP = """func.func @main(%x: tensor<?x7xf32, ["n", "7"]>) -> tensor<7x?xf32, ["7", "n"]> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x7xf32, ["n", "7"]>) -> tensor<7x?xf32, ["7", "n"]>
  %r = stablehlo.negate %t : tensor<7x?xf32, ["7", "n"]>
  return %r : tensor<7x?xf32, ["7", "n"]>
}"""
SOFTMAX = """func.func @main(%x: tensor<3x?xf32, ["3", "n"]>) -> tensor<3x?xf32, ["3", "n"]> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [1] :
      (tensor<3x?xf32, ["3", "n"]>, tensor<f32>) -> tensor<3xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>) -> tensor<3x?xf32, ["3", "n"]>
  %s = stablehlo.subtract %x, %b : tensor<3x?xf32, ["3", "n"]>
  %e = stablehlo.exponential %s : tensor<3x?xf32, ["3", "n"]>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] :
      (tensor<3x?xf32, ["3", "n"]>, tensor<f32>) -> tensor<3xf32>
  %d = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<3xf32>) -> tensor<3x?xf32, ["3", "n"]>
  %r = stablehlo.divide %e, %d : tensor<3x?xf32, ["3", "n"]>
  return %r : tensor<3x?xf32, ["3", "n"]>
}"""
PRODUCT = """func.func @main(%x: tensor<?x5xf32, ["n", "5"]>) -> tensor<?x?xf32, ["n", "n"]> {
  %r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] :
      (tensor<?x5xf32, ["n", "5"]>, tensor<?x5xf32, ["n", "5"]>) -> tensor<?x?xf32, ["n", "n"]>
  return %r : tensor<?x?xf32, ["n", "n"]>
}"""
CASES = {"loop": (LOOP, (-1, 7)), "reduction": (SOFTMAX, (3, -1)), "matmul": (PRODUCT, (-1, 5))}


def parsed(text: str) -> Program:
    program = Program.parse(text)
    program.ranges = Ranges({"n": Range(0, 100)})
    return program


def launch_of(program: Program, kind: str) -> LaunchOp:
    return cast(LaunchOp, next(op for op in as_kernel(program, kind).block.ops if isinstance(op, LaunchOp)))


@pytest.mark.parametrize("n", [0, 1, 2, 16, 33])
@pytest.mark.parametrize("kind", CASES)
def test_one_kernel_serves_all_sizes(kind: str, n: int) -> None:
    text, shape = CASES[kind]
    program = parsed(text)
    x = np.random.default_rng(n).standard_normal([n if size < 0 else size for size in shape]).astype(np.float32)
    for settings in (None, *(settings_for(launch_of(program, kind), Random(seed)) for seed in range(4))):
        assert check_kernel(program, kind, [x], settings) == []


@pytest.mark.parametrize(("block", "grid"), [(1, 21), (4, 6), (1024, 1)])
def test_a_grid_covers_what_there_is(block: int, grid: int) -> None:
    text = "func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {\n%r = stablehlo.negate %x : tensor<3x7xf32>\n"
    program = Program.parse(text + "return %r : tensor<3x7xf32>\n}")
    scheduled = schedule(launch_of(program, "loop"), "kernel", program.ranges, Settings({"block": block}))
    assert [step.grid for step in scheduled.steps] == [(grid,)]


def test_nothing_to_compute_is_no_kernel() -> None:
    text = "func.func @main(%x: tensor<0x7xf32>) -> tensor<0x7xf32> {\n%r = stablehlo.negate %x : tensor<0x7xf32>\n"
    program = Program.parse(text + "return %r : tensor<0x7xf32>\n}")
    assert schedule(launch_of(program, "loop"), "kernel", program.ranges).steps == ()


@pytest.mark.parametrize(("most", "index"), [(1000, i32), ((1 << 31) - 1, i64), (None, i64)])
def test_positions_are_as_wide_as_tensors_need(most: int | None, index: object) -> None:
    """Blocks reach beyond the last element: just below 2 ** 31 elements, an i32 would be negative there."""
    program = Program.parse(
        'func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {\n'
        '%r = stablehlo.negate %x : tensor<?xf32, ["n"]>\nreturn %r : tensor<?xf32, ["n"]>\n}'
    )
    launch = launch_of(program, "loop")
    assert KernelWriter(launch, "kernel", Ranges({"n": Range(0, most)})).b.index == index
