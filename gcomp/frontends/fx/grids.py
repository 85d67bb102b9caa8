"""Images and volumes sampled at the places of a grid (`grid_sample`), and the gradients.

Along each dimension an element of the grid has a few taps: whole places, each with its weight and the weight's
derivative. A sample is the sum over all combinations of taps, which lie along dimensions of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.definitions import Definition, defines
from gcomp.frontends.fx.torch_api import torch

_LINEAR, _NEAREST, _CUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)
"""Interpolation and padding, as torch numbers them."""
_A = -0.75
"""The parameter of torch's cubic convolution."""


@dataclass(frozen=True)
class _Axis:
    """How places along one dimension are found."""

    size: int
    padding: int
    aligned: bool

    def place(self, x: Any) -> Any:
        """Coordinates from -1 to 1 as places from 0 to size - 1. Sizes may be symbols, which are not divided."""
        return (x * self.twice_scale + (self.size - 1)) / 2

    @property
    def twice_scale(self) -> Any:
        """Twice the derivative of a place by its coordinate."""
        return self.size - 1 if self.aligned else self.size

    def inside(self, place: Any) -> tuple[Any, Any]:
        """Places clipped or reflected, if so asked, and the derivative of that."""
        if self.padding == _ZEROS:
            return place, torch.ones_like(place)
        slope: Any = torch.ones_like(place)
        if self.padding == _REFLECTION:
            place, slope = self._reflected(place)
        last = self.size - 1
        # What is clipped has no gradient, nor has a place on the edge, in torch.
        return place.clamp(0, last), torch.where((place > 0) & (place < last), slope, 0.0)

    def _reflected(self, place: Any) -> tuple[Any, Any]:
        first, span = (0.0, self.size - 1) if self.aligned else (-0.5, self.size)
        if span == 0:
            return torch.zeros_like(place), torch.zeros_like(place)
        away = place - first
        sign, away = torch.where(away < 0, -1.0, 1.0).to(place.dtype), away.abs()
        rest, even = away.fmod(span), (away / span).floor() % 2 == 0
        return torch.where(even, rest, span - rest) + first, torch.where(even, sign, -sign)

    def holds(self, place: Any) -> Any:
        """Whether there is an element at whole places."""
        return (place >= 0) & (place < self.size)


@dataclass(frozen=True)
class _Taps:
    """Whole places along one dimension, their weights, and the derivatives of these by the grid: (..., taps)."""

    place: Any
    weight: Any
    slope: Any

    @staticmethod
    def of(x: Any, axis: _Axis, interpolation: int) -> _Taps:
        """The taps of coordinates from -1 to 1."""
        place = axis.place(x)
        if interpolation == _CUBIC:
            low = place.floor().unsqueeze(-1) + torch.arange(-1, 3)
            weight, slope = _cubic(place.unsqueeze(-1) - low)
            # What is outside is clipped or reflected tap by tap.
            return _Taps(axis.inside(low)[0].round(), weight, slope * axis.twice_scale / 2)
        place, slope = (part.unsqueeze(-1) for part in axis.inside(place))
        if interpolation == _NEAREST:
            return _Taps(place.round(), torch.ones_like(place), torch.zeros_like(place))
        low, slope = place.floor(), slope * axis.twice_scale / 2
        behind = place - low
        return _Taps(torch.cat([low, low + 1], -1), torch.cat([1 - behind, behind], -1), torch.cat([-slope, slope], -1))

    def along(self, dim: int, rank: int) -> _Taps:
        """The taps along one of so many dimensions of taps."""
        shape = [1] * rank
        shape[dim] = self.place.shape[-1]
        return _Taps(*(x.flatten(1, -2).unflatten(-1, shape) for x in (self.place, self.weight, self.slope)))


def _cubic(x: Any) -> tuple[Any, Any]:
    """Keys' cubic convolution, and its derivative."""
    near, sign = x.abs(), x.sign()
    inner = ((_A + 2) * near - (_A + 3)) * near * near + 1
    outer = ((_A * near - 5 * _A) * near + 8 * _A) * near - 4 * _A
    inner_slope = (3 * (_A + 2) * near - 2 * (_A + 3)) * near
    outer_slope = (3 * _A * near - 10 * _A) * near + 8 * _A
    return torch.where(near <= 1, inner, outer), torch.where(near <= 1, inner_slope, outer_slope) * sign


