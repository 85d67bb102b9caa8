"""Whole programs as machine code: the same bits as their tile programs evaluated, in every variant that runs here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.exactness import Numerics
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import arena, slots
from gcomp.ir.composites import composite
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.lowering.llvm import settings
from gcomp.lowering.llvm.lower import code_texts, launch_kernels, lower, tile_programs
from gcomp.lowering.llvm.settings import settings_for
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.targets.base import target_named
from gcomp.testing.plans import PlanRunner
from tests.support.cpu import HERE, of_each_width, run
from tests.support.elementary import record_underflows
from tests.unit.lowering.triton.launches import program_of

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")


def parsed(text: str, **weights: Array) -> Program:
    """A program as text, with the weights that it reads."""
    program = Program.parse(text)
    for name, array in weights.items():
        program.weights.add(name, array)
    return program


def planned(text: str, numerics: Numerics = "standard", **weights: Array) -> Program:
    """A program after the pipeline of kernels."""
    program = parsed(text, **weights)
    PassManager(parse_pipeline(target_named("cpu").pipeline(numerics=numerics))).run(program)
    return program


def agree(
    text: str, inputs: Sequence[Array], threads: int = 0, numerics: Numerics = "standard", **weights: Array
) -> list[Array]:
    """Run a program as machine code and in the evaluator (equal bits), and in the reference (nearly so)."""
    expected = interpret(parsed(text, **weights), inputs)
    program = planned(text, numerics, **weights)
    variants = of_each_width(HERE)
    plan = lower(program, "cpu", variants)
    results: list[list[Array]] = []
    for variant in variants:
        evaluated = PlanRunner(program, tile_programs(program, variant)).run(inputs)
        native = run(plan, variant.name, program.weights, inputs, threads)
        for tile, code, old in zip(evaluated, native, expected, strict=True):
            assert tile.tobytes() == code.tobytes(), variant.name
            np.testing.assert_allclose(np.asarray(code, np.float64), np.asarray(old, np.float64), rtol=1e-5, atol=1e-5)
        results.append(native)
    for native in results[1:]:
        assert [x.tobytes() for x in native] == [x.tobytes() for x in results[0]]
    return results[0]


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("window", "size", "out"),
    [
        ("stride = [2, 2], pad = [[3, 3], [3, 3]]", "2x13x11x3", "2x7x6x5"),
        ("pad = [[1, 1], [0, 0]]", "1x9x10x3", "1x5x4x5"),
        ("rhs_dilate = [1, 2], pad = [[3, 3], [0, 0]]", "1x9x14x1", "1x9x2x5"),
        ("stride = [1, 3], lhs_dilate = [1, 2]", "1x7x9x2", "1x1x4x5"),
    ],
)
def test_rows_of_windows_of_few_channels(window: str, size: str, out: str) -> None:
    *_, channels = size.split("x")
    text = f"""func.func @main(%x: tensor<{size}xf32>, %w: tensor<7x7x{channels}x5xf32>) -> tensor<{out}xf32> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{{window}}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<{size}xf32>, tensor<7x7x{channels}x5xf32>) -> tensor<{out}xf32>
      func.return %0 : tensor<{out}xf32>
    }}"""
    shape = [int(n) for n in size.split("x")]
    agree(text, [floats(*shape), floats(7, 7, int(channels), 5, seed=1)])


@pytest.mark.parametrize("channels", [2, 3])
def test_rows_of_windows_of_one_dimension(channels: int) -> None:
    text = f"""func.func @main(%x: tensor<2x20x{channels}xf32>, %w: tensor<5x{channels}x9xf32>) -> tensor<2x11x9xf32> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{stride = [2], pad = [[2, 3]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<2x20x{channels}xf32>, tensor<5x{channels}x9xf32>) -> tensor<2x11x9xf32>
      func.return %0 : tensor<2x11x9xf32>
    }}"""
    agree(text, [floats(2, 20, channels), floats(5, channels, 9, seed=1)])


@pytest.mark.parametrize(("low", "high"), [((0, 1, 1, 0), (0, 1, 1, 0)), ((0, 0, 2, 0), (1, 3, 0, 5))])
def test_a_product_is_written_into_what_pads_it(low: Sequence[int], high: Sequence[int]) -> None:
    shape = [n + before + after for n, before, after in zip((2, 5, 6, 24), low, high, strict=True)]
    y, p = "tensor<2x5x6x24xf32>", f"tensor<{'x'.join(map(str, shape))}xf32>"
    text = f"""func.func @main(%x: tensor<2x5x6x8xf32>, %w: tensor<8x24xf32>, %z: tensor<f32>) -> ({p}, {p}) {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [3] x [0] : (tensor<2x5x6x8xf32>, tensor<8x24xf32>) -> {y}
      %1 = stablehlo.tanh %0 : {y}
      %2 = stablehlo.pad %1, %z, low = {list(low)}, high = {list(high)}, interior = [0, 0, 0, 0]
        : ({y}, tensor<f32>) -> {p}
      %3 = stablehlo.negate %2 : {p}
      func.return %2, %3 : {p}, {p}
    }}"""
    kinds = [op.kind_name for op in planned(text).ops() if isinstance(op, LaunchOp)]
    assert kinds == ["matmul", "loop"], "what reads the padded result is another kernel"
    found, _ = agree(text, [floats(2, 5, 6, 8), floats(8, 24, seed=1), np.float32(7.5)])
    assert np.count_nonzero(found == 7.5) == found.size - 2 * 5 * 6 * 24


@pytest.mark.parametrize(("points", "padding", "out"), [(2, 1, 10), (3, 1, 9), (4, 2, 10)])
def test_transposed_convolutions_are_computed_by_phases(points: int, padding: int, out: int) -> None:
    pads = f"[[{padding}, {padding}], [{padding}, {padding}]]"
    result, weight = f"tensor<1x{out}x{out}x8xf32>", f"tensor<{points}x{points}x6x8xf32>"
    values = np.array2string(floats(points, points, 6, 8), separator=", ", threshold=10000)
    text = f"""func.func @main(%x: tensor<1x5x5x6xf32>) -> {result} {{
      %w = stablehlo.constant dense<{values}> : {weight}
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{pad = {pads}, lhs_dilate = [2, 2]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x5x5x6xf32>, {weight}) -> {result}
      %1 = stablehlo.tanh %0 : {result}
      func.return %1 : {result}
    }}"""
    assert "lhs_dilate = [2, 2]" not in str(planned(text).module)
    agree(text, [floats(1, 5, 5, 6, seed=1)])


def test_a_loop_writes_what_pads_its_results_apart() -> None:
    """Both halves of a concatenation, as they are and with a border; what is transposed; what has no whole rows."""
    x, y, p = "tensor<2x4x5x3xf32>", "tensor<2x4x5x6xf32>", "tensor<2x6x6x6xf32>"
    text = f"""func.func @main(%x: {x}, %a: tensor<2x3x4x5xf32>, %z: tensor<f32>)
        -> ({y}, {p}, tensor<4x7x5x3xf32>, {y}) {{
      %0 = stablehlo.concatenate %x, %x, dim = 3 : ({x}, {x}) -> {y}
      %1 = stablehlo.negate %0 : {y}
      %2 = stablehlo.pad %1, %z, low = [0, 1, 0, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0]
        : ({y}, tensor<f32>) -> {p}
      %3 = stablehlo.transpose %a, dims = [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> {x}
      %4 = stablehlo.pad %3, %z, low = [2, 0, 0, 0], high = [0, 3, 0, 0], interior = [0, 0, 0, 0]
        : ({x}, tensor<f32>) -> tensor<4x7x5x3xf32>
      %5 = stablehlo.pad %3, %z, low = [0, 0, 0, 2], high = [0, 0, 0, 1], interior = [0, 0, 0, 0]
        : ({x}, tensor<f32>) -> {y}
      func.return %1, %2, %4, %5 : {y}, {p}, tensor<4x7x5x3xf32>, {y}
    }}"""
    both = next(op for op in planned(text).ops() if isinstance(op, LaunchOp))
    assert len(both.results) == 2, "one loop computes what is padded and what is not"
    agree(text, [floats(2, 4, 5, 3), floats(2, 3, 4, 5, seed=1), np.float32(7.5)])


@pytest.mark.parametrize(("rows", "axis"), [("40", 0), ("40", 1), ("?", 0), ("?", 1)])
def test_pieces_of_concatenations_are_computed_apart(rows: str, axis: int) -> None:
    """What is computed of two pieces, an empty and a transposed one: no element is asked which piece it is of."""

    n = rows.replace("?", "n")
    named = (lambda *sizes: f", [{', '.join(f'{chr(34)}{s}{chr(34)}' for s in sizes)}]") if n == "n" else lambda *_: ""
    x, t = f"tensor<{rows}x60xf32{named(n, 60)}>", f"tensor<60x{rows}xf32{named(60, n)}>"
    if axis == 0:
        more = "80" if rows == "40" else rows
        empty, both = "tensor<0x60xf32>", f"tensor<{more}x60xf32{named('2*n', 60)}>"
    else:
        empty, both = f"tensor<{rows}x0xf32{named(n, 0)}>", f"tensor<{rows}x120xf32{named(n, 120)}>"
    text = f"""func.func @main(%x: {x}, %e: {empty}, %t: {t}) -> {both} {{
      %0 = stablehlo.add %x, %x : {x}
      %1 = stablehlo.transpose %t, dims = [1, 0] : ({t}) -> {x}
      %2 = stablehlo.concatenate %0, %e, %1, dim = {axis} : ({x}, {empty}, {x}) -> {both}
      %3 = stablehlo.negate %2 : {both}
      func.return %3 : {both}
    }}"""
    sizes = (0, 60) if axis == 0 else (40, 0)
    agree(text, [floats(40, 60), floats(*sizes), floats(60, 40, seed=1)])
    op = next(op for op in planned(text).ops() if isinstance(op, LaunchOp))
    kernels = launch_kernels(op, planned(text).ranges, HERE[0].bits).kernels
    assert [kernel.source.count("tile.load") for kernel in kernels] == [1, 1]


def test_a_product_reads_what_windows_and_concatenations_give() -> None:
    """Neither is computed inside of the product."""
    x, y = "tensor<1x9x9x32xf32>", "tensor<1x8x8x32xf32>"
    text = f"""func.func @main(%x: {x}, %w: tensor<64x16xf32>) -> tensor<1x8x8x16xf32> {{
      %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 1, 2, 2, 1>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %m = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %m : tensor<f32>
      }}) : ({x}, tensor<f32>) -> {y}
      %1 = stablehlo.concatenate %0, %0, dim = 3 : ({y}, {y}) -> tensor<1x8x8x64xf32>
      %2 = stablehlo.dot_general %1, %w, contracting_dims = [3] x [0]
        : (tensor<1x8x8x64xf32>, tensor<64x16xf32>) -> tensor<1x8x8x16xf32>
      func.return %2 : tensor<1x8x8x16xf32>
    }}"""
    product = next(op for op in planned(text).ops() if isinstance(op, LaunchOp) and "dot_general" in str(op))
    assert "slice" not in str(product) and "concatenate" not in str(product)
    agree(text, [floats(1, 9, 9, 32), floats(64, 16, seed=1)])


@pytest.mark.parametrize("channels", [24, 36, 72, 144])
def test_rows_that_blocks_of_any_number_of_vectors_fill(channels: int) -> None:
    shape, whole = f"tensor<1x4x4x{channels}xf32>", f"tensor<1x6x6x{channels}xf32>"
    text = f"""func.func @main(%x: {whole}, %w: tensor<{channels}xf32>) -> {shape} {{
      %0 = stablehlo.slice %x [0:1, 1:5, 1:5, 0:{channels}] : ({whole}) -> {shape}
      %1 = stablehlo.slice %x [0:1, 2:6, 0:4, 0:{channels}] : ({whole}) -> {shape}
      %2 = stablehlo.broadcast_in_dim %w, dims = [3] : (tensor<{channels}xf32>) -> {shape}
      %3 = stablehlo.multiply %0, %2 : {shape}
      %4 = stablehlo.add %3, %1 : {shape}
      func.return %4 : {shape}
    }}"""
    agree(text, [floats(1, 6, 6, channels), floats(channels, seed=1)])


@pytest.mark.parametrize(("width", "channels"), [(4, 16), (9, 8), (7, 12), (14, 48), (2, 24), (5, 6)])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_are_read_for_pixels_beside_each_other(width: int, channels: int, stride: int) -> None:
    """A depthwise convolution and a pooling of its result, at widths that blocks fill and others."""
    wide, out = (width - 1) * stride + 1, width - 1
    x, w = f"tensor<2x5x{wide}x{channels}xf32>", f"tensor<3x3x1x{channels}xf32>"
    y, p = f"tensor<2x{4 // stride + 1}x{width}x{channels}xf32>", f"tensor<2x{4 // stride}x{out}x{channels}xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {p} {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [{stride}, {stride}], pad = [[1, 1], [1, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = {channels} : i64}} : ({x}, {w}) -> {y}
      %1 = stablehlo.tanh %0 : {y}
      %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %2 = "stablehlo.reduce_window"(%1, %init) <{{window_dimensions = array<i64: 1, 2, 2, 1>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %m = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %m : tensor<f32>
      }}) : ({y}, tensor<f32>) -> {p}
      func.return %2 : {p}
    }}"""
    agree(text, [floats(2, 5, wide, channels), floats(3, 3, 1, channels, seed=1)])


