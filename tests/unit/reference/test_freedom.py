"""What a class leaves open inside a program reaches the outputs that look at it, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.convert.complex_to_pairs import ComplexToPairs
from gcomp.passes.graph.canonicalize import Canonicalize
from gcomp.passes.graph.fold_batch_norm import FoldBatchNormPass
from gcomp.reference.freedom import open_elements
from gcomp.reference.interpreter import interpret
from gcomp.testing.check import check_pass

X = np.array([0.0, -0.0, 1.5, np.nan, np.inf], np.float32)
LOOKS = {
    "plain": ("stablehlo.negate %0 : tensor<5xf32>", "f32", []),
    "zeros": ("stablehlo.divide %one, %0 : tensor<5xf32>", "f32", [0, 1]),
    "order": (
        "stablehlo.compare LT, %0, %x, TOTALORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>", "i1", [0, 3],
    ),
    "bits": ("stablehlo.bitcast_convert %0 : (tensor<5xf32>) -> tensor<5xi32>", "i32", [0, 1, 3]),
}  # fmt: skip


def program(op: str, dtype: str) -> Program:
    return Program.parse(f"""
func.func @main(%x: tensor<5xf32>) -> tensor<5x{dtype}> {{
  %one = stablehlo.constant dense<1.0> : tensor<5xf32>
  %0 = stablehlo.maximum %x, %x : tensor<5xf32>
  %1 = {op}
  return %1 : tensor<5x{dtype}>
}}""")


@pytest.mark.parametrize("name", LOOKS)
def test_signs_reach_what_looks_at_them(name: str) -> None:
    op, dtype, places = LOOKS[name]
    source = program(op, dtype)
    expected = interpret(source, [X])
    (mask,) = open_elements(source, Exactness.E1, [X], expected, expected)
    assert np.flatnonzero(mask).tolist() == places
    assert check_pass(Canonicalize(), source, [X]) is None


def test_e0_leaves_nothing_open() -> None:
    source = program(*LOOKS["bits"][:2])
    expected = interpret(source, [X])
    assert not open_elements(source, Exactness.E0, [X], expected, expected)[0].any()


def test_sums_near_the_limit_may_overflow_and_others_may_not() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<2x3xf16>) -> tensor<2xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %two = stablehlo.constant dense<2.0> : tensor<2x3xf16>
  %0 = stablehlo.multiply %x, %two : tensor<2x3xf16>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<2x3xf16>, tensor<f16>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
}""")
    x = np.array([[30000, -30000, 2], [3, 4, 5]], np.float16)
    expected = interpret(source, [x])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [np.array([np.inf, np.inf], np.float16)])
    assert mask.tolist() == [True, False]


def folded(body: str, init: float) -> Program:
    return Program.parse(f"""
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {{
  %init = stablehlo.constant dense<{init}> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.{body} across dimensions = [1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}}""")


@pytest.mark.parametrize(
    ("body", "init", "row", "other"),
    [
        ("add", 0.0, [3e38, -3e38, 3e38], [1, 2, 3]),  # 3e38 + 3e38 comes first in another order
        ("multiply", 0.01, [2e19, 1, 3e19], [2e9, 3, np.nan]),
        ("multiply", 1.0, [1e-30, np.inf, 1e-30], [1e-30, 1e-30, 2]),  # 0 * inf is nan, elsewhere inf
    ],
)
def test_a_part_of_a_fold_may_overflow_in_another_order(
    body: str, init: float, row: list[float], other: list[float]
) -> None:
    source, infinite = folded(body, init), [np.full(2, np.inf, np.float32)]
    x = np.array([row, row], np.float32)
    assert open_elements(source, Exactness.E2, [x], interpret(source, [x]), infinite)[0].all()
    assert not open_elements(source, Exactness.E1, [x], interpret(source, [x]), infinite)[0].any()
    x = np.array([other, other], np.float32)
    assert not open_elements(source, Exactness.E2, [x], interpret(source, [x]), infinite)[0].any()


