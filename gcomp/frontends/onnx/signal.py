"""Fourier transforms and what comes with them. Complex numbers are a last dim of 2."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.frontends.onnx.values import Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import rank_of, shape_of


@imports("DFT", since=17)
def dft_attribute(ctx: NodeContext) -> Results:
    """DFT-17: the axis is an attribute."""
    return _dft(ctx, ctx.integer("axis", 1))


@imports("DFT", since=20)
def dft(ctx: NodeContext) -> Results:
    """DFT-20: the axis is an input."""
    return _dft(ctx, int(ctx.scalar(2, "axis")) if ctx.has(2) else -2)


def _dft(ctx: NodeContext, axis: int) -> Results:
    b, rank = ctx.b, ctx.rank()
    axis, inverse, onesided = ctx.axis(axis, rank), ctx.flag("inverse"), ctx.flag("onesided")
    if axis == rank - 1:
        ctx.invalid("its axis is the last dim", "that one holds real and imaginary parts")
    if ctx.static(ctx.shape()[-1], "size of the last dim") not in (1, 2):
        ctx.invalid(f"its last dim has size {ctx.shape()[-1]}", "it holds real and imaginary parts")
    size = ctx.shape()[axis]
    length = ctx.size(1, "dft_length") if ctx.has(1) else size
    if inverse and onesided and not ctx.has(1):
        length = 2 * (size - 1)
    text = ctx.element()
    x = b.widened(ctx[0])
    moved = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    x = b.transpose(x, moved)
    y = _inverse_real(ctx, x, length) if inverse and onesided else _complex(ctx, x, length, inverse, onesided)
    back = [moved.index(i) for i in range(rank)]
    return [b.convert(b.transpose(y, back), text)]


def _fitted(ctx: NodeContext, x: SSAValue, count: Size) -> SSAValue:
    """The dim before the last cropped or padded with zeros to `count`."""
    b, rank, size = ctx.b, rank_of(x), shape_of(x)[-2]
    x = b.slice_axis(x, rank - 2, 0, ctx.lesser(size, count))
    x = b.pad(x, ctx.full_like(x, 0), [0] * rank, [0] * (rank - 2) + [ctx.greater(count - size, 0), 0])
    return ctx.restated(x, {rank - 2: count})


def _parts(ctx: NodeContext, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The real and imaginary parts, the last dim removed."""
    b, shape = ctx.b, shape_of(x)
    real = b.reshape(b.slice_axis(x, len(shape) - 1, 0, 1), shape[:-1])
    if shape[-1] == 1:
        return real, b.full_like(real, 0)
    return real, b.reshape(b.slice_axis(x, len(shape) - 1, 1, 2), shape[:-1])