@pytest.mark.parametrize(
    ("source", "to"), [("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f16", "f32"), ("f32", "bf16")]
)
@pytest.mark.parametrize("before", ["negate", "abs"])
def test_a_converted_nan_has_no_sign(source: str, to: str, before: str) -> None:
    kind = {"f16": "i16", "bf16": "i16", "f32": "i32"}[to]
    text = f"""func.func @main(%x: tensor<20x{source}>) -> (tensor<20x{kind}>, tensor<20x{to}>) {{
      %0 = stablehlo.{before} %x : tensor<20x{source}>
      %1 = stablehlo.convert %0 : (tensor<20x{source}>) -> tensor<20x{to}>
      %2 = stablehlo.bitcast_convert %1 : (tensor<20x{to}>) -> tensor<20x{kind}>
      func.return %2, %1 : tensor<20x{kind}>, tensor<20x{to}>
    }}"""
    x = floats(20).astype(dtype_of(source))
    x[3], x[17] = np.nan, -np.nan
    agree(text, [x])


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
@pytest.mark.parametrize(("reads", "makes"), [(1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (4, 4), (4, 2)])
def test_groups_read_their_channels_whatever_the_window(reads: int, makes: int, rows: int) -> None:
    """A group that reads one channel has none to count: the rows of its window are as many as it makes at times."""
    x, w, y = f"tensor<1x9x5x{16 * reads}xf32>", f"tensor<{rows}x2x{reads}x{16 * makes}xf32>", f"1x{10 - rows}x4"
    text = f"""func.func @main(%x: {x}, %w: {w}) -> tensor<{y}x{16 * makes}xf32> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 16 : i64}} : ({x}, {w}) -> tensor<{y}x{16 * makes}xf32>
      func.return %0 : tensor<{y}x{16 * makes}xf32>
    }}"""
    agree(text, [floats(1, 9, 5, 16 * reads), floats(rows, 2, reads, 16 * makes, seed=1)])


def test_groups_without_channels_or_windows_have_no_terms() -> None:
    text = """func.func @main(%x: tensor<1x2xf32>, %w: tensor<1x4xf32>) -> tensor<1x4xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f]x[i, o]->[b, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
        : (tensor<1x2xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      func.return %0 : tensor<1x4xf32>
    }"""
    agree(text, [floats(1, 2), floats(1, 4, seed=1)])


@pytest.mark.parametrize("kind", ["f32", "f64", "i8", "i1"])
@pytest.mark.parametrize(("channels", "width"), [(3, 16), (1, 24), (4, 7), (2, 19)])
def test_few_channels_become_the_last(kind: str, channels: int, width: int) -> None:
    x, y = f"tensor<2x{channels}x3x{width}x{kind}>", f"tensor<2x3x{width}x{channels}x{kind}>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : ({x}) -> {y}
      func.return %0 : {y}
    }}"""
    agree(text, [(floats(2, channels, 3, width) * 50).astype(dtype_of(kind))])


@pytest.mark.parametrize("stride", [1, 2])
def test_rows_share_the_terms_of_large_windows(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of blocks of sums, which part after part of a row of the window is added to."""
    out = 12 // stride
    x, w, y = "tensor<1x12x12x96xf32>", "tensor<3x3x96x32xf32>", f"tensor<1x{out}x{out}x32xf32>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [{stride}, {stride}], pad = [[1, 1], [1, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
      %1 = stablehlo.tanh %0 : {y}
      func.return %1 : {y}
    }}"""
    given, weight = [floats(1, 12, 12, 96)], floats(3, 3, 96, 32, seed=1) / 32
    small = agree(text, given, numerics="exact", w=weight)
    monkeypatch.setattr("gcomp.lowering.llvm.settings.LARGE", 0)
    monkeypatch.setattr("gcomp.lowering.llvm.settings.KEPT", 100 * 4 * 16)
    program = planned(text, "exact", w=weight)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "convolution"]
    assert settings_for(launch, program.ranges, 256).get("rows", 0) > 6, "a tile has many blocks"
    large = agree(text, given, numerics="exact", w=weight)
    assert [a.tobytes() for a in small] == [a.tobytes() for a in large]


def test_what_follows_a_convolution_goes_before_a_window_once() -> None:
    """A ReLU between a convolution and pooling is done for each element, and not for each point of a window."""
    x, y, z = (f"tensor<1x{n}x{n}x{c}xf32>" for n, c in ((11, 8), (7, 16), (5, 16)))
    w = "tensor<5x5x8x16xf32>"
    text = f"""func.func @main(%x: {x}) -> {z} {{
      %w = gcomp.weight @w : {w}
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
      %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> {y}
      %2 = stablehlo.maximum %0, %1 : {y}
      %3 = "stablehlo.reduce_window"(%2, %least) <{{window_dimensions = array<i64: 1, 3, 3, 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.maximum %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }}) : ({y}, tensor<f32>) -> {z}
      func.return %3 : {z}
    }}"""
    weight = floats(5, 5, 8, 16, seed=1)
    kinds = {op.kind_name: op for op in planned(text, w=weight).ops() if isinstance(op, LaunchOp)}
    assert any(isinstance(op, hlo.MaximumOp) for op in kinds["convolution"].block.ops)
    assert sum(isinstance(op, hlo.MaximumOp) for op in kinds["loop"].block.ops) == 8
    agree(text, [floats(1, 11, 11, 8)], w=weight)


@pytest.mark.parametrize("window", [(3, 1), (1, 3), (5, 3)])
def test_the_rows_of_a_window_are_runs_where_they_have_several_columns(window: tuple[int, int]) -> None:
    """A row of one column is its channels: what follows in the window is a row of the image away."""
    x, w, y = "tensor<1x9x9x32xf32>", f"tensor<{window[0]}x{window[1]}x32x32xf32>", "tensor<1x9x9x32xf32>"
    pads = ", ".join(f"[{n // 2}, {n // 2}]" for n in window)
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{pad = [{pads}]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
      func.return %0 : {y}
    }}"""
    weight = floats(*window, 32, 32, seed=1)
    program = planned(text, w=weight)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "convolution"]
    chosen = settings_for(launch, program.ranges, 512)
    assert chosen.get("windows", 0) == 1 and chosen.get("runs", 0) == (window[1] > 1)
    agree(text, [floats(1, 9, 9, 32)], w=weight)


