"""Complex arithmetic with the special values of C99 (Annex G), spelled out: no build of NumPy decides them."""

from __future__ import annotations

import numpy as np

from gcomp.reference.numpy.dtypes import Array, imag_part, real_part
from gcomp.reference.numpy.rounding import quiet


def from_parts(real: Array, imag: Array) -> Array:
    """The complex array of two float arrays of one shape and dtype; bits are kept."""
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    real_part(result)[...] = real
    imag_part(result)[...] = imag
    return result


def view_as_real(x: Array) -> Array:
    """The parts of complex numbers along a last dimension; bits are kept."""
    return np.stack([real_part(x), imag_part(x)], axis=-1)


def view_as_complex(x: Array) -> Array:
    """The complex numbers of the pairs along the last dimension; bits are kept."""
    return from_parts(x[..., 0], x[..., 1])


@quiet
def product(lhs: Array, rhs: Array) -> Array:
    """(ac - bd) + i(ad + bc), each step rounded; no recovery of infinities from NaN."""
    real = real_part(lhs) * real_part(rhs) - imag_part(lhs) * imag_part(rhs)
    imag = real_part(lhs) * imag_part(rhs) + imag_part(lhs) * real_part(rhs)
    return from_parts(np.asarray(real), np.asarray(imag))


@quiet
def quotient(lhs: Array, rhs: Array) -> Array:
    """complex128 lhs / rhs by the algorithm of C99 Annex G.5.1: scaled, infinities and zeros recovered."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    a, b, c, d = real_part(lhs), imag_part(lhs), real_part(rhs), imag_part(rhs)
    largest = np.fmax(np.abs(c), np.abs(d))
    scalable = np.isfinite(largest) & (largest > 0)
    shift = np.where(scalable, -np.frexp(np.where(scalable, largest, 1.0))[1], 0)
    sc, sd = np.ldexp(c, shift), np.ldexp(d, shift)
    norm = sc * sc + sd * sd
    real = np.ldexp((a * sc + b * sd) / norm, shift)
    imag = np.ldexp((b * sc - a * sd) / norm, shift)
    lost = np.isnan(real) & np.isnan(imag)
    if not np.any(lost):
        return from_parts(np.asarray(real), np.asarray(imag))

    by_zero = lost & (norm == 0) & ~(np.isnan(a) & np.isnan(b))
    infinity = np.copysign(np.inf, c)
    real, imag = np.where(by_zero, infinity * a, real), np.where(by_zero, infinity * b, imag)

    infinite = lost & ~by_zero & (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d)
    ua, ub = _unit_infinity(a), _unit_infinity(b)
    real = np.where(infinite, np.inf * (ua * c + ub * d), real)
    imag = np.where(infinite, np.inf * (ub * c - ua * d), imag)

    vanishing = lost & ~by_zero & ~infinite & np.isinf(largest) & np.isfinite(a) & np.isfinite(b)
    uc, ud = _unit_infinity(c), _unit_infinity(d)
    real = np.where(vanishing, 0.0 * (a * uc + b * ud), real)
    imag = np.where(vanishing, 0.0 * (b * uc - a * ud), imag)
    return from_parts(np.asarray(real), np.asarray(imag))


def _unit_infinity(x: Array) -> Array:
    return np.copysign(np.where(np.isinf(x), 1.0, 0.0), x)


def reciprocal(x: Array) -> Array:
    """1 / x of a float64 or complex128 array."""
    return quotient(np.ones(x.shape, x.dtype), x) if x.dtype.kind == "c" else np.asarray(1.0 / x)


@quiet
def expm1(z: Array) -> Array:
    """exp(z) - 1 of a complex128 array; the real part by the half angle, so that neither 1 nor cos cancels."""
    re, im = real_part(z), imag_part(z)
    half = np.sin(im / 2)
    precise = from_parts(np.asarray(np.expm1(re) * np.cos(im) - 2 * half * half), np.asarray(np.exp(re) * np.sin(im)))
    return np.where(np.isfinite(precise), precise, np.exp(z) - 1)
