"""Dead code: what a program no longer needs goes, its weights' memory too."""

from __future__ import annotations

import numpy as np

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.graph.dce import DeadCodeElimination

READ_AND_DEAD = """
func.func @main() -> tensor<2xf32> {
  %0 = gcomp.weight @kept : tensor<2xf32>
  %1 = gcomp.weight @dead : tensor<2xf32>
  %2 = stablehlo.negate %1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


def test_a_weight_that_nothing_reads_is_forgotten() -> None:
    program = Program.parse(READ_AND_DEAD)
    for name in ("kept", "dead"):
        program.weights.add(name, np.ones(2, np.float32))
    assert DeadCodeElimination().run(program, PassContext())
    assert list(program.weights) == ["kept"]