@pytest.mark.parametrize("columns", [10, 20, 24])
def test_panels_that_are_no_whole_vectors(columns: int) -> None:
    """Products by batches of matrices whose columns no vector divides."""
    x, w, y = "tensor<3x5x12xf32>", f"tensor<3x12x{columns}xf32>", f"tensor<3x5x{columns}xf32>"
    text = f"""func.func public @main(%x: {x}, %w: {w}) -> {y} {{
      %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : ({x}, {w}) -> {y}
      return %0 : {y}
    }}"""
    agree(text, [floats(3, 5, 12), floats(3, 12, columns, seed=1)])


@pytest.mark.parametrize("rows", [1, 9, 200])
@pytest.mark.parametrize(("columns", "order"), [(58, "t"), (17, "n"), (101, "n"), (1000, "t"), (20, "t"), (5, "n")])
def test_zeros_fill_the_last_panel_of_a_weight(rows: int, columns: int, order: str) -> None:
    """A layer with bias, activation and a padded result: the product computes the columns of the weight alone."""
    k, y, p = 33, f"tensor<{rows}x{columns}xf32>", f"tensor<{rows + 2}x{columns + 3}xf32>"
    shape, contracted = ((columns, k), 1) if order == "t" else ((k, columns), 0)
    w = f"tensor<{shape[0]}x{shape[1]}xf32>"
    text = f"""func.func @main(%x: tensor<{rows}x{k}xf32>, %b: tensor<{columns}xf32>, %z: tensor<f32>) -> ({y}, {p}) {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [{contracted}] : (tensor<{rows}x{k}xf32>, {w}) -> {y}
      %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{columns}xf32>) -> {y}
      %2 = stablehlo.add %0, %1 : {y}
      %3 = stablehlo.maximum %2, %1 : {y}
      %4 = stablehlo.pad %3, %z, low = [1, 0], high = [1, 3], interior = [0, 0] : ({y}, tensor<f32>) -> {p}
      func.return %3, %4 : {y}, {p}
    }}"""
    weight = floats(*shape, seed=2)
    agree(text, [floats(rows, k), floats(columns, seed=1), np.float32(7.5)], w=weight)
    launches = [op for op in planned(text, w=weight).ops() if isinstance(op, LaunchOp)]
    assert len(launches) == 1, "what is sliced off is never written"


