"""Kernels whose sizes are known at the call: they are cut as those of known sizes are."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dims import Range, Ranges, evaluate
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.lower import code_texts
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.tiles.schedules.loop import DIVISIONS
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.targets.base import target_named
from gcomp.testing.tiles import as_kernel, check_kernel

PANELS = """func.func @main(%x: tensor<{x}x40xf32, {dims}"40"]>, %w: tensor<2x40x32xf32>, %b: tensor<60xf32>)
      -> tensor<{x}x60xf32, {dims}"60"]> {{
      %d = stablehlo.dot_general %x, %w, contracting_dims = [{last}] x [1]
        : (tensor<{x}x40xf32, {dims}"40"]>, tensor<2x40x32xf32>) -> tensor<{x}x2x32xf32, {dims}"2", "32"]>
      %r = stablehlo.reshape %d : (tensor<{x}x2x32xf32, {dims}"2", "32"]>) -> tensor<{x}x64xf32, {dims}"64"]>
      %s = stablehlo.slice %r [{all}, 0:60] : (tensor<{x}x64xf32, {dims}"64"]>) -> tensor<{x}x60xf32, {dims}"60"]>
      %c = stablehlo.broadcast_in_dim %b, dims = [{last}] : (tensor<60xf32>) -> tensor<{x}x60xf32, {dims}"60"]>
      %y = stablehlo.add %s, %c : tensor<{x}x60xf32, {dims}"60"]>
      return %y : tensor<{x}x60xf32, {dims}"60"]>
    }}"""
"""A product with panels of weights, some columns of which are filled up, and what follows it."""


@pytest.mark.parametrize("names", [("n",), ("n", "m"), ("n", "m", "k")])
def test_products_of_symbolic_rows_are_products_of_tiles(names: tuple[str, ...]) -> None:
    text = PANELS.format(
        x="x".join("?" * len(names)), dims="[" + "".join(f'"{name}", ' for name in names), last=len(names),
        all=", ".join(f'0:"{name}"' for name in names),
    )  # fmt: skip
    program = Program.parse(text)
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    step, _ = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512)).steps
    assert any(isinstance(op, tile.DotOp) for op in step.kernel.walk())


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 11, 12, 13, 15, 16, 24, 27])
def test_rows_that_are_left_over_of_blocks_go_one_by_one_where_they_are_few(rows: int) -> None:
    program = Program.parse(PANELS.format(x="?", dims='["n", ', last=1, all='0:"n"'))
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    block = settings.get("rows", 0)
    assert block > 4
    assert settings.get("few_rows", 0) == 1
    blocks, few = schedule(launch, "kernel", program.ranges, settings).steps
    counts = [evaluate(step.grid[0], {"n": rows}) for step in (blocks, few)]
    left_over = rows % block
    assert counts == [2 * (rows // block + (left_over > 3)), 0 if left_over > 3 else left_over]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((rows, 40), (2, 40, 32), (60,))]
    assert check_kernel(program, "matmul", inputs, settings) == []


def test_nothing_is_left_over_of_a_multiple_of_blocks() -> None:
    program = Program.parse(PANELS.format(x="?", dims='["24*n", ', last=1, all='0:"24*n"'))
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    (step,) = schedule(launch, "kernel", program.ranges, settings).steps
    assert evaluate(step.grid[0], {"n": 5}) == 2 * 5 * 24 // settings.get("rows", 0)


@pytest.mark.parametrize(("panels", "columns"), [(1, 32), (3, 96), (4, 128), (6, 96), (19, 32), (24, 128)])
def test_blocks_of_one_row_reach_over_no_panel_that_is_not_there(panels: int, columns: int) -> None:
    """A masked load of memory that is not mapped takes a processor hundreds of cycles."""
    text = f"""func.func @main(%x: tensor<1x600xf32>, %w: tensor<{panels}x600x32xf32>) -> tensor<1x{panels}x32xf32> {{
      %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
        : (tensor<1x600xf32>, tensor<{panels}x600x32xf32>) -> tensor<1x{panels}x32xf32>
      return %d : tensor<1x{panels}x32xf32>
    }}"""
    program = Program.parse(text)
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    assert settings.get("columns", 0) == columns


def kernels_of(program: Program, kind: str) -> list[tile.KernelOp]:
    (launch,) = (op for op in as_kernel(program, kind).ops() if isinstance(op, LaunchOp))
    scheduled = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512))
    return [step.kernel for step in scheduled.steps]


IMAGE, TURNED = 'tensor<?x?x?x32xf32, ["n", "h", "w", "32"]>', 'tensor<?x32x?x?xf32, ["n", "32", "h", "w"]>'

TWO_SHAPES = f"""func.func @main(%x: {IMAGE}, %y: {IMAGE}) -> ({TURNED}, {IMAGE}) {{
      %s = stablehlo.add %x, %y : {IMAGE}
      %t = stablehlo.transpose %s, dims = [0, 3, 1, 2] : ({IMAGE}) -> {TURNED}
      return %t, %s : {TURNED}, {IMAGE}
    }}"""

SPREAD = """func.func @main(%x: tensor<?x?x32xf32, ["h", "w", "32"]>, %y: tensor<?x?x32xf32, ["a", "b", "32"]>)
      -> tensor<32x?x?xf32, ["32", "h", "w"]> {
      %r = stablehlo.broadcast_in_dim %y, dims = [0, 1, 2]
        : (tensor<?x?x32xf32, ["a", "b", "32"]>) -> tensor<?x?x32xf32, ["h", "w", "32"]>
      %s = stablehlo.add %x, %r : tensor<?x?x32xf32, ["h", "w", "32"]>
      %t = stablehlo.transpose %s, dims = [2, 0, 1]
        : (tensor<?x?x32xf32, ["h", "w", "32"]>) -> tensor<32x?x?xf32, ["32", "h", "w"]>
      return %t : tensor<32x?x?xf32, ["32", "h", "w"]>
    }"""


@pytest.mark.parametrize("sizes", [(1, 5, 7), (2, 3, 4), (1, 1, 1)])
def test_no_lane_divides_by_sizes_of_a_call(sizes: tuple[int, int, int]) -> None:
    program = Program.parse(TWO_SHAPES)
    for kernel in kernels_of(program, "loop"):
        for op in kernel.walk():
            if isinstance(op, tile.ElementwiseOp) and op.function.data in DIVISIONS:
                assert op.results[0].type.get_shape() == ()
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((*sizes, 32)).astype(np.float32) for _ in range(2)]
    assert check_kernel(program, "loop", inputs) == []


@pytest.mark.parametrize("own", [(3, 5), (1, 5), (3, 1), (1, 1)])
def test_what_may_be_repeated_is_read_in_both_ways(own: tuple[int, int]) -> None:
    program = Program.parse(SPREAD)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((*size, 32)).astype(np.float32) for size in ((3, 5), own)]
    assert check_kernel(program, "loop", inputs) == []


WINDOWS = """func.func @main(%x: tensor<?x?x32xf32, ["h + 2", "w + 2", "32"]>, %k: tensor<9x32xf32>)
      -> tensor<?x?x32xf32, ["h", "w", "32"]> {{
{points}
      return %s8 : tensor<?x?x32xf32, ["h", "w", "32"]>
    }}"""
POINT = """      %x{n} = stablehlo.slice %x [{i}:"h + {i}", {j}:"w + {j}", 0:32]
        : (tensor<?x?x32xf32, ["h + 2", "w + 2", "32"]>) -> tensor<?x?x32xf32, ["h", "w", "32"]>
      %k{n} = stablehlo.slice %k [{n}:{m}, 0:32] : (tensor<9x32xf32>) -> tensor<1x32xf32>
      %r{n} = stablehlo.reshape %k{n} : (tensor<1x32xf32>) -> tensor<32xf32>
      %b{n} = stablehlo.broadcast_in_dim %r{n}, dims = [2] : (tensor<32xf32>) -> tensor<?x?x32xf32, ["h", "w", "32"]>
      %p{n} = stablehlo.multiply %x{n}, %b{n} : tensor<?x?x32xf32, ["h", "w", "32"]>
      %s{n} = stablehlo.add {left}, %p{n} : tensor<?x?x32xf32, ["h", "w", "32"]>"""


@pytest.mark.parametrize("sizes", [(1, 1), (3, 4), (2, 7), (4, 13)])
def test_windows_of_images_of_any_size_go_in_blocks(sizes: tuple[int, int]) -> None:
    points = [POINT.format(n=n, m=n + 1, i=n // 3, j=n % 3, left=f"%s{n - 1}" if n else "%p0") for n in range(9)]
    program = Program.parse(WINDOWS.format(points="\n".join(points)))
    assert [kernel.sym_name.data for kernel in kernels_of(program, "loop")] == ["kernel", "kernel_rest"]
    random = np.random.default_rng(0)
    h, w = sizes
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((h + 2, w + 2, 32), (9, 32))]
    (launch,) = (op for op in as_kernel(program, "loop").ops() if isinstance(op, LaunchOp))
    assert check_kernel(program, "loop", inputs, settings_for(launch, program.ranges, 512)) == []


RESHAPED = f"""func.func @main(%x: {IMAGE}) -> (tensor<?x32xf32, ["h*n*w", "32"]>, {IMAGE}, {TURNED}) {{
      %s = stablehlo.add %x, %x : {IMAGE}
      %t = stablehlo.add %s, %x : {IMAGE}
      %r = stablehlo.reshape %t : ({IMAGE}) -> tensor<?x32xf32, ["h*n*w", "32"]>
      %k = stablehlo.iota dim = 0 : {TURNED}
      return %r, %s, %k : tensor<?x32xf32, ["h*n*w", "32"]>, {IMAGE}, {TURNED}
    }}"""


def test_results_that_may_lie_over_what_others_read_are_of_one_kernel() -> None:
    program = Program.parse(RESHAPED)
    (launch,) = (op for op in as_kernel(program, "loop").ops() if isinstance(op, LaunchOp))
    inputs = [np.random.default_rng(0).standard_normal((2, 3, 5, 32)).astype(np.float32)]
    assert check_kernel(program, "loop", inputs, settings_for(launch, program.ranges, 512)) == []


STRIDED = """func.func @main(%x: tensor<?x?x?x3xf32, ["n", "h", "w", "3"]>, %k: tensor<3x3x3x32xf32>)
      -> tensor<?x?x?x32xf32, ["n", "max(0, floordiv(h + 1, 2) - 1)", "max(0, floordiv(w + 1, 2) - 1)", "32"]> {
      %y = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<?x?x?x3xf32, ["n", "h", "w", "3"]>, tensor<3x3x3x32xf32>)
          -> tensor<?x?x?x32xf32, ["n", "max(0, floordiv(h + 1, 2) - 1)", "max(0, floordiv(w + 1, 2) - 1)", "32"]>
      return %y
        : tensor<?x?x?x32xf32, ["n", "max(0, floordiv(h + 1, 2) - 1)", "max(0, floordiv(w + 1, 2) - 1)", "32"]>
    }"""


@pytest.mark.parametrize("sizes", [(1, 9, 12), (2, 3, 7), (1, 31, 4), (3, 2, 9), (1, 1, 1)])
def test_windows_are_within_images_that_have_results(sizes: tuple[int, int, int]) -> None:
    program = Program.parse(STRIDED)
    (launch,) = (op for op in as_kernel(program, "convolution").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    (step,) = schedule(launch, "kernel", program.ranges, settings).steps
    loads = [op for op in step.kernel.walk() if isinstance(op, tile.LoadOp) and op.mask is not None]
    # Rows beyond the last one are left out, and nothing else is.
    assert all(op.mask.type.get_shape()[1:] == (1,) for op in loads)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((*sizes, 3), (3, 3, 3, 32))]
    assert check_kernel(program, "convolution", inputs, settings) == []


COLOURS = """func.func @main(%x: tensor<?x3x?x?xf32, ["n", "3", "h", "w"]>)
      -> tensor<?x?x?x3xf32, ["n", "h", "w", "3"]> {
      %t = stablehlo.transpose %x, dims = [0, 2, 3, 1]
        : (tensor<?x3x?x?xf32, ["n", "3", "h", "w"]>) -> tensor<?x?x?x3xf32, ["n", "h", "w", "3"]>
      return %t : tensor<?x?x?x3xf32, ["n", "h", "w", "3"]>
    }"""


@pytest.mark.parametrize("width", [1, 5, 31, 32, 33, 64, 70])
def test_colours_of_images_of_any_width_are_transposed_in_whole_vectors(width: int) -> None:
    program = Program.parse(COLOURS)
    (launch,) = (op for op in as_kernel(program, "loop").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    whole, rest = schedule(launch, "kernel", program.ranges, settings).steps
    assert not any(isinstance(op, tile.LoadOp) and op.mask is not None for op in whole.kernel.walk())
    assert evaluate(rest.grid[0], {"n": 2, "h": 3, "w": width}) == (6 if width % 32 else 0)
    image = np.random.default_rng(0).standard_normal((2, 3, 3, width)).astype(np.float32)
    assert check_kernel(program, "loop", [image], settings) == []


EVEN = """func.func @main(%x: tensor<?x40xf32, ["n", "40"]>, %w: tensor<1x40x32xf32>)
      -> tensor<?x32xf32, ["2*floordiv(n + 1, 2) + 1", "32"]> {
      %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
        : (tensor<?x40xf32, ["n", "40"]>, tensor<1x40x32xf32>) -> tensor<?x1x32xf32, ["n", "1", "32"]>
      %r = stablehlo.reshape %d : (tensor<?x1x32xf32, ["n", "1", "32"]>) -> tensor<?x32xf32, ["n", "32"]>
      %z = stablehlo.constant dense<-1.5> : tensor<f32>
      %p = stablehlo.pad %r, %z, low = [1, 0], high = ["2*floordiv(n + 1, 2) - n", "0"], interior = [0, 0]
        : (tensor<?x32xf32, ["n", "32"]>, tensor<f32>) -> tensor<?x32xf32, ["2*floordiv(n + 1, 2) + 1", "32"]>
      return %p : tensor<?x32xf32, ["2*floordiv(n + 1, 2) + 1", "32"]>
    }"""


@pytest.mark.parametrize("rows", [1, 2, 11, 13, 24])
def test_padding_that_sizes_decide_is_written_by_who_computes_what_is_within(rows: int) -> None:
    program = Program.parse(EVEN)
    (pad,) = (op for op in program.ops() if isinstance(op, hlo.PadOp))
    assert pad.surrounds
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((rows, 40), (1, 40, 32))]
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    assert check_kernel(program, "matmul", inputs, settings_for(launch, program.ranges, 512)) == []


def test_much_padding_that_sizes_decide_is_read_and_not_written() -> None:
    program = Program.parse(EVEN.replace("2*floordiv(n + 1, 2)", "64*floordiv(n + 63, 64)"))
    (pad,) = (op for op in program.ops() if isinstance(op, hlo.PadOp))
    assert not pad.surrounds


NOTHING = """func.func @main(%x: tensor<?x?x40xf32, ["n", "m", "40"]>, %w: tensor<1x40x32xf32>)
      -> tensor<?x?x32xf32, ["n", "2*floordiv(m + 1, 2)", "32"]> {
      %d = stablehlo.dot_general %x, %w, contracting_dims = [2] x [1]
        : (tensor<?x?x40xf32, ["n", "m", "40"]>, tensor<1x40x32xf32>) -> tensor<?x?x1x32xf32, ["n", "m", "1", "32"]>
      %r = stablehlo.reshape %d
        : (tensor<?x?x1x32xf32, ["n", "m", "1", "32"]>) -> tensor<?x?x32xf32, ["n", "m", "32"]>
      %z = stablehlo.constant dense<-1.5> : tensor<f32>
      %p = stablehlo.pad %r, %z, low = ["0", "floordiv(m + 1, 2) + floordiv(m, 2) - m", "0"],
          high = ["0", "floordiv(m + 1, 2) - floordiv(m, 2)", "0"], interior = [0, 0, 0]
        : (tensor<?x?x32xf32, ["n", "m", "32"]>, tensor<f32>)
        -> tensor<?x?x32xf32, ["n", "2*floordiv(m + 1, 2)", "32"]>
      return %p : tensor<?x?x32xf32, ["n", "2*floordiv(m + 1, 2)", "32"]>
    }"""


def test_padding_that_is_nothing_by_its_bounds_alone_has_no_kernel() -> None:
    program = Program.parse(NOTHING)
    (launch,) = (op for op in as_kernel(program, "matmul").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    names = [step.kernel.kernel_name for step in schedule(launch, "kernel", program.ranges, settings).steps]
    assert [name for name in names if "border" in name] == ["kernel_border0_1high"]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((2, 5, 40), (1, 40, 32))]
    assert check_kernel(program, "matmul", inputs, settings) == []


SUMMED = """func.func @main(%x: tensor<?x?xCxf32, ["n", "h", "C"]>) -> tensor<?xCxf32, ["n", "C"]> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<?x?xCxf32, ["n", "h", "C"]>, tensor<f32>) -> tensor<?xCxf32, ["n", "C"]>
      return %s : tensor<?xCxf32, ["n", "C"]>
    }"""


@pytest.mark.parametrize("channels", [100, 32, 6])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (3, 4), (2, 9)])
def test_sums_of_any_number_of_images_divide_no_lane(sizes: tuple[int, int], channels: int) -> None:
    program = Program.parse(SUMMED.replace("C", str(channels)))
    (launch,) = (op for op in as_kernel(program, "reduction").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    (step,) = schedule(launch, "kernel", program.ranges, settings).steps
    for op in step.kernel.walk():
        if isinstance(op, tile.ElementwiseOp) and op.function.data in DIVISIONS and channels == 100:
            assert op.results[0].type.get_shape() == ()
    x = np.random.default_rng(0).standard_normal((*sizes, channels)).astype(np.float32)
    assert check_kernel(program, "reduction", [x], settings) == []


@pytest.mark.parametrize(("least", "most"), [(2, 2), (1, 3), (64, 64)])
def test_blocks_of_which_there_are_none_by_the_bounds_have_no_kernel(least: int, most: int) -> None:
    """Few elements are left over of no block, and blocks that are whole leave none."""
    program = Program.parse("""func.func @main(%x: tensor<2x?xf32, ["2", "n"]>)
          -> tensor<?x?x2x2xf32, ["n + 2", "n", "2", "2"]> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [3, 1]
        : (tensor<2x?xf32, ["2", "n"]>) -> tensor<?x?x2x2xf32, ["n + 2", "n", "2", "2"]>
      return %0 : tensor<?x?x2x2xf32, ["n + 2", "n", "2", "2"]>
    }""")
    program.ranges = Ranges({"n": Range(least, most)})
    (launch,) = (op for op in as_kernel(program, "loop").ops() if isinstance(op, LaunchOp))
    settings = settings_for(launch, program.ranges, 512)
    steps = schedule(launch, "kernel", program.ranges, settings).steps
    assert all(program.ranges.bounds(step.grid[0]) != (0, 0) for step in steps)
    x = np.random.default_rng(0).standard_normal((2, most)).astype(np.float32)
    assert check_kernel(program, "loop", [x], settings) == []


def test_factors_of_rows_whose_number_is_known_at_the_call_are_read_as_rows() -> None:
    # Of more columns than registers hold, places are counted in a loop: as vectors of neighbours there, too.
    text = """func.func @main(%x: tensor<?x49x1152xf32, ["n", "49", "1152"]>, %s: tensor<?x1152xf32, ["n", "1152"]>,
        %w: tensor<1152x64xf32>) -> tensor<?x49x64xf32, ["n", "49", "64"]> {
      %b = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<?x1152xf32, ["n", "1152"]>)
        -> tensor<?x49x1152xf32, ["n", "49", "1152"]>
      %m = stablehlo.multiply %x, %b : tensor<?x49x1152xf32, ["n", "49", "1152"]>
      %d = stablehlo.dot_general %m, %w, contracting_dims = [2] x [0]
        : (tensor<?x49x1152xf32, ["n", "49", "1152"]>, tensor<1152x64xf32>) -> tensor<?x49x64xf32, ["n", "49", "64"]>
      return %d : tensor<?x49x64xf32, ["n", "49", "64"]>
    }"""
    program = Program.parse(text)
    PassManager(parse_pipeline(target_named("cpu").pipeline())).run(program)
    texts = code_texts(program, VARIANTS["x86-64-v4"])
    product = next(text for name, text in texts.items() if "multiply_dot_general" in name and "few" not in name)
    assert "masked.gather" not in product
