"""Convolutions that are really something simpler become it: a 1x1 kernel a matrix product; a depthwise kernel, or one
that reads a single channel, a sum of shifted products; a kernel whose outer points meet nothing but padding, one of
fewer points. They need channels-last dimension numbers. They sum in another order: E2.

A channel that several outputs read is repeated for them: for a processor that is 3 to 8 times as fast as a convolution
in as many groups. XLA's CPU backend runs a depthwise convolution ten times slower than the same sum of products, and
one of a single input channel seven times (docs/guides/benchmarks.md). With `max-points=0` only kernels of one point
change: for targets that have kernels of their own for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, cast

from xdsl.ir import SSAValue

from gcomp.analysis.constants import is_finite
from gcomp.dims import Size
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, shape_of, static_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites
from gcomp.records import record


def _is_plain(op: hlo.ConvolutionOp) -> bool:
    """Channels last, no dilation of the input, no reversal, no batch groups."""
    return (
        op.is_channels_last
        and not op.dilates_input
        and not any(op.window()["window_reversal"])
        and op.value("batch_group_count") == 1
    )


def _is_of_one_type(op: hlo.ConvolutionOp) -> bool:
    return element_of(op.lhs) == element_of(op.rhs) == element_of(op.result)


MAX_POINTS = 49
"""Points of a window for which a convolution becomes arithmetic, or products, at most."""


class DropPointsOfPadding(Pattern):
    """The outer points of a kernel that meet nothing but padding, wherever the window stands, go, and so does padding.

    Windows that are dilated beyond small images have such, as those of DeepLab's pyramid. Products with padding are 0
    where the kernel is finite, which is known of weights.
    """

    name = "drop-points-of-padding"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        if (axes := _axes(op)) is None:
            return None
        dropped = [axis.points_of_padding() for axis in axes]
        if not any(map(any, dropped)) or not is_finite(op.rhs, b.program):
            return None
        starts, ends = ([drop[side] for drop in dropped] for side in (0, 1))
        limits = [axis.points - end for axis, end in zip(axes, ends, strict=True)]
        points = b.slice(op.rhs, [*starts, 0, 0], [*limits, *shape_of(op.rhs)[-2:]])
        pads = [axis.padding_without(*drop) for axis, drop in zip(axes, dropped, strict=True)]
        properties: dict[str, Any] = {**op.properties, "padding": pads}
        return [b.emit(hlo.ConvolutionOp, op.lhs, points, types=(op.result.type,), **properties)]


class DilatedPointsToDots(Pattern):
    """A dilated convolution most of whose products are with padding becomes a matrix product for each kernel point, of
    the pixels that it reads, and their sum.

    Products with padding are 0 where the kernel is finite.
    """

    name = "dilated-points-to-dots"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self.max_points = max_points

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        axes = _axes(op)
        if axes is None or op.value("feature_group_count") != 1 or not _is_of_one_type(op):
            return None
        if all(axis.dilation == 1 for axis in axes) or dtype_text(op.result.type) not in ("f32", "f64"):
            return None
        kernel, numbers = shape_of(op.rhs), DotDimensions((), (), (len(axes) + 1,), (0,))
        points = [(point, [axis.outs_of(p) for axis, p in zip(axes, point, strict=True)])
                  for point in product(*[range(axis.points) for axis in axes])]  # fmt: skip
        points = [(point, ranges) for point, ranges in points if all(ranges)]
        read = sum([prod(map(len, ranges)) for _, ranges in points])
        every = prod([axis.points * axis.outs for axis in axes])
        if not 1 < len(points) <= self.max_points or SPARSE * read > every or not is_finite(op.rhs, b.program):
            return None
        total: SSAValue | None = None
        for point, ranges in points:
            firsts = [axis.place(r.start, p) for axis, r, p in zip(axes, ranges, point, strict=True)]
            sizes = [shape_of(op.lhs)[0], *map(len, ranges), kernel[-2]]
            pixels = b.take(op.lhs, [0, *firsts, 0], sizes, [1, *[axis.stride for axis in axes], 1])
            matrix = b.slice(op.rhs, [*point, 0, 0], [*[p + 1 for p in point], *kernel[-2:]])
            found = b.dot(pixels, b.reshape(matrix, kernel[-2:]), numbers, element_of(op.result))
            after = [axis.outs - r.stop for axis, r in zip(axes, ranges, strict=True)]
            term = b.pad(found, b.scalar_like(found, 0), [0, *[r.start for r in ranges], 0], [0, *after, 0])
            total = term if total is None else b.add(total, term)
        return None if total is None else [total]


SPARSE = 2
"""A convolution has at least so many products for each that is not with padding where each point becomes a dot."""


@record
class _Axis:
    """One dimension of the window of a convolution."""

    size: int
    points: int
    outs: int
    padding: tuple[int, int]
    stride: int
    dilation: int

    def place(self, out: int, point: int) -> int:
        """Where in the input an output meets a kernel point."""
        return out * self.stride + point * self.dilation - self.padding[0]

    def outs_of(self, point: int) -> range:
        """The outputs for which a kernel point does not meet padding."""
        first = max(0, -(self.place(0, point) // self.stride))
        beyond = -((self.place(0, point) - self.size) // self.stride)
        return range(first, max(first, min(self.outs, beyond)))

    def points_of_padding(self) -> tuple[int, int]:
        """How many first and last points read padding alone: not all of them, and no padding is made a crop."""
        reading = [point for point in range(self.points) if self.outs_of(point)]
        if not reading:
            return 0, 0
        outer = reading[0], self.points - 1 - reading[-1]
        first, last = (min(n, max(pad, 0) // self.dilation) for n, pad in zip(outer, self.padding, strict=True))
        return first, last

    def padding_without(self, first: int, last: int) -> tuple[int, int]:
        """The padding of a window without so many first and last points."""
        return self.padding[0] - first * self.dilation, self.padding[1] - last * self.dilation


def _axes(op: hlo.ConvolutionOp) -> list[_Axis] | None:
    """The dimensions of a plain convolution's window. None for others, of sizes that are not known, or without work."""
    kernel, window = static_shape(op.rhs), op.window()
    if kernel is None or not _is_plain(op):
        return None
    sizes, outs = shape_of(op.lhs)[1:-1], shape_of(op.result)[1:-1]
    steps = window["padding"], window["window_strides"], window["rhs_dilation"]
    numbers = zip(sizes, kernel[:-2], outs, *steps, strict=True)
    found = [_Axis(n, k, out, pair, step, gap) for n, k, out, pair, step, gap in numbers
             if isinstance(n, int) and isinstance(out, int)]  # fmt: skip
    whole = len(found) == len(sizes) and all(axis.size and axis.points and axis.outs for axis in found)
    return found if whole and kernel[-2] else None


