"""Ops without code on GPUs mean the same when they are written with others, and are lowered then."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.ir.program import Program
from gcomp.lowering.triton.lower import drafts
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.targets.base import target_named

Array = np.ndarray[Any, Any]


def both(text: str, *inputs: Array) -> tuple[list[Array], list[Array]]:
    """What a program means before and after; it is lowered for a GPU, too."""
    expected = interpret(Program.parse(text), inputs)
    program = Program.parse(text)
    assert PassManager(parse_pipeline("decompose")).run(program)
    program.verify("decomposed")
    lowered = Program.parse(text)
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(lowered)
    assert drafts(lowered)
    return expected, interpret(program, inputs)


def function(op: str, results: str, *operands: str) -> str:
    """A program of one op, in the generic form without its types."""
    arguments = ", ".join(f"%a{i}: tensor<{t}>" for i, t in enumerate(operands))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    types = ", ".join(f"tensor<{t}>" for t in operands)
    name, _, properties = op.partition(" ")
    return (
        f"func.func @main({arguments}) -> tensor<{results}> {{\n"
        f'  %r = "{name}"({names}) {properties} : ({types}) -> tensor<{results}>\n  return %r : tensor<{results}>\n}}'
    )


@pytest.mark.parametrize("dtype", ["i2", "ui4", "i8", "ui8", "i32", "i64", "ui64"])
def test_powers_of_integers_are_exact(dtype: str) -> None:
    limits = ml_dtypes.iinfo(dtype_of(dtype)) if dtype in ("i2", "ui4") else np.iinfo(dtype_of(dtype))
    low, high = int(limits.min), int(limits.max)
    edges = [v for v in (0, 1, 2, 3, 5, 7, -1, -2, -3, 10, 63, 64, low, high, high - 1) if low <= v <= high]
    base, exponent = (grid.reshape(-1) for grid in np.meshgrid(np.array(edges, object), np.array(edges, object)))
    t = f"{base.size}x{dtype}"
    (expected,), (found,) = both(
        function("stablehlo.power", t, t, t), base.astype(dtype_of(dtype)), exponent.astype(dtype_of(dtype))
    )
    assert np.array_equal(expected, found)


@pytest.mark.parametrize(
    ("op", "results", "operands"),
    [
        ("stablehlo.dynamic_pad", "9x4xf32", ("3x4xf32", "f32", "2xi32", "2xi32", "2xi32")),
        ("stablehlo.real_dynamic_slice", "2x3xf32", ("5x7xf32", "2xi64", "2xi64", "2xi64")),
        ("chlo.broadcast_subtract <{broadcast_dimensions = array<i64: 1>}>", "2x3x4xi32", ("3xi32", "2x3x4xi32")),
        ("chlo.broadcast_subtract", "2x3x4xi32", ("2x3x4xi32", "3x1xi32")),
        (
            "chlo.broadcast_compare <{comparison_direction = #chlo<comparison_direction LT>}>",
            "2x3xi1",
            ("2x3xi32", "3xi32"),
        ),
        ("chlo.broadcast_select", "2x3xi32", ("i1", "2x3xi32", "1x3xi32")),
        ("stablehlo.dot", "2x5xi32", ("2x3xi32", "3x5xi32")),
        ("stablehlo.dot", "i32", ("3xi32", "3xi32")),
        ("stablehlo.broadcast <{broadcast_sizes = array<i64: 2, 1>}>", "2x1x3xi32", ("3xi32",)),
        ("stablehlo.real", "3xbf16", ("3xbf16",)),
        ("stablehlo.imag", "3xbf16", ("3xbf16",)),
        ("chlo.conj", "3xf16", ("3xf16",)),
    ],
)
def test_data_that_moves_is_the_same(op: str, results: str, operands: tuple[str, ...]) -> None:
    amounts = {
        "stablehlo.dynamic_pad": ([2, -1], [2, 1], [1, 0]),
        "stablehlo.real_dynamic_slice": ([1, 0], [5, 6], [3, 2]),
    }.get(op, ())
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(-9, 9, [int(n) for n in t.split("x")[:-1]]).astype(dtype_of(t.split("x")[-1])) for t in operands
    ]
    for i, values in enumerate(amounts):
        inputs[len(inputs) - len(amounts) + i][:] = values
    (expected,), (found,) = both(function(op, results, *operands), *inputs)
    assert np.array_equal(expected, found) and expected.shape == found.shape


def test_a_convolution_s_padding_may_be_data() -> None:
    text = """func.func @main(%x: tensor<1x5x6x2xf32>, %w: tensor<3x2x2x4xf32>, %p: tensor<2x2xi64>)
        -> tensor<1x4x9x4xf32> {
  %r = "stablehlo.dynamic_conv"(%x, %w, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      window_strides = array<i64: 2, 1>, lhs_dilation = array<i64: 2, 1>, rhs_dilation = array<i64: 1, 2>}>
    : (tensor<1x5x6x2xf32>, tensor<3x2x2x4xf32>, tensor<2x2xi64>) -> tensor<1x4x9x4xf32>
  return %r : tensor<1x4x9x4xf32>
}"""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 9, s).astype(np.float32) for s in ((1, 5, 6, 2), (3, 2, 2, 4))]
    (expected,), (found,) = both(text, *inputs, np.array([[1, 0], [2, 3]], np.int64))
    assert np.array_equal(expected, found)


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("window", [1, 2])
def test_a_convolution_of_an_unknown_number_of_windows_may_have_none(stride: int, window: int) -> None:
    text = f"""builtin.module attributes {{gcomp.ranges = {{m = "0..9", n = "0..9"}}}} {{
func.func @main(%x: tensor<1x?x1xf32, ["1", "n", "1"]>, %w: tensor<{window}x1x1xf32>, %p: tensor<1x2xi64>,
        %s: tensor<?xf32, ["m"]>) -> tensor<1x?x1xf32, ["1", "m", "1"]> {{
  %r = "stablehlo.dynamic_conv"(%x, %w, %p) <{{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = array<i64: {stride}>}}>
    : (tensor<1x?x1xf32, ["1", "n", "1"]>, tensor<{window}x1x1xf32>, tensor<1x2xi64>)
    -> tensor<1x?x1xf32, ["1", "m", "1"]>
  return %r : tensor<1x?x1xf32, ["1", "m", "1"]>
}}}}"""
    for n in (0, 1, 7):
        m = (n + 1 - window) // stride + 1 if n + 1 >= window else 0
        x, w = np.arange(1, n + 1, dtype=np.float32).reshape(1, n, 1), np.ones((window, 1, 1), np.float32)
        padding = np.array([[0, 1]], np.int64)
        (expected,), (found,) = both(text, x, w, padding, np.zeros(m, np.float32))
        assert expected.shape == found.shape == (1, m, 1) and np.array_equal(expected, found)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("op", ["digamma", "bessel_i1e", "polygamma", "zeta"])
def test_special_functions_are_near(op: str, dtype: str) -> None:
    x = np.linspace(1.1, 30, 64).astype(dtype_of(dtype))
    orders = np.arange(64) % 4 + (2 if op == "zeta" else 0)
    inputs = [x] if op in ("digamma", "bessel_i1e") else [orders.astype(dtype_of(dtype)), x]
    t = f"64x{dtype}"
    (expected,), (found,) = both(function(f"chlo.{op}", t, *[t] * len(inputs)), *inputs)
    rtol = {"f32": 2e-7, "f64": 1e-13, "bf16": 1e-2}[dtype]
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol)


def test_a_map_is_taken_for_all_elements_at_once() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %p = stablehlo.multiply %a, %c : tensor<f32>
    %z = stablehlo.subtract %p, %b : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}"""
    inputs = [np.random.default_rng(i).standard_normal((2, 3)).astype(np.float32) for i in range(2)]
    (expected,), (found,) = both(text, *inputs)
    assert np.array_equal(expected, found)


