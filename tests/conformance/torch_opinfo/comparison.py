"""Whether results are eager torch's: integers and booleans equal, floats within the operator's own tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

RTOL, ATOL = 1.3e-6, 1e-5
"""torch's own for float32."""
ERROR = 4.0
"""Floats may also be so many times as far from torch's results in float64 as eager torch's are."""


def tolerances(op: Any, dtype: Any) -> tuple[float, float]:
    """The greatest tolerances that torch's own tests allow the operator on CPU."""
    rtol, atol = RTOL, ATOL
    for decorator in op.decorators:
        if getattr(decorator, "device_type", None) not in (None, "cpu"):
            continue
        for inner in getattr(decorator, "decorators", [decorator]):
            allowed = getattr(inner, "d", {}).get(dtype)
            if hasattr(allowed, "rtol"):
                rtol, atol = max(rtol, allowed.rtol), max(atol, allowed.atol)
    return rtol, atol


def difference(found: Sequence[Any], wanted: Sequence[Any], allowed: tuple[float, float]) -> str:
    """What is other than expected; empty if nothing is."""
    import torch

    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for f, w in zip(found, wanted, strict=True):
        if not isinstance(w, torch.Tensor):
            if type(f) is not type(w) or (f != w and f == f):
                return f"{f!r}, expected {w!r}"
            continue
        if (f.dtype, f.shape) != (w.dtype, w.shape):
            return f"{f.dtype}{list(f.shape)}, expected {w.dtype}{list(w.shape)}"
        rtol, atol = allowed if w.is_floating_point() or w.is_complex() else (0.0, 0.0)
        try:
            torch.testing.assert_close(f, w, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return " / ".join(line for line in str(error).splitlines() if line.strip())[:300]
    return ""


def are_other_places(found: Sequence[Any], wanted: Sequence[Any], x: Any) -> bool:
    """Whether values along a dimension of `x` are as expected, and their places others where equal values are."""
    import torch

    if len(found) != 2 or not isinstance(x, torch.Tensor) or difference(found[:1], wanted[:1], (0.0, 0.0)):
        return False
    values, places = found
    if places.dtype != torch.int64 or places.shape != wanted[1].shape:
        return False
    for dim in range(x.dim()):
        kept = (places, values) if places.dim() == x.dim() else (places.unsqueeze(dim), values.unsqueeze(dim))
        fits = all(n <= m for i, (n, m) in enumerate(zip(kept[0].shape, x.shape, strict=True)) if i != dim)
        inside = bool(((places >= 0) & (places < max(1, x.shape[dim]))).all())
        if fits and inside and not difference([x.gather(dim, kept[0])], [kept[1]], (0.0, 0.0)):
            return True
    return False


def is_as_exact(found: Sequence[Any], wanted: Sequence[Any], exact: Sequence[Any], rounding: float = 0.0) -> bool:
    """Whether results are about as near to exact ones as eager torch's, or off by that part of the greatest element."""
    import torch

    if not len(found) == len(wanted) == len(exact):
        return False
    for f, w, e in zip(found, wanted, exact, strict=True):
        if not (isinstance(w, torch.Tensor) and w.is_floating_point()):
            if difference([f], [w], (0.0, 0.0)):
                return False
            continue
        if f.shape != e.shape or not torch.equal(torch.isfinite(f), torch.isfinite(w)):
            return False
        own, others, most = (
            torch.nan_to_num(x, 0.0, 0.0, 0.0).abs().max() if x.numel() else 0.0
            for x in (f.double() - e, w.double() - e, e)
        )
        if own > max(ERROR * others, rounding * most):
            return False
    return True
