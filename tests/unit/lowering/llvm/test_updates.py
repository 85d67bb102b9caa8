"""What is updated in a slice: the slice is written, and the rest is copied unless it lies there already."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.host import HostOp
from gcomp.lowering.llvm.lower import lowerings
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.runtime.steps import Launch, While, walk
from tests.unit.lowering.llvm.test_lower import agree, planned

LOOP = """func.func @main(%x: tensor<6x4xf32>, %u: tensor<1x4xf32>) -> tensor<6x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = "stablehlo.while"(%zero, %x, %u) ({
  ^bb0(%i: tensor<i32>, %a: tensor<6x4xf32>, %b: tensor<1x4xf32>):
    %limit = stablehlo.constant dense<4> : tensor<i32>
    %c = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<6x4xf32>, %b: tensor<1x4xf32>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %d = stablehlo.exponential %b : tensor<1x4xf32>
    %r = stablehlo.dynamic_update_slice %a, %d, %i, %z : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %r, %d : tensor<i32>, tensor<6x4xf32>, tensor<1x4xf32>
  }) : (tensor<i32>, tensor<6x4xf32>, tensor<1x4xf32>) -> (tensor<i32>, tensor<6x4xf32>, tensor<1x4xf32>)
  return %0#1 : tensor<6x4xf32>
}"""  # noqa: E501


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("start", [(0, 0, 0), (1, 2, 3), (-7, 1, 9), (2, 2, 2)])
@pytest.mark.parametrize("size", [(1, 4, 5), (2, 1, 5), (2, 3, 2), (3, 4, 1), (0, 4, 5)])
def test_a_slice_of_any_dimensions_is_brought_inside(size: tuple[int, int, int], start: tuple[int, int, int]) -> None:
    update = f"tensor<{'x'.join(map(str, size))}xf32>"
    text = f"""func.func @main(%x: tensor<3x4x5xf32>, %u: {update}, %i: tensor<i32>, %j: tensor<i32>, %k: tensor<i32>)
      -> tensor<3x4x5xf32> {{
      %0 = stablehlo.negate %u : {update}
      %1 = stablehlo.dynamic_update_slice %x, %0, %i, %j, %k : (tensor<3x4x5xf32>, {update}, tensor<i32>, tensor<i32>,
        tensor<i32>) -> tensor<3x4x5xf32>
      return %1 : tensor<3x4x5xf32>
    }}"""
    agree(text, (numbers(3, 4, 5), numbers(*size), *(np.array(n, np.int32) for n in start)))


def test_what_is_carried_is_not_copied_in_each_iteration() -> None:
    agree(LOOP, (numbers(6, 4), numbers(1, 4)))
    (segment,) = lowerings(planned(LOOP), VARIANTS["x86-64-v3"])
    assert not isinstance(segment, HostOp)
    (loop,) = [step for step in segment.draft.steps if isinstance(step, While)]
    names = [segment.draft.kernels[step.kernel].name for step in walk(loop.body) if isinstance(step, Launch)]
    assert [name.partition(".")[0] for name in names if "update_slice" in name] == ["k_dynamic_update_slice_update"]
