"""Programs cut around host steps: where ops go, what crosses, and that the parts compute what the whole means."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.errors import InputError, UnsupportedError
from gcomp.ir.host import HOST_FUNCTIONS, HostOp
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.lowering.xla.segments import Part, cut
from gcomp.reference.interpreter import interpret
from gcomp.reference.numpy import host
from gcomp.runtime.model import Model

TWO_STEPS = """
module attributes {gcomp.ranges = {n = "0..", m = "0..", b = "1.."}, gcomp.constraints = [
    "{\\"kind\\": \\"le\\", \\"lhs\\": \\"n\\", \\"rhs\\": 6, \\"where\\": \\"the test\\"}"]} {
func.func @main(%x: tensor<?x4xf32, ["b", "4"]>) -> (tensor<?xf32, ["n"]>, tensor<1x?xi64, ["1", "m"]>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %twos = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<?x4xf32, ["b", "4"]>
  %y = stablehlo.multiply %x, %twos : tensor<?x4xf32, ["b", "4"]>
  %i = "gcomp.host"(%y) <{function = "nonzero", config = {}}> : (tensor<?x4xf32, ["b", "4"]>)
    -> tensor<2x?xi64, ["2", "n"]>
  %r = "stablehlo.slice"(%i) <{start_indices = array<i64: 0, 0>, limit_indices = ["1", "n"],
    strides = array<i64: 1, 1>}> : (tensor<2x?xi64, ["2", "n"]>) -> tensor<1x?xi64, ["1", "n"]>
  %f = stablehlo.reshape %r : (tensor<1x?xi64, ["1", "n"]>) -> tensor<?xi64, ["n"]>
  %g = stablehlo.convert %f : (tensor<?xi64, ["n"]>) -> tensor<?xf32, ["n"]>
  %s = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<?xf32, ["n"]>
  %z = stablehlo.add %g, %s : tensor<?xf32, ["n"]>
  %j = "gcomp.host"(%f) <{function = "nonzero", config = {}}> : (tensor<?xi64, ["n"]>) -> tensor<1x?xi64, ["1", "m"]>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x4xf32, ["b", "4"]>, tensor<f32>) -> tensor<f32>
  return %z, %j, %t : tensor<?xf32, ["n"]>, tensor<1x?xi64, ["1", "m"]>, tensor<f32>
}
}
"""


def _program() -> Program:
    return Program.parse(TWO_STEPS)


def test_ops_run_as_early_as_their_sizes_allow() -> None:
    steps = cut(_program())
    assert [type(s).__name__ for s in steps] == ["Part", "HostOp", "Part", "HostOp"]
    first, second = (s for s in steps if isinstance(s, Part))
    names = [[op.name for op in part.program.block.ops] for part in (first, second)]
    # The sum needs no data-dependent size; the constant is made anew where it is used.
    assert "stablehlo.reduce" in names[0] and "stablehlo.multiply" in names[0]
    assert "stablehlo.add" in names[1] and "stablehlo.constant" in names[1] and "stablehlo.multiply" not in names[1]


@pytest.mark.parametrize("rows", [1, 3])
def test_parts_and_host_steps_compute_what_the_program_means(rows: int) -> None:
    program = _program()
    model = Model(lower(program), {})
    rng = np.random.default_rng(0)
    for kept in (0, 2, 4):
        x = np.zeros((rows, 4), np.float32)
        x.reshape(-1)[rng.permutation(4 * rows)[:kept]] = 1.5
        for got, expected in zip(model(x), interpret(program, [x]), strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)


def test_constraints_on_data_dependent_sizes_are_checked_when_they_are_known() -> None:
    program, x = _program(), np.ones((2, 4), np.float32)
    with pytest.raises(InputError, match="n = 8"):
        interpret(program, [x])
    with pytest.raises(InputError, match="n = 8"):
        Model(lower(program), {})(x)


def test_a_size_used_before_its_host_step_is_refused() -> None:
    text = """
func.func @main(%x: tensor<4xf32>) -> (tensor<?xi64, ["n"]>, tensor<1x?xi64, ["1", "n"]>) {
  %1 = stablehlo.iota dim = 0 : tensor<?xi64, ["n"]>
  %0 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]>
  return %1, %0 : tensor<?xi64, ["n"]>, tensor<1x?xi64, ["1", "n"]>
}"""
    with pytest.raises(UnsupportedError, match="No host step before"):
        lower(Program.parse(text))


def test_every_host_function_that_the_ir_names_exists() -> None:
    assert host.HOST_FUNCTIONS.keys() == HOST_FUNCTIONS


def test_a_program_without_host_steps_is_one_part() -> None:
    program = Program.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    (part,) = cut(program)
    assert isinstance(part, Part) and part.program is program and not isinstance(part, HostOp)
