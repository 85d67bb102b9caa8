"""What a print op writes of its operands: the fields of its format (`gcomp.formats`), filled.

Mean, least and greatest are those of the finite elements, in double, and of magnitudes for complex least and greatest;
`-` stands where there are none. `values` are all elements, but for the middle of a large array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.formats import parse_format
from gcomp.reference.numpy.rounding import widen

Array = np.ndarray[Any, Any]


def _wide(array: Array) -> Array:
    text = text_of(array.dtype)
    return widen(array) if is_float(text) or is_complex(text) else array.astype(np.float64)


def _of_finite(pick: Callable[[Array], Any]) -> Callable[[Array, str], str]:
    def summary(array: Array, spec: str) -> str:
        wide = _wide(array)
        finite = wide[np.isfinite(wide)]
        return _write_number(pick(finite), spec) if finite.size else "-"

    return summary


def _count(test: Callable[[Array], Array]) -> Callable[[Array, str], str]:
    return lambda array, spec: _write_number(test(_wide(array)).sum(), spec)


def _size(x: Array) -> Array:
    return np.abs(x) if np.iscomplexobj(x) else x


def _shape(array: Array, spec: str) -> str:
    return str(list(array.shape))


def _dtype(array: Array, spec: str) -> str:
    return text_of(array.dtype)


def _values(array: Array, spec: str) -> str:
    text = text_of(array.dtype)
    plain = array if array.dtype.kind in "biufc" else _wide(array).astype(np.float32 if is_float(text) else np.int64)
    if not plain.ndim:
        return _write_number(plain[()], spec) if spec else str(plain)
    if not spec:
        return np.array2string(plain, threshold=1000, edgeitems=3)

    def one(number: Any) -> str:
        return _write_number(number, spec)

    return np.array2string(plain, formatter={"all": one}, threshold=1000, edgeitems=3)


_SUMMARIES: Mapping[str, Callable[[Array, str], str]] = {
    "shape": _shape,
    "dtype": _dtype,
    "mean": _of_finite(np.mean),
    "min": _of_finite(lambda x: np.min(_size(x))),
    "max": _of_finite(lambda x: np.max(_size(x))),
    "nan": _count(np.isnan),
    "inf": _count(np.isinf),
    "values": _values,
}
"""Each field -> how it is written, given an array and a specification."""


def _write_number(number: Any, spec: str) -> str:
    value = number.item()
    try:
        return format(value, spec or (".6g" if isinstance(value, float | complex) else ""))
    except ValueError:  # a specification of integers, for a float
        return str(value)


def render(text: str, arrays: Sequence[Array]) -> str:
    """What is written. Raises ValueError for a format that is not one of these arrays."""
    pieces = parse_format(text, len(arrays))
    with np.errstate(all="ignore"):
        return "".join(p if isinstance(p, str) else _SUMMARIES[p.what](arrays[p.operand], p.spec) for p in pieces)


# ---- who reads it ---------------------------------------------------------------------------------------------------

Sink = Callable[[str], object]

_sinks: list[Sink] = []


@contextmanager
def printing_to(sink: Sink) -> Generator[None]:
    """Inside of the `with`, give the lines that models and `gcomp.ops.print` print to `sink` instead."""
    _sinks.append(sink)
    try:
        yield
    finally:
        _sinks.remove(sink)


def write(line: str) -> None:
    """Give a line to who reads it: by default, standard output."""
    if _sinks:
        _sinks[-1](line)
        return
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


__all__ = ["Sink", "printing_to", "render", "write"]
