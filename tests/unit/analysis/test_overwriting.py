"""Which results may be written over an operand: whoever needs it reads its place before, or in the same step."""

from __future__ import annotations

import pytest

from gcomp.analysis.overwriting import Overwriting
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program


@pytest.mark.parametrize(
    ("moved", "may_be"),
    [("abs %2 :", True), ("transpose %2, dims = [1, 0] : (tensor<3x3xf32>) ->", False)],
)
def test_a_result_in_another_order_is_not_written_over_what_others_read(moved: str, may_be: bool) -> None:
    """One of a convolution with its channels last lay over an image that the other result, channels first, read."""
    program = Program.parse(f"""func.func @main(%x: tensor<3x3xf32>, %z: tensor<3x3xf32>)
          -> (tensor<3x3xf32>, tensor<3x3xf32>) {{
      %0, %1 = kernel.launch loop "negate" (%a = %x, %b = %z)
          : (tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {{
        %2 = stablehlo.negate %a : tensor<3x3xf32>
        %3 = stablehlo.{moved} tensor<3x3xf32>
        %4 = stablehlo.add %3, %b : tensor<3x3xf32>
        stablehlo.return %2, %4 : tensor<3x3xf32>, tensor<3x3xf32>
      }}
      return %0, %1 : tensor<3x3xf32>, tensor<3x3xf32>
    }}""")
    (launch,) = (op for op in program.ops() if isinstance(op, LaunchOp))
    assert Overwriting(launch).may(1, 0) is may_be
    assert Overwriting(launch).may(1, 1)
    asked_together = Overwriting(launch)
    for pair in [(i, j) for i in (1, 0) for j in (1, 0)]:
        assert asked_together.may(*pair) is Overwriting(launch).may(*pair)