def test_of_two_infinities_that_are_subtracted_either_may_be_a_number() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.negate %x : tensor<8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.multiply %2, %2 : tensor<f32>
  %power = stablehlo.power %2, %two : tensor<f32>
  %4 = stablehlo.multiply %power, %half : tensor<f32>
  %5 = stablehlo.subtract %4, %3 : tensor<f32>
  %6 = stablehlo.rsqrt %5 : tensor<f32>
  %7 = stablehlo.add %1, %6 : tensor<f32>
  return %7 : tensor<f32>
}""")
    inputs = [np.array([1e38, -1e38] * 4, np.float32)]
    expected = interpret(source, inputs)
    assert np.isnan(expected[0]) and open_elements(source, Exactness.E2, inputs, expected, [np.float32(0)])[0].all()


def test_squares_of_statistics_may_overflow_where_the_result_does_not() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<2x2xf32>, %s: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0, %1, %2 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}>
    : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>
}""")
    inputs = [np.array([[-1.8e19, 1], [1.8e19, 2]], np.float32), np.ones(2, np.float32)]
    expected = interpret(source, inputs)
    masks = open_elements(source, Exactness.E2, inputs, expected, [np.full_like(x, np.inf) for x in expected])
    assert [mask.tolist() for mask in masks] == [[[True, False]] * 2, [True, False], [True, False]]


def test_a_sum_of_many_open_products_may_be_a_number() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<9x1xcomplex<f32>>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
    : (tensor<9x1xcomplex<f32>>, tensor<9x1xcomplex<f32>>) -> tensor<9x9xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<9x9xcomplex<f32>>) -> tensor<9x9xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<9x9xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}""")
    inputs = [np.full((9, 1), complex(np.inf, np.inf), np.complex64)]
    expected = interpret(source, inputs)
    assert (
        np.isnan(expected[0]) and open_elements(source, Exactness.E2, inputs, expected, [np.float32(np.inf)])[0].all()
    )


def test_statistics_are_off_by_more_the_more_is_summed() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<85x1xf32>, %s: tensor<1xf32>) -> tensor<1xf32> {
  %0, %1, %2 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}>
    : (tensor<85x1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<85x1xf32>, tensor<1xf32>, tensor<1xf32>)
  return %2 : tensor<1xf32>
}""")
    inputs = [np.resize(np.array([3, -3, 1, 0, 2, -1, 3], np.float32), (85, 1)), np.ones(1, np.float32)]
    (expected,) = interpret(source, inputs)
    assert open_elements(source, Exactness.E2, inputs, [expected], [expected + 7 * np.spacing(expected)])[0].all()
    assert not open_elements(source, Exactness.E2, inputs, [expected], [expected + 999 * np.spacing(expected)])[0].any()


def test_a_part_of_a_product_may_vanish_in_another_order() -> None:
    source = folded("multiply", 1.0)
    x = np.array([[1e30, 1e-30, 1e-30], [0.0, 1e-30, 1e-30]], np.float32)  # a factor of zero makes zero in any order
    expected = interpret(source, [x])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [np.zeros(2, np.float32)])
    assert mask.tolist() == [True, False]


def test_a_product_beside_a_fold_of_integers_is_open_too() -> None:
    source = Program.parse("""
func.func @main(%k: tensor<3xi32>, %x: tensor<3xf32>) -> (tensor<i32>, tensor<f32>) {
  %0 = stablehlo.constant dense<7> : tensor<i32>
  %1 = stablehlo.constant dense<1.0> : tensor<f32>
  %2, %3 = stablehlo.reduce(%k init: %0), (%x init: %1) across dimensions = [0]
    : (tensor<3xi32>, tensor<3xf32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
    reducer(%a: tensor<i32>, %b: tensor<i32>) (%c: tensor<f32>, %d: tensor<f32>) {
    %4 = stablehlo.and %a, %b : tensor<i32>
    %5 = stablehlo.multiply %c, %d : tensor<f32>
    stablehlo.return %4, %5 : tensor<i32>, tensor<f32>
  }
  return %2, %3 : tensor<i32>, tensor<f32>
}""")
    inputs = [np.array([1, 2, 3], np.int32), np.array([0, 1e30, 1e30], np.float32)]  # 0, or 0 * inf
    expected = interpret(source, inputs)
    masks = open_elements(source, Exactness.E2, inputs, expected, [expected[0], np.float32(np.nan)])
    assert [mask.tolist() for mask in masks] == [False, True]


