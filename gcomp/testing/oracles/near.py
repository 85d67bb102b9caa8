"""How far results are from what others compute: floats by their own precision, all else to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

ULPS = 64
"""Units in the last place of the largest element by which floats may differ; sums add four for each square root of the
number of their terms, as random roundings do."""


def apart(found: Sequence[Array], expected: Sequence[Array], inputs: Sequence[Array], rtol: float = 0.0) -> str:
    """How results differ from others by more than rounding (or, of the largest element, `rtol`); empty if not."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    terms = max((x.size for x in inputs), default=1)
    for i, (got, want) in enumerate(zip(found, expected, strict=True)):
        if problem := _differs(np.asarray(got), np.asarray(want), terms, rtol):
            return f"output {i}: {problem}"
    return ""


def _differs(got: Array, want: Array, terms: int, rtol: float) -> str:
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "iub" or want.dtype.name.startswith(("int", "uint")):
        wrong = np.asarray(got != want)
        return f"{int(wrong.sum())} of {wrong.size} elements: {got!r}, expected {want!r}" if wrong.any() else ""
    if want.dtype.kind not in "fcV":
        return "" if np.array_equal(got, want) else f"{got!r}, expected {want!r}"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = got.astype(wide), want.astype(wide)
        if bool(np.any(np.isnan(a) != np.isnan(b))) or bool(np.any((a != b) & (np.isinf(a) | np.isinf(b)))):
            return f"NaN or infinity elsewhere: {got!r}, expected {want!r}"
        finite = np.isfinite(b)
        if not finite.any():
            return ""
        scale, error = float(np.abs(b[finite]).max()), float(np.abs(a[finite] - b[finite]).max())
    limits = cast(Any, np.finfo(want.dtype) if want.dtype.kind == "c" else ml_dtypes.finfo(want.dtype))
    bound = max((ULPS + 4 * terms**0.5) * float(limits.eps), rtol) * scale
    return f"off by {error:.3g} of {scale:.3g}: {got!r}, expected {want!r}" if error > bound else ""
