"""fold-constants on what its textual tests cannot hold: weights."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
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


def test_weights_that_were_folded_are_given_up() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<999xf32>) -> tensor<999xf32> {
  %w = gcomp.weight @w : tensor<999xf32>
  %0 = stablehlo.sine %w : tensor<999xf32>
  %1 = stablehlo.negate %0 : tensor<999xf32>
  %2 = stablehlo.add %x, %1 : tensor<999xf32>
  return %2 : tensor<999xf32>
}""")
    source.weights.add("w", np.arange(999, dtype=np.float32))
    assert FoldConstants().run(source, PassContext())
    assert len([*source.weights]) == 1


def test_views_of_weights_of_any_size_are_folded() -> None:
    source = Program.parse("""
func.func @main() -> tensor<2x40x10xf32> {
  %w = gcomp.weight @w : tensor<40x20xf32>
  %0 = stablehlo.reshape %w : (tensor<40x20xf32>) -> tensor<40x2x10xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<40x2x10xf32>) -> tensor<2x40x10xf32>
  return %1 : tensor<2x40x10xf32>
}""")
    array = np.arange(800, dtype=np.float32).reshape(40, 20)
    source.weights.add("w", array)
    assert FoldConstants(max_flops=8).run(source, PassContext())
    ((_, folded),) = source.weights.items()
    assert np.array_equal(folded, array.reshape(40, 2, 10).transpose(1, 0, 2))


SHARED = """
func.func @main(%x: tensor<20xf32>, %n: tensor<i32>) -> tensor<20xf32> {
  %w = gcomp.weight @w : tensor<40x20xf32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%k = %i, %y = %x) : tensor<i32>, tensor<20xf32>
   cond {
    %c = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %k, %one : tensor<i32>
    %a = stablehlo.slice %w [0:20, 0:20] : (tensor<40x20xf32>) -> tensor<20x20xf32>
    %b = stablehlo.slice %w [FIRST:40, 0:20] : (tensor<40x20xf32>) -> tensor<SIZEx20xf32>
    %d = stablehlo.dot_general %y, %a, contracting_dims = [0] x [1]
      : (tensor<20xf32>, tensor<20x20xf32>) -> tensor<20xf32>
    %e = stablehlo.dot_general %d, %b, contracting_dims = [0] x [1]
      : (tensor<20xf32>, tensor<SIZEx20xf32>) -> tensor<SIZExf32>
    %f = stablehlo.slice %e [0:20] : (tensor<SIZExf32>) -> tensor<20xf32>
    stablehlo.return %next, %f : tensor<i32>, tensor<20xf32>
  }
  return %r#1 : tensor<20xf32>
}"""


@pytest.mark.parametrize(("first", "shapes"), [(20, [(20, 20), (20, 20)]), (19, [(40, 20)])])
def test_what_shares_a_weight_out_is_weights_of_its_own(first: int, shapes: list[tuple[int, ...]]) -> None:
    """In loops, too; slices that overlap would take more than they replace."""
    source = Program.parse(SHARED.replace("FIRST", str(first)).replace("SIZE", str(40 - first)))
    source.weights.add("w", np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32))
    assert check_pass(FoldConstants(), source) is None
    FoldConstants().run(source, PassContext())
    source.verify()
    assert [array.shape for _, array in source.weights.items()] == shapes


def test_what_cannot_be_computed_is_no_change() -> None:
    source = Program.parse("""
func.func @main() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}""")
    assert not FoldConstants().run(source, PassContext())


def test_work_beyond_the_limit_is_left() -> None:
    source = Program.parse("""
func.func @main() -> tensor<9xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<9xf32>
  %1 = stablehlo.sine %0 : tensor<9xf32>
  return %1 : tensor<9xf32>
}""")
    assert not FoldConstants(max_flops=8).run(source, PassContext())
    assert FoldConstants(max_flops=18).run(source, PassContext())
