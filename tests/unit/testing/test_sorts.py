"""Comparators that contradict themselves are told from strict weak orders."""

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.sorts import find_contradictions, unordered_elements
from gcomp.testing.tiles import check_kernel

NAN = np.float32("nan")

SORTED = """
func.func @main(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {{
  %y = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare {direction}, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}}"""


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_a_strict_order_leaves_nothing_open(direction: str) -> None:
    program = Program.parse(SORTED.format(direction=direction))
    x = np.random.default_rng(0).integers(-2, 3, (2, 6)).astype(np.float32)
    assert not np.any(unordered_elements(program, [x], interpret(program, [x]))[0])


def test_only_rows_with_nan_are_open_to_less_than() -> None:
    program = Program.parse(SORTED.format(direction="LT"))
    x = np.array([[5, NAN, 1, 4, 2, 3], [5, 6, 1, 4, 2, 3]], np.float32)
    (mask,) = unordered_elements(program, [x], interpret(program, [x]))
    assert mask[0].all() and not mask[1].any()


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_nan_among_equal_numbers_is_open_too(direction: str) -> None:
    program = Program.parse(SORTED.format(direction=direction))
    x = np.array([[NAN, 1, 1, NAN, 1, 1], [NAN] * 6], np.float32)
    (mask,) = unordered_elements(program, [x], interpret(program, [x]))
    assert mask[0].any() and not mask[1].any()
    assert check_kernel(program, "sort", [x]) == []


def test_nan_is_told_from_numbers_of_a_type_without_infinity() -> None:
    program = Program.parse(SORTED.format(direction="LT").replace("f32", "f8E4M3FN"))
    x = np.array([[NAN, 1, 1, NAN, 1, 1], [NAN] * 6], np.float32).astype(dtype_of("f8E4M3FN"))
    (mask,) = unordered_elements(program, [x], interpret(program, [x]))
    assert mask[0].any() and not mask[1].any()
    assert check_kernel(program, "sort", [x]) == []


def test_nan_far_away_leaves_all_of_a_row_open() -> None:
    program = Program.parse(SORTED.format(direction="GT").replace("2x6", "2x90"))
    x = np.ones((2, 90), np.float32)
    x[0, 40] = NAN
    (mask,) = unordered_elements(program, [x], interpret(program, [x]))
    assert mask[0].all() and not mask[1].any()
    assert check_kernel(program, "sort", [x]) == []


def test_nan_that_no_comparator_looks_at_leaves_nothing_open() -> None:
    keys, values = np.array([[1, 1, 2]]), np.array([[NAN, 1, 2]], np.float32)
    assert not find_contradictions([keys, values], 1, lambda a, b, *_: a < b).any()


def test_less_or_equal_contradicts_itself_on_any_element() -> None:
    program = Program.parse(SORTED.format(direction="LE"))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert unordered_elements(program, [x], interpret(program, [x]))[0].all()


def test_ties_by_a_coarser_key_are_an_order() -> None:
    rows = [np.array([[0, 1, 10, 11, 20]])]
    assert not find_contradictions(rows, 1, lambda a, b: a // 10 < b // 10).any()
    assert find_contradictions(
        [np.array([[0, 1, 2, 3]])], 1, lambda a, b: a + 1 < b
    ).all()  # 0 ~ 1 and 1 ~ 2, but 0 < 2


def test_kernels_may_write_one_place_twice_where_the_comparator_does() -> None:
    text = (
        SORTED.format(direction="LT")
        .replace("LT, %a, %b, FLOAT", "LE, %n, %m, FLOAT")
        .replace(
            "    %c =",
            "    %n = stablehlo.negate %a : tensor<f32>\n    %m = stablehlo.negate %b : tensor<f32>\n    %c =",
        )
    )
    x = np.array([[5, NAN, 1, 4, 1, 3], [5, 5, 1, 4, 2, 3]], np.float32)
    assert check_kernel(Program.parse(text), "sort", [x]) == []
