"""Whether results are jax.jit's: to the bit, or within the roundings that a group's definition leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

ULPS = 8
"""Floats that are computed may differ by this many units in the last place of the largest element."""


@dataclass(frozen=True)
class Difference:
    """What is other than expected; `rounding` if no more than that."""

    text: str
    rounding: bool = False


def difference(found: Sequence[Array], wanted: Sequence[Array], harness: Any, args: Sequence[Any]) -> Difference | None:
    """The worst difference of all results, or None."""
    if len(found) != len(wanted):
        return Difference(f"{len(found)} results, expected {len(wanted)}")
    if harness.group_name == "sort" and not harness.params["is_stable"] and _same_order(found, wanted, harness.params):
        return None
    if harness.group_name == "approx_top_k" and _same_selection(found, wanted, args[0]):
        return None
    problems = [p for f, w in zip(found, wanted, strict=True) if (p := _compare(f, w))]
    return min(problems, key=lambda p: p.rounding, default=None)


def _same_order(found: Sequence[Array], wanted: Sequence[Array], params: Any) -> bool:
    """Whether two sorts differ only in what keys leave open: an unstable one may have equal ones in any order."""
    if found[0].ndim != 1:
        return False
    keys = all(same_bits(f, w) for f, w in zip(found[: params["num_keys"]], wanted, strict=False))
    rows, others = (Counter(zip(*(x.tolist() for x in arrays), strict=True)) for arrays in (found, wanted))
    return keys and rows == others


def _same_selection(found: Sequence[Array], wanted: Sequence[Array], x: Array) -> bool:
    """Whether the same values were found, at places where they are: of equal ones, JAX's sort takes any first."""
    there = np.take_along_axis(x, found[1].astype(np.int64), -1)
    return same_bits(found[0], wanted[0]) and same_bits(there, found[0])


def _compare(found: Array, wanted: Array) -> Difference | None:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return Difference(f"{found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}")
    if same_bits(found, wanted):
        return None
    if not _is_inexact(wanted.dtype):
        return Difference(f"{int((found != wanted).sum())} of {wanted.size} elements differ")
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    finite = np.isfinite(b)
    if bool(np.any(np.isfinite(a) != finite)) or bool(np.any(np.isnan(a) != np.isnan(b))):
        return Difference("NaN or infinity in different places")
    if not finite.any():
        return Difference("infinities differ")
    scale, error = float(np.abs(b[finite]).max()), float(np.abs(a[finite] - b[finite]).max())
    ulps = error / (scale * epsilon(wanted.dtype)) if scale else float("inf") if error else 0.0
    return Difference(f"error {error:.3g} ({ulps:.3g} ulps of the largest)", rounding=ulps <= ULPS)


def is_nearer(found: Sequence[Array], wanted: Sequence[Array], exact: Sequence[Array]) -> bool:
    """Whether results are at least as near to those of wide elements as the expected ones are, and within `ULPS`.

    Where the expected results are themselves off by more than the bound, it says nothing of others.
    """
    if [(f.dtype, f.shape) for f in found] != [(w.dtype, w.shape) for w in wanted] or len(exact) != len(wanted):
        return False
    return all(
        e.dtype in (np.float64, np.complex128) and e.shape == w.shape and _is_between(f, w, e)
        for f, w, e in zip(found, wanted, exact, strict=True)
        if not same_bits(f, w)
    )


def _is_between(found: Array, wanted: Array, exact: Array) -> bool:
    ours, theirs = found.astype(exact.dtype), wanted.astype(exact.dtype)
    finite = np.isfinite(exact) & np.isfinite(theirs)
    if not finite.any() or not same_bits(ours[~finite], theirs[~finite]) or not np.isfinite(ours[finite]).all():
        return False
    own, other = (float(np.abs(x[finite] - exact[finite]).max()) for x in (ours, theirs))
    return own <= min(other, ULPS * epsilon(wanted.dtype) * float(np.abs(exact[finite]).max()))


def same_bits(found: Array, wanted: Array) -> bool:
    """Whether two arrays have the same bits, where they are not both NaN."""
    if found.dtype.kind == "c":
        return same_bits(found.real, wanted.real) and same_bits(found.imag, wanted.imag)
    if found.tobytes() == wanted.tobytes():
        return True
    if not _is_inexact(found.dtype):
        return False
    nans = np.isnan(found.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    f, w = (np.ascontiguousarray(x).view(unsigned) for x in (found, wanted))
    return bool(np.all((f == w) | nans))


def _is_inexact(dtype: Any) -> bool:
    return dtype.kind in "fc" or (dtype.kind == "V" and dtype.name.startswith(("bfloat", "float")))


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    return float(np.finfo(dtype).eps) if dtype.kind == "c" else float(ml_dtypes.finfo(dtype).eps)
