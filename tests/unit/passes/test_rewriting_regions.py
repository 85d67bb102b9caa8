"""What becomes of the ops around control flow when rewrites erase it."""

from __future__ import annotations

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.registry import all_passes

DEAD_LOOP = """func.func @main(%x: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.minimum %i, %0 : tensor<i32>
  %2:2 = stablehlo.while(%a = %0, %b = %x) : tensor<i32>, tensor<f32> cond {
    %p = stablehlo.compare LT, %a, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.add %a, %1 : tensor<i32>
    stablehlo.return %n, %b : tensor<i32>, tensor<f32>
  }
  %3 = stablehlo.negate %2#1 : tensor<f32>
  %4 = stablehlo.negate %3 : tensor<f32>
  %5 = stablehlo.negate %x : tensor<f32>
  func.return %5 : tensor<f32>
}"""


def test_what_only_an_erased_loop_used_from_outside_is_erased_with_it() -> None:
    program = Program.parse(DEAD_LOOP)
    step = all_passes()["canonicalize"]()
    assert step.run(program, PassContext())
    assert [op.name for op in program.block.ops] == ["stablehlo.negate", "func.return"]
    assert not step.run(program, PassContext())
