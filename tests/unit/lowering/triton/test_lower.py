"""Whole programs as plans for GPUs: buffers, order and control flow, on the CPU, beside the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gcomp.analysis.overwriting import Overwriting
from gcomp.dims import parse, symbol
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.tiles.schedules import Settings
from gcomp.lowering.tiles.segments import Lowering
from gcomp.lowering.triton.choose import make_kernels
from gcomp.lowering.triton.lower import drafts, lower
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.runtime.steps import Launch
from gcomp.targets.base import target_named
from gcomp.testing.plans import PlanRunner

Array = np.ndarray[Any, Any]
N = symbol("n")


def planned(text: str) -> Program:
    """A program after the pipeline of GPUs."""
    program = Program.parse(text)
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(program)
    return program


def agree(text: str, inputs: Sequence[Array]) -> PlanRunner:
    """Run a program's plan and the reference on the same inputs."""
    expected = interpret(Program.parse(text), inputs)
    runner = PlanRunner(planned(text))
    for old, new in zip(expected, runner.run(inputs), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_allclose(new.astype(np.float64), np.asarray(old, np.float64), rtol=1e-5, atol=1e-6)
    return runner


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def kinds(runner: PlanRunner) -> list[str]:
    """What the last device segment that ran does."""
    return [type(step).__name__ for step in runner.lowering.draft.steps]


def test_a_chain_of_kernels() -> None:
    runner = agree(
        """
        func.func @main(%a: tensor<5x7xf32>, %b: tensor<7x6xf32>) -> (tensor<5x6xf32>, tensor<5xf32>) {
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<5x7xf32>, tensor<7x6xf32>) -> tensor<5x6xf32>
          %1 = stablehlo.tanh %0 : tensor<5x6xf32>
          %2 = stablehlo.constant dense<0.0> : tensor<f32>
          %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<5x6xf32>, tensor<f32>) -> tensor<5xf32>
          func.return %1, %3 : tensor<5x6xf32>, tensor<5xf32>
        }""",  # noqa: E501
        [floats(5, 7), floats(7, 6, seed=1)],
    )
    # Results go where the caller wants them, without a copy.
    assert kinds(runner) == ["Launch", "Launch"]


OVER = """module attributes {buffer.arena = 512 : i64} {
func.func @main(%a: tensor<6x6xf32>, %c: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %x = kernel.launch matmul "square" (%a_1 = %a) attributes {buffer.places = [0 : i64]} : (tensor<6x6xf32>) -> tensor<6x6xf32> {
    %0 = stablehlo.dot_general %a_1, %a_1, contracting_dims = [1] x [0] : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    stablehlo.return %0 : tensor<6x6xf32>
  }
  %p, %q = kernel.launch loop "both" (%c_1 = %c, %x_1 = %x) attributes {buffer.places = [0 : i64, 256 : i64]} : (tensor<6x6xf32>, tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
    %0 = stablehlo.tanh %c_1 : tensor<6x6xf32>
    %1 = stablehlo.multiply %0, %x_1 : tensor<6x6xf32>
    stablehlo.return %0, %1 : tensor<6x6xf32>, tensor<6x6xf32>
  }
  %r = kernel.launch matmul "product" (%p_1 = %p, %q_1 = %q) attributes {buffer.places = [0 : i64]} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> {
    %0 = stablehlo.dot_general %p_1, %q_1, contracting_dims = [1] x [0] : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    stablehlo.return %0 : tensor<6x6xf32>
  }
  return %r : tensor<6x6xf32>
}
}"""  # noqa: E501
"""The first result of a kernel lies over an operand that its second one needs."""


def test_what_a_result_lies_over_is_read_before() -> None:
    program, inputs = Program.parse(OVER), [floats(6, 6), floats(6, 6, seed=1)]
    assert Overwriting(next(op for op in program.ops() if op.results and len(op.results) == 2)).may(1, 0)
    np.testing.assert_allclose(PlanRunner(program).run(inputs)[0], interpret(program, inputs)[0], rtol=1e-5, atol=1e-6)


def test_launches_say_what_they_cost_at_all_sizes() -> None:
    """Of a sum in pieces the first kernel has the flops; both have the pieces among their bytes."""
    program = planned("""module attributes {gcomp.ranges = {n = "1..1000"}} {
        func.func public @main(%x: tensor<?x64xf32, ["n", "64"]>, %y: tensor<64x8xf32>)
            -> tensor<?x8xf32, ["n", "8"]> {
          %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
              (tensor<?x64xf32, ["n", "64"]>, tensor<64x8xf32>) -> tensor<?x8xf32, ["n", "8"]>
          func.return %r : tensor<?x8xf32, ["n", "8"]>
        }
        }""")
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    operands, result = 4 * 64 * 8 + 64 * 4 * N, 8 * 4 * N
    for pieces, first in ((2, operands + 2 * result), (1, operands + result)):
        settings = Settings({"rows": 16, "columns": 16, "terms": 16, "pieces": pieces})
        (segment,) = drafts(program, {form_of(launch): make_kernels(launch, program.ranges, settings)})
        assert isinstance(segment, Lowering)
        steps = [step for step in segment.draft.steps if isinstance(step, Launch)]
        assert [parse(step.flops) for step in steps] == [2 * 64 * 8 * N, 0][:pieces]
        assert [parse(step.bytes) for step in steps] == [first, 3 * result][:pieces]


def test_what_is_returned_as_it_is() -> None:
    """Inputs, constants, positions, the same value twice, and a view of it."""
    runner = agree(
        """
        func.func @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<4xi32>, tensor<2x3xf32>, tensor<6xf32>, tensor<f32>) {
          %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
          %1 = stablehlo.iota dim = 0 : tensor<4xi32>
          %2 = stablehlo.negate %a : tensor<2x3xf32>
          %3 = stablehlo.reshape %2 : (tensor<2x3xf32>) -> tensor<6xf32>
          %4 = stablehlo.constant dense<7.0> : tensor<f32>
          func.return %a, %0, %1, %2, %3, %4 : tensor<2x3xf32>, tensor<3xf32>, tensor<4xi32>, tensor<2x3xf32>, tensor<6xf32>, tensor<f32>
        }""",  # noqa: E501
        [floats(2, 3)],
    )
    assert {*kinds(runner)} == {"Launch", "Copy"}


LOOP = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%s = %x, %i = %zero) : tensor<4xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.sine %s : tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %t, %j : tensor<4xf32>, tensor<i32>
  }
  func.return %r#0, %r#1 : tensor<4xf32>, tensor<i32>
}"""


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loops(count: int) -> None:
    assert "While" in kinds(agree(LOOP, [floats(4), np.array(count, np.int32)]))


CASE = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%n) ({
    %a = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }, {
    %b = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


@pytest.mark.parametrize("number", [0, 1, 2, 3, -1])
def test_cases(number: int) -> None:
    assert "Case" in kinds(agree(CASE, [floats(4), np.array(number, np.int32)]))


IF = """
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %r = "stablehlo.if"(%p) ({
    %a = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


@pytest.mark.parametrize("chosen", [False, True])
def test_branches(chosen: bool) -> None:
    agree(IF, [floats(4), np.array(chosen)])


DYNAMIC = """
module attributes {gcomp.ranges = {n = "1..64"}} {
  func.func @main(%x: tensor<?x9xf32, ["n", "9"]>, %w: tensor<9x5xf32>) -> tensor<?x5xf32, ["n", "5"]> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<?x9xf32, ["n", "9"]>, tensor<9x5xf32>) -> tensor<?x5xf32, ["n", "5"]>
    %1 = stablehlo.tanh %0 : tensor<?x5xf32, ["n", "5"]>
    func.return %1 : tensor<?x5xf32, ["n", "5"]>
  }
}"""


@pytest.mark.parametrize("n", [1, 16, 33, 64])
def test_one_plan_for_all_sizes(n: int) -> None:
    agree(DYNAMIC, [floats(n, 9), floats(9, 5, seed=1)])


def test_equal_layers_share_a_kernel() -> None:
    layer = "%{0} = stablehlo.dot_general %{1}, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"  # noqa: E501
    body = "\n".join(layer.format(f"v{i + 1}", f"v{i}") for i in range(3))
    text = f"func.func @main(%v0: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {{\n{body}\nfunc.return %v3 : tensor<4x4xf32>\n}}"  # noqa: E501
    runner = agree(text, [floats(4, 4), floats(4, 4, seed=1)])
    assert kinds(runner) == ["Launch"] * 3
    assert len(runner.lowering.draft.kernels) == 1


def test_the_plan_is_needed() -> None:
    with pytest.raises(VerificationError, match="no memory plan"):
        lower(Program.parse(LOOP), "triton:sm_90")


def test_what_has_no_kernel_is_refused_by_name() -> None:
    program = planned("""
    func.func @main(%x: tensor<3x3xf32>, %p: tensor<i1>) -> tensor<3x3xf32> {
      %r = "stablehlo.if"(%p) ({
        %0 = stablehlo.cholesky %x, lower = true : tensor<3x3xf32>
        stablehlo.return %0 : tensor<3x3xf32>
      }, {
        stablehlo.return %x : tensor<3x3xf32>
      }) : (tensor<i1>) -> tensor<3x3xf32>
      func.return %r : tensor<3x3xf32>
    }""")
    with pytest.raises(UnsupportedError, match="cholesky does not run in branches and loops"):
        drafts(program)


LATE = """
module attributes {gcomp.ranges = {n = "0..32"}} {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<2xf32>) -> (tensor<?x2xf32, ["n", "2"]>, tensor<4x8xf32>, tensor<2xf32>, tensor<4x8xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<4x8xf32>
    %0 = stablehlo.maximum %x, %zero : tensor<4x8xf32>
    %1 = stablehlo.exponential %0 : tensor<4x8xf32>
    %2 = "gcomp.host"(%0) <{function = "nonzero", config = {}}> : (tensor<4x8xf32>) -> tensor<2x?xi64, ["2", "n"]>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x?xi64, ["2", "n"]>) -> tensor<?x2xi64, ["n", "2"]>
    %4 = stablehlo.convert %3 : (tensor<?x2xi64, ["n", "2"]>) -> tensor<?x2xf32, ["n", "2"]>
    %5 = stablehlo.constant dense<0.5> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<?x2xf32, ["n", "2"]>
    %7 = stablehlo.multiply %4, %6 : tensor<?x2xf32, ["n", "2"]>
    %8 = stablehlo.add %1, %0 : tensor<4x8xf32>
    func.return %7, %8, %w, %zero : tensor<?x2xf32, ["n", "2"]>, tensor<4x8xf32>, tensor<2xf32>, tensor<4x8xf32>
  }
}"""  # noqa: E501


@pytest.mark.parametrize("seed", range(3))
def test_host_steps_between_segments(seed: int) -> None:
    """Sizes that data decide are known to the segment behind; what both need leaves the first as an output."""
    agree(LATE, [floats(4, 8, seed=seed), floats(2)])


SOLVE = """
func.func @main(%x: tensor<3x4x4xf32>, %b: tensor<3x4x2xf32>) -> (tensor<3x4x2xf32>, tensor<3x4x4xf32>) {
  %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  %s = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3x4x4xf32>
  %i = stablehlo.iota dim = 1 : tensor<3x4x4xi32>
  %j = stablehlo.iota dim = 2 : tensor<3x4x4xi32>
  %e = stablehlo.compare EQ, %i, %j : (tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi1>
  %d = stablehlo.convert %e : (tensor<3x4x4xi1>) -> tensor<3x4x4xf32>
  %a = stablehlo.add %s, %d : tensor<3x4x4xf32>
  %l = stablehlo.cholesky %a, lower = true : tensor<3x4x4xf32>
  %y = "stablehlo.triangular_solve"(%l, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>
      : (tensor<3x4x4xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %z = stablehlo.tanh %y : tensor<3x4x2xf32>
  func.return %z, %l : tensor<3x4x2xf32>, tensor<3x4x4xf32>
}"""  # noqa: E501


def test_the_host_factorizes() -> None:
    runner = agree(SOLVE, [floats(3, 4, 4), floats(3, 4, 2, seed=1)])
    assert [type(step).__name__ for step in runner.steps] == ["Lowering", "HostOp", "HostOp", "Lowering"]


def test_an_artifact_holds_host_steps() -> None:
    plan = lower(planned(SOLVE), "triton:sm_90")
    assert [type(step).__name__ for step in plan.steps] == ["DeviceSegment", "HostStep", "HostStep", "DeviceSegment"]
    plan.check(lambda: {"cholesky", "triangular_solve"})
