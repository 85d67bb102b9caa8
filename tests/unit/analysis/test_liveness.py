"""Which values share memory: donated inputs, results over operands, what loops carry."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.analysis.liveness import liveness, most_alive
from gcomp.errors import VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import arena, donors, set_places
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.plan_memory import planned_ops
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import PlannedExecutor

STEP = """
func.func @main(%w: tensor<64x64xf32> {{gcomp.name = "w"{donated}}}, %x: tensor<64x64xf32> {{gcomp.name = "x"}})
    -> tensor<64x64xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.subtract %w, %1 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}}"""


def ran(text: str, pipeline: str = "fuse,plan-memory") -> Program:
    """A program in its arena, which computes what the interpreter does."""
    program = Program.parse(text)
    rng = np.random.default_rng(0)
    inputs = [
        np.asarray(rng.integers(0, 3, [int(str(s)) for s in p.shape])).astype(np.float32 if p.dtype == "f32" else "i4")
        for p in program.inputs()
    ]
    expected = interpret(program, inputs)
    PassManager(parse_pipeline(pipeline)).run(program)
    program.verify()
    for mine, theirs in zip(PlannedExecutor(program).run(inputs), expected, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    return program


def test_an_output_lies_in_a_donated_input() -> None:
    program = ran(STEP.format(donated=", gcomp.donated"))
    assert arena(program.module) == 64 * 64 * 4
    assert [donors(op) for op in planned_ops(program)] == [(-1,), (0,)]
    program = ran(STEP.format(donated=""))
    assert arena(program.module) == 2 * 64 * 64 * 4
    assert [donors(op) for op in planned_ops(program)] == [(-1,), (-1,)]


def test_an_output_takes_a_dead_input_of_its_size_that_it_was_not_computed_from() -> None:
    text = """
      func.func @main(%x: tensor<64xf32> {gcomp.name = "x", gcomp.donated}, %y: tensor<8x8xf32> {gcomp.name = "y"})
          -> (tensor<64xf32>, tensor<8x8xf32>) {
        %0 = stablehlo.reverse %x, dims = [0] : tensor<64xf32>
        %1 = stablehlo.sine %0 : tensor<64xf32>
        %2 = stablehlo.transpose %y, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        return %1, %2 : tensor<64xf32>, tensor<8x8xf32>
      }"""
    program = ran(text, "plan-memory")
    # The reversed copy reads the input while it is written; the sine is written over it; the transpose comes later.
    assert [donors(op) for op in planned_ops(program)] == [(-1,), (-1,), (0,)]


def test_a_donated_input_that_is_returned_is_kept() -> None:
    text = """
      func.func @main(%x: tensor<64xf32> {gcomp.name = "x", gcomp.donated}) -> (tensor<64xf32>, tensor<64xf32>) {
        %0 = stablehlo.negate %x : tensor<64xf32>
        return %x, %0 : tensor<64xf32>, tensor<64xf32>
      }"""
    assert [donors(op) for op in planned_ops(ran(text, "plan-memory"))] == [(-1,)]


def test_writing_into_an_input_that_was_kept_or_is_read_later_faults() -> None:
    x = np.ones((64, 64), np.float32)
    program = ran(STEP.format(donated=""))
    set_places(planned_ops(program)[-1], [0], [0])
    with pytest.raises(VerificationError, match="was not donated"):
        PlannedExecutor(program).run([x, x])
    program = ran(STEP.format(donated=", gcomp.donated"))
    set_places(planned_ops(program)[0], [0], [0])
    with pytest.raises(VerificationError, match=r"two living values on the same bytes[^$]*overlap the input 'w'"):
        PlannedExecutor(program).run([x, x])


LOOP = """
func.func @main(%x: tensor<8x64xf32> {gcomp.name = "x"}, %n: tensor<i32> {gcomp.name = "n"}) -> tensor<8x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %start = stablehlo.sine %x : tensor<8x64xf32>
  %r:2 = stablehlo.while(%i = %zero, %a = %start) : tensor<i32>, tensor<8x64xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %row = stablehlo.dynamic_slice %a, %i, %zero, sizes = [1, 64]
      : (tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
    %twice = stablehlo.add %row, %row : tensor<1x64xf32>
    %b = stablehlo.dynamic_update_slice %a, %twice, %i, %zero
      : (tensor<8x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
    %k = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %k, %b : tensor<i32>, tensor<8x64xf32>
  }
  return %r#1 : tensor<8x64xf32>
}"""


def test_a_loop_updates_what_it_carries_in_place() -> None:
    """From the value that it starts with to the last one, one storage."""
    program = ran(LOOP, "plan-memory")
    found = liveness(program)
    loop = next(op for op in program.ops() if isinstance(op, hlo.WhileOp))
    update = next(op for op in program.ops() if isinstance(op, hlo.DynamicUpdateSliceOp))
    assert found.storage[loop.operands[1]] is found.storage[loop.results[1]] is found.storage[update.result]
    assert most_alive(found, program.ranges) == 8 * 64 * 4 + 64 * 4 + 4


def test_what_a_loop_reads_again_or_returns_elsewhere_stays_apart() -> None:
    for old, new in (
        ("stablehlo.return %k, %b", "%l = stablehlo.subtract %b, %start : tensor<8x64xf32>\n stablehlo.return %k, %l"),
        ("return %r#1 :", "%l = stablehlo.subtract %r#1, %start : tensor<8x64xf32>\n return %l :"),
    ):
        program = ran(LOOP.replace(old, new), "plan-memory")
        found = liveness(program)
        loop = next(op for op in program.ops() if isinstance(op, hlo.WhileOp))
        assert found.storage[loop.operands[1]] is not found.storage[loop.results[1]]


def test_a_kernel_that_reads_a_view_of_what_dies_too_does_not_write_over_it() -> None:
    text = """
      func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
        %0 = stablehlo.sine %x : tensor<8x8xf32>
        %1 = stablehlo.reshape %0 : (tensor<8x8xf32>) -> tensor<64xf32>
        %2 = kernel.launch loop (%a = %0, %b = %1) : (tensor<8x8xf32>, tensor<64xf32>) -> tensor<8x8xf32> {
          %3 = stablehlo.reverse %b, dims = [0] : tensor<64xf32>
          %4 = stablehlo.reshape %3 : (tensor<64xf32>) -> tensor<8x8xf32>
          %5 = stablehlo.subtract %a, %4 : tensor<8x8xf32>
          stablehlo.return %5 : tensor<8x8xf32>
        }
        return %2 : tensor<8x8xf32>
      }"""
    assert arena(ran(text, "plan-memory").module) == 2 * 256


def test_a_product_is_added_into_an_operand() -> None:
    """The epilogue of a matrix product reads the element that it writes; the product's own operands it reads often."""
    text = """
      func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
        %0 = stablehlo.sine %x : tensor<64x64xf32>
        %1 = stablehlo.reverse %0, dims = [0] : tensor<64x64xf32>
        %2 = kernel.launch matmul (%a = %x, %b = %0, %c = %1)
            : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
          %3 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
          %4 = stablehlo.add %3, %c : tensor<64x64xf32>
          stablehlo.return %4 : tensor<64x64xf32>
        }
        return %2 : tensor<64x64xf32>
      }"""
    program = ran(text, "plan-memory")
    found, (sine, reverse, product) = liveness(program), planned_ops(program)
    assert found.storage[product.results[0]] is found.storage[reverse.results[0]]
    assert found.storage[product.results[0]] is not found.storage[sine.results[0]]
