"""Whether outputs are the expected ones: by the rule of ONNX's own runner, and by a stricter one of roundings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx.backend.test.runner import Runner

ULPS = 64
"""Floats may differ by this many units in the last place of the largest expected element: the expected values are
NumPy's, computed in another order, often through float64, and a node may be a chain of a dozen
roundings. Sums add four for each square root of the number of terms, as random roundings do."""

LITERAL = dict.fromkeys(
    (
        "test_averagepool_2d_ceil_last_window_starts_on_pad",
        "test_gridsample_bicubic",
        "test_roialign_aligned_false",
        "test_roialign_aligned_true",
    ),
    1e-4,
)
"""Cases whose expected values are written down with four decimals, and what that may hide."""


def difference(outputs: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str | None:
    """What the suite's own rule finds: structure, shape, dtype, and elements within the case's tolerances."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for i, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        if problem := structural_difference(got, want) or _beyond(got, want, rtol, atol):
            return f"output {i}: {problem}"
    return None


def structural_difference(got: Any, want: Any) -> str | None:
    """Whether a value is of another structure, shape or dtype."""
    if isinstance(want, list) or isinstance(got, (list, tuple)):
        if not isinstance(want, list) or not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"{_described(got)}, expected {_described(want)}"
        found = (structural_difference(g, w) for g, w in zip(got, want, strict=True))
        return next((problem for problem in found if problem), None)
    same = _described(got) == _described(want)
    return None if same else f"{_described(got)}, expected {_described(want)}"


def _described(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    dtype = "str" if value.dtype.kind in "OSUT" else value.dtype.name
    return f"{dtype}{list(value.shape)}"


def _beyond(got: Any, want: Any, rtol: float, atol: float) -> str | None:
    if isinstance(want, list):
        found = (_beyond(g, w, rtol, atol) for g, w in zip(got, want, strict=True))
        return next((problem for problem in found if problem), None)
    if want is None:
        return None
    if want.dtype.kind == "V" and want.dtype != ml_dtypes.bfloat16:
        # NumPy's comparison does not know these types; all of their values are also float32's.
        got, want = got.astype(np.float32), want.astype(np.float32)
    try:
        Runner.assert_similar_outputs([want], [got], rtol, atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return None


def imprecision(outputs: Sequence[Any], expected: Sequence[Any], inputs: Sequence[Any], name: str) -> str | None:
    """What the stricter rule finds in outputs that are right in structure: more than roundings differ."""
    terms = max((np.size(x) for x in inputs if isinstance(x, np.ndarray)), default=1)
    for i, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        for a, b in zip(_leaves(got), _leaves(want), strict=True):
            if problem := _mismatch(a, b, terms, name):
                return f"output {i}: {problem}"
    return None


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


def _mismatch(got: Any, want: Any, terms: int, name: str) -> str | None:
    if want.dtype.kind in "iubOSUT" or want.dtype.name.startswith(("int", "uint")):
        same = np.asarray(got == want)
        return None if bool(np.all(same)) else f"{int((~same).sum())} of {same.size} elements differ"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    if bool(np.any(np.isnan(a) != np.isnan(b))) or bool(np.any((a != b) & (np.isinf(a) | np.isinf(b)))):
        return "NaN or infinity in different places"
    finite = np.isfinite(b)
    if not finite.any():
        return None
    scale, error = float(np.abs(b[finite]).max()), float(np.abs(a[finite] - b[finite]).max())
    bound = (ULPS + 4 * terms**0.5) * _epsilon(want.dtype) * scale + LITERAL.get(name, 0.0)
    return None if error <= bound else f"error {error:.3g} exceeds {bound:.3g}"


def _epsilon(dtype: Any) -> float:
    return float(np.finfo(dtype).eps) if np.dtype(dtype).kind == "c" else float(ml_dtypes.finfo(np.dtype(dtype)).eps)
