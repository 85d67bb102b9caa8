"""Conversions between all pairs of element types, bitcasts, and reduced precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import DTYPES, bit_width, is_complex, is_float, real_of
from gcomp.reference.numpy.dtypes import real_part
from gcomp.reference.numpy.rounding import is_nan
from gcomp.reference.values import edges
from tests.support.cases.case import Array, Case, Rng, apply, tensor
from tests.support.cases.elementwise import FLOATS, NARROW
from tests.support.cases.values import every, sample

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
    yield from _tiny(rng)


def _tiny(rng: Rng) -> Iterator[Case]:
    for tiny in TINY:
        x = every(tiny)
        for wide in ("f32", "bf16", "f64"):
            reason = "reads the NaN of f8E8M0FNU as infinity" if tiny == "f8E8M0FNU" else ""
            code = apply("stablehlo.convert", [x], [tensor(x.shape, wide)])
            yield Case("stablehlo.convert", f"{tiny}-{wide}", code, (x,), "values", reason)
            y = np.concatenate([edges(wide), sample(rng, wide, (100,))])
            if tiny == "f8E8M0FNU":
                # XLA converts through f32, denormals of which it flushes.
                y = y[(np.abs(y.astype(np.float64)) > 2.0**-126) | (y == 0)]
                parts = (("", y, "drops the sign, and has no NaN for zero"),)
            else:
                parts = (("", y[np.isfinite(y)], ""),)
            for label, part, why in parts:
                code = apply("stablehlo.convert", [part], [tensor(part.shape, tiny)])
                yield Case("stablehlo.convert", f"{wide}-{tiny}{label}", code, (part,), "values", why)


def out_of_range(rng: Rng, full: bool) -> Iterator[Case]:
    """Floats and integers beyond the range of an integer type, and NaN: what the specification leaves open."""
    for source in TYPES if full else ("f64", "f32", "bf16", "f8E5M2"):
        x = _values(rng, source, full)
        for target in TYPES if full else ("i4", "i8", "ui8", "i32", "ui32", "i64", "ui64"):
            if not (_floating(target) or target == "i1"):
                rest = x[~_representable(x, source, target)]
                code = apply("stablehlo.convert", [rest], [tensor(rest.shape, target)])
                reason = "leaves what does not fit undefined"
                yield Case("stablehlo.convert", f"{source}-{target}-outside", code, (rest,), "values", reason)


def _floating(text: str) -> bool:
    return is_float(text) or is_complex(text)


def _representable(x: Array, source: str, target: str) -> Array:
    """Where the truncated value lies in the range of the integer type `target`."""
    width, signed = bit_width(target), target[0] == "i"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if not _floating(source):
        # An integer that does not fit wraps, which is defined.
        return np.ones(x.shape, np.bool_)
    with np.errstate(all="ignore"):
        wide = np.asarray(real_part(x) if is_complex(source) else x).astype(np.float64)
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
    """Formats narrower and wider than the operand's, which has infinities (the op's steps make some)."""
    for text in (*FLOATS, *(t for t in NARROW if "FN" not in t)):
        x = _values(rng, text, full)
        for exponent, mantissa in ((8, 23), (5, 10), (8, 7), (4, 3), (5, 2), (2, 1), (1, 0), (3, 0), (11, 52)):
            if mantissa == 0:
                # With no mantissa bits the C++ interpreter makes NaN an infinity.
                x = x[~is_nan(x)]
            attributes = {"exponent_bits": f"{exponent} : i32", "mantissa_bits": f"{mantissa} : i32"}
            code = apply("stablehlo.reduce_precision", [x], [tensor(x.shape, text)], attributes)
            label = f"{text}-e{exponent}m{mantissa}"
            yield Case("stablehlo.reduce_precision", label, code, (x,), "values")