@dataclass(frozen=True)
class _Samples:
    """Where P elements of a grid (N, ..., D) take samples of volumes (N, C, ...), and with which weights.

    The combinations of taps, T of them, are counted in one: `place`, `held` and `weight` are (N, P * T).
    """

    taps: Sequence[_Taps]
    combinations: int
    place: Any
    """In the flat volume; 0 where there is no element."""
    held: Any
    """Whether there is one."""
    weight: Any

    @staticmethod
    def of(x: Any, grid: Any, interpolation: int, padding: int, aligned: bool) -> _Samples:
        """Raises UnsupportedError for cubic interpolation of volumes, which torch has not."""
        spatial = grid.shape[-1]
        if interpolation == _CUBIC and spatial != 2:
            raise UnsupportedError(f"torch has no cubic interpolation of {spatial} dimensions")
        axes = [_Axis(size, padding, aligned) for size in x.shape[2:]]
        # The grid's first coordinate is that of the last dimension.
        taps = [
            _Taps.of(grid[..., spatial - 1 - d], axis, interpolation).along(d, spatial) for d, axis in enumerate(axes)
        ]
        combinations = math.prod(math.prod(each.place.shape[2:]) for each in taps)
        held = reduce(torch.logical_and, (axis.holds(t.place) for axis, t in zip(axes, taps, strict=True)))
        place: Any = 0
        for axis, each in zip(axes, taps, strict=True):
            place = place * axis.size + torch.where(held, each.place, 0.0).long()
        return _Samples(taps, combinations, place.flatten(1), held.flatten(1), _product(each.weight for each in taps))

    def slope(self, d: int) -> Any:
        """The derivative of the weights by the grid along a dimension of the volume."""
        return _product(each.slope if i == d else each.weight for i, each in enumerate(self.taps))

    def values(self, x: Any) -> Any:
        """The elements of volumes, 0 outside: (N, C, P * T)."""
        place = self.place.unsqueeze(1).expand(-1, x.shape[1], -1)
        return torch.where(self.held.unsqueeze(1), x.flatten(2).gather(2, place), 0.0)


def _product(factors: Iterator[Any]) -> Any:
    return reduce(mul, factors).flatten(1)


def _wide(function: Definition) -> Definition:
    """A function of tensors that computes in f32 at least."""

    def run(*args: Any) -> Any:
        own = args[0].dtype
        if own not in (torch.float16, torch.bfloat16):
            return function(*args)
        results = function(*(a.float() if isinstance(a, torch.Tensor) else a for a in args))
        several: list[Any] = [*results] if isinstance(results, tuple) else [results]
        several = [x.to(own) for x in several]
        return several if isinstance(results, tuple) else several[0]

    return run


@defines("grid_sampler_2d", "grid_sampler_3d")
@_wide
def _(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    samples = _Samples.of(input, grid, interpolation_mode, padding_mode, align_corners)
    count = math.prod(grid.shape[1:-1])
    total = (samples.values(input) * samples.weight.unsqueeze(1)).unflatten(2, (count, samples.combinations)).sum(-1)
    return total.reshape((*input.shape[:2], *grid.shape[1:-1]))


@defines("grid_sampler_2d_backward", "grid_sampler_3d_backward")
@_wide
def _(grad_output: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool,
      output_mask: Sequence[bool]) -> Any:  # fmt: skip
    samples = _Samples.of(input, grid, interpolation_mode, padding_mode, align_corners)
    count, taps, spatial = math.prod(grid.shape[1:-1]), samples.combinations, grid.shape[-1]
    # One for each tap.
    grad = grad_output.flatten(2).unsqueeze(-1).expand(-1, -1, -1, taps).flatten(2)
    part = torch.where(samples.held, samples.weight, 0.0).unsqueeze(1) * grad
    place = samples.place.unsqueeze(1).expand(part.shape)
    of_input = torch.zeros_like(input).flatten(2).scatter_add(2, place, part).reshape(input.shape)
    of_weight = (grad * samples.values(input)).sum(1)
    parts = [(samples.slope(spatial - 1 - i) * of_weight).unflatten(1, (count, taps)).sum(-1) for i in range(spatial)]
    return of_input, torch.stack(parts, -1).reshape(grid.shape)
