"""Fourier transforms and what comes with them. Complex numbers are a last dim of 2."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.errors import InputError
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_axes import along_axis, or_refused
from gcomp.frontends.onnx.engine.data_dependent_sizes import (
    data_dependent_sizes,
    data_dependent_symbol,
    host,
    operand_size,
)
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import rank_of, shape_of, tensor
from gcomp.reference.numpy import mel as mels


@imports("DFT", since=17)
def dft_attribute(ctx: NodeContext) -> Results:
    """DFT-17: the axis is an attribute."""
    return _dft(ctx, ctx.integer("axis", 1))


@imports("DFT", since=20)
def dft(ctx: NodeContext) -> Results:
    """DFT-20: the axis is an input."""
    if ctx.has(2) and ctx.known_value(2) is None:
        _check_parts(ctx)
        y = along_axis(ctx, ctx.b.widen(ctx[0]), 2, lambda x: _transform(ctx, x))
        return [ctx.b.convert(y, ctx.element())]
    return _dft(ctx, int(ctx.scalar(2, "axis")) if ctx.has(2) else -2)


def _check_parts(ctx: NodeContext) -> None:
    if ctx.static(ctx.shape()[-1], "size of the last dim") not in (1, 2):
        ctx.invalid(f"its last dim has size {ctx.shape()[-1]}", "it holds real and imaginary parts")


def _dft(ctx: NodeContext, axis: int) -> Results:
    b, rank = ctx.b, ctx.rank()
    axis = ctx.axis(axis, rank)
    if axis == rank - 1:
        ctx.invalid("its axis is the last dim", "that one holds real and imaginary parts")
    _check_parts(ctx)
    moved = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    y = _transform(ctx, b.transpose(b.widen(ctx[0]), moved))
    back = [moved.index(i) for i in range(rank)]
    return [b.convert(b.transpose(y, back), ctx.element())]


def _transform(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """The node's transform along the dim before the last."""
    inverse, onesided, size = ctx.flag("inverse"), ctx.flag("onesided"), shape_of(x)[-2]
    length = operand_size(ctx, 1, "dft_length") if ctx.has(1) else size
    if inverse and onesided and not ctx.has(1):
        length = 2 * (size - 1)
    return _inverse_real(ctx, x, length) if inverse and onesided else _complex(ctx, x, length, inverse, onesided)


def _fit(ctx: NodeContext, x: SSAValue, count: Size) -> SSAValue:
    """The dim before the last cropped or padded with zeros to `count`."""
    b, rank, size = ctx.b, rank_of(x), shape_of(x)[-2]
    x = b.slice_axis(x, rank - 2, 0, ctx.lesser(size, count))
    x = b.pad(x, ctx.b.scalar_like(x, 0), [0] * rank, [0] * (rank - 2) + [ctx.greater(count - size, 0), 0])
    return ctx.restate(x, {rank - 2: count})


