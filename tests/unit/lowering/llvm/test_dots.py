"""Products of tiles: where their factors lie, and what is fetched before it is read."""

from __future__ import annotations

import pytest

from gcomp.dtypes import dtype_of
from gcomp.lowering.llvm.lower import code_texts
from tests.unit.lowering.llvm.test_lower import HERE, agree, floats, planned

pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "i8", "i64"])
@pytest.mark.parametrize("length", [2, 6, 40, 100])
def test_factors_may_lie_in_memory_from_the_last_to_the_first(length: int, kind: str) -> None:
    """Of a vector that is reversed, the rows lie before each other."""
    text = f"""func.func @main(%x: tensor<{length}x{kind}>, %y: tensor<{length}x{kind}>) -> tensor<{kind}> {{
      %0 = stablehlo.reverse %x, dims = [0] : tensor<{length}x{kind}>
      %1 = stablehlo.dot_general %y, %0, contracting_dims = [0] x [0]
        : (tensor<{length}x{kind}>, tensor<{length}x{kind}>) -> tensor<{kind}>
      func.return %1 : tensor<{kind}>
    }}"""
    agree(text, [(floats(length, seed=seed) * 5).astype(dtype_of(kind)) for seed in (0, 1)])


@pytest.mark.parametrize("dims", ["0", "1", "0, 1"])
@pytest.mark.parametrize("side", ["lhs", "rhs"])
@pytest.mark.parametrize(("m", "k", "n"), [(3, 6, 5), (8, 48, 32), (1, 70, 64), (20, 33, 1)])
def test_factors_of_a_matrix_product_may_be_reversed(m: int, k: int, n: int, side: str, dims: str) -> None:
    shape = f"tensor<{m}x{k}xf32>" if side == "lhs" else f"tensor<{k}x{n}xf32>"
    left, right = ("%0", "%y") if side == "lhs" else ("%x", "%0")
    text = f"""func.func @main(%x: tensor<{m}x{k}xf32>, %y: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
      %0 = stablehlo.reverse {"%x" if side == "lhs" else "%y"}, dims = [{dims}] : {shape}
      %1 = stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0]
        : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
      func.return %1 : tensor<{m}x{n}xf32>
    }}"""
    agree(text, [floats(m, k), floats(k, n, seed=1)])


@pytest.mark.parametrize(("columns", "fetched"), [(16, True), (12, False)])
def test_weights_of_few_rows_are_fetched_before_they_are_read(columns: int, fetched: bool) -> None:
    """A stream through memory of whole lines: processors fetch it by themselves only to the end of a page."""
    text = f"""func.func @main(%x: tensor<4x512xf32>) -> tensor<4x{columns}xf32> {{
      %w = gcomp.weight @w : tensor<512x{columns}xf32>
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4x512xf32>, tensor<512x{columns}xf32>) -> tensor<4x{columns}xf32>
      func.return %0 : tensor<4x{columns}xf32>
    }}"""
    weight = floats(512, columns, seed=1)
    agree(text, [floats(4, 512)], w=weight)
    code = "".join(code_texts(planned(text, w=weight), HERE[0]).values())
    assert ("call void @llvm.prefetch" in code) == fetched


@pytest.mark.parametrize(("channels", "size", "window"), [
    (16, (20,), (300,)), (40, (20, 19), (17, 16)), (12, (4, 40), (3, 17)), (6, (19, 5), (17, 15)),
    (32, (9, 4), (5, 10)), (7, (9, 8), (9, 9)),
])  # fmt: skip
def test_channels_are_side_by_side_under_windows_that_are_too_large_for_shifted_products(
    channels: int, size: tuple[int, ...], window: tuple[int, ...]
) -> None:
    rank = len(size)
    places = ", ".join(map(str, range(rank)))
    pads = ", ".join(f"[{n // 2}, {(n - 1) // 2}]" for n in window)
    x, w = ("x".join(map(str, shape)) for shape in ((1, *size, channels), (*window, 1, channels)))
    text = f"""func.func @main(%x: tensor<{x}xf32>) -> tensor<{x}xf32> {{
      %w = gcomp.weight @w : tensor<{w}xf32>
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, {places}, f]x[{places}, i, o]->[b, {places}, f],
        window = {{pad = [{pads}]}} {{feature_group_count = {channels} : i64, batch_group_count = 1 : i64}}
        : (tensor<{x}xf32>, tensor<{w}xf32>) -> tensor<{x}xf32>
      func.return %0 : tensor<{x}xf32>
    }}"""
    agree(text, [floats(1, *size, channels)], w=floats(*window, 1, channels, seed=1) / 16)
