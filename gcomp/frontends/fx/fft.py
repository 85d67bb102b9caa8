"""Fourier transforms, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, element_of, rank_of, real_element


def _along(ctx: NodeContext, x: SSAValue, axis: int, kind: str, length: Size) -> SSAValue:
    """A transform of the given length along an axis, not normalized either way."""
    b, rank = ctx.b, rank_of(x)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    found = b.emit(hlo.FftOp, b.transpose(x, order), fft_type=kind, fft_length=[length])
    if kind.startswith("I"):
        # StableHLO's inverse divides by the length.
        found = _scaled(ctx, found, ctx.scalar(length, dtype_text(real_element(found))))
    return b.transpose(found, order)


def _lengths(ctx: NodeContext, axes: Sequence[int]) -> list[Size]:
    """The lengths of the operand along axes."""
    return [ctx.shape()[axis] for axis in axes]


def _scaled(ctx: NodeContext, x: SSAValue, factor: SSAValue) -> SSAValue:
    """Real or complex numbers times a real one, which is a tensor of rank 0."""
    b = ctx.b
    if element_of(x) != real_element(x):
        factor = b.emit(hlo.ComplexOp, factor, b.scalar_like(factor, 0))
    return b.multiply(x, factor)


def _normalize(ctx: NodeContext, x: SSAValue, count: Size) -> SSAValue:
    """Divided by the root of the number of elements, or by the number."""
    kind = ctx.arg("normalization")
    if kind == 0:
        return x
    if isinstance(count, int):
        return _scaled(ctx, x, ctx.b.full((), 1 / math.sqrt(count) if kind == 1 else 1 / count, real_element(x)))
    b = ctx.b
    divisor = ctx.scalar(count, "f64")
    divisor = b.emit(hlo.SqrtOp, divisor) if kind == 1 else divisor
    return _scaled(ctx, x, b.convert(b.divide(b.scalar_like(divisor, 1), divisor), real_element(x)))


def _axes(ctx: NodeContext) -> list[int]:
    return [axis % ctx.rank() for axis in ctx.arg("dim")]


@imports("_fft_c2c")
def complex_to_complex(ctx: NodeContext) -> Results:
    """The transform or its inverse, of complex numbers."""
    axes, x = _axes(ctx), ctx["self"]
    lengths = _lengths(ctx, axes)
    for axis, length in zip(axes, lengths, strict=True):
        x = _along(ctx, x, axis, "FFT" if ctx.arg("forward") else "IFFT", length)
    return _normalize(ctx, x, dims.product(lengths))


@imports("_fft_r2c")
def real_to_complex(ctx: NodeContext) -> Results:
    """The transform of real numbers: along the last axis only the first half of the result, or all of it."""
    axes, x = _axes(ctx), ctx["self"]
    lengths = _lengths(ctx, axes)
    if ctx.arg("onesided"):
        x = _along(ctx, x, axes[-1], "RFFT", lengths[-1])
        axes = axes[:-1]
    else:
        x = ctx.b.emit(hlo.ComplexOp, x, ctx.b.full_like(x, 0))
    for axis, length in zip(axes, lengths, strict=False):
        x = _along(ctx, x, axis, "FFT", length)
    return _normalize(ctx, x, dims.product(lengths))


@imports("_fft_c2r")
def complex_to_real(ctx: NodeContext) -> Results:
    """The inverse of what is real, given the first half of its transform along the last axis."""
    *axes, last = _axes(ctx)
    x, length = ctx["self"], ctx.arg("last_dim_size")
    lengths = _lengths(ctx, axes)
    for axis, count in zip(axes, lengths, strict=True):
        x = _along(ctx, x, axis, "IFFT", count)
    x = ctx.b.slice_axis(x, last, 0, dims.floordiv(length, 2) + 1)
    return _normalize(ctx, _along(ctx, x, last, "IRFFT", length), dims.product([*lengths, length]))