class PointwiseToDot(Pattern):
    """A convolution by a kernel of one point, without padding, is a matrix product of (strided) pixels."""

    name = "pointwise-conv-to-dot"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        window, kernel = op.window(), shape_of(op.rhs)
        unpadded = all(p == (0, 0) for p in window["padding"])
        if not (
            _is_plain(op) and unpadded and op.value("feature_group_count") == 1 and all(k == 1 for k in kernel[:-2])
        ) or not (_is_of_one_type(op) or dtype_text(op.result.type) == "i32"):
            return None
        shape = shape_of(op.lhs)
        pixels = b.slice(op.lhs, [0] * len(shape), shape, [1, *window["window_strides"], 1])
        matrix = b.reshape(op.rhs, kernel[-2:])
        return [b.dot(pixels, matrix, DotDimensions((), (), (len(shape) - 1,), (0,)), element_of(op.result))]


class ChannelwiseToMultiplyAdd(Pattern):
    """Where each output channel reads one input channel, a sum over kernel points of a shifted slice times a vector.

    Where several output channels read the same one, it is repeated for each of them.

    Narrow floats are summed in f32, as a convolution sums them.
    """

    name = "channelwise-conv-to-multiply-add"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def __init__(self, max_points: int = MAX_POINTS, max_features: int = 0) -> None:
        self.max_points, self.max_features = max_points, max_features

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        kernel, channels = static_shape(op.rhs), shape_of(op.lhs)[-1]
        if kernel is None or not (_is_plain(op) and _is_of_one_type(op)) or kernel[-2] != 1:
            return None
        if op.value("feature_group_count") != channels:
            return None
        points = list(product(*map(range, kernel[:-2])))
        if channels == 1 != kernel[-1] and 0 < self.max_features < kernel[-1]:
            return None
        if (
            not isinstance(channels, int)
            or not channels
            or not 1 <= len(points) <= self.max_points
            or 0 in shape_of(op.result)
        ):
            return None
        return [self._sum(op, points, b)]

    def _sum(self, op: hlo.ConvolutionOp, points: Sequence[tuple[int, ...]], b: Builder) -> SSAValue:
        window, out = op.window(), shape_of(op.result)
        x, kernel = (b.widen(v) for v in op.operands)
        shape, features = shape_of(x), shape_of(kernel)[-1]
        if shape[-1] not in (1, features):
            each = cast(int, features) // cast(int, shape[-1])
            x = b.reshape(b.broadcast(x, (*shape, each), range(len(shape))), (*shape[:-1], features))
        low, high = ([0, *[p[side] for p in window["padding"]], 0] for side in (0, 1))
        padded = b.pad(x, b.scalar_like(x, 0), low, high)
        total: SSAValue | None = None
        for point in points:
            pixels = self._shifted(padded, point, window["window_strides"], window["rhs_dilation"], out, b)
            pixels = b.broadcast(pixels, out, range(len(out)))
            starts = [*point, 0, 0]
            vector = b.slice(kernel, starts, [*[p + 1 for p in point], *shape_of(op.rhs)[-2:]])
            term = b.multiply(pixels, b.broadcast(vector, out, range(len(out))))
            total = term if total is None else b.add(total, term)
        assert total is not None
        return b.convert(total, element_of(op.result))

    def _shifted(self, padded: SSAValue, point: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                 out: Sequence[Size], b: Builder) -> SSAValue:  # fmt: skip
        """The input element that each output element meets at one kernel point."""
        starts: list[Size] = [0, *[p * d for p, d in zip(point, dilations, strict=True)], 0]
        steps = [1, *strides, 1]
        sizes = [*out[:-1], shape_of(padded)[-1]]
        return b.take(padded, starts, sizes, steps)


@dataclass(frozen=True)
class ConvToArithmetic(Pass):
    """Pointwise convolutions become dots, channelwise ones of up to `max-points` kernel points multiply-adds."""

    name: ClassVar[str] = "conv-to-arithmetic"
    exactness: ClassVar[Exactness] = Exactness.E2

    max_points: int = MAX_POINTS
    """Each point is an op."""
    max_features: int = 0
    """Features of a convolution that reads a single channel, at most (0: any number): more make a product."""

    def run(self, program: Program, context: PassContext) -> bool:
        points = self.max_points
        simpler = DropPointsOfPadding(), DilatedPointsToDots(points), PointwiseToDot()
        return apply_rewrites(program, (*simpler, ChannelwiseToMultiplyAdd(points, self.max_features)), context)