def _joined(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """A complex tensor as a last dim of 2."""
    b, shape = ctx.b, shape_of(x)
    parts = [b.reshape(b.emit(op, x), (*shape, 1)) for op in (hlo.RealOp, hlo.ImagOp)]
    return b.concatenate(parts, len(shape))


def _complex(ctx: NodeContext, x: SSAValue, count: Size, inverse: bool, onesided: bool) -> SSAValue:
    """The transform along the dim before the last."""
    b, real = ctx.b, shape_of(x)[-1] == 1
    parts = _parts(ctx, _fitted(ctx, x, count))
    if real and not inverse:
        half = b.emit(hlo.FftOp, parts[0], fft_type="RFFT", fft_length=[count])
        return _joined(ctx, half if onesided else _mirrored(ctx, half, count))
    y = b.emit(hlo.FftOp, b.emit(hlo.ComplexOp, *parts), fft_type="IFFT" if inverse else "FFT", fft_length=[count])
    if onesided:
        y = b.slice_axis(y, rank_of(y) - 1, 0, dims.floordiv(count, 2) + 1)
    return _joined(ctx, y)


def _mirrored(ctx: NodeContext, half: SSAValue, count: Size) -> SSAValue:
    """All `count` frequencies of a real signal from the first half of them: the others are their conjugates."""
    b, axis = ctx.b, rank_of(half) - 1
    rest = b.emit(hlo.ReverseOp, b.slice_axis(half, axis, 1, count - dims.floordiv(count, 2)), dimensions=[axis])
    conjugate = b.emit(hlo.ComplexOp, b.emit(hlo.RealOp, rest), b.emit(hlo.NegateOp, b.emit(hlo.ImagOp, rest)))
    return ctx.restated(b.concatenate([half, conjugate], axis), {axis: count})


def _inverse_real(ctx: NodeContext, x: SSAValue, count: Size) -> SSAValue:
    b = ctx.b
    z = b.emit(hlo.ComplexOp, *_parts(ctx, _fitted(ctx, x, dims.floordiv(count, 2) + 1)))
    y = b.emit(hlo.FftOp, z, fft_type="IRFFT", fft_length=[count])
    return b.reshape(y, (*shape_of(y), 1))


def _places(ctx: NodeContext, count: Size, length: int, step: int) -> SSAValue:
    """Where the samples of each frame lie in the signal."""
    if isinstance(count, int):
        if count * length > _TABLE_LIMIT:
            ctx.unsupported(f"{count} frames of {length} samples are more than gcomp lays out")
        return ctx.b.constant(np.arange(count)[:, None] * step + np.arange(length), "i64")
    frame, sample = (ctx.b.iota((count, length), axis) for axis in (0, 1))
    return ctx.b.add(ctx.b.multiply(frame, ctx.b.constant(step, "i64")), sample)


_TABLE_LIMIT = 1 << 24
"""Places of samples are a table made here; sizes come from the model, and may be anything."""


@imports("STFT")
def stft(ctx: NodeContext) -> Results:
    """STFT: frames of the signal, windowed, each transformed."""
    b, x = ctx.b, ctx[0]
    if ctx.rank() != 3 or (ctx.has(2) and ctx.rank(2) != 1):
        ctx.invalid(f"the signal has rank {ctx.rank()}", "rank 3 is expected, and rank 1 of the window")
    # 1 for real and 2 for complex numbers: another kind of program each.
    ctx.static(ctx.shape()[2], "number of parts of an element")
    step = int(ctx.scalar(1, "frame_step"))
    if ctx.has(3):
        length = int(ctx.scalar(3, "frame_length"))
    else:
        length = ctx.static(ctx.shape(2)[0] if ctx.has(2) else ctx.shape()[1], "frame length")
    if step < 1 or length < 1:
        ctx.invalid(f"frame_step is {step} and frame_length {length}", "both must be positive")
    if ctx.at_most(ctx.shape()[1] + 1, length):
        ctx.invalid(f"frames have {length} samples", f"the signal has {ctx.shape()[1]}")
    count = ctx.greater(dims.floordiv(ctx.shape()[1] - length, step) + 1, 0)
    frames = take(b, x, _places(ctx, count, length, step), 1)
    if ctx.has(2):
        window = ctx[2]
        size = ctx.static(shape_of(window)[0], "window's length")
        window = b.pad(window, ctx.full_like(window, 0), [0], [length - size])
        frames = b.multiply(frames, b.broadcast(window, shape_of(frames), (2,)))
    return [_complex(ctx, frames, length, False, ctx.flag("onesided", True))]


@imports("MelWeightMatrix")
def mel_weight_matrix(ctx: NodeContext) -> Results:
    """MelWeightMatrix: computed here, since all its inputs are constants."""
    bins, length, rate = (int(ctx.scalar(i, "mel bins")) for i in range(3))
    low, high = (float(ctx.scalar(i, "band edges")) for i in (3, 4))
    mels = [2595 * np.log1p(edge / 700) / np.log(10) for edge in (low, high)]
    points = np.arange(bins + 2) * ((mels[1] - mels[0]) / (bins + 2)) + mels[0]
    hertz = 700 * np.expm1(points / 2595 * np.log(10))
    edges = cast("list[int]", (((length + 1) * hertz) // rate).astype(int).tolist())
    matrix = np.zeros((length // 2 + 1, bins))
    for i in range(bins):
        left, center, right = edges[i : i + 3]
        if left == center:
            matrix[center, i] = 1
        for j in range(left, center + 1 if left != center else left):
            matrix[j, i] = (j - left) / (center - left)
        for j in range(center, right):
            matrix[j, i] = (right - j) / (right - center)
    return [Value.constant(matrix.astype(dtype_of(ctx.dtype("output_datatype", "f32"))))]
