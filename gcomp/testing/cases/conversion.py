"""Conversions between all pairs of element types, bitcasts, and reduced precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import DTYPES, bit_width, is_complex, is_float, real_of
from gcomp.testing.cases.case import Array, Case, Rng, apply, tensor
from gcomp.testing.cases.elementwise import FLOATS, NARROW
from gcomp.testing.cases.values import edges, every, sample

TYPES = tuple(t for t in DTYPES if t[:2] not in ("f4", "f6") and t != "f8E8M0FNU")
"""The types that StableHLO's tools handle throughout; f4, f6 and f8E8M0FNU are in `TINY`."""
TINY = ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU")


def _values(rng: Rng, text: str, full: bool) -> Array:
    narrow = bit_width(text) <= (16 if full else 8) and not is_complex(text)
    return every(text) if narrow else np.concatenate([edges(text), sample(rng, text, (200,))])


def convert(rng: Rng, full: bool) -> Iterator[Case]:
    """Every pair; numbers out of an integer type's range come apart, in `out_of_range`."""
    for source in TYPES:
        x = _values(rng, source, full)
        for target in TYPES:
            kept = x if _floating(target) or target == "i1" else x[_representable(x, source, target)]
            code = apply("stablehlo.convert", [kept], [tensor(kept.shape, target)])
            yield Case("stablehlo.convert", f"{source}-{target}", code, (kept,), "values")
    for source in TINY:
        x = every(source)
        for target in ("f32", "bf16", "f64"):
            code = apply("stablehlo.convert", [x], [tensor(x.shape, target)])
            yield Case("stablehlo.convert", f"{source}-{target}", code, (x,), "values")
            y = np.concatenate([edges(target), sample(rng, target, (100,))])
            code = apply("stablehlo.convert", [y], [tensor(y.shape, source)])
            yield Case("stablehlo.convert", f"{target}-{source}", code, (y,), "values")


def out_of_range(rng: Rng, full: bool) -> Iterator[Case]:
    """Floats and integers beyond the range of an integer type, and NaN: what the specification leaves open."""
    for source in TYPES:
        x = _values(rng, source, full)
        for target in TYPES:
            if not (_floating(target) or target == "i1"):
                rest = x[~_representable(x, source, target)]
                code = apply("stablehlo.convert", [rest], [tensor(rest.shape, target)])
                yield Case("stablehlo.convert", f"{source}-{target}-outside", code, (rest,), "values")


def _floating(text: str) -> bool:
    return is_float(text) or is_complex(text)


def _representable(x: Array, source: str, target: str) -> Array:
    """Where the truncated value lies in the range of the integer type `target`."""
    width, signed = bit_width(target), target[0] == "i"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if not _floating(source):
        # An integer that does not fit wraps, which is defined.
        return np.ones(x.shape, np.bool_)
    wide = (x.real if is_complex(source) else x).astype(np.float64)
    with np.errstate(all="ignore"):
        whole = np.trunc(wide)
        return np.isfinite(wide) & (whole >= low) & (whole < float(high) + 1.0)


def bitcast(rng: Rng, full: bool) -> Iterator[Case]:
    """Between types of one width, and between widths."""
    types = [t for t in TYPES if t != "i1"]
    for source in types:
        for target in types:
            if is_complex(source) != is_complex(target):
                continue
            old, new = _width(source), _width(target)
            ratio = max(old, new) // min(old, new)
            if max(old, new) % min(old, new):
                continue
            x = sample(rng, source, (3, 2, ratio) if new > old else (3, 2))
            shape = (3, 2, ratio) if new < old else (3, 2)
            code = apply("stablehlo.bitcast_convert", [x], [tensor(shape, target)])
            yield Case("stablehlo.bitcast_convert", f"{source}-{target}", code, (x,), "bits")


def _width(text: str) -> int:
    return bit_width(text) if not is_complex(text) else 2 * bit_width(real_of(text))


def reduce_precision(rng: Rng, full: bool) -> Iterator[Case]:
    """Formats narrower and wider than the operand's."""
    for text in (*FLOATS, *NARROW):
        x = _values(rng, text, full)
        for exponent, mantissa in ((8, 23), (5, 10), (8, 7), (4, 3), (5, 2), (2, 1), (1, 0), (3, 0), (11, 52)):
            attributes = {"exponent_bits": f"{exponent} : i32", "mantissa_bits": f"{mantissa} : i32"}
            code = apply("stablehlo.reduce_precision", [x], [tensor(x.shape, text)], attributes)
            yield Case("stablehlo.reduce_precision", f"{text}-e{exponent}m{mantissa}", code, (x,), "values")


