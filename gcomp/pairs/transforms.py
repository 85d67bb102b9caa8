"""Fourier transforms as products with matrices of roots of unity.

A length is cut into two factors (Cooley and Tukey), down to lengths whose matrix is small; a large prime is a
convolution with a chirp, of a length that has small factors (Bluestein). Of a symbolic length, or one of 0, the matrix
is whole, and computed where the program runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import Size, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, real_element, shape_of
from gcomp.pairs.parts import Pair, holds_complex, join_parts, parts

Array = np.ndarray[Any, Any]
Parts = tuple[SSAValue, SSAValue | None]
"""The parts of what is transformed; of real numbers, the imaginary one is not there."""

LARGEST_MATRIX, LARGEST_PRIME = 64, 256
"""The longest transforms that are one product with a matrix: of any length, and of a prime one."""


def transform_parts(op: hlo.FftOp, b: Builder) -> SSAValue:
    """The result of a Fourier transform, one dimension after the other."""
    kind: str = op.value("fft_type")
    transform = _Transform(b, real_element(op.operand), inverse=kind.startswith("I"))
    return transform.of(op.operand, kind, sizes_of(op.fft_length))


class _Transform:
    """Transforms of parts of an element type."""

    def __init__(self, b: Builder, element: Attribute, *, inverse: bool) -> None:
        self.b = b
        self.element = element
        self.sign = 1 if inverse else -1

    def of(self, x: SSAValue, kind: str, lengths: Sequence[Size]) -> SSAValue:
        """What the op gives."""
        b, rank, last = self.b, len(shape_of(x)), lengths[-1]
        pair: Parts = parts(b, x) if holds_complex(x) else (x, None)
        axes = list(range(rank - len(lengths), rank))
        for axis in axes[::-1] if kind == "RFFT" else axes:
            pair = self._along(pair, axis) if axis < rank - 1 else self._along_last(pair, kind, last)
        if self.sign > 0:
            count = product(lengths)
            static = isinstance(count, int)
            scale = b.full((), count, self.element) if static else b.convert(b.dim(count), self.element)
            pair = self._each(pair, lambda v: b.divide(v, scale))
        return pair[0] if kind == "IRFFT" else join_parts(b, self._whole(pair))

    def _each(self, pair: Parts, compute: Callable[[SSAValue], SSAValue]) -> Parts:
        return compute(pair[0]), None if pair[1] is None else compute(pair[1])

    def _whole(self, pair: Parts) -> Pair:
        return pair[0], self.b.full_like(pair[0], 0) if pair[1] is None else pair[1]

    def _along_last(self, pair: Parts, kind: str, n: Size) -> Parts:
        """The transform along the last axis; of real numbers, to the first half of a spectrum, or from it."""
        known, at = n // 2 + 1 if n != 0 else 0, len(shape_of(pair[0])) - 1
        if kind == "RFFT":
            if isinstance(n, int) and n:
                return self._each(self._last(pair), lambda v: self.b.slice_axis(v, at, 0, known))
            return self._multiplied(pair, *self._computed_roots(n, known, n))
        if kind == "IRFFT":
            if isinstance(n, int) and n:
                return self._last(self._mirrored(pair, n))
            return self._multiplied(self._doubled(pair, n), *self._computed_roots(known, n, n))
        return self._last(pair)

    def _doubled(self, pair: Parts, n: Size) -> Parts:
        """Of the first half of a spectrum of real numbers, all twice that the other half has, too, in the real part.

        What a spectrum of real numbers cannot have is left out.
        """
        b, (real, imag) = self.b, self._whole(pair)
        shape = shape_of(real)
        place = b.iota(shape, len(shape) - 1)
        ends = b.compare(place, b.full_like(place, 0), "EQ")
        middle = b.compare(b.add(place, place), b.broadcast(b.dim(n), shape, ()), "EQ")
        once = b.emit(hlo.OrOp, ends, middle)
        return b.select(once, real, b.add(real, real)), b.select(once, b.full_like(imag, 0), b.add(imag, imag))

    def _mirrored(self, pair: Parts, length: int) -> Parts:
        """All of a spectrum of real numbers, of its first half; what such a spectrum cannot have is left out."""
        b = self.b
        rank = len(shape_of(pair[0]))
        known = length // 2 + 1
        kept = np.ones(known)
        kept[0] = 0
        if length % 2 == 0:
            kept[-1] = 0
        real, imag = self._whole(pair)
        imag = b.select(b.constant(kept != 0), imag, b.full_like(imag, 0))
        rest = length - known
        if rest == 0:
            return real, imag

        def mirror(v: SSAValue) -> SSAValue:
            return b.emit(hlo.ReverseOp, b.slice_axis(v, rank - 1, 1, 1 + rest), dimensions=[rank - 1])

        negated = b.emit(hlo.NegateOp, mirror(imag))
        return b.concatenate([real, mirror(real)], rank - 1), b.concatenate([imag, negated], rank - 1)

    def _along(self, pair: Parts, axis: int) -> Parts:
        """The transform along an axis, not divided by its length."""
        rank = len(shape_of(pair[0]))
        order = [*(i for i in range(rank) if i != axis), axis]
        moved = self._each(pair, lambda v: self.b.transpose(v, order))
        back = [order.index(i) for i in range(rank)]
        return self._each(self._last(moved), lambda v: self.b.transpose(v, back))

    def _last(self, pair: Parts) -> Parts:
        """The transform along the last axis."""
        n = shape_of(pair[0])[-1]
        if not isinstance(n, int) or n == 0:
            return self._multiplied(pair, *self._computed_roots(n, n, n))
        if n <= LARGEST_MATRIX:
            return self._by_matrix(pair, n)
        factor = max((k for k in range(2, math.isqrt(n) + 1) if n % k == 0), default=1)
        if factor > 1:
            return self._by_factors(pair, n // factor, factor)
        return self._by_matrix(pair, n) if n <= LARGEST_PRIME else self._by_chirp(pair, n)

    def _by_matrix(self, pair: Parts, n: int) -> Parts:
        if n == 1:
            return pair
        cos, sin = self._roots(np.outer(np.arange(n), np.arange(n)), n)
        return self._multiplied(pair, cos, sin if n > 2 else None)  # the roots are 1 and -1

    def _multiplied(self, pair: Parts, cos: SSAValue, sin: SSAValue | None) -> Parts:
        """The last axis times a matrix of these parts."""
        rank = len(shape_of(pair[0]))
        numbers = DotDimensions((), (), (rank - 1,), (0,))
        if sin is None:
            return self._each(pair, lambda v: self.b.dot(v, cos, numbers))
        return self._product(pair, cos, sin, lambda v, m: self.b.dot(v, m, numbers))

    def _computed_roots(self, rows: Size, columns: Size, n: Size) -> tuple[SSAValue, SSAValue]:
        """A matrix of n-th roots of unity, by angles within a quarter of a turn, in f64: on the axes they are exact."""
        b, shape = self.b, (rows, columns)
        whole = b.broadcast(b.dim(n), shape, ())
        power = b.multiply(b.iota(shape, 0), b.iota(shape, 1))
        quarters = b.multiply(b.emit(hlo.RemainderOp, power, whole), b.full_like(whole, 4))
        axis = b.divide(quarters, whole)
        rest = b.convert(b.subtract(quarters, b.multiply(axis, whole)), "f64")
        angle = b.multiply(b.divide(rest, b.convert(whole, "f64")), b.full(shape, math.pi / 2, "f64"))
        cos, sin = b.emit(hlo.CosineOp, angle), b.emit(hlo.SineOp, angle)
        back, down = b.emit(hlo.NegateOp, cos), b.emit(hlo.NegateOp, sin)

        def turned(*values: SSAValue) -> SSAValue:
            """The value of each quarter's number."""
            found = values[-1]
            for k, value in reversed([*enumerate(values[:-1])]):
                found = b.select(b.compare(axis, b.full_like(axis, k), "EQ"), value, found)
            return b.convert(found, self.element)

        imag = turned(sin, cos, down, back)
        return turned(cos, down, back, sin), imag if self.sign > 0 else b.emit(hlo.NegateOp, imag)

    def _by_factors(self, pair: Parts, outer: int, inner: int) -> Parts:
        """Of index `inner * j + k`: transforms over j, roots of unity for each k, then transforms over k."""
        b = self.b
        batch = shape_of(pair[0])[:-1]
        rank = len(batch)
        swap = [*range(rank), rank + 1, rank]

        def swapped(v: SSAValue) -> SSAValue:
            return b.transpose(v, swap)

        split = self._each(pair, lambda v: swapped(b.reshape(v, (*batch, outer, inner))))
        first = self._last(split)
        turned = self._times(first, *self._roots(np.outer(np.arange(inner), np.arange(outer)), outer * inner))
        second = self._last(self._each(turned, swapped))
        return self._each(second, lambda v: b.reshape(swapped(v), (*batch, outer * inner)))

    def _by_chirp(self, pair: Parts, n: int) -> Parts:
        """jk = (j j + k k - (k - j) (k - j)) / 2: a convolution, padded to a power of two."""
        b, size = self.b, 1 << (2 * n - 2).bit_length()
        squares = np.arange(n, dtype=np.int64) ** 2
        chirp = self._roots(squares, 2 * n)
        filtered = np.zeros(size, np.complex128)
        unit = np.asarray([complex(*root_of_unity(int(k) % (2 * n), 2 * n)) for k in squares])
        unit = unit.conj() if self.sign > 0 else unit
        filtered[:n] = unit
        filtered[size - n + 1 :] = unit[1:][::-1]
        spectrum = np.fft.fft(filtered) if self.sign < 0 else np.fft.ifft(filtered) * size
        rank = len(shape_of(pair[0]))
        none, high = [0] * rank, [0] * (rank - 1) + [size - n]
        zero = b.full((), 0, self.element)
        padded = self._each(self._times(pair, *chirp), lambda v: b.pad(v, zero, none, high))
        product = self._times(self._last(padded), self._constant(spectrum.real), self._constant(spectrum.imag))
        back = _Transform(b, self.element, inverse=self.sign < 0)._last(product)
        scale = b.full((), size, self.element)
        cut = self._each(back, lambda v: b.divide(b.slice_axis(v, rank - 1, 0, n), scale))
        return self._times(cut, *chirp)

    def _times(self, pair: Parts, cos: SSAValue, sin: SSAValue) -> Parts:
        return self._product(pair, cos, sin, self.b.multiply)

    def _product(
        self, pair: Parts, cos: SSAValue, sin: SSAValue, times: Callable[[SSAValue, SSAValue], SSAValue]
    ) -> Parts:
        """With complex numbers of these parts."""
        x, y = pair
        if y is None:
            return times(x, cos), times(x, sin)
        return self.b.subtract(times(x, cos), times(y, sin)), self.b.add(times(x, sin), times(y, cos))

    def _roots(self, exponents: Array, n: int) -> tuple[SSAValue, SSAValue]:
        """The cosines and sines of n-th roots of unity."""
        table = np.asarray([root_of_unity(k, n) for k in range(n)])[exponents % n]
        return self._constant(table[..., 0]), self._constant(self.sign * table[..., 1])

    def _constant(self, array: Array) -> SSAValue:
        return self.b.constant(array, dtype_text(self.element))


def root_of_unity(k: int, n: int) -> tuple[float, float]:
    """cos and sin of k / n of a turn, 0 <= k < n, from an angle of at most an eighth: on the axes they are exact."""
    if 2 * k > n:
        cos, sin = root_of_unity(n - k, n)
        return cos, -sin
    if 4 * k > n:
        cos, sin = root_of_unity(n - 2 * k, 2 * n)
        return -cos, sin
    if 8 * k > n:
        cos, sin = root_of_unity(n - 4 * k, 4 * n)
        return sin, cos
    angle = 2 * math.pi * k / n
    return math.cos(angle), math.sin(angle)


__all__ = ["LARGEST_MATRIX", "LARGEST_PRIME", "root_of_unity", "transform_parts"]
