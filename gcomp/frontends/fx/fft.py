"""Fourier transforms, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, rank_of, real_element


def _along(ctx: NodeContext, x: SSAValue, axis: int, kind: str, length: int) -> SSAValue:
    """A transform of the given length along an axis, not normalized either way."""
    b, rank = ctx.b, rank_of(x)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    found = b.emit(hlo.FftOp, b.transpose(x, order), fft_type=kind, fft_length=[length])
    if kind.startswith("I"):
        # StableHLO's inverse divides by the length.
        factor = b.full((), length, real_element(found))
        zero = b.full((), 0, real_element(found))
        found = b.multiply(found, factor if kind == "IRFFT" else b.emit(hlo.ComplexOp, factor, zero))
    return b.transpose(found, order)


def _lengths(ctx: NodeContext, axes: Sequence[int]) -> list[int]:
    """The lengths of the operand along axes."""
    found = [size for axis in axes if isinstance(size := ctx.shape()[axis], int)]
    if len(found) != len(axes):
        ctx.unsupported("it transforms along a dimension of symbolic size", "give the dimension a fixed size")
    return found


def _normalize(ctx: NodeContext, x: SSAValue, count: int) -> SSAValue:
    """Divided by the root of the number of elements, or by the number."""
    b = ctx.b
    match ctx.arg("normalization"):
        case 0:
            return x
        case 1:
            factor = 1 / math.sqrt(count)
        case _:
            factor = 1 / count
    scale = b.full((), factor, real_element(x))
    if element_of(x) == real_element(x):
        return b.multiply(x, scale)
    return b.multiply(x, b.emit(hlo.ComplexOp, scale, b.full((), 0, real_element(x))))


def _axes(ctx: NodeContext) -> list[int]:
    return [axis % ctx.rank() for axis in ctx.arg("dim")]


@imports("_fft_c2c")
def complex_to_complex(ctx: NodeContext) -> Results:
    """The transform or its inverse, of complex numbers."""
    axes, x = _axes(ctx), ctx["self"]
    lengths = _lengths(ctx, axes)
    for axis, length in zip(axes, lengths, strict=True):
        x = _along(ctx, x, axis, "FFT" if ctx.arg("forward") else "IFFT", length)
    return _normalize(ctx, x, math.prod(lengths))


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
    return _normalize(ctx, x, math.prod(lengths))


@imports("_fft_c2r")
def complex_to_real(ctx: NodeContext) -> Results:
    """The inverse of what is real, given the first half of its transform along the last axis."""
    *axes, last = _axes(ctx)
    x, length = ctx["self"], ctx.arg("last_dim_size")
    lengths = _lengths(ctx, axes)
    if not isinstance(length, int):
        ctx.unsupported("its last dimension is symbolic", "give the dimension a fixed size")
    for axis, count in zip(axes, lengths, strict=True):
        x = _along(ctx, x, axis, "IFFT", count)
    x = ctx.b.slice_axis(x, last, 0, length // 2 + 1)
    return _normalize(ctx, _along(ctx, x, last, "IRFFT", length), math.prod([*lengths, length]))