def test_a_product_of_concatenated_positions() -> None:
    """What follows from positions alone has no kernel that it could be read from."""
    text = """func.func @main(%w: tensor<2x8xf32>) -> tensor<64x8xf32> {
      %0 = stablehlo.iota dim = 0 : tensor<64x1xf32>
      %1 = stablehlo.iota dim = 1 : tensor<64x1xf32>
      %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x2xf32>
      %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0]
        : (tensor<64x2xf32>, tensor<2x8xf32>) -> tensor<64x8xf32>
      func.return %3 : tensor<64x8xf32>
    }"""
    agree(text, [floats(2, 8)])


ROWS = """module attributes {gcomp.ranges = {n = "1..1000"}} {
func.func public @main(%x: tensor<?x48xf32, ["n", "48"]>, %w: tensor<48x20xf32>) -> tensor<?x20xf32, ["n", "20"]> {
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<?x48xf32, ["n", "48"]>, tensor<48x20xf32>) -> tensor<?x20xf32, ["n", "20"]>
  %2 = stablehlo.tanh %1 : tensor<?x20xf32, ["n", "20"]>
  func.return %2 : tensor<?x20xf32, ["n", "20"]>
}
}
"""


@pytest.mark.parametrize("threads", [0, 2])
def test_sizes_are_arguments_and_rows_are_the_same_bits_in_every_batch(threads: int) -> None:
    x, w = floats(65, 48), floats(48, 20, seed=1)
    rows = {n: agree(ROWS, [x[:n], w], threads)[0] for n in (1, 7, 65)}
    assert rows[1][0].tobytes() == rows[7][0].tobytes() == rows[65][0].tobytes()


