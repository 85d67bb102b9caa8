"""Where ops that compute together come from."""

from __future__ import annotations

from gcomp.analysis.constants import place_of
from gcomp.ir.locations import describe
from gcomp.ir.program import Program


def test_a_shared_constant_of_another_type_does_not_count() -> None:
    """The zero point of three nodes is widened once, and repeated in the kernels of each."""
    program = Program.parse("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = stablehlo.constant dense<128> : tensor<ui8> loc(fused["a", "b", "c"])
      %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui8>) -> tensor<4xui8> loc(fused["a", "b", "c"])
      %1 = stablehlo.convert %0 : (tensor<4xui8>) -> tensor<4xf32> loc(fused["a", "b", "c"])
      %2 = stablehlo.add %x, %1 : tensor<4xf32> loc("b")
      %3 = stablehlo.negate %2 : tensor<4xf32> loc("c")
      return %3 : tensor<4xf32>
    }""")
    assert describe(place_of(list(program.block.ops)[:-1])) == "b + c"
