"""Elements that are repeated within a row, or lie in another order that is known: lanes are picked from vectors."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.lowering.llvm.lower import code_texts
from tests.unit.lowering.llvm.test_lower import HERE, agree, floats, planned

pytestmark = pytest.mark.skipif(not HERE, reason="no code for this machine")


def loads(text: str) -> list[str]:
    """What the kernels of a program read floats by."""
    lines = "\n".join(code_texts(planned(text), HERE[0]).values()).splitlines()
    return [line for line in lines if ("load" in line and "float" in line) or "masked.gather" in line]


def enlarged(size: tuple[int, int], by: tuple[int, int], then: str = "") -> str:
    """Images of a size, each pixel of which becomes a rectangle."""
    (h, w), (n, m) = size, by
    x, wide, y = f"tensor<8x{h}x{w}xf32>", f"tensor<8x{h}x{n}x{w}x{m}xf32>", f"tensor<8x{h * n}x{w * m}xf32>"
    after = f"%2 = stablehlo.{then} %1 : {y}" if then else ""
    return f"""func.func @main(%x: {x}) -> {y} {{
      %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1, 3] : ({x}) -> {wide}
      %1 = stablehlo.reshape %0 : ({wide}) -> {y}
      {after}
      func.return %{2 if then else 1} : {y}
    }}"""


@pytest.mark.parametrize("then", ["", "tanh"])
@pytest.mark.parametrize("by", [(2, 2), (3, 3), (1, 4), (2, 3)])
@pytest.mark.parametrize("size", [(4, 32), (8, 20), (4, 13)])
def test_pixels_become_rectangles(size: tuple[int, int], by: tuple[int, int], then: str) -> None:
    text = enlarged(size, by, then)
    x = floats(8, *size)
    (found,) = agree(text, [x])
    if not then:
        np.testing.assert_array_equal(found, np.repeat(np.repeat(x, by[0], axis=1), by[1], axis=2))


@pytest.mark.parametrize(("size", "by"), [((4, 32), (2, 2)), ((4, 32), (3, 3)), ((8, 20), (2, 2)), ((8, 16), (2, 3))])
def test_an_image_that_is_enlarged_is_read_in_vectors(size: tuple[int, int], by: tuple[int, int]) -> None:
    assert all("load <" in line for line in loads(enlarged(size, by)))


@pytest.mark.parametrize("width", [32, 24])
def test_a_row_backwards_is_read_in_vectors(width: int) -> None:
    x = f"tensor<16x{width}xf32>"
    text = f"""func.func @main(%x: {x}) -> {x} {{
      %0 = stablehlo.reverse %x, dims = [1] : {x}
      func.return %0 : {x}
    }}"""
    (found,) = agree(text, [given := floats(16, width)])
    np.testing.assert_array_equal(found, given[:, ::-1])
    assert all("load <" in line for line in loads(text))


@pytest.mark.parametrize("start", [0, 1])
def test_every_other_element_of_rows(start: int) -> None:
    x, y = "tensor<16x64xf32>", "tensor<16x32xf32>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %0 = stablehlo.slice %x [0:16, {start}:64:2] : ({x}) -> {y}
      func.return %0 : {y}
    }}"""
    (found,) = agree(text, [given := floats(16, 64)])
    np.testing.assert_array_equal(found, given[:, start::2])
    assert all("load <" in line for line in loads(text))


@pytest.mark.parametrize(("low", "high"), [((1, 1), (1, 1)), ((0, 3), (2, 0)), ((0, 0), (0, 5))])
@pytest.mark.parametrize("size", [(8, 32), (9, 24), (5, 23), (4, 7)])
def test_rows_with_padding_beside_them(size: tuple[int, int], low: tuple[int, int], high: tuple[int, int]) -> None:
    """Rows of whole vectors are written without asking where they end, and what is beside them by others."""
    out = [n + a + b for n, a, b in zip(size, low, high, strict=True)]
    x, y = f"tensor<6x{size[0]}x{size[1]}xf32>", f"tensor<6x{out[0]}x{out[1]}xf32>"
    text = f"""func.func @main(%x: {x}) -> {y} {{
      %z = stablehlo.constant dense<-1.5> : tensor<f32>
      %0 = stablehlo.pad %x, %z, low = [0, {low[0]}, {low[1]}], high = [0, {high[0]}, {high[1]}],
        interior = [0, 0, 0] : ({x}, tensor<f32>) -> {y}
      func.return %0 : {y}
    }}"""
    given = floats(6, *size)
    (found,) = agree(text, [given])
    pads = [(0, 0), *zip(low, high, strict=True)]
    np.testing.assert_array_equal(found, np.pad(given, pads, constant_values=np.float32(-1.5)))
    if size[1] % 8 == 0:
        assert all("load <" in line for line in loads(text))