@pytest.mark.parametrize("rows", [3, 13, 20])
def test_blocks_of_any_number_of_rows_cover_a_product(rows: int) -> None:
    """Of 13 rows three blocks have 5, of which the last has 3: what lies beyond is neither read nor written."""
    text = ROWS.replace("?", str(rows)).replace(', ["n", "48"]', "").replace(', ["n", "20"]', "")
    agree(text, [floats(rows, 48), floats(48, 20, seed=1)])


KEPT = """func.func public @main(%x: tensor<5x?xf32>, %a: tensor<f32>, %b: tensor<f32>)
    -> (tensor<5x?xf32>, tensor<5xf32>) {
  %s = stablehlo.exponential %x : tensor<5x?xf32>
  %m = stablehlo.reduce(%s init: %a) applies stablehlo.maximum across dimensions = [1] :
      (tensor<5x?xf32>, tensor<f32>) -> tensor<5xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<5xf32>) -> tensor<5x?xf32>
  %d = stablehlo.subtract %s, %mb : tensor<5x?xf32>
  %e = stablehlo.exponential %d : tensor<5x?xf32>
  %t = stablehlo.reduce(%e init: %b) applies stablehlo.add across dimensions = [1] :
      (tensor<5x?xf32>, tensor<f32>) -> tensor<5xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<5xf32>) -> tensor<5x?xf32>
  %r = stablehlo.divide %e, %tb : tensor<5x?xf32>
  func.return %r, %t : tensor<5x?xf32>, tensor<5xf32>
}
"""


