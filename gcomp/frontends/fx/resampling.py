"""Images resized with a filter as wide as the step between pixels (antialiasing), by products with two matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gcomp.frontends.fx.definitions import Definition, defines
from gcomp.frontends.fx.torch_api import torch


def _triangle(x: Any) -> Any:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Any) -> Any:
    """Keys' cubic convolution with a = -0.5."""
    x = x.abs()
    near, far = (1.5 * x - 2.5) * x * x + 1, -0.5 * (((x - 5) * x + 8) * x - 4)
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


def _lanczos(x: Any) -> Any:
    """The product of a sinc and of one three times as wide."""
    return torch.where(x.abs() < 3, torch.sinc(x) * torch.sinc(x / 3), 0.0)


def _matrix(
    size: int, count: int, scale: float | None, aligned: bool, kernel: Callable[[Any], Any], radius: int, dtype: Any
) -> Any:
    """The weights of so many pixels of `size` ones in each of `count`."""
    if aligned:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale else size / count
    wide = max(step, 1.0)
    support = radius * wide
    center = (torch.arange(count, dtype=dtype).unsqueeze(1) + 0.5) * step
    first = (center - support + 0.5).trunc().clamp(min=0)
    end = (center + support + 0.5).trunc().clamp(max=size)
    pixel = torch.arange(size, dtype=dtype)
    weights = torch.where((pixel >= first) & (pixel < end), kernel((pixel - center + 0.5) / wide), 0.0)
    return weights / weights.sum(1, keepdim=True)


def _matrices(shape: Sequence[int], size: Sequence[int], aligned: bool, scales: Sequence[Any],
              kernel: Callable[[Any], Any], radius: int, dtype: Any) -> list[Any]:  # fmt: skip
    """The weights of rows and of columns."""
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    parts = zip(shape[-2:], size, scales, strict=True)
    return [_matrix(own, count, scale, aligned, kernel, radius, wide) for own, count, scale in parts]


def _resize_definition(kernel: Callable[[Any], Any], radius: int) -> Definition:
    def run(self: Any, output_size: Any, align_corners: bool, scales_h: Any = None, scales_w: Any = None) -> Any:
        scales = (scales_h, scales_w)
        rows, columns = _matrices(self.shape, output_size, align_corners, scales, kernel, radius, self.dtype)
        return (rows @ (self.to(rows.dtype) @ columns.mT)).to(self.dtype)

    return run


def _gradient(kernel: Callable[[Any], Any], radius: int) -> Definition:
    def run(grad_output: Any, output_size: Any, input_size: Any, align_corners: bool, scales_h: Any = None,
            scales_w: Any = None) -> Any:  # fmt: skip
        scales, dtype = (scales_h, scales_w), grad_output.dtype
        rows, columns = _matrices(input_size, output_size, align_corners, scales, kernel, radius, dtype)
        return (rows.mT @ (grad_output.to(rows.dtype) @ columns)).to(dtype)

    return run


for _name, _kernel, _radius in (("bilinear", _triangle, 1), ("bicubic", _cubic, 2), ("lanczos", _lanczos, 3)):
    defines(f"_upsample_{_name}2d_aa")(_resize_definition(_kernel, _radius))
    defines(f"_upsample_{_name}2d_aa_backward")(_gradient(_kernel, _radius))
