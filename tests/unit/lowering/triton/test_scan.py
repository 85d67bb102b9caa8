"""Scan kernels: running sums and the like, and `chlo.scan`."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import compiled, interpreted, launched, numbers

INF = {"f32": "0xFF800000", "bf16": "0xFF80", "f64": "0xFFF0000000000000"}


def running(
    op: str, shape: tuple[int, ...], dtype: str, dimension: int, reverse: bool = False, init: str = ""
) -> Program:
    """A window that reaches to the first element, or to the last."""
    window = [n if k == dimension else 1 for k, n in enumerate(shape)]
    reach = shape[dimension] - 1
    padding = [[0, 0] if k != dimension else [0, reach] if reverse else [reach, 0] for k in range(len(shape))]
    t, e = f"tensor<{'x'.join(map(str, shape))}x{dtype}>", f"tensor<{dtype}>"
    start = init or {"maximum": INF.get(dtype, "-128"), "multiply": "1.0", "add": "0.0"}[op]
    if not dtype.startswith(("f", "b")) and not init:
        start = start.removesuffix(".0")
    return Program.parse(f"""
    func.func @main(%x: {t}) -> {t} {{
      %c = stablehlo.constant dense<{start}> : {e}
      %r = "stablehlo.reduce_window"(%x, %c) <{{window_dimensions = array<i64: {", ".join(map(str, window))}>,
          padding = dense<{padding}> : tensor<{len(shape)}x2xi64>}}> ({{
      ^bb0(%a: {e}, %b: {e}):
        %s = stablehlo.{op} %a, %b : {e}
        stablehlo.return %s : {e}
      }}) : ({t}, {e}) -> {t}
      func.return %r : {t}
    }}""")


SMALL = {"columns": 4, "rows": 2}


@pytest.mark.parametrize("op", ["add", "multiply", "maximum"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i8"])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_are_scanned(op: str, dtype: str, dimension: int, reverse: bool) -> None:
    program = running(op, (5, 27), dtype, dimension, reverse)
    values = [numbers(0, (5, 27), dtype, 3)]
    for settings in ({}, SMALL, {**SMALL, "pieces": 3}):
        assert check_kernel(program, "window", values, Settings(settings)) == []


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 260), (2, 3, 17)])
def test_any_size_will_do(shape: tuple[int, ...]) -> None:
    program = running("add", shape, "f32", len(shape) - 1)
    assert check_kernel(program, "window", [numbers(0, shape, "f32")], Settings({"columns": 64})) == []


def test_special_values_are_scanned() -> None:
    x = numbers(0, (4, 9), "f32")
    x[0, 3], x[1, 4], x[2, 5], x[2, 7] = np.nan, np.inf, np.inf, -np.inf
    for op in ("add", "maximum"):
        assert check_kernel(running(op, (4, 9), "f32", 1), "window", [x], Settings(SMALL)) == []


def test_an_init_that_counts_at_every_place_is_no_scan() -> None:
    program = running("add", (3, 9), "f32", 1, init="2.0")
    assert check_kernel(program, "window", [numbers(0, (3, 9), "f32")]) == []
    assert not any(op.name == "tile.scan" for step in launched(program, "window")[1].steps for op in step.kernel.walk())


def test_what_a_scan_gives_may_be_indices() -> None:
    """A gather in the same kernel, whose result has no dimension for the index vector."""
    program = Program.parse("""
    func.func @main(%x: tensor<9xf32>, %i: tensor<6xi32>) -> tensor<2x3xf32> {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %s = "stablehlo.reduce_window"(%i, %c) <{window_dimensions = array<i64: 6>,
          padding = dense<[[5, 0]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %t = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %t : tensor<i32>
      }) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
      %r = stablehlo.reshape %s : (tensor<6xi32>) -> tensor<2x3x1xi32>
      %g = "stablehlo.gather"(%x, %r) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
          start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>, indices_are_sorted = false}>
          : (tensor<9xf32>, tensor<2x3x1xi32>) -> tensor<2x3xf32>
      func.return %g : tensor<2x3xf32>
    }""")
    assert check_kernel(program, "window", [numbers(0, (9,), "f32"), np.array([1, 2, -1, 3, 0, 2], np.int32)]) == []


def test_long_rows_are_cut_into_pieces() -> None:
    _, scheduled = launched(running("add", (1 << 20,), "f32", 0), "window")
    assert len(scheduled.steps) == 2 and len(scheduled.scratch) == 1


@pytest.mark.parametrize("reverse", ["true", "false"])
def test_a_scan_with_a_body_goes_slice_by_slice(reverse: str) -> None:
    program = Program.parse(f"""
    func.func @main(%x: tensor<3x7xf32>, %c: tensor<3xf32>) -> (tensor<3x7xf32>, tensor<3xf32>) {{
      %a, %b = "chlo.scan"(%x, %c) <{{dimension = 1 : i64, is_reverse = {reverse},
          operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}}> ({{
      ^bb0(%s: tensor<3xf32>, %k: tensor<3xf32>):
        %t = stablehlo.multiply %s, %k : tensor<3xf32>
        %u = stablehlo.add %s, %k : tensor<3xf32>
        stablehlo.return %t, %u : tensor<3xf32>, tensor<3xf32>
      }}) : (tensor<3x7xf32>, tensor<3xf32>) -> (tensor<3x7xf32>, tensor<3xf32>)
      func.return %a, %b : tensor<3x7xf32>, tensor<3xf32>
    }}""")
    values = [numbers(0, (3, 7), "f32"), numbers(1, (3,), "f32")]
    assert check_kernel(program, "scan", values, Settings({"block": 2})) == []


def test_a_constant_of_no_element_that_a_body_holds_and_does_not_use() -> None:
    program = Program.parse("""
    func.func @main(%x: tensor<5xf32>, %c: tensor<f32>) -> (tensor<5xf32>, tensor<f32>) {
      %a, %b = chlo.scan(%x) inits (%c) dimension=0 {
      ^bb0(%s: tensor<f32>, %k: tensor<f32>):
        %none = stablehlo.constant dense<> : tensor<0xf32>
        %t = stablehlo.add %s, %k : tensor<f32>
        stablehlo.return %t, %t : tensor<f32>, tensor<f32>
      } : (tensor<5xf32>, tensor<f32>) -> (tensor<5xf32>, tensor<f32>)
      func.return %a, %b : tensor<5xf32>, tensor<f32>
    }""")
    assert check_kernel(program, "scan", [numbers(0, (5,), "f32"), numbers(1, (), "f32")]) == []


@pytest.mark.parametrize("settings", [SMALL, {**SMALL, "pieces": 3}], ids=["whole", "pieces"])
def test_the_source_computes_in_tritons_interpreter(settings: dict[str, int]) -> None:
    program = running("add", (3, 19), "f32", 1, reverse=True)
    values = [numbers(0, (3, 19), "f32")]
    (found,) = interpreted(program, "window", values, **settings)
    np.testing.assert_allclose(found, interpret(program, values)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("shape", "dimension"), [((64, 3000), 1), ((3000, 64), 0), ((1 << 16,), 0)])
def test_kernels_fit_the_registers(shape: tuple[int, ...], dimension: int) -> None:
    kernels = compiled(running("add", shape, "f32", dimension), "window")
    assert [kernel.stack for kernel in kernels] == [0] * len(kernels)
