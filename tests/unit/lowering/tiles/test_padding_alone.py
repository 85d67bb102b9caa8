"""Kernels whose windows read only padding: they are computed as all others are, in every way of scheduling them."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.dims import evaluate
from gcomp.dtypes import dtype_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import as_kernel, check_kernel

FORMS = [
    {}, {"windows": 1}, {"windows": 1, "runs": 1, "exact": 1}, {"rows": 16, "columns": 16, "terms": 16, "pieces": 2},
    {"boxes": 1},
]  # fmt: skip
DIMENSIONS = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"


def convolution(element: str = "f32", out: str = "f32", groups: int = 1, batches: int = 1, reverse: str = "") -> str:
    """Five rows of padding before three rows, which are cropped."""
    x, w, y = f"2x3x3x2x{element}", f"2x2x{2 // groups}x4x{element}", f"{2 // batches}x2x2x4x{out}"
    window = f"window = {{stride = [2, 1], pad = [[5, -3], [0, 0]], rhs_dilate = [1, 1]{reverse}}}"
    counts = f"{{batch_group_count = {batches} : i64, feature_group_count = {groups} : i64}}"
    return f"""func.func @main(%x: tensor<{x}>, %w: tensor<{w}>) -> tensor<{y}> {{
      %y = stablehlo.convolution(%x, %w) {DIMENSIONS}, {window} {counts} : (tensor<{x}>, tensor<{w}>) -> tensor<{y}>
      return %y : tensor<{y}>
    }}"""


FOLD = """^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %f = stablehlo.{op} %a, %b : tensor<f32>
        stablehlo.return %f : tensor<f32>"""


def window(rows: int, padding: str, op: str) -> str:
    """Windows of two rows, between which there is a gap."""
    return f"""func.func @main(%x: tensor<{rows}x2xf32>, %i: tensor<f32>) -> tensor<2x2xf32> {{
      %y = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 2, 1>,
        window_strides = array<i64: 2, 1>, padding = dense<[{padding}, [0, 0]]> : tensor<2x2xi64>}}> ({{
      {FOLD.format(op=op)}
      }}) : (tensor<{rows}x2xf32>, tensor<f32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    }}"""


def selection(padding: str, windows: int) -> str:
    """Windows none of which chooses a row."""
    source = f"tensor<{windows}x2xf32>"
    return f"""func.func @main(%x: tensor<3x2xf32>, %s: {source}, %i: tensor<f32>) -> tensor<3x2xf32> {{
      %y = "stablehlo.select_and_scatter"(%x, %s, %i) <{{window_dimensions = array<i64: 2, 1>,
        window_strides = array<i64: 2, 1>, padding = dense<[{padding}, [0, 0]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %g = stablehlo.compare GE, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }}, {{
      {FOLD.format(op="add")}
      }}) : (tensor<3x2xf32>, {source}, tensor<f32>) -> tensor<3x2xf32>
      return %y : tensor<3x2xf32>
    }}"""


def padded(rows: int, low: int, high: int, interior: int, out: int) -> str:
    """Padding beside rows that are cropped."""
    sizes = f"low = [{low}, 0], high = [{high}, 0], interior = [{interior}, 0]"
    types = f"(tensor<{rows}x2xf32>, tensor<f32>) -> tensor<{out}x2xf32>"
    return f"""func.func @main(%x: tensor<{rows}x2xf32>, %i: tensor<f32>) -> tensor<{out}x2xf32> {{
      %y = stablehlo.pad %x, %i, {sizes} : {types}
      return %y : tensor<{out}x2xf32>
    }}"""


PROGRAMS = {
    "convolution": ("convolution", convolution()),
    "convolution of f64": ("convolution", convolution("f64", "f64")),
    "convolution of bf16": ("convolution", convolution("bf16")),
    "convolution of i8": ("convolution", convolution("i8", "i32")),
    "convolution in groups": ("convolution", convolution(groups=2)),
    "convolution in groups of the batch": ("convolution", convolution(batches=2)),
    "convolution, reversed": ("convolution", convolution(reverse=", reverse = [true, false]")),
    "sum of windows": ("window", window(3, "[5, -3]", "add")),
    "maximum of windows": ("window", window(3, "[-3, 5]", "maximum")),
    "windows of nothing": ("window", window(0, "[2, 3]", "add")),
    "selection": ("window", selection("[5, -3]", 2)),
    "selection without windows": ("window", selection("[0, -3]", 0)),
    "padding before": ("loop", padded(3, 5, -3, 0, 5)),
    "padding after": ("loop", padded(3, -3, 5, 0, 5)),
    "padding between": ("loop", padded(3, -5, 4, 1, 4)),
    "padding of nothing": ("loop", padded(0, 2, 2, 0, 4)),
}


def inputs_of(program: Program) -> list[np.ndarray]:
    random, types = np.random.default_rng(0), [argument.type for argument in program.block.args]
    shapes = [[evaluate(size, {}) for size in shape_of(type)] for type in types]
    return [
        np.asarray(random.standard_normal(shape) * 3).astype(dtype_of(dtype_text(type)))
        for shape, type in zip(shapes, types, strict=True)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_that_read_only_padding(name: str) -> None:
    kind, text = PROGRAMS[name]
    program = Program.parse(text)
    inputs = inputs_of(program)
    (launch,) = [op for op in as_kernel(program, kind).ops() if isinstance(op, LaunchOp)]
    for settings in (*map(Settings, FORMS), *[settings_for(launch, program.ranges, bits) for bits in (128, 512)]):
        assert check_kernel(program, kind, inputs, settings) == []
    (found,) = gcomp.compile(text, target="cpu")(*inputs)
    (expected,) = interpret(program, inputs)
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=1e-5)


def test_a_padding_that_a_call_gives() -> None:
    x, w, y = "tensor<2x3x3x2xf32>", "tensor<2x2x2x4xf32>", "tensor<2x2x2x4xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}, %p: tensor<2x2xi64>) -> {y} {{
      %y = "stablehlo.dynamic_conv"(%x, %w, %p) <{{window_strides = array<i64: 2, 1>, batch_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
        feature_group_count = 1 : i64}}> : ({x}, {w}, tensor<2x2xi64>) -> {y}
      return %y : {y}
    }}"""
    inputs = [*inputs_of(Program.parse(text))[:2], np.array([[5, -3], [0, 0]])]
    (found,) = gcomp.compile(text, target="cpu")(*inputs)
    assert not np.any(found)