def test_below_the_normal_numbers_rounding_is_of_one_size() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}""")
    x = np.array([4e-22, 4e-22, 0], np.float32)  # squares of some hundred times the least number above 0
    (expected,) = interpret(source, [x])
    least = np.float32(1.4e-45)
    near, far = expected + np.array([least, 0, 0], np.float32), expected + np.array([0, 99 * least, least], np.float32)
    assert open_elements(source, Exactness.E2, [x], [expected], [near])[0].tolist() == [True, True, False]
    assert open_elements(source, Exactness.E2, [x], [expected], [far])[0].tolist() == [True, False, False]


def test_a_solution_that_cancels_may_be_left_with_a_rounding_error() -> None:
    """Below the diagonal of x x^-1 another order of the same sums leaves 6e-8 of a zero; the root makes it 2e-4."""
    source = Program.parse("""
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.triangular_solve"(%x, %x) <{left_side = false, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.sqrt %0 : tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}""")
    x = np.float32([[-1, 1], [2, -3]])
    expected = interpret(source, [x])
    other = expected[0].copy()
    other[1, 0] = 2.4414062e-4
    wrong = expected[0].copy()
    wrong[1, 0] = 0.1
    for actual, excused in ((other, True), (wrong, False)):
        (mask,) = open_elements(source, Exactness.E2, [x], expected, [actual])
        assert bool(mask[1, 0]) is excused


@pytest.mark.parametrize(
    ("op", "found", "excused"), [("log", -np.inf, True), ("sqrt", 0.0, True), ("sqrt", 0.1, False)]
)
def test_a_sum_of_which_an_order_leaves_nothing_may_be_zero(op: str, found: float, excused: bool) -> None:
    source = Program.parse(f"""
func.func @main(%x: tensor<3xf32>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.{op} %0 : tensor<f32>
  return %1 : tensor<f32>
}}""")
    x = np.float32([1.0, -1.0, 2.0**-25])  # 2 ** -25 where the ones come first, and else 0
    expected = interpret(source, [x])
    assert np.isfinite(expected[0]) and expected[0]
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [np.asarray(found, np.float32)])
    assert bool(mask) is excused


def test_a_sum_of_nan_may_be_the_very_nan_of_an_operand() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<2xf32>) -> tensor<2xi1> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  %1 = stablehlo.compare NE, %x, %0, TOTALORDER : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %1 : tensor<2xi1>
}""")
    x = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
    for expected in ([True, True], [False, True]):
        (mask,) = open_elements(source, Exactness.E1, [x], [np.array(expected)], [np.array([False, True])])
        assert mask.tolist() == [True, False]


@pytest.mark.parametrize(("way", "open_"), [("EQ", [True, False, False]), ("LE", [True, False, False])])
def test_what_is_next_to_each_other_may_be_equal(way: str, open_: list[bool]) -> None:
    """The root of 3, squared, is 3 where more digits are kept in between; that of 4 is 2 anyway, and 9 is not 8."""
    source = Program.parse(f"""
func.func @main(%x: tensor<3xf16>, %y: tensor<3xf16>) -> tensor<3xi1> {{
  %0 = stablehlo.sqrt %x : tensor<3xf16>
  %1 = stablehlo.multiply %0, %0 : tensor<3xf16>
  %2 = stablehlo.compare {way}, %1, %y : (tensor<3xf16>, tensor<3xf16>) -> tensor<3xi1>
  return %2 : tensor<3xi1>
}}""")
    x, y = np.float16([3, 0, 8]), np.float16([3, 0, 9])
    expected = interpret(source, [x, y])
    assert not expected[0][0]
    (mask,) = open_elements(source, Exactness.E2, [x, y], expected, [~expected[0]])
    assert mask.tolist() == open_


def test_powers_of_what_is_not_finite_are_open_and_others_are_not() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.power %x, %x : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}""")
    x = np.array([complex(-np.inf, np.nan), 2 + 1j], np.complex64)
    expected = interpret(source, [x])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [np.full(2, complex(np.nan, np.nan), np.complex64)])
    assert mask.tolist() == [True, False]
    assert check_pass(ComplexToPairs(), source, [x]) is None


