"""Tiles whose columns, and not rows, are neighbours in memory: channels that become the first, or the last."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.dtypes import dtype_of
from gcomp.lowering.llvm.lower import code_texts
from tests.unit.lowering.llvm.test_lower import HERE, agree, floats, planned

pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")


def elements_apart(text: str, **weights: np.ndarray) -> bool:  # type: ignore[type-arg]
    """Whether the kernels of a program read or write the lanes of a vector from addresses of their own."""
    found = "".join(code_texts(planned(text, **weights), HERE[0]).values())
    return "masked.gather" in found or "masked.scatter" in found


@pytest.mark.parametrize("width", [16, 56, 80, 7, 14])
@pytest.mark.parametrize(("channels", "kind"), [(32, "f32"), (16, "i8"), (20, "f64")])
def test_channels_become_the_last(channels: int, width: int, kind: str) -> None:
    x, y = f"tensor<2x{channels}x{width}x{kind}>", f"tensor<2x{width}x{channels}x{kind}>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %0 = stablehlo.transpose %x, dims = [0, 2, 1] : ({x}) -> {y}
      func.return %0 : {y}
    }}"""
    agree(text, [(floats(2, channels, width) * 50).astype(dtype_of(kind))])
    if width % 4 == 0 and channels % 16 == 0:
        assert not elements_apart(text)


