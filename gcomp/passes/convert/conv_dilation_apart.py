"""A convolution of a dilated input (a transposed convolution) becomes those of its phases, which read no zeros.

Of an input dilated by s, every s-th result reads the same points of the window, and the others of the window are
multiplied by what dilation put in between. So the result has s phases in each dimension, and each is a convolution of
the input as it is, by every s-th point of the window: a quarter of the products for a stride of 2 in two dimensions.
Where the window has as many points for each phase, as in most networks that go back to larger images, one convolution
has all phases as its features, and reads its input once: a matrix product where that is one point. Zeros times weights
are left out, which must be known to be finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from gcomp.analysis.constants import is_finite
from gcomp.dims import Dim, Size, ceildiv
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, shape_of, static_shape, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

MOST_PHASES = 16
"""Phases of a convolution, each of which is an op, at most."""


class ConvDilationApart(Pattern):
    """The phases of a convolution of a dilated input, put together."""

    name = "conv-dilation-apart"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        kernel, window = static_shape(op.rhs), op.window()
        if kernel is None or not self._is_plain(op) or not is_finite(op.rhs, b.program):
            return None
        sizes, out = shape_of(op.lhs)[1:-1], shape_of(op.result)[1:-1]
        if 0 in (*sizes, *out):
            return None
        steps: Sequence[int] = window["lhs_dilation"]
        points = kernel[:-2]
        if any(k < s for k, s in zip(points, steps, strict=True)):
            return None
        as_one = op.value("feature_group_count") == 1 and all(k % s == 0 for k, s in zip(points, steps, strict=True))
        if not as_one and prod(steps) > MOST_PHASES:
            return None
        cuts = self._cuts(op, steps) if as_one else [0] * len(steps)
        if any(isinstance(ceildiv(c + own, s) - n, Dim) for c, own, n, s in zip(cuts, out, sizes, steps, strict=True)):
            return None  # how much is padded would depend on the call
        return [self._as_one(op, steps, b) if as_one else self._as_phases(op, steps, b)]

    def _is_plain(self, op: hlo.ConvolutionOp) -> bool:
        window = op.window()
        return (
            op.is_channels_last
            and op.dilates_input
            and not any(window["window_reversal"])
            and all(n == 1 for n in (*window["window_strides"], *window["rhs_dilation"]))
            and op.value("batch_group_count") == 1
            and element_of(op.lhs) == element_of(op.rhs) == element_of(op.result)
        )

    def _cuts(self, op: hlo.ConvolutionOp, steps: Sequence[int]) -> list[int]:
        """Which phase of its pixel the first of the result is, where phases that read from one pixel on are one."""
        return [s - 1 - low % s for (low, _), s in zip(op.window()["padding"], steps, strict=True)]

    def _as_one(self, op: hlo.ConvolutionOp, steps: Sequence[int], b: Builder) -> SSAValue:
        """A convolution by every s-th point of the window, whose features are those of all phases.

        The phases that read from one pixel on are not 0 to s - 1, but s that follow each other (`_cuts`). Point
        `s - 1 - r` of every s is that of phase r.
        """
        kernel, window = static_shape(op.rhs), op.window()
        assert kernel is not None
        sizes, out, rank = shape_of(op.lhs)[1:-1], shape_of(op.result), len(steps)
        windows = [k // s for k, s in zip(kernel, steps, strict=False)]
        w = b.reshape(op.rhs, (*[n for k, s in zip(windows, steps, strict=True) for n in (k, s)], *kernel[-2:]))
        w = b.emit(hlo.ReverseOp, w, dimensions=[2 * k + 1 for k in range(rank)])
        w = b.transpose(w, (*range(0, 2 * rank, 2), 2 * rank, *range(1, 2 * rank, 2), 2 * rank + 1))
        features = prod(steps) * kernel[-1]
        w = b.reshape(w, (*windows, kernel[-2], features))
        cuts, counts, padding = self._cuts(op, steps), list[Size](), list[list[Size]]()
        for k, s in enumerate(steps):
            low = window["padding"][k][0]
            counts.append(ceildiv(cuts[k] + out[1 + k], s))
            padding.append([low // s, counts[k] + windows[k] - 1 - sizes[k] - low // s])
        type = with_shape(op.result, (out[0], *counts, features))
        properties: dict[str, Any] = {**op.properties, "padding": padding, "lhs_dilation": [1] * rank}
        found = b.emit(hlo.ConvolutionOp, op.lhs, w, types=(type,), **properties)
        apart = b.reshape(found, (out[0], *counts, *steps, kernel[-1]))
        order = [0, *[axis for k in range(rank) for axis in (1 + k, 1 + rank + k)], 2 * rank + 1]
        whole = [count * s for count, s in zip(counts, steps, strict=True)]
        result = b.reshape(b.transpose(apart, order), (out[0], *whole, out[-1]))
        return b.take(result, [0, *cuts, 0], out, [1] * len(out))

    def _as_phases(self, op: hlo.ConvolutionOp, steps: Sequence[int], b: Builder) -> SSAValue:
        """Convolutions by every s-th point of the window, whose results lie between each other."""
        out = shape_of(op.result)
        counts = [ceildiv(n, s) for n, s in zip(out[1:-1], steps, strict=True)]
        apart = (out[0], *[n for count in counts for n in (count, 1)], out[-1])
        found = {phase: b.reshape(self._phase(op, phase, counts, b), apart) for phase in product(*map(range, steps))}
        for axis in reversed(range(len(steps))):
            kept = product(*map(range, steps[:axis]))
            found = {rest: b.concatenate([found[*rest, r] for r in range(steps[axis])], 2 + 2 * axis) for rest in kept}
        whole = [count * s for count, s in zip(counts, steps, strict=True)]
        result = b.reshape(found[()], (out[0], *whole, out[-1]))
        return b.take(result, [0] * len(out), out, [1] * len(out))

    def _phase(self, op: hlo.ConvolutionOp, phase: Sequence[int], counts: Sequence[Size], b: Builder) -> SSAValue:
        """The results at every s-th place from `phase` on."""
        window, kernel, shape = op.window(), static_shape(op.rhs) or (), shape_of(op.lhs)
        rank = len(phase)
        starts, padding = [0] * (rank + 2), list[list[Size]]()
        for k, (r, s) in enumerate(zip(phase, window["lhs_dilation"], strict=True)):
            low = window["padding"][k][0]
            starts[k] = (low - r) % s
            points = -(-(kernel[k] - starts[k]) // s)
            before = (low - r - starts[k]) // s
            padding.append([before, counts[k] + points - 1 - shape[1 + k] - before])
        steps = [*window["lhs_dilation"], 1, 1]
        taken = b.slice(op.rhs, starts, kernel, steps)
        result = (shape_of(op.result)[0], *counts, shape_of(op.result)[-1])
        properties: dict[str, Any] = {**op.properties, "padding": padding, "lhs_dilation": [1] * rank}
        return b.emit(hlo.ConvolutionOp, op.lhs, taken, types=(with_shape(op.result, result),), **properties)


@dataclass(frozen=True)
class ConvDilationApartPass(Pass):
    """Compute transposed convolutions by their phases, without the zeros that dilate their inputs."""

    name: ClassVar[str] = "conv-dilation-apart"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (ConvDilationApart(),), context)
