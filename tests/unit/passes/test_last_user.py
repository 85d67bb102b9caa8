"""A rewrite that asks for an operand's only user is tried again when the other users die."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.passes.base import PassContext
from gcomp.passes.rewriting import apply_rewrites

PROGRAM = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.abs %x : tensor<2xf32>
  %a = stablehlo.negate %0 : tensor<2xf32>
  %b = stablehlo.sine %0 : tensor<2xf32>
  return %a : tensor<2xf32>
}"""


def _alone(x: SSAValue) -> bool:
    return x.has_one_use()


def test_an_only_user_is_seen_when_the_others_die() -> None:
    x = Var("x")
    alone = Rule("alone", Op(hlo.NegateOp, x), Op(hlo.FloorOp, x), where=Calc(_alone))
    never = Rule("never", Op(hlo.SineOp, x), x, where=Calc(lambda x: False))
    program = Program.parse(PROGRAM)
    assert apply_rewrites(program, (alone, never), PassContext())
    assert "stablehlo.floor" in program.text() and "stablehlo.sine" not in program.text()