@pytest.mark.parametrize("size", [7, 12, 13])
@pytest.mark.parametrize("features", [16, 24, 32])
def test_products_of_pixels_are_written_with_channels_first(size: int, features: int) -> None:
    x, w, y = (
        f"tensor<1x{size}x{size}x8xf32>",
        f"tensor<1x1x8x{features}xf32>",
        f"tensor<1x{features}x{size}x{size}xf32>",
    )
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
      %1 = stablehlo.tanh %0 : {y}
      func.return %1 : {y}
    }}"""
    weight = floats(1, 1, 8, features, seed=1) / 3
    agree(text, [floats(1, size, size, 8)], w=weight)
    assert not elements_apart(text, w=weight)


@pytest.mark.parametrize(("stride", "features"), [(2, 32), (3, 16), (4, 8)])
@pytest.mark.parametrize(("height", "width"), [(8, 16), (9, 20), (5, 7), (3, 48)])
def test_the_phases_of_a_transposed_convolution_are_written_between_each_other(
    height: int, width: int, stride: int, features: int
) -> None:
    """A product of pixels by the features of all phases, whose results are an image with channels first."""
    columns = stride * stride * features
    x, w, y = f"tensor<{height * width}x40xf32>", f"tensor<40x{columns}xf32>", f"tensor<{height * width}x{columns}xf32>"
    apart = f"tensor<{height}x{width}x{stride}x{stride}x{features}xf32>"
    turned = f"tensor<{features}x{height}x{stride}x{width}x{stride}xf32>"
    z = f"tensor<{features}x{height * stride}x{width * stride}xf32>"
    text = f"""func.func @main(%x: {x}) -> {z} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}
      %1 = stablehlo.reshape %0 : ({y}) -> {apart}
      %2 = stablehlo.transpose %1, dims = [4, 0, 2, 1, 3] : ({apart}) -> {turned}
      %3 = stablehlo.reshape %2 : ({turned}) -> {z}
      func.return %3 : {z}
    }}"""
    weight = floats(40, columns, seed=1) / 6
    agree(text, [floats(height * width, 40)], w=weight)
    if height * width >= 128 and width % 4 == 0 and features % 4 == 0:
        assert not elements_apart(text, w=weight)


@pytest.mark.parametrize("width", [16, 20])
def test_a_depthwise_window_of_the_last_channels_is_written_with_channels_first(width: int) -> None:
    x, w, y = f"tensor<1x6x{width}x32xf32>", "tensor<3x3x1x32xf32>", f"tensor<1x4x{width - 2}x32xf32>"
    z = f"tensor<1x32x4x{width - 2}xf32>"
    text = f"""func.func @main(%x: {x}) -> {z} {{
      %w = gcomp.weight @w : {w}
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
        {{batch_group_count = 1 : i64, feature_group_count = 32 : i64}} : ({x}, {w}) -> {y}
      %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : ({y}) -> {z}
      func.return %1 : {z}
    }}"""
    weight = floats(3, 3, 1, 32, seed=1)
    agree(text, [floats(1, 6, width, 32)], w=weight)
    assert not elements_apart(text, w=weight)


@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
@pytest.mark.parametrize("shape", [(1, 4), (1, 20), (4, 1), (3, 5)])
def test_whether_one_is_true_of_rows_and_of_columns(shape: tuple[int, int], dims: list[int]) -> None:
    """A row that is folded into itself, element by element, is no row of which one is asked for."""
    x, t = f"tensor<{shape[0]}x{shape[1]}xf32>", f"tensor<{shape[0]}x{shape[1]}xi1>"
    out = "".join(f"{n}x" for k, n in enumerate(shape) if k not in dims)
    text = f"""func.func @main(%x: {x}) -> tensor<{out}i1> {{
      %z = stablehlo.constant dense<0.5> : {x}
      %f = stablehlo.constant dense<false> : tensor<i1>
      %0 = stablehlo.compare GT, %x, %z : ({x}, {x}) -> {t}
      %1 = stablehlo.reduce(%0 init: %f) applies stablehlo.or across dimensions = {dims}
        : ({t}, tensor<i1>) -> tensor<{out}i1>
      func.return %1 : tensor<{out}i1>
    }}"""
    (found,) = agree(text, [(given := floats(*shape, seed=3))])
    np.testing.assert_array_equal(np.asarray(found, bool), (given > 0.5).any(axis=tuple(dims)))


@pytest.mark.parametrize("function", ["maximum", "minimum"])
@pytest.mark.parametrize("columns", [1000, 272, 48])
def test_what_has_no_order_is_combined_in_more_chains(columns: int, function: str) -> None:
    """Rows that are kept for an exponential, with NaN of two payloads and zeros of both signs in some of them."""
    x, rows = f"tensor<6x{columns}xf32>", "tensor<6xf32>"
    text = f"""func.func @main(%x: {x}) -> ({x}, {rows}) {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %i = stablehlo.constant dense<{"0xFF800000" if function == "maximum" else "0x7F800000"}> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %i) applies stablehlo.{function} across dimensions = [1]
        : ({x}, tensor<f32>) -> {rows}
      %1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({rows}) -> {x}
      %2 = stablehlo.subtract %x, %1 : {x}
      %3 = stablehlo.exponential %2 : {x}
      %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1]
        : ({x}, tensor<f32>) -> {rows}
      %5 = stablehlo.broadcast_in_dim %4, dims = [0] : ({rows}) -> {x}
      %6 = stablehlo.divide %3, %5 : {x}
      func.return %6, %0 : {x}, {rows}
    }}"""
    given = floats(6, columns)
    given[1] = np.where(np.arange(columns) % 3 == 0, np.float32(-0.0), np.float32(0.0))
    given[2, columns // 2], given[2, columns - 1] = np.array([0x7FC00001, 0xFFC00002], np.uint32).view(np.float32)
    given[3, 7] = np.inf
    found = agree(text, [given])
    np.testing.assert_array_equal(found[1], getattr(np, function).reduce(given, axis=1))


def test_many_pieces_of_one_element_are_joined() -> None:
    """Each is a choice between a piece and the choices before it: more than Python's stack has room for."""
    count, one = 400, "tensor<1xi64>"
    program = f"""func.func @main(%x: {one}, %y: {one}) -> tensor<{count}xi64> {{
      %0 = stablehlo.concatenate {", ".join(["%x", "%y"] * (count // 2))}, dim = 0
        : ({", ".join([one] * count)}) -> tensor<{count}xi64>
      return %0 : tensor<{count}xi64>
    }}"""
    (found,) = gcomp.compile(program, target="cpu")(np.array([3]), np.array([7]))
    assert np.array_equal(found, [3, 7] * (count // 2))