def _parts(ctx: NodeContext, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The real and imaginary parts, the last dim removed."""
    b, shape = ctx.b, shape_of(x)
    real = b.reshape(b.slice_axis(x, len(shape) - 1, 0, 1), shape[:-1])
    if shape[-1] == 1:
        return real, b.full_like(real, 0)
    return real, b.reshape(b.slice_axis(x, len(shape) - 1, 1, 2), shape[:-1])


def _interleave(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """A complex tensor as a last dim of 2."""
    b, shape = ctx.b, shape_of(x)
    parts = [b.reshape(b.emit(op, x), (*shape, 1)) for op in (hlo.RealOp, hlo.ImagOp)]
    return b.concatenate(parts, len(shape))


def _complex(ctx: NodeContext, x: SSAValue, count: Size, inverse: bool, onesided: bool) -> SSAValue:
    """The transform along the dim before the last."""
    b, real = ctx.b, shape_of(x)[-1] == 1
    parts = _parts(ctx, _fit(ctx, x, count))
    if real and not inverse:
        half = b.emit(hlo.FftOp, parts[0], fft_type="RFFT", fft_length=[count])
        return _interleave(ctx, half if onesided else _mirror(ctx, half, count))
    y = b.emit(hlo.FftOp, b.emit(hlo.ComplexOp, *parts), fft_type="IFFT" if inverse else "FFT", fft_length=[count])
    if onesided:
        y = b.slice_axis(y, rank_of(y) - 1, 0, dims.floordiv(count, 2) + 1)
    return _interleave(ctx, y)


def _mirror(ctx: NodeContext, half: SSAValue, count: Size) -> SSAValue:
    """All `count` frequencies of a real signal from the first half of them: the others are their conjugates."""
    b, axis = ctx.b, rank_of(half) - 1
    rest = b.emit(hlo.ReverseOp, b.slice_axis(half, axis, 1, count - dims.floordiv(count, 2)), dimensions=[axis])
    conjugate = b.emit(hlo.ComplexOp, b.emit(hlo.RealOp, rest), b.emit(hlo.NegateOp, b.emit(hlo.ImagOp, rest)))
    return ctx.restate(b.concatenate([half, conjugate], axis), {axis: count})


def _inverse_real(ctx: NodeContext, x: SSAValue, count: Size) -> SSAValue:
    b = ctx.b
    z = b.emit(hlo.ComplexOp, *_parts(ctx, _fit(ctx, x, dims.floordiv(count, 2) + 1)))
    y = b.emit(hlo.FftOp, z, fft_type="IRFFT", fft_length=[count])
    return b.reshape(y, (*shape_of(y), 1))


def _places(ctx: NodeContext, count: Size, length: Size, step: SSAValue | int) -> SSAValue:
    """Where the samples of each frame lie in the signal."""
    if isinstance(count, int) and isinstance(length, int) and isinstance(step, int):
        if count * length > _TABLE_LIMIT:
            ctx.unsupported(f"{count} frames of {length} samples are more than gcomp lays out")
        return ctx.b.constant(np.arange(count)[:, None] * step + np.arange(length), "i64")
    frame, sample = (ctx.b.iota((count, length), axis) for axis in (0, 1))
    return ctx.b.add(ctx.b.multiply(frame, ctx.b.constant(step, "i64") if isinstance(step, int) else step), sample)


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
    if ctx.has(3):
        length = operand_size(ctx, 3, "frame_length")
    else:
        length = ctx.shape(2)[0] if ctx.has(2) else ctx.shape()[1]
    known = ctx.known_value(1)
    step = int(ctx.scalar(1, "frame_step")) if known is not None and known.dtype != object else None
    if (step is not None and step < 1) or ctx.at_most(length, 0):
        ctx.invalid(f"frame_step is {step} and frame_length {length}", "both must be positive")
    if ctx.at_most(ctx.shape()[1] + 1, length):
        ctx.invalid(f"frames have {length} samples", f"the signal has {ctx.shape()[1]}")
    if not isinstance(length, int) and not ctx.at_most(1, length):
        ctx.require("le", 1, length)
    if step is None:
        count, by = _count_frames(ctx, length)
    else:
        count, by = ctx.greater(dims.floordiv(ctx.shape()[1] - length, step) + 1, 0), step
    frames = take(b, x, _places(ctx, count, length, by), 1)
    if ctx.has(2):
        size = ctx.shape(2)[0]
        window = b.reshape(_fit(ctx, b.reshape(ctx[2], (size, 1)), length), (length,))
        frames = b.multiply(frames, b.broadcast(window, shape_of(frames), (2,)))
    return [_complex(ctx, frames, length, False, ctx.flag("onesided", True))]


def _count_frames(ctx: NodeContext, length: Size) -> tuple[Size, SSAValue]:
    """How many frames there are, and from one to the next, where that is known when it runs."""
    b, zero, one = ctx.b, ctx.b.constant(0, "i64"), ctx.b.constant(1, "i64")
    if dims.product(ctx.shape(1)) != 1:
        ctx.invalid(f"frame_step has shape {ctx.shape(1)}", "one number is expected")
    step = b.convert(b.reshape(ctx[1], ()), "i64")
    room = b.subtract(b.dim(ctx.shape()[1]), b.dim(length))
    count = b.add(b.divide(b.maximum(room, zero), b.maximum(step, one)), one)
    count = b.select(b.compare(room, zero, "LT"), zero, count)
    valid = b.compare(step, one, "GE")
    (found,) = data_dependent_sizes(
        ctx, or_refused(ctx, valid, b.reshape(count, (1,))), "number of frames by frame_step"
    )
    return found, step


@imports("MelWeightMatrix")
def mel_weight_matrix(ctx: NodeContext) -> Results:
    """MelWeightMatrix: computed here where all its inputs are constants, else by a host step."""
    text = ctx.dtype("output_datatype", "f32")
    if any(dims.product(ctx.shape(i)) != 1 for i in range(5)):
        ctx.invalid("an input has not one element", "five numbers are expected")
    known = [ctx.known_value(i) for i in range(5)]
    if all(array is not None and array.dtype != object for array in known):
        try:
            (matrix,) = mels.mel_weight_matrix(*cast("list[Array]", known))
        except InputError as error:
            ctx.invalid("its inputs make no bands", str(error))
        return [Value.constant(matrix.astype(dtype_of(text)))]
    shape = (data_dependent_symbol(ctx), data_dependent_symbol(ctx))
    return [ctx.b.convert(host(ctx, "mel_weight_matrix", ctx.operands(), [tensor(shape, "f64")], {})[0], text)]