def normalizations(element: str) -> str:
    """All three ops on batches of four."""
    t, v = f"tensor<4x3x{element}>", f"tensor<3x{element}>"
    return f"""func.func @main(%x: {t}, %s: {v}, %o: {v}, %g: {t}) -> ({t}, {v}, {v}, {t}, {v}, {v}, {t}) {{
  %y, %m, %n = "stablehlo.batch_norm_training"(%x, %s, %o) <{{epsilon = 0.001 : f32, feature_index = 1 : i64}}>
    : ({t}, {v}, {v}) -> ({t}, {v}, {v})
  %a, %b, %c = "stablehlo.batch_norm_grad"(%x, %s, %m, %n, %g) <{{epsilon = 0.001 : f32, feature_index = 1 : i64}}>
    : ({t}, {v}, {v}, {v}, {t}) -> ({t}, {v}, {v})
  %i = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %n) <{{epsilon = 0.001 : f32, feature_index = 1 : i64}}>
    : ({t}, {v}, {v}, {v}, {v}) -> {t}
  return %y, %m, %n, %a, %b, %c, %i : {t}, {v}, {v}, {t}, {v}, {v}, {t}
}}"""


def test_batches_are_normalized_by_the_definition() -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in ((4, 3), 3, 3, (4, 3))]
    expected, found = both(normalizations("f32"), *inputs)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)


def test_large_gradients_do_not_overflow_on_the_way() -> None:
    """By the specification's formula, a sum of gradients times what is centered is multiplied by it once more."""
    rng = np.random.default_rng(1)
    x, scale, offset, gradient = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), 3, 3, (4, 3)))
    expected, found = both(normalizations("f32"), x * np.float32(1e13), scale, offset, gradient * np.float32(1e13))
    for a, b in zip(expected, found, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6 * np.abs(a).max())


@pytest.mark.parametrize("element", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_batches_of_narrow_floats_do_not_overflow_on_the_way(element: str) -> None:
    """Squares and sums over the batch are in f32: in 8 bits they would be NaN where the results are numbers."""
    rng = np.random.default_rng(0)
    inputs = [(rng.integers(-3, 4, s) * 40).astype(dtype_of(element)) for s in ((4, 3), 3, 3, (4, 3))]
    expected, found = both(normalizations(element), *inputs)
    for a, b in zip(expected, found, strict=True):
        wide, other = a.astype(np.float64), b.astype(np.float64)
        # Rounded twice at most where once is due: the next number at most.
        assert np.array_equal(np.isnan(wide), np.isnan(other))
        np.testing.assert_allclose(other, wide, rtol=2 * float(ml_dtypes.finfo(a.dtype).eps))
