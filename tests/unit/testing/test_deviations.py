"""What a target may do: say that it lacks something, and differ in declared ways; all else is a failure."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.judging.deviations import DEVIATIONS
from gcomp.judging.excuses import reached_elements
from gcomp.judging.targets import target_failure
from gcomp.passes.checking import TARGET_ROUNDINGS, difference
from gcomp.reference.interpreter import interpret
from gcomp.reference.wider import interpret_wider
from gcomp.testing.fuzz.campaign import upper_bound
from gcomp.testing.targets import TargetCheck

MASKED = """func.func @main(%x: tensor<2xf32>, %p: tensor<2xi1>) -> (tensor<2xf32>, tensor<2xf32>) {
  %m = stablehlo.convert %p : (tensor<2xi1>) -> tensor<2xf32>
  %0 = stablehlo.multiply %x, %m : tensor<2xf32>
  %1 = stablehlo.add %x, %x : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}"""


def reach(program: Program, *inputs: np.ndarray) -> dict[str, list[list[bool]]]:
    found = reached_elements(program, inputs, interpret(program, inputs))
    return {name: [mask.tolist() for mask in masks] for name, masks in found.items()}


def test_only_elements_that_depend_on_a_deviating_op_are_excused() -> None:
    program, mask = Program.parse(MASKED), np.array([False, True])
    special, plain = np.array([np.nan, 1], np.float32), np.array([2, 1], np.float32)
    assert reach(program, special, mask) == {"masked product": [[True, False], [False, False]]}
    assert reach(program, plain, mask) == {}


def test_denormals_excuse_what_changes_when_they_are_flushed() -> None:
    program = Program.parse("""func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
      %0 = stablehlo.add %x, %x : tensor<3xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.maximum across dimensions = [0]
        : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      return %0, %1 : tensor<3xf32>, tensor<f32>
    }""")
    found = reach(program, np.array([1e-40, 1, 0], np.float32))
    assert found == {"denormals": [[True, False, False], False]}


def test_what_rounds_up_to_the_least_normal_number_is_flushed() -> None:
    program = Program.parse("""func.func @main(%x: tensor<2xf64>, %y: tensor<2xf64>) -> tensor<2xf64> {
      %0 = stablehlo.multiply %x, %y : tensor<2xf64>
      return %0 : tensor<2xf64>
    }""")
    least = np.finfo(np.float64).tiny
    found = reach(program, np.full(2, least), np.array([np.nextafter(1, 0), 2]))
    assert found == {"denormals": [[True, False]]}


def test_what_is_open_excuses_elements_of_few_bits_and_functions_with_a_domain() -> None:
    second = Program.parse("""func.func @main(%x: tensor<4xui2>, %i: tensor<ui2>) -> tensor<4xui2> {
      %0 = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64>}> ({
      ^bb0(%a: tensor<ui2>, %b: tensor<ui2>):
        stablehlo.return %a : tensor<ui2>
      }) : (tensor<4xui2>, tensor<ui2>) -> tensor<4xui2>
      return %0 : tensor<4xui2>
    }""")
    two = dtype_of("ui2")
    assert reach(second, np.arange(4).astype(two), np.array(1).astype(two)) == {"fold order": [[True] * 4]}
    drawn = Program.parse("""func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<9xf32> {
      %s = stablehlo.constant dense<9> : tensor<1xi32>
      %r = stablehlo.rng %a, %b, %s, distribution = NORMAL
        : (tensor<f32>, tensor<f32>, tensor<1xi32>) -> tensor<9xf32>
      %0 = chlo.asin %r : tensor<9xf32> -> tensor<9xf32>
      return %0 : tensor<9xf32>
    }""")
    assert reach(drawn, np.float32(0), np.float32(5)) == {"random numbers": [[True] * 9]}


@pytest.mark.parametrize(("low", "values", "is_open"), [(1, [0, 1, 1, 0], True), (1, [0, 1, 2, 3], False),
                                                        (0, [0, 1, 1, 0], False)])  # fmt: skip
def test_ties_are_open_where_windows_are_padded(low: int, values: list[float], is_open: bool) -> None:
    size = 1 + low
    source = f"tensor<{size}x{size}xf32>"
    program = Program.parse(f"""func.func @main(%x: tensor<2x2xf32>, %y: {source}) -> tensor<2x2xf32> {{
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %y, %i) <{{window_dimensions = array<i64: 2, 2>,
          window_strides = array<i64: 1, 1>, padding = dense<[[{low}, 0], [{low}, 0]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<2x2xf32>, {source}, tensor<f32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }}""")
    x = np.array(values, np.float32).reshape(2, 2)
    assert bool(reach(program, x, np.ones((size, size), np.float32))) == is_open


def test_a_product_in_a_function_may_have_a_boolean_from_outside() -> None:
    program = Program.parse("""func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
      %m = stablehlo.convert %p : (tensor<i1>) -> tensor<f32>
      %0 = call @product(%x, %m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @product(%x: tensor<f32>, %m: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.multiply %x, %m : tensor<f32>
      return %0 : tensor<f32>
    }""")
    assert reach(program, np.array(np.inf, np.float32), np.array(False)) == {"masked product": [True]}


def test_a_wrong_answer_beside_a_deviation_is_a_failure() -> None:
    class Wrong:
        def run(self, text: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
            return [np.array([0, 7], np.float32), arrays[0] * 2]

    with TargetCheck("xla:cpu") as check:
        check.oracle.close()
        check.oracle = cast(Any, Wrong())
        check.oracle.close = lambda: None
        found = check.failure(Program.parse(MASKED), [np.array([np.nan, 1], np.float32), np.array([False, True])])
    assert found is not None and found.kind == "meaning" and "expected 1" in found.message


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


def test_functions_that_are_merged_excuse_what_overflows_in_between() -> None:
    program = Program.parse("""func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %0 = stablehlo.exponential %x : tensor<3xf32>
      %1 = stablehlo.log %0 : tensor<3xf32>
      %2 = stablehlo.sqrt %0 : tensor<3xf32>
      return %1, %2 : tensor<3xf32>, tensor<3xf32>
    }""")
    found = reach(program, np.array([1, 1e19, -1e19], np.float32))
    assert found == {"merged functions": [[False, True, True], [False] * 3]}


def test_pivots_excuse_a_factor_where_they_cancel() -> None:
    program = Program.parse("""func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.cholesky %x, lower = true : tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }""")
    assert reach(program, np.array([[4, 2], [2, 4]], np.float32)) == {}
    assert list(reach(program, np.array([[4, 2], [2, 1 + 2**-20]], np.float32))) == ["pivots"]


def test_windows_of_booleans_that_are_left_out_are_excused_behind_a_fold() -> None:
    """What is open among booleans is tried as all true and all false: other values may agree in the fold by chance."""
    program = Program.parse("""
func.func @main(%x: tensor<2x5xi1>, %i: tensor<1xi32>, %u: tensor<1x5xi1>) -> tensor<5xi1> {
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i1>, %b: tensor<i1>):
    stablehlo.return %b : tensor<i1>
  }) : (tensor<2x5xi1>, tensor<1xi32>, tensor<1x5xi1>) -> tensor<2x5xi1>
  %1 = stablehlo.reduce(%0 init: %false) applies stablehlo.maximum across dimensions = [0]
    : (tensor<2x5xi1>, tensor<i1>) -> tensor<5xi1>
  return %1 : tensor<5xi1>
}""")
    x = np.array([[True, True, False, False, False]] * 2)
    masks = reach(program, x, np.int32([-2]), np.ones((1, 5), np.bool_))
    assert masks["scatter window"][0] == [True] * 5


def test_windows_that_are_left_out_are_excused_where_they_are_compared_with_what_was_there() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<2x5xf32>, %i: tensor<1xi32>, %u: tensor<1x5xf32>) -> tensor<2x5xi1> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<2x5xf32>, tensor<1xi32>, tensor<1x5xf32>) -> tensor<2x5xf32>
  %1 = stablehlo.compare NE, %0, %x, FLOAT : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xi1>
  return %1 : tensor<2x5xi1>
}""")
    masks = reach(program, np.zeros((2, 5), np.float32), np.int32([-2]), np.full((1, 5), 7, np.float32))
    assert masks["scatter window"][0][0][:3] == [True] * 3


