"""fold-constants on what its textual tests cannot hold: weights."""

from __future__ import annotations

import numpy as np

from gcomp.ir.program import Program
from gcomp.passes.graph.fold_constants import FoldConstants
from gcomp.testing.check import check_pass


def test_a_decomposition_reads_weights() -> None:
    source = Program.parse("""
func.func @main() -> tensor<2xi32> {
  %0 = stablehlo.iota dim = 0 : tensor<2xi32>
  %1 = stablehlo.composite "my.op" %0 {decomposition = @f} : (tensor<2xi32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}
func.func private @f(%x: tensor<2xi32>) -> tensor<2xi32> {
  %w = gcomp.weight @w : tensor<2xi32>
  %0 = stablehlo.add %x, %w : tensor<2xi32>
  return %0 : tensor<2xi32>
}""")
    source.weights.add("w", np.array([40, 50], np.int32))
    assert check_pass(FoldConstants(), source) is None
