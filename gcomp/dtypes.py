"""Element types: their texts, NumPy dtypes and widths. The one table that every layer shares.

Texts are StableHLO's (`f32`, `bf16`, `f8E4M3FN`, `i1`, `ui8`, `i4`, `complex<f32>`); narrow types come from ml_dtypes.
Signless integers (`i8`) are signed in NumPy, as StableHLO reads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import ml_dtypes
except ModuleNotFoundError:  # where models of other types are loaded, and nothing is compiled
    ml_dtypes = None

DType = np.dtype[Any]

_NARROW = {
    "bf16": "bfloat16",
    "f8E5M2": "float8_e5m2",
    "f8E4M3": "float8_e4m3",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E3M4": "float8_e3m4",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
    "i2": "int2",
    "i4": "int4",
    "ui2": "uint2",
    "ui4": "uint4",
}

DTYPES: dict[str, DType] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    **{text: np.dtype(getattr(ml_dtypes, name)) for text, name in _NARROW.items() if ml_dtypes is not None},
    "i1": np.dtype(np.bool_),
    **{f"i{w}": np.dtype(f"int{w}") for w in (8, 16, 32, 64)},
    **{f"ui{w}": np.dtype(f"uint{w}") for w in (8, 16, 32, 64)},
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}
"""Element type text -> NumPy dtype."""

MISSING = _NARROW.keys() - DTYPES.keys()
"""Element types that NumPy does not have here, where the package ml_dtypes is not installed."""

TEXTS: dict[DType, str] = {dtype: text for text, dtype in DTYPES.items()}
"""NumPy dtype -> element type text."""

_ODD_WIDTHS = {
    "i1": 1, "i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6, "index": 64,
}  # fmt: skip


def finfo(dtype: DType) -> Any:
    """The limits of a float type, as NumPy's `finfo` says them."""
    module: Any = ml_dtypes or np
    return module.finfo(dtype)


def dtype_of(text: str) -> DType:
    """The NumPy dtype of an element type's text. KeyError if there is none."""
    return DTYPES[text]


def text_of(dtype: Any) -> str:
    """The element type text of a NumPy dtype (native byte order). KeyError if there is none."""
    return TEXTS[np.dtype(dtype).newbyteorder("=")]


def bit_width(text: str) -> int:
    """The width in bits of an element's value (4 for `i4`, 1 for `i1`), whatever its storage."""
    return _ODD_WIDTHS.get(text) or DTYPES[text].itemsize * 8


def stored_width(text: str) -> int:
    """The width in bits of an element's storage in NumPy: 8 for all that is narrower."""
    return DTYPES[text].itemsize * 8


def is_float(text: str) -> bool:
    """Whether the text names a real floating-point type."""
    return text[0] == "f" or text == "bf16"


def is_narrow_float(text: str) -> bool:
    """Whether the text names a real floating-point type narrower than f32."""
    return is_float(text) and text not in ("f32", "f64")


def has_zero(text: str) -> bool:
    """Whether the type has a number 0: f8E8M0FNU holds powers of two only."""
    return text != "f8E8M0FNU"


def is_complex(text: str) -> bool:
    """Whether the text names a complex type."""
    return text.startswith("complex")


def is_integer(text: str) -> bool:
    """Whether the text names an integer type; `i1` is a boolean, not an integer."""
    return text[0] in "iu" and text != "i1"


def default_fits(value: int, text: str) -> bool:
    """Whether `value` may be the default of an input: the integer type holds it, and so does JSON (63 bits)."""
    if text not in DTYPES or not is_integer(text):
        return False
    bits = min(bit_width(text) - (text[0] == "i"), 63)
    return (-(1 << bits) if text[0] == "i" else 0) <= value < 1 << bits


def real_of(text: str) -> str:
    """The text of the real part's type: `complex<f32>` -> `f32`; a real type is its own."""
    return text[8:-1] if is_complex(text) else text
