"""What "correct" means: the four classes of exactness, and the comparison that tests, passes and the fuzzer share.

See docs/guides/semantics.md. There is no tolerance to choose: E2 measures both results against a wider evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gcomp.errors import UsageError
from gcomp.exactness import Exactness
from gcomp.reference.numpy.bounds import ulp
from gcomp.reference.numpy.dtypes import (
    Array,
    float_format,
    imag_part,
    is_bool,
    is_complex,
    is_float,
    real_part,
    text_of,
)
from gcomp.reference.numpy.elementwise import total_order_key
from gcomp.reference.numpy.integers import storage
from gcomp.reference.numpy.rounding import is_nan, quiet, value_bits, widen

# A rewrite may have twice the error of the original, and half an ulp of its own: an original that happened to
# be exact must not condemn a correctly rounded rewrite. A caller that compares whole programs may allow more ulps.
_ERROR_FACTOR = 2.0
ROUNDINGS = 0.5


@dataclass(frozen=True)
class Mismatch:
    """One way in which two tensors differ; `index` is None if it is about the tensors as wholes.

    `ulps` is the number of representable values between the two elements, None where that has no meaning.
    """

    reason: str
    expected: str
    actual: str
    index: tuple[int, ...] | None = None
    ulps: int | None = None

    def __str__(self) -> str:
        place = "" if self.index is None else f" at {list(self.index)}"
        distance = "" if self.ulps is None else f" ({self.ulps} ulp apart)"
        return f"{self.reason}{place}: expected {self.expected}, got {self.actual}{distance}"


@quiet
def compare(
    expected: Array,
    actual: Array,
    exactness: Exactness,
    *,
    wider: Array | None = None,
    bound: Array | None = None,
    roundings: float = ROUNDINGS,
    limit: int = 100,
) -> list[Mismatch]:
    """How `actual` (after a rewrite) breaks the contract with `expected` (before it); empty if it does not.

    E2 allows `roundings` ulps (root mean square) beyond twice the original's error. It needs `wider`, the original
    evaluated more precisely (float64 or complex128); `bound` is the largest allowed |actual - wider| per element. At
    most `limit` elements are listed. UsageError if E2 lacks `wider`.
    """
    whole = _compare_types(expected, actual)
    if whole:
        return whole
    inexact = is_float(expected.dtype) or is_complex(expected.dtype)
    if not inexact:
        if exactness is Exactness.E3:
            return []
        return _list_mismatches("value", expected, actual, value_bits(expected) != value_bits(actual), limit)
    if exactness is Exactness.E0:
        return _list_mismatches("bits", expected, actual, _any_part(expected, actual, _bits_differ), limit)
    if exactness is Exactness.E1:
        return _list_mismatches("value", expected, actual, _any_part(expected, actual, _values_differ), limit)
    other = _any_part(expected, actual, _classes_differ)
    if exactness is Exactness.E2 and wider is not None and other.any():
        # An infinity or NaN that the wider evaluation gives too is the better answer: the original rounded it away.
        other &= np.isfinite(widen(actual)) | _any_part(wider.astype(actual.dtype), actual, _classes_differ)
    classes = _list_mismatches("class", expected, actual, other, limit)
    if classes or exactness is Exactness.E3:
        return classes
    if wider is None:
        raise UsageError("an E2 comparison needs a wider evaluation", fix="pass wider=, in float64 or complex128")
    return _compare_errors(expected, actual, wider, bound, roundings, limit)


def _compare_types(expected: Array, actual: Array) -> list[Mismatch]:
    if expected.dtype != actual.dtype:
        return [Mismatch("element type", text_of(expected.dtype), text_of(actual.dtype))]
    if expected.shape != actual.shape:
        return [Mismatch("shape", str(list(expected.shape)), str(list(actual.shape)))]
    return []


def _compare_errors(
    expected: Array, actual: Array, wider: Array, bound: Array | None, roundings: float, limit: int
) -> list[Mismatch]:
    before, after, exact = widen(expected), widen(actual), widen(wider)
    finite = np.isfinite(before) & np.isfinite(after) & np.isfinite(exact)
    if not finite.any():
        return []
    error_before = np.where(finite, np.abs(before - exact), 0.0)
    error_after = np.where(finite, np.abs(after - exact), 0.0)
    mismatches: list[Mismatch] = []
    if bound is not None:
        # The bound is on exact arithmetic; `wider` itself is rounded, by at most its own last place.
        slack = np.abs(exact) * float_format(wider.dtype).epsilon
        mismatches = _list_mismatches("outside the error bound", expected, actual, error_after > bound + slack, limit)
    rounding = np.where(finite, ulp(np.abs(exact), expected.dtype), 0.0)
    allowed = _ERROR_FACTOR * _rms(error_before, finite) + roundings * _rms(rounding, finite)
    if _rms(error_after, finite) > allowed:
        worst = np.unravel_index(int(np.argmax(error_after)), error_after.shape)
        at = tuple(int(i) for i in worst)
        reason = f"RMS error {_rms(error_after, finite):.3g} exceeds {allowed:.3g}, worst"
        mismatches.append(_element(reason, expected, actual, at))
    return mismatches


def _rms(values: Array, where: Array) -> float:
    chosen = values[where]
    peak = float(chosen.max(initial=0.0))
    # Scaled, so that neither huge nor tiny errors leave the range of the squares.
    return peak * float(np.sqrt(np.mean((chosen / peak) ** 2))) if 0 < peak < np.inf else peak


def _any_part(expected: Array, actual: Array, differ: Callable[[Array, Array], Array]) -> Array:
    if not is_complex(expected.dtype):
        return differ(expected, actual)
    real = differ(np.array(real_part(expected)), np.array(real_part(actual)))
    return real | differ(np.array(imag_part(expected)), np.array(imag_part(actual)))


def values_differ(expected: Array, actual: Array) -> Array:
    """The elements that are other values (signs of zeros and bits of NaN do not count); all, where shapes differ."""
    if expected.shape != actual.shape:
        return np.ones(expected.shape, np.bool_)
    if is_float(expected.dtype) or is_complex(expected.dtype):
        return _any_part(expected, actual, _values_differ)
    return _bits_differ(expected, actual)


def bits_differ(expected: Array, actual: Array) -> Array:
    """The elements whose bits differ; all, where shapes differ."""
    if expected.shape != actual.shape:
        return np.ones(expected.shape, np.bool_)
    return _any_part(expected, actual, _bits_differ)


def _bits_differ(expected: Array, actual: Array) -> Array:
    return np.asarray(value_bits(expected) != value_bits(actual))


def _values_differ(expected: Array, actual: Array) -> Array:
    return np.asarray((widen(expected) != widen(actual)) & ~(is_nan(expected) & is_nan(actual)))


def _classes_differ(expected: Array, actual: Array) -> Array:
    nan = is_nan(expected) != is_nan(actual)
    a, b = widen(expected), widen(actual)
    return np.asarray(nan | ((np.isinf(a) | np.isinf(b)) & (a != b) & ~is_nan(expected)))


def _list_mismatches(reason: str, expected: Array, actual: Array, differ: Array, limit: int) -> list[Mismatch]:
    places = np.argwhere(np.asarray(differ))[:limit]
    return [_element(reason, expected, actual, tuple(int(i) for i in place)) for place in places]


def _element(reason: str, expected: Array, actual: Array, index: tuple[int, ...]) -> Mismatch:
    a, b = np.asarray(expected[index]), np.asarray(actual[index])
    return Mismatch(reason, _show_element(a), _show_element(b), index, _distance(a, b))


def _show_element(element: Array) -> str:
    text = str(element[()])
    if is_float(element.dtype) and bool(is_nan(element)):
        return f"{text} (bits {int(value_bits(element)):#x})"
    return text


def _distance(a: Array, b: Array) -> int | None:
    if is_bool(a.dtype):
        return None
    if is_complex(a.dtype):
        parts = [_distance(np.array(part(a)), np.array(part(b))) for part in (real_part, imag_part)]
        return None if None in parts else max(p for p in parts if p is not None)
    if not is_float(a.dtype):
        return abs(int(storage(a)) - int(storage(b)))
    if bool(is_nan(a)) or bool(is_nan(b)):
        return None
    # -0 and +0 are neighbours in total order, but no value lies between them.
    keys = [int(total_order_key(x)) for x in (a, b)]
    return abs(_signed_key(keys[0]) - _signed_key(keys[1]))


def _signed_key(key: int) -> int:
    return key + 1 if key < 0 else key
