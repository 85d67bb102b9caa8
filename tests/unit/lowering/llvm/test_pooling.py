"""Windows over images as machine code: with channels first or last, down and along, of maxima and of sums."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.schedules import schedule
from tests.unit.lowering.llvm.test_lower import agree, planned

INIT = {("maximum", "f32"): "0xFF800000", ("add", "f32"): "0.0", ("maximum", "i32"): "-2147483648", ("add", "i32"): "0"}


def window(
    shape: list[int], length: list[int], stride: list[int], pad: list[tuple[int, int]], fold: str = "maximum",
    dtype: str = "f32", dilation: list[int] | None = None,
) -> str:  # fmt: skip
    """A window over what is negated, and the absolute of what is found."""
    ones = [1] * len(shape)
    dilated = dilation or ones
    result = [window_size(*parts) for parts in zip(shape, length, stride, pad, ones, dilated, strict=True)]
    x, y = (f"tensor<{'x'.join(map(str, sizes))}x{dtype}>" for sizes in (shape, result))
    pads = ", ".join(f"[{low}, {high}]" for low, high in pad)
    lists = {"window_dimensions": length, "window_strides": stride, "window_dilations": dilated}
    text = ", ".join(f"{name} = array<i64: {', '.join(map(str, v))}>" for name, v in lists.items())
    return f"""func.func @main(%x: {x}) -> {y} {{
      %init = stablehlo.constant dense<{INIT[fold, dtype]}> : tensor<{dtype}>
      %n = stablehlo.negate %x : {x}
      %w = "stablehlo.reduce_window"(%n, %init) <{{{text}, padding = dense<[{pads}]> : tensor<{len(shape)}x2xi64>}}> ({{
      ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
        %r = stablehlo.{fold} %a, %b : tensor<{dtype}>
        stablehlo.return %r : tensor<{dtype}>
      }}) : ({x}, tensor<{dtype}>) -> {y}
      %y = stablehlo.abs %w : {y}
      return %y : {y}
    }}"""


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """Numbers, with zeros of both signs, infinities and NaN of both signs among floats."""
    random = np.random.default_rng(sum(shape))
    if dtype == "i32":
        return random.integers(-1000, 1000, shape).astype(np.int32)
    found = random.standard_normal(shape).astype(np.float32)
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    return np.where(random.random(shape) < 0.1, random.choice(odd, shape), found)


CASES = {
    "channels first, by two": ([2, 3, 21, 35], [1, 1, 3, 3], [1, 1, 2, 2], [(0, 0), (0, 0), (1, 1), (1, 1)]),
    "channels first, to the very end": ([1, 1, 4, 33], [1, 1, 2, 3], [1, 1, 2, 2], [(0, 0)] * 4),
    "channels first, five rows": ([1, 2, 20, 20], [1, 1, 5, 5], [1, 1, 1, 1], [(0, 0), (0, 0), (2, 2), (2, 2)]),
    "wide": ([1, 5, 300], [1, 3, 3], [1, 1, 1], [(0, 0), (1, 1), (1, 1)]),
    "long": ([2, 20, 40], [1, 17, 18], [1, 1, 2], [(0, 0), (8, 8), (9, 8)]),
    "rows alone": ([3, 70], [1, 9], [1, 4], [(0, 0), (4, 4)]),
    "far apart": ([2, 9, 40], [1, 2, 2], [1, 3, 3], [(0, 0), (0, 1), (-2, 3)]),
    "channels last": ([2, 13, 7, 32], [1, 5, 5, 1], [1, 1, 1, 1], [(0, 0), (2, 2), (2, 2), (0, 0)]),
    "channels last, by two": ([1, 9, 9, 2, 16], [1, 5, 5, 1, 1], [1, 2, 2, 1, 1],
                              [(0, 0), (0, 2), (1, 1), (0, 0), (0, 0)]),
}  # fmt: skip


def form(text: str) -> str:
    """The way that the schedule of a program's one window takes."""
    program = planned(text)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp) and op.kind_name == "window"]
    return schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512)).form


@pytest.mark.parametrize(("fold", "dtype"), list(INIT))
@pytest.mark.parametrize("name", list(CASES))
def test_windows_over_images(name: str, fold: str, dtype: str) -> None:
    shape, *rest = CASES[name]
    text = window(shape, *rest, fold=fold, dtype=dtype)
    assert form(text) == "windows from memory of their own"
    agree(text, (numbers(dtype, *shape),))


def test_dilated_windows() -> None:
    text = window([2, 11, 24], [1, 3, 3], [1, 1, 1], [(0, 0), (2, 2), (3, 3)], dilation=[1, 2, 3])
    assert form(text) == "windows from memory of their own"
    agree(text, (numbers("f32", 2, 11, 24),))


def test_windows_that_are_no_small_memory_are_gone_over_in_a_loop() -> None:
    text = window([2, 300, 310, 3], [1, 299, 299, 1], [1, 1, 4, 1], [(0, 0)] * 4)
    assert form(text) == "elements in the order of memory"


def test_windows_of_three_dimensions_lie_on_no_planes() -> None:
    text = window([4, 5, 6, 9], [1, 3, 3, 2], [1, 1, 1, 1], [(0, 0)] * 4)
    assert form(text) == "elements in the order of memory"
    agree(text, (numbers("f32", 4, 5, 6, 9),))