def test_sums_in_the_element_type_are_rounding_and_larger_errors_are_not() -> None:
    """The reference adds in double. A target that adds 65,536 terms one by one in f32 is right, and in no known way."""
    program = Program.parse("""
func.func @main(%x: tensor<4x65536xf32> {gcomp.name = "x"}, %y: tensor<65536xf32> {gcomp.name = "y"}) -> tensor<4xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<4x65536xf32>, tensor<65536xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""")
    y = np.ones(65536, np.float32)
    x = np.random.default_rng(0).standard_normal((4, 65536)).astype(np.float32)
    expected, one_by_one = interpret(program, [x, y]), np.cumsum(x, axis=1, dtype=np.float32)[:, -1]
    wider = interpret_wider(program, [x, y])
    apart = difference(program.outputs(), Exactness.E2, expected, [one_by_one], wider, TARGET_ROUNDINGS)
    assert apart is not None, "a fixed number of roundings does not cover it"
    assert target_failure(program, [x, y], expected, [one_by_one]) is None
    wrong = target_failure(program, [x, y], expected, [one_by_one * np.float32(1.001)])
    assert wrong is not None and wrong.kind == "meaning"


def test_a_normalization_may_overflow_before_it_is_scaled() -> None:
    """As it is defined, in its own type; the reference computes it in double."""
    program = Program.parse("""func.func @main(%x: tensor<1x2xf32>, %s: tensor<1xf32>) -> tensor<1x2xi1> {
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 0.001 : f32, feature_index = 0 : i64}>
        : (tensor<1x2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2xf32>
      %1 = stablehlo.compare GE, %x, %0, FLOAT : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xi1>
      return %1 : tensor<1x2xi1>
    }""")
    found = reach(program, np.array([[1.6777216e37, 1.0]], np.float32), np.zeros(1, np.float32))
    assert found["batch norm"] == [[[True, False]]]


def test_a_denormal_scale_of_a_normalization_is_flushed() -> None:
    """Before it meets a large element: 1 where the formula gives -3."""
    program = Program.parse("""func.func @main(%x: tensor<1x2xf32>, %s: tensor<2xf32>) -> tensor<1x2xf32> {
      %one = stablehlo.constant dense<1.0> : tensor<2xf32>
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %one, %one, %one) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
        : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      return %0 : tensor<1x2xf32>
    }""")
    least = -np.finfo(np.float32).tiny
    found = reach(program, np.full((1, 2), 3.4e38, np.float32), np.array([least, 1e-30], np.float32))
    assert found["batch norm"] == [[[True, False]]]