@pytest.mark.parametrize("length", [7, 16, 17, 100, 1000, 4096, 4099])
def test_rows_that_are_kept_have_the_bits_of_rows_that_are_read_again(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = KEPT.replace("?", str(length))
    inputs = [floats(5, length), np.float32(-np.inf), np.float32(0)]
    inputs[0][1, 3], inputs[0][2, 5], inputs[0][3] = np.nan, -np.inf, -np.inf
    kept = agree(text, inputs)
    sources = "".join(lower(planned(text), "cpu", HERE[:1]).texts.values())
    assert ("chains" in sources) == (16 < length <= 4096)
    fetched = "prefetch" in "".join(code_texts(planned(text), HERE[0]).values())
    assert fetched == (length in (1000, 4096)), "4 KB and more of the next rows, where rows are kept"
    monkeypatch.setattr(settings, "LEAST_REPEATED", 1 << 30)
    again = agree(text, inputs)
    assert [x.tobytes() for x in kept] == [x.tobytes() for x in again]


PADDED = """module attributes {gcomp.ranges = {m = "1..9"}} {
func.func public @main(%x: tensor<3x?xf32, ["3", "m"]>) -> tensor<3x?xf32, ["3", "2*m - 1"]> {
  %z = stablehlo.constant dense<2.5> : tensor<f32>
  %0 = stablehlo.negate %x : tensor<3x?xf32, ["3", "m"]>
  %1 = stablehlo.pad %0, %z, low = [0, "m - 1"], high = [0, 0], interior = [0, 0] :
      (tensor<3x?xf32, ["3", "m"]>, tensor<f32>) -> tensor<3x?xf32, ["3", "2*m - 1"]>
  func.return %1 : tensor<3x?xf32, ["3", "2*m - 1"]>
}
}
"""


@pytest.mark.parametrize("size", [1, 4])
def test_padding_of_a_size_that_a_call_says(size: int) -> None:
    agree(PADDED, [floats(3, size)])


def test_rows_without_elements_whose_number_a_call_says() -> None:
    x, y = 'tensor<?x0xf32, ["n", "0"]>', 'tensor<?xf32, ["n"]>'
    text = f"""func.func public @main(%x: {x}, %i: tensor<f32>) -> {y} {{
      %0 = stablehlo.sqrt %x : {x}
      %1 = stablehlo.reduce(%0 init: %i) across dimensions = [1] : ({x}, tensor<f32>) -> {y}
        reducer(%a: tensor<f32>, %b: tensor<f32>) {{
        stablehlo.return %a : tensor<f32>
      }}
      func.return %1 : {y}
    }}"""
    agree(text, [floats(2, 0), np.float32(3)])


TRANSPOSED = """func.func public @main(%x: tensor<3xMxKxf32>, %w: tensor<3x21xKxf32>) -> tensor<3xMx21xf32> {
  %1 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] :
      (tensor<3xMxKxf32>, tensor<3x21xKxf32>) -> tensor<3xMx21xf32>
  func.return %1 : tensor<3xMx21xf32>
}
"""


@pytest.mark.parametrize(("rows", "terms"), [(1, 40), (1, 46), (1, 63), (1, 272), (7, 40), (131, 40), (70, 46)])
def test_a_right_operand_whose_terms_are_neighbours_is_transposed(rows: int, terms: int) -> None:
    """Terms that make no square blocks of vectors, too."""
    text = TRANSPOSED.replace("M", str(rows)).replace("K", str(terms))
    assert any("tile.transpose" in source for source in lower(planned(text), "cpu", HERE[:1]).texts.values())
    agree(text, [floats(3, rows, terms), floats(3, 21, terms, seed=1)])


@pytest.mark.parametrize(
    ("queries", "keys", "features"), [(1, 70, 8), (5, 64, 20), (40, 64, 36), (33, 3, 16), (20, 130, 3), (6, 70, 62)]
)
def test_attention_over_any_number_of_keys(queries: int, keys: int, features: int) -> None:
    types = [tensor((2, n, features), "f32") for n in (queries, keys, keys)]
    program = program_of(types, lambda b, values: composite(b, "gcomp.attention", values, {"scale": 0.3}))
    agree(program.text(), [floats(2, n, features, seed=k) for k, n in enumerate((queries, keys, keys))])


@pytest.mark.parametrize("below", [0.0, -70.0, -95.0, -100.0, -200.0, -np.inf])
def test_masked_scores_make_no_denormals(below: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors take a hundred times as long for them: a mask of -100 made attention 17 times as slow."""
    rows, keys = 3, 70
    types = [tensor((2, n, 4), "f32") for n in (rows, keys, keys)] + [tensor((rows, keys), "f32")]
    program = program_of(types, lambda b, values: composite(b, "gcomp.attention", values, {"scale": 0.3}))
    mask = np.where(np.arange(keys) < 60, below, 0).astype(np.float32) * np.ones((rows, 1), np.float32)
    mask[0] = 0
    arrays = [floats(2, n, 4, seed=k) for k, n in enumerate((rows, keys, keys))]
    with monkeypatch.context() as patch:
        underflows = record_underflows(patch)
        agree(program.text(), [*arrays, mask])
        assert not underflows
    arrays[2][:, 0] = np.inf  # no weight is 0 that exp says is not
    agree(program.text(), [*arrays, mask])


@pytest.mark.parametrize("most", ["", "4611686018427387904"])
def test_sizes_without_a_bound(most: str) -> None:
    """Results that are not alive together share memory, which is as large as a call needs. 2^62 is no bound."""
    layer = """  %NEXT = stablehlo.dot_general %LAST, %w, contracting_dims = [1] x [0] :
      (tensor<?x48xf32, ["n", "48"]>, tensor<48x48xf32>) -> tensor<?x48xf32, ["n", "48"]>
"""
    layers = "".join([layer.replace("NEXT", str(k)).replace("LAST", str(k - 1)) for k in (1, 2, 3, 4)])
    text = f"""
module attributes {{gcomp.ranges = {{n = "1..{most}"}}}} {{
func.func public @main(%0: tensor<?x48xf32, ["n", "48"]>, %w: tensor<48x48xf32>) -> tensor<?x48xf32, ["n", "48"]> {{
{layers}  func.return %4 : tensor<?x48xf32, ["n", "48"]>
}}
}}"""
    program = planned(text)
    assert [str(size) for size in slots(program.module)] == ["192*n", "192*n"] and arena(program.module) == 0
    for n in (1, 33):
        agree(text, [floats(n, 48), floats(48, 48, seed=1) / 8])


def test_a_loop_and_a_branch() -> None:
    agree(
        """
func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<8xf32>
  cond {
      %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  } do {
      %j = stablehlo.subtract %i, %one : tensor<i32>
      %z = stablehlo.tanh %y : tensor<8xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<8xf32>
    }
  %s = "stablehlo.case"(%n) ({
    %a = stablehlo.negate %r#1 : tensor<8xf32>
    stablehlo.return %a : tensor<8xf32>
  }, {
    %b = stablehlo.sine %r#1 : tensor<8xf32>
    stablehlo.return %b : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %s : tensor<8xf32>
}
""",
        [floats(8), np.array(3, np.int32)],
    )


def test_equal_layers_are_one_function() -> None:
    text = """
func.func @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] :
      (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
"""
    program = planned(text)
    plan = lower(program, "cpu", HERE[:1])
    assert sum(name.endswith(".mlir") for name in plan.texts) == 1
    agree(text, [floats(16, 16), floats(16, 16, seed=1)])


@pytest.mark.parametrize("bits", sorted({variant.bits for variant in VARIANTS.values()}))
def test_kinds_of_one_width_share_what_multiplies_no_bytes(bits: int) -> None:
    program = planned(ROWS)
    first, *others = [code_texts(program, variant) for variant in VARIANTS.values() if variant.bits == bits]
    assert others and all(other == first for other in others)


def test_the_same_program_gives_the_same_bytes() -> None:
    first, second = (lower(planned(ROWS), "cpu", list(VARIANTS.values())) for _ in range(2))
    assert (first.binaries, first.texts) == (second.binaries, second.texts)
    assert len(first.binaries) == len(VARIANTS)


@pytest.mark.parametrize("panel", [1, 3, 4, 5, 12, 17])
@pytest.mark.parametrize("place", [0, 1])
def test_columns_of_two_dimensions(place: int, panel: int) -> None:
    """Products whose columns are two dimensions, the terms before or between them."""
    ends = [3, panel]
    shape = "x".join(map(str, [*ends[:place], 2, *ends[place:]]))
    x, w, y = "tensor<2x3x4xf32>", f"tensor<{shape}xf32>", f"tensor<3x4x3x{panel}xf32>"
    text = f"""func.func public @main(%x: {x}, %w: {w}) -> {y} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [{place}] : ({x}, {w}) -> {y}
      return %0 : {y}
    }}"""
    agree(text, [floats(2, 3, 4), floats(*[*ends[:place], 2, *ends[place:]], seed=1)])