def test_the_bits_of_what_is_rounded_are_open_too() -> None:
    """As integers of 64 bits: doubles do not tell those that are next to each other apart."""
    made = Program.parse("""func.func @main(%x: tensor<3xf64>) -> tensor<3xi64> {
  %0 = stablehlo.exponential %x : tensor<3xf64>
  %1 = stablehlo.bitcast_convert %0 : (tensor<3xf64>) -> tensor<3xi64>
  return %1 : tensor<3xi64>
}""")
    inputs = [np.array([1.5, 2.5, 3.5])]
    (expected,) = interpret(made, inputs)
    (near,) = open_elements(made, Exactness.E2, inputs, [expected], [expected + np.array([1, -1, 0])])
    (far,) = open_elements(made, Exactness.E2, inputs, [expected], [expected + 10**6])
    assert near[:2].all() and not far.any()


def test_a_part_of_a_function_of_complex_numbers_is_off_by_as_much_as_the_whole() -> None:
    """The imaginary part is a rounding error here, of either sign: on the cut of the square root."""
    source = Program.parse("""
func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.atan2 %x, %x : tensor<2xcomplex<f32>>
  %1 = stablehlo.sqrt %0 : tensor<2xcomplex<f32>>
  return %1 : tensor<2xcomplex<f32>>
}""")
    cut = interpret(Program.parse("""
func.func @main(%x: tensor<400xcomplex<f32>>) -> tensor<400xcomplex<f32>> {
  %0 = stablehlo.atan2 %x, %x : tensor<400xcomplex<f32>>
  return %0 : tensor<400xcomplex<f32>>
}"""), [points := whole_numbers(400)])[0]  # fmt: skip
    near = points[(cut.real < 0) & (cut.imag != 0) & (np.abs(cut.imag) < 1e-12)][:1]
    x = np.concatenate([near, np.array([2 + 1j], np.complex64)])
    expected = interpret(source, [x])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [np.conj(expected[0])])
    assert mask[0]
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [-expected[0]])
    assert not mask[1]


def whole_numbers(count: int) -> np.ndarray:
    drawn = np.random.default_rng(0).integers(-8, 9, (2, count))
    return (drawn[0] + 1j * drawn[1]).astype(np.complex64)


def test_what_cancels_in_a_wide_type_does_behind_a_narrow_one_too() -> None:
    """Other roundings of f8 are so large that nothing of them cancels in f32."""
    source = Program.parse("""
func.func @main(%x: tensor<20xi32>) -> tensor<11xcomplex<f32>> {
  %0 = stablehlo.convert %x : (tensor<20xi32>) -> tensor<20xf8E4M3FN>
  %1 = stablehlo.convert %0 : (tensor<20xf8E4M3FN>) -> tensor<20xf32>
  %2 = stablehlo.fft %1, type = RFFT, length = [20] : (tensor<20xf32>) -> tensor<11xcomplex<f32>>
  %3 = stablehlo.constant dense<(0.0,1.0)> : tensor<11xcomplex<f32>>
  %4 = stablehlo.divide %3, %2 : tensor<11xcomplex<f32>>
  return %4 : tensor<11xcomplex<f32>>
}""")
    x = np.tile(np.array([3, -1, 2, 0, 5, 1, 1, -1, 4, 2], np.int32), 2)
    expected = interpret(source, [x])
    # Of what comes twice, each odd frequency is 0, or what rounding leaves of it.
    odd = np.arange(11) % 2 == 1
    actual = np.where(odd, np.complex64(complex(np.nan, np.inf)), expected[0])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [actual])
    differs = odd & ~np.isnan(expected[0])
    assert differs.any() and mask[differs].all()
    assert check_pass(ComplexToPairs(), source, [x]) is None


def test_an_infinity_that_an_operand_brings_is_not_open() -> None:
    """x + (y - x) is NaN for an infinite x, whatever rounds: y in its place is no other rounding."""
    source = Program.parse("""
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.subtract %y, %x : tensor<3xf32>
  %1 = stablehlo.add %x, %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}""")
    x, y = np.array([np.inf, 3e38, 1.0], np.float32), np.array([1.0, -3e38, 2.0], np.float32)
    expected = interpret(source, [x, y])
    (mask,) = open_elements(source, Exactness.E2, [x, y], expected, [y])
    assert mask.tolist()[:2] == [False, True]


