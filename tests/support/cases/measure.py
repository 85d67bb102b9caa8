"""How far two evaluations of a case are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.reference.numpy.bounds import ulp
from gcomp.reference.numpy.dtypes import float_format
from gcomp.reference.numpy.rounding import is_nan, quiet, sign_bit, value_bits, widen
from tests.support.cases.case import Comparison

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Measured:
    """The distance in ulp (0 where bits agree), or in `mismatch` why there is none."""

    ulps: float = 0.0
    mismatch: str | None = None


@quiet
def measure(ours: Array, theirs: Array, compare: Comparison) -> Measured:
    """The largest distance between two results. `norm` measures in ulp of the result's largest element."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return Measured(mismatch=f"{ours.dtype}{list(ours.shape)} against {theirs.dtype}{list(theirs.shape)}")
    text = text_of(ours.dtype)
    if is_complex(text):
        return _complex(ours, theirs, compare)
    if compare in ("bits", "values") or not is_float(text):
        differ = np.asarray(value_bits(ours) != value_bits(theirs))
        if is_float(text) and compare != "bits":
            differ &= ~(is_nan(ours) & is_nan(theirs))
        return _mismatch(ours, theirs, differ)
    a, b = widen(ours), widen(theirs)
    differ = _classes_differ(a, b)
    if differ.any():
        return _mismatch(ours, theirs, differ)
    if compare == "norm":
        return Measured(_relative(a, b, np.max(np.abs(b), initial=0.0, where=np.isfinite(b)), ours.dtype))
    finite = np.isfinite(b)
    steps = _position(ours[finite]) - _position(theirs[finite])
    return Measured(float(np.max(np.abs(steps), initial=0)))


def _position(x: Array) -> Array:
    """How many values of the type lie between 0 and each finite element, with its sign."""
    form = float_format(x.dtype)
    magnitude = value_bits(x).astype(np.int64) & ((1 << (form.bits - form.has_sign)) - 1)
    return np.where(sign_bit(x), -magnitude, magnitude)


def _classes_differ(a: Array, b: Array) -> Array:
    return np.asarray(np.where(np.isfinite(a) & np.isfinite(b), False, (a != b) & ~(np.isnan(a) & np.isnan(b))))


def _relative(a: Array, b: Array, scale: Any, dtype: np.dtype[Any]) -> float:
    error = np.where(np.isfinite(b), np.abs(a - b), 0.0)
    return float(np.max(error / ulp(np.asarray(scale, np.float64), dtype), initial=0.0))


def _complex(ours: Array, theirs: Array, compare: Comparison) -> Measured:
    """Complex results in ulp of each element's larger part (or of the largest part of all)."""
    part = ours.real.dtype
    a, b = (np.stack([x.real, x.imag]) for x in (ours, theirs))
    if compare in ("bits", "values"):
        differ = np.asarray(value_bits(a) != value_bits(b))
        if compare == "values":
            differ &= ~(is_nan(a) & is_nan(b))
        return _mismatch(ours, theirs, np.asarray(differ.any(axis=0)))
    a, b = widen(a), widen(b)
    differ = np.asarray(_classes_differ(a, b).any(axis=0))
    if differ.any():
        return _mismatch(ours, theirs, differ)
    scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b), axis=None if compare == "norm" else 0)
    return Measured(_relative(a, b, scale, part))


def _mismatch(ours: Array, theirs: Array, differ: Array) -> Measured:
    places = np.argwhere(differ)
    if not len(places):
        return Measured()
    at = tuple(int(i) for i in places[0])
    return Measured(
        mismatch=f"{len(places)} of {differ.size} elements, the first at {list(at)}: {ours[at]} against {theirs[at]}"
    )
