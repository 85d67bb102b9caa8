"""Element types as NumPy 2 has them (NEP 50): what operands become, and what Python numbers do beside arrays.

Python numbers are weak: beside an array of the same or a higher kind (bool < integer < float < complex) they take its
element type; beside one of a lower kind the default type of their own kind joins in. bfloat16 and the narrower floats,
of which NumPy knows little, follow the same rule; two of them that have no common type are refused.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any

import numpy as np

from gcomp.dtypes import DTYPES, dtype_of, is_float, is_integer, text_of
from gcomp.errors import UsageError

DTypeLike = Any
"""What names an element type: a dtype or scalar type of NumPy's, bool, int, float, complex, "float32", "bf16"."""

KINDS = ("boolean", "integer", "float", "complex")
_DEFAULTS = ("i1", "i64", "f64", "complex<f64>")


def kind_of(text: str) -> int:
    """The place of an element type's kind in `KINDS`."""
    return 0 if text == "i1" else 1 if is_integer(text) else 2 if is_float(text) else 3


def default_of(scalar: complex) -> str:
    """The element type of a Python number on its own."""
    kinds: dict[type, int] = {bool: 0, int: 1, float: 2, complex: 3}
    return _DEFAULTS[next(kinds[one] for one in type(scalar).__mro__ if one in kinds)]


@lru_cache(1024)
def common(strong: tuple[str, ...], weak: tuple[str, ...]) -> str:
    """The element type of a result of arrays of the types `strong` and Python numbers of the default types `weak`."""
    kind = max(map(kind_of, weak), default=0)
    if not strong:
        return _DEFAULTS[kind]
    found = reduce(_promote, strong)
    if kind <= kind_of(found):
        return found
    if kind == 3 and is_float(found):
        return "complex<f64>" if found == "f64" else "complex<f32>"
    return _DEFAULTS[kind]


def _promote(a: str, b: str) -> str:
    if a == b:
        return a
    try:
        return text_of(np.promote_types(dtype_of(a), dtype_of(b)))
    except (TypeError, KeyError):
        raise UsageError(
            f"there is no common element type of {name_of(a)} and {name_of(b)}", fix="convert one with `astype`"
        ) from None


def floating(text: str) -> str:
    """The float type in which NumPy computes functions of an integer type: the narrowest that holds it, f64 at most."""
    if kind_of(text) >= 2:
        return text
    width = dtype_of(text).itemsize
    return "f16" if width == 1 else "f32" if width == 2 else "f64"


def sum_type(text: str) -> str:
    """The type of sums and products of many elements: integers narrower than 64 bits become int64 or uint64."""
    if kind_of(text) >= 2:
        return text
    return "ui64" if text.startswith("ui") else "i64"


def element_text(spec: DTypeLike) -> str:
    """The element type that a user's dtype names. UsageError where gcomp has none."""
    if isinstance(spec, str) and spec in DTYPES:
        return spec
    named = _BY_NAME.get(spec) if isinstance(spec, str) else None
    try:
        return named or text_of(np.dtype(spec))
    except (KeyError, TypeError, ValueError):
        known = ", ".join(_BY_NAME)
        raise UsageError(f"there is no element type {spec!r}", fix=f"the element types are: {known}") from None


def name_of(text: str) -> str:
    """The name of an element type for people: NumPy's."""
    return dtype_of(text).name


def require(name: str, text: str, *kinds: int) -> None:
    """Refuse element types of other kinds than these."""
    if kind_of(text) not in kinds:
        listed = " or ".join(KINDS[k] for k in kinds)
        raise UsageError(f"{name} takes {listed} elements, not {name_of(text)}", fix="convert the operand: `astype`")


def check_scalar(scalar: complex, text: str) -> Any:
    """A Python number as an element, as NEP 50 has it: an integer that does not fit is an error."""
    if is_integer(text) and isinstance(scalar, int):
        info = _limits(text)
        if not info[0] <= scalar <= info[1]:
            raise UsageError(f"the Python integer {scalar} is out of bounds for {name_of(text)}")
    return np.asarray(scalar).astype(dtype_of(text))


@lru_cache(64)
def _limits(text: str) -> tuple[int, int]:
    import ml_dtypes

    info = ml_dtypes.iinfo(dtype_of(text))
    return int(info.min), int(info.max)


_BY_NAME: dict[str, str] = {dtype.name: text for text, dtype in DTYPES.items()}