@pytest.mark.parametrize(("text", "open_"), [("f32", [False, True]), ("f64", [True, True])])
def test_an_overflow_by_far_that_an_output_shows_is_its_value(text: str, open_: list[bool]) -> None:
    """The logarithm of an exponential is infinite where that is; in double precision, nobody knows by how much."""
    source = Program.parse(f"""
func.func @main(%x: tensor<3x{text}>) -> tensor<3x{text}> {{
  %0 = stablehlo.exponential %x : tensor<3x{text}>
  %1 = stablehlo.log %0 : tensor<3x{text}>
  return %1 : tensor<3x{text}>
}}""")
    x = np.array([1000.0, 89.0 if text == "f32" else 710.0, 50.0], dtype_of(text))
    expected = interpret(source, [x])
    (mask,) = open_elements(source, Exactness.E2, [x], expected, [x])
    assert mask.tolist()[:2] == open_


def test_a_product_may_be_a_number_that_only_its_type_lacks() -> None:
    source = Program.parse("""
func.func @main(%x: tensor<3xbf16>, %y: tensor<3xbf16>) -> tensor<3xbf16> {
  %half = stablehlo.constant dense<0.5> : tensor<3xbf16>
  %0 = stablehlo.multiply %x, %half : tensor<3xbf16>
  %1 = stablehlo.multiply %0, %y : tensor<3xbf16>
  return %1 : tensor<3xbf16>
}""")
    kind = dtype_of("bf16")
    inputs = [np.array([2.0**-133, 0.0, 2.0**-132], kind), np.full(3, -np.inf, kind)]
    expected = interpret(source, inputs)
    assert np.isnan(np.asarray(expected[0], np.float32)).tolist() == [True, True, False]
    (mask,) = open_elements(source, Exactness.E2, inputs, expected, expected)
    assert mask.tolist() == [True, False, False]


def test_a_batch_normalization_may_scale_before_its_quotient_overflows() -> None:
    """Of doubles; all others are computed in them. What infinite operands make is not open."""
    source = Program.parse("""
func.func @main(%x: tensor<1x3xf64>) -> tensor<1x3xf64> {
  %scale = stablehlo.constant dense<0.0> : tensor<1xf64>
  %offset = stablehlo.constant dense<0.1> : tensor<1xf64>
  %mean = stablehlo.constant dense<-1.0> : tensor<1xf64>
  %variance = stablehlo.constant dense<-0.001> : tensor<1xf64>
  %0 = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance)
      <{epsilon = 1.0 : f32, feature_index = 0 : i64}>
      : (tensor<1x3xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>) -> tensor<1x3xf64>
  return %0 : tensor<1x3xf64>
}""")
    inputs = [np.array([[np.finfo(np.float64).max, np.inf, 2.0]])]
    expected = interpret(source, inputs)
    assert np.isnan(expected[0]).tolist() == [[True, True, False]]
    (mask,) = open_elements(source, Exactness.E2, inputs, expected, [np.full((1, 3), 0.1)])
    assert mask[0, :2].tolist() == [True, False]
    assert check_pass(FoldBatchNormPass(), source, [np.where(np.isinf(inputs[0]), 1.0, inputs[0])]) is None


@pytest.mark.parametrize(("name", "x"), [("lgamma", 0.9857876825934159), ("digamma", 1.4616321449683622)])
def test_functions_are_off_by_ulps_of_their_terms_near_zeros(name: str, x: float) -> None:
    """Next to a zero of the function the error of its value is many of the value's own ulps; a far point's is not."""
    source = Program.parse(f"""
func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {{
  %0 = chlo.{name} %x : tensor<2xf64> -> tensor<2xf64>
  %1 = stablehlo.divide %x, %0 : tensor<2xf64>
  return %1 : tensor<2xf64>
}}""")
    inputs = [np.array([x, 7.5])]
    expected = interpret(source, inputs)
    (mask,) = open_elements(source, Exactness.E2, inputs, expected, [expected[0] * (1 + 2.0**-44)])
    assert mask.tolist() == [True, False]
