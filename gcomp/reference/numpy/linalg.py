"""Dense linear algebra and Fourier transforms, batched over the leading dimensions.

Evaluated in double precision and rounded once; f64 itself by the textbook recurrences, in ascending index
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.reference.numpy.dtypes import Array, is_complex, real_part
from gcomp.reference.numpy.rounding import narrow, quiet, widen


@quiet
def cholesky(a: Array, *, lower: bool = False) -> Array:
    """The Cholesky factor of each [n, n] matrix; zeros in the opposite triangle.

    Reads only the named triangle, and only the real part of the diagonal. A matrix that is not positive
    definite gives NaN in the whole named triangle.
    """
    matrix = widen(a)
    source = matrix if lower else np.conj(np.swapaxes(matrix, -1, -2))
    n = a.shape[-1]
    factor = np.zeros_like(source)
    for j in range(n):
        row = factor[..., j, :j]
        squares = real_part(row * np.conj(row)) if is_complex(row.dtype) else row * row
        diagonal = source[..., j, j]
        pivot = np.sqrt((real_part(diagonal) if is_complex(row.dtype) else diagonal) - squares.sum(axis=-1))
        # A pivot of 0 is no factor either: positive definite means greater.
        pivot = np.where(pivot > 0, pivot, np.nan)
        factor[..., j, j] = pivot
        below = factor[..., j + 1 :, :j]
        products = np.matmul(below, np.conj(row)[..., None])[..., 0]
        factor[..., j + 1 :, j] = (source[..., j + 1 :, j] - products) / pivot[..., None]
    failed = np.asarray(np.isnan(factor).any(axis=(-1, -2)))
    factor = np.where(failed[..., None, None] & np.tri(n, dtype=np.bool_), np.nan, factor)
    return narrow(factor if lower else np.conj(np.swapaxes(factor, -1, -2)), a.dtype)


@quiet
def triangular_solve(
    a: Array, b: Array, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Array:
    """x with op(a) x = b, or x op(a) = b if not `left_side`; op is "NO_TRANSPOSE", "TRANSPOSE" or "ADJOINT".

    Reads only the named triangle of `a`, and not its diagonal if `unit_diagonal`. Zero pivots divide as IEEE
    does.
    """
    matrix, known = widen(a), widen(b)
    if not left_side:
        # x op(a) = b is op(a)^T x^T = b^T.
        known = np.swapaxes(known, -1, -2)
    if transpose_a == "ADJOINT":
        matrix = np.conj(matrix)
    if (transpose_a in ("TRANSPOSE", "ADJOINT")) == left_side:
        matrix = np.swapaxes(matrix, -1, -2)
        lower = not lower
    n = a.shape[-1]
    x = np.zeros_like(known)
    for step in range(n):
        i = step if lower else n - 1 - step
        done = slice(0, i) if lower else slice(i + 1, n)
        products = np.matmul(matrix[..., None, i, done], x[..., done, :])[..., 0, :]
        rest = known[..., i, :] - products
        x[..., i, :] = rest if unit_diagonal else rest / matrix[..., i, i, None]
    return narrow(x if left_side else np.swapaxes(x, -1, -2), b.dtype)


_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


@quiet
def fft(operand: Array, *, fft_type: str, fft_length: Sequence[int], shape: Sequence[int] | None = None) -> Array:
    """The discrete Fourier transform over the last `len(fft_length)` dimensions.

    "FFT" and "IFFT" map complex to complex, "RFFT" real to the first n // 2 + 1 complex values of the last
    dimension, "IRFFT" those back to n real values (imaginary parts that a real signal cannot have are
    ignored). The inverses divide by the number of points. Of no points, the result is zeros of `shape`: half of their
    spectrum is empty or, where its size is a formula, one.
    """
    wide = widen(operand)
    axes = tuple(range(operand.ndim - len(fft_length), operand.ndim))
    if shape is None:
        shape = operand.shape[: axes[0]] + tuple(fft_length) if axes else operand.shape
        if fft_type == "RFFT" and axes:
            shape = (*shape[:-1], fft_length[-1] // 2 + 1 if fft_length[-1] else 0)
    single = operand.dtype in (np.dtype(np.float32), np.dtype(np.complex64))
    parts = np.dtype(np.float32 if single else np.float64)
    dtype = parts if fft_type == "IRFFT" else np.dtype(np.complex64 if single else np.complex128)
    if 0 in shape or operand.size == 0:
        return np.zeros(shape, dtype)
    return narrow(np.asarray(_TRANSFORMS[fft_type](wide, s=tuple(fft_length), axes=axes)), dtype)
