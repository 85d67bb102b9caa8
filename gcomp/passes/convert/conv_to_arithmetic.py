"""Convolutions that are really something simpler become it: a 1x1 kernel a matrix product; a depthwise kernel, or one
that reads a single channel, a sum of shifted products. They need channels-last dimension numbers. They sum in another
order: E2. A channel that several outputs read is repeated for them: for a processor that is 4 to 8 times as fast as a
convolution of as many groups.

XLA's CPU backend runs a depthwise convolution ten times slower than the same sum of products, and one of a single
input channel seven times (docs/guides/benchmarks.md). With `max-points=0` only kernels of one point change: for targets
that have kernels of their own for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, cast

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, shape_of, static_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


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
"""Points of a window for which a channelwise convolution becomes arithmetic, at most."""


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
        if not isinstance(channels, int) or not channels or not 1 <= len(points) <= self.max_points or 0 in shape_of(op.result):
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
        return apply_rewrites(
            program, (PointwiseToDot(), ChannelwiseToMultiplyAdd(self.max_points, self.max_features)), context
        )
