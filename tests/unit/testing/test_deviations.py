"""What a target may do: say that it lacks something, and differ in declared ways; all else is a failure."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.testing.fuzz.campaign import upper_bound
from gcomp.testing.oracles.deviations import DEVIATIONS, explanation
from gcomp.testing.reduce.predicates import TargetCheck

MASKED = """func.func @main(%x: tensor<2xf32>, %p: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>) {
  %m = stablehlo.convert %p : (tensor<2xi1>) -> tensor<2xf32>
  %0 = stablehlo.multiply %x, %m : tensor<2xf32>
  %1 = stablehlo.add %x, %x : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}"""


def test_only_what_depends_on_a_deviating_op_is_explained() -> None:
    program, mask = Program.parse(MASKED), np.array([False, True])
    special, plain = np.array([np.nan, 1], np.float32), np.array([2, 1], np.float32)
    some = np.zeros(2, np.float32)
    assert explanation(program, [special, mask], 0, some, some.astype(np.float64)) == "masked product"
    assert explanation(program, [special, mask], 1, some, some.astype(np.float64)) is None
    assert explanation(program, [plain, mask], 0, some, some.astype(np.float64)) is None


def test_a_target_s_rights_are_told_from_its_faults() -> None:
    unsupported = """func.func @main(%x: tensor<3xf32>, %s: tensor<1xi32>) -> tensor<3xf32> {
      %0 = stablehlo.dynamic_reshape %x, %s : (tensor<3xf32>, tensor<1xi32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    with TargetCheck("xla:cpu") as check:
        known = check.failure(Program.parse(MASKED), [np.array([np.nan, 1], np.float32), np.array([False, True])])
        refused = check.failure(Program.parse(unsupported), [np.ones(3, np.float32), np.array([3], np.int32)])
    assert known is not None and known.fingerprint() == ("deviation", "masked product") and known.allowed
    assert refused is not None and refused.kind == "unsupported" and refused.allowed


def test_deviations_have_names_of_their_own() -> None:
    assert len({deviation.name for deviation in DEVIATIONS}) == len(DEVIATIONS)


@pytest.mark.parametrize(
    ("failing", "judged", "bound"), [(0, 20000, 3 / 20000), (1, 20000, 4.743865 / 20000), (5, 100, 0.102253), (0, 0, 1)]
)
def test_the_bound_is_clopper_and_pearson_s(failing: int, judged: int, bound: float) -> None:
    assert upper_bound(failing, judged) == pytest.approx(bound, rel=1e-3)
