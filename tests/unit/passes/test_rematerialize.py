"""rematerialize: what runs again, what never does, and numbers of bytes."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.analysis.machines import machine_named
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.buffer import arena
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.rematerialize import bytes_in, within_budget
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import PlannedExecutor
from gcomp.targets.base import target_named

SORT = """ "stablehlo.sort"({}) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }}) : (tensor<64x64xf32>) -> tensor<64x64xf32>"""
WAITING = f"""
func.func @main(%x: tensor<64xf32> {{gcomp.name = "x"}}) -> tensor<64x64xf32> {{
  %wide = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %view = stablehlo.reshape %wide : (tensor<64x64xf32>) -> tensor<4096xf32>
  %0 = stablehlo.negate %wide : tensor<64x64xf32>
  %1 = {SORT.format("%0")}
  %2 = stablehlo.subtract %0, %1 : tensor<64x64xf32>
  %3 = {SORT.format("%2")}
  %4 = stablehlo.reshape %view : (tensor<4096xf32>) -> tensor<64x64xf32>
  %5 = stablehlo.subtract %3, %4 : tensor<64x64xf32>
  %6 = {SORT.format("%5")}
  return %6 : tensor<64x64xf32>
}}"""
ON_GPUS = f"""
func.func @main(%x: tensor<64x4xf32>, %w: tensor<4x64xf32>) -> tensor<64xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>
  %1 = {SORT.format("%0")}
  %2 = stablehlo.sine %1 : tensor<64x64xf32>
  %3 = {SORT.format("%2")}
  %4 = stablehlo.subtract %3, %0 : tensor<64x64xf32>
  %5 = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1]
    : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %6 : tensor<64xf32>
}}"""
X = np.linspace(-2, 2, 64, dtype=np.float32)
SIZE = 64 * 64 * 4


def test_ops_and_views_of_them_are_made_again() -> None:
    program = Program.parse(WAITING)
    expected = interpret(program, [X])
    report = within_budget(program, 2 * SIZE, machine_named("cpu"))
    program.verify()
    assert (report.before, report.after, report.missing) == (3 * SIZE, 2 * SIZE, 0)
    assert [op.name for op in report.again] == ["stablehlo.broadcast_in_dim"]
    assert report.seconds > 0
    PassManager(parse_pipeline("plan-memory")).run(program)
    assert PlannedExecutor(program).run([X])[0].tobytes() == expected[0].tobytes()


def test_a_budget_that_cannot_be_kept_is_missed_by_what_is_said() -> None:
    program = Program.parse(WAITING)
    report = within_budget(program, SIZE, machine_named("cpu"))
    assert report.after == 2 * SIZE
    assert report.missing == SIZE
    assert within_budget(program, SIZE, machine_named("cpu")).again == []


@pytest.mark.parametrize(("budget", "taken", "launches"), [(None, 3 * SIZE, 4), (40_000, 2 * SIZE + 256, 5)])
def test_a_gpu_takes_no_more_than_the_budget(budget: int | None, taken: int, launches: int) -> None:
    program = Program.parse(ON_GPUS)
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline(budget))).run(program)
    assert arena(program.module) == taken
    assert sum(isinstance(op, LaunchOp) for op in program.block.ops) == launches


def test_what_takes_more_than_the_budget_is_refused_before_kernels_are_compiled() -> None:
    with pytest.raises(UnsupportedError, match="33,024 bytes, 640 more than the budget"):
        gcomp.compile(ON_GPUS, target="triton:sm_90", memory_budget=2 * SIZE - 384)


def test_who_plans_memory_takes_the_budget() -> None:
    with pytest.raises(UsageError, match="there is no memory budget on the target xla:cpu"):
        gcomp.compile(ON_GPUS, target="xla:cpu", memory_budget="2GiB")
    with pytest.raises(UsageError, match="a pipeline says itself"):
        gcomp.compile(ON_GPUS, target="triton:sm_90", pipeline="dce", memory_budget="2GiB")


def test_random_numbers_are_drawn_once() -> None:
    drawn = "stablehlo.rng %lo, %hi, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>)"
    text = WAITING.replace(
        "stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<64xf32>)",
        f"""stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %lo = stablehlo.constant dense<0.0> : tensor<f32>
  %hi = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<64> : tensor<2xi64>
  %drawn = {drawn}""",
    ).replace("%wide :", "%drawn :")
    assert within_budget(Program.parse(text), 2 * SIZE, machine_named("cpu")).again == []


def test_a_kernel_makes_only_what_is_read_again() -> None:
    """Of two results the first is read at once and the second late: the copy makes the second alone."""
    text = WAITING.replace(
        "%wide = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>",
        """%0, %wide = kernel.launch loop (%a = %x) : (tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
             %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
             %c = stablehlo.negate %b : tensor<64x64xf32>
             %d = stablehlo.sine %b : tensor<64x64xf32>
             stablehlo.return %c, %d : tensor<64x64xf32>, tensor<64x64xf32>
           }""",
    ).replace("  %0 = stablehlo.negate %wide : tensor<64x64xf32>\n", "")
    program = Program.parse(text)
    expected = interpret(program, [X])
    (again,) = within_budget(program, 2 * SIZE, machine_named("cpu")).again
    program.verify()
    assert isinstance(again, LaunchOp)
    assert [op.name.partition(".")[2] for op in again.block.ops] == ["broadcast_in_dim", "sine", "return"]
    assert interpret(program, [X])[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize(
    ("text", "count"),
    [("4096", 4096), (4096, 4096), ("2GiB", 2 << 30), ("1.5KB", 1500), ("512 KiB", 512 << 10), ("7B", 7), ("0", 0)],
)
def test_numbers_of_bytes(text: str, count: int) -> None:
    assert bytes_in(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1e9", "2TiB", "1.5.2MB", "9" * 40, "two"])
def test_what_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no number of bytes"):
        bytes_in(text)
