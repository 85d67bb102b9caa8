"""Elements of tile programs: every elementwise function on edge values, and the reduced cases of bugs found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.testing.tiles import check_kernel
from tests.support.thinning import thinned
from tests.unit.lowering.triton import elementwise

Array = np.ndarray[Any, Any]
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", thinned(elementwise.ALL, elementwise.QUICK.__contains__))
def test_functions_are_the_graphs_on_all_pairs_of_edge_values(dtype: str) -> None:
    program, _ = elementwise.functions(dtype, elementwise.ALL)
    assert check_kernel(program, "loop", elementwise.inputs(dtype), elementwise.WHOLE) == []


def kernel(signature: str, *ops: str) -> Program:
    """A program of these ops, the last of which is returned."""
    *before, last = ops
    result = last.rpartition("->")[2] if "->" in last else last.rpartition(":")[2]
    body = "\n".join([*before, f"%out = {last}"])
    return Program.parse(f"func.func @main({signature}) -> {result} {{\n{body}\nreturn %out : {result}\n}}")


def given(dtype: str, *values: Any) -> Array:
    return np.array(values).astype(dtype_of(dtype))


REDUCTION = """stablehlo.reduce(%x init: %init) across dimensions = [{dims}] : ({type}, tensor<{e}>) -> {result}
  reducer(%a: tensor<{e}>, %b: tensor<{e}>) {{
    {ops}
  }}"""


def reduced(type: str, result: str, dims: str, *ops: str) -> Program:
    """A reduction by a region of its own."""
    e = type.rpartition("x")[2].rstrip(">")
    text = REDUCTION.format(type=type, result=result, dims=dims, e=e, ops="\n    ".join(ops))
    return Program.parse(
        f"func.func @main(%x: {type}, %init: tensor<{e}>) -> {result} {{\n%out = {text}\nreturn %out : {result}\n}}"
    )


WINDOW = """"stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: {size}>, {more}}}> ({{
  ^bb0(%a: tensor<{e}>, %b: tensor<{e}>):
    %r = stablehlo.{op} %a, %b : tensor<{e}>
    stablehlo.return %r : tensor<{e}>
  }}) : ({type}, tensor<{e}>) -> {result}"""

CASES: dict[str, tuple[str, Program, Sequence[Array]]] = {
    "one term of a product is summed once": (
        "matmul",
        kernel("%x: tensor<3x1xf32>, %y: tensor<1x3xf32>",
               "stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : "
               "(tensor<3x1xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>"),
        (given("f32", [1.0], [2.0], [3.0]), given("f32", [4.0, 5.0, 6.0])),
    ),
    "a repeated factor is summed only where there are terms": (
        "matmul",
        kernel("%x: tensor<2x5xf32>, %y: tensor<f32>",
               "%w = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<5x2xf32>",
               "%o = stablehlo.exponential %x : tensor<2x5xf32>",
               "stablehlo.dot_general %o, %w, contracting_dims = [1] x [0] : "
               "(tensor<2x5xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>"),
        (np.zeros((2, 5), np.float32), given("f32", 3.0).reshape(())),
    ),
    "a product of vectors": (
        "matmul",
        kernel("%x: tensor<1xf32>", "stablehlo.dot %x, %x : (tensor<1xf32>, tensor<1xf32>) -> tensor<f32>"),
        (given("f32", 3.0),),
    ),
    "a product over nothing": (
        "matmul",
        kernel("%x: tensor<2x0xf32>", "stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : "
               "(tensor<2x0xf32>, tensor<2x0xf32>) -> tensor<2x2xf32>"),
        (np.zeros((2, 0), np.float32),),
    ),
    "a product whose factors are at its own corner only": (
        "matmul",
        kernel("%x: tensor<3x4x5xf32>, %y: tensor<4x5x3x1xf32>",
               "%d = stablehlo.dot_general %x, %y, batching_dims = [0] x [2], contracting_dims = [1, 2] x [0, 1] : "
               "(tensor<3x4x5xf32>, tensor<4x5x3x1xf32>) -> tensor<3x1xf32>",
               "stablehlo.slice %d [0:1:2, 0:1:2] : (tensor<3x1xf32>) -> tensor<1x1xf32>"),
        (np.ones((3, 4, 5), np.float32), np.ones((4, 5, 3, 1), np.float32)),
    ),
    "windows in the padding only, times infinity": (
        "convolution",
        kernel("%x: tensor<2x1x1xf32>, %w: tensor<2x1x2xf32>",
               "stablehlo.convolution(%x, %w) dim_numbers = [f, b, 0]x[i, 0, o]->[f, b, 0], "
               "window = {stride = [2], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1]} "
               "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
               "(tensor<2x1x1xf32>, tensor<2x1x2xf32>) -> tensor<2x1x2xf32>"),
        (given("f32", [[1.0]], [[-3.0]]), given("f32", [[-1e30, -709.7]], [[2.5, INF]])),
    ),
    "a region whose order matters": (
        "reduction",
        reduced("tensor<3x5xi32>", "tensor<3xi32>", "1", "%r = stablehlo.divide %a, %b : tensor<i32>",
                "stablehlo.return %r : tensor<i32>"),
        (np.arange(1, 16, dtype=np.int32).reshape(3, 5), given("i32", 1 << 30).reshape(())),
    ),
    "a region that takes the last": (
        "reduction",
        reduced("tensor<3x5xi32>", "tensor<3xi32>", "1", "stablehlo.return %b : tensor<i32>"),
        (np.arange(15, dtype=np.int32).reshape(3, 5), given("i32", 7).reshape(())),
    ),
    "a reduction of nothing": (
        "reduction",
        reduced("tensor<3x0xf32>", "tensor<3xf32>", "1", "%r = stablehlo.maximum %a, %b : tensor<f32>",
                "stablehlo.return %r : tensor<f32>"),
        (np.zeros((3, 0), np.float32), given("f32", 2.5).reshape(())),
    ),
    "a reduction of nothing by a region without identity": (
        "reduction",
        reduced("tensor<2x0xi32>", "tensor<2xi32>", "1", "%m = stablehlo.maximum %a, %b : tensor<i32>",
                "%r = stablehlo.minimum %m, %m : tensor<i32>", "stablehlo.return %r : tensor<i32>"),
        (np.zeros((2, 0), np.int32), given("i32", 5).reshape(())),
    ),
    "a region with a constant": (
        "reduction",
        reduced("tensor<3x5xi4>", "tensor<3xi4>", "1", "%r = stablehlo.add %a, %b : tensor<i4>",
                "stablehlo.return %r : tensor<i4>"),
        (np.arange(15).reshape(3, 5).astype(ml_dtypes.int4), given("i4", 3).reshape(())),
    ),
    "a window takes the initial value again at each place of the padding": (
        "window",
        kernel("%x: tensor<1xf32>, %init: tensor<f32>",
               WINDOW.format(size=2, more="window_strides = array<i64: 2>, padding = dense<[[2, 0]]> : tensor<1x2xi64>",
                             e="f32", op="subtract", type="tensor<1xf32>", result="tensor<1xf32>")),
        (given("f32", 10.0), given("f32", 3.0).reshape(())),
    ),
    "windows of dilated elements": (
        "window",
        kernel("%x: tensor<2x2xi32>, %init: tensor<i32>",
               WINDOW.format(size="1, 2", more="window_strides = array<i64: 1, 2>, base_dilations = array<i64: 1, 2>, "
                             "padding = dense<[[0, 0], [0, -1]]> : tensor<2x2xi64>", e="i32", op="divide",
                             type="tensor<2x2xi32>", result="tensor<2x1xi32>")),
        (given("i32", [5, 6], [7, 8]), given("i32", 100).reshape(())),
    ),
    "neighbours of narrow floats": (
        "loop",
        kernel("%x: tensor<6xbf16>, %y: tensor<6xbf16>", "chlo.next_after %x, %y : tensor<6xbf16>, tensor<6xbf16> "
               "-> tensor<6xbf16>"),
        (given("bf16", 1.0, 1.0, 0.0, -0.0, NAN, INF), given("bf16", 2.0, -2.0, -1.0, 0.0, 1.0, 0.0)),
    ),
    "integers of 4 bits wrap": (
        "loop",
        kernel("%x: tensor<3xi4>, %y: tensor<3xi4>", "%s = stablehlo.add %x, %y : tensor<3xi4>",
               "stablehlo.convert %s : (tensor<3xi4>) -> tensor<3xi32>"),
        (given("i4", 7, -8, 3), given("i4", 1, -1, 4)),
    ),
    "floats become the limits of 2 bits": (
        "loop",
        kernel("%x: tensor<5xf32>", "stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xui2>"),
        (given("f32", 2.9, 3.5, -1.0, NAN, INF),),
    ),
    "a piece without elements": (
        "loop",
        kernel("%x: tensor<2x0xi64>, %y: tensor<2x1xi64>",
               "stablehlo.concatenate %x, %y, dim = 1 : (tensor<2x0xi64>, tensor<2x1xi64>) -> tensor<2x1xi64>"),
        (np.zeros((2, 0), np.int64), np.ones((2, 1), np.int64)),
    ),
    "what is padded has no elements": (
        "loop",
        kernel("%x: tensor<0xf32>, %p: tensor<f32>",
               "stablehlo.pad %x, %p, low = [2], high = [1], interior = [0] : (tensor<0xf32>, tensor<f32>) -> "
               "tensor<3xf32>"),
        (np.zeros(0, np.float32), given("f32", 2.0).reshape(())),
    ),
    "a slice without elements at the end": (
        "reduction",
        kernel("%x: tensor<2x9xf16>", "%s = stablehlo.slice %x [2:2, 0:9] : (tensor<2x9xf16>) -> tensor<0x9xf16>",
               "%i = stablehlo.constant dense<1.5> : tensor<f16>",
               "stablehlo.reduce(%s init: %i) applies stablehlo.maximum across dimensions = [0, 1] : "
               "(tensor<0x9xf16>, tensor<f16>) -> tensor<f16>"),
        (np.ones((2, 9), np.float16),),
    ),
    "a result without elements": (
        "loop",
        kernel("%x: tensor<0x3xf32>", "stablehlo.exponential %x : tensor<0x3xf32>"),
        (np.zeros((0, 3), np.float32),),
    ),
}  # fmt: skip

SMALL = Settings({"block": 2, "persistent": 0, "rows": 16, "columns": 16})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("settings", [None, SMALL], ids=["default", "small"])
def test_cases(name: str, settings: Settings | None) -> None:
    kind, program, inputs = CASES[name]
    assert check_kernel(program, kind, inputs, settings) == []


def test_complex_numbers_are_refused() -> None:
    program = kernel("%x: tensor<2xcomplex<f32>>", "stablehlo.reverse %x, dims = [0] : tensor<2xcomplex<f32>>")
    with pytest.raises(UnsupportedError, match="there is no complex"):
        check_kernel(program, "loop", [np.zeros(2, np.complex64)])


@pytest.mark.parametrize("to", sorted(elementwise.NARROW))
def test_numbers_beside_ties_are_rounded_once(to: str) -> None:
    """All ties of a narrow float, and the numbers next to them, as f64, f32 and integers."""
    numbers = np.arange(1 << 8 * dtype_of(to).itemsize).astype(f"u{dtype_of(to).itemsize}").view(dtype_of(to))
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float64)
    wide = np.unique(wide[np.isfinite(wide)])
    ties = (wide[1:] + wide[:-1]) / 2
    for source in ("f64", "f32"):
        around = ties.astype(dtype_of(source))
        values = np.concatenate([around, np.nextafter(around, -np.inf), np.nextafter(around, np.inf)])
        _converts(source, to, values.astype(dtype_of(source)))
    whole = [int(tie) for tie in ties if tie == int(tie)]
    near = [n + step for n in whole for step in (-1, 0, 1)]
    for source in ("i16", "i32", "ui32", "i64", "ui64"):
        limits = np.iinfo(dtype_of(source))
        _converts(source, to, np.array([n for n in near if limits.min <= n <= limits.max], dtype_of(source)))


def _converts(source: str, to: str, values: Array) -> None:
    count = len(values)
    program = kernel(
        f"%x: tensor<{count}x{source}>", f"stablehlo.convert %x : (tensor<{count}x{source}>) -> tensor<{count}x{to}>"
    )
    assert check_kernel(program, "loop", [values]) == []


def test_long_chains_are_computed() -> None:
    """As long as a kernel may be (256 ops): Python's recursion ends before."""
    type, ops = "tensor<4xf32>", ["%v0 = stablehlo.add %x, %y : tensor<4xf32>"]
    for i in range(250):
        read = f"%v{i}, %x" if i % 3 else f"%y, %v{i}"
        ops.append(f"%v{i + 1} = stablehlo.{'subtract' if i % 2 else 'maximum'} {read} : {type}")
    program = kernel(f"%x: {type}, %y: {type}", *ops, f"stablehlo.negate %v250 : {type}")
    assert check_kernel(program, "loop", [given("f32", 1, -2, 3, 0), given("f32", 0.5, 9, -1, 2)]) == []
