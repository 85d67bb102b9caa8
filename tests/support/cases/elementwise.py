"""Elementwise ops: edge values against edge values, and all values of the 8-bit types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gcomp.dtypes import dtype_of
from gcomp.reference.numpy.dtypes import imag_part
from gcomp.reference.values import edges
from tests.support.cases.case import Array, Case, Comparison, Rng, apply, tensor, type_of
from tests.support.cases.values import every, sample

FLOATS = ("f64", "f32", "f16", "bf16")
NARROW = ("f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4")
INTEGERS = ("i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64")
COMPLEX = ("complex<f32>", "complex<f64>")
SIGNED = tuple(t for t in INTEGERS if t[0] == "i")

ELEMENTARY = (
    "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "tan",
    "tanh",
)  # fmt: skip
"""Unary functions that no implementation rounds correctly everywhere."""
_ROUNDING = ("ceil", "floor", "round_nearest_afz", "round_nearest_even")
_EXACT = ("abs", *_ROUNDING, "negate", "sign", "sqrt")


_E3M4 = "rounds f8E3M4 to NaN"


def _unary(op: str, text: str, x: Array, compare: Comparison, result: str | None = None, label: str = "") -> Case:
    target = tensor(x.shape, result or text)
    name = f"stablehlo.{op}"
    reason = _E3M4 if text == "f8E3M4" and op in _ROUNDING else ""
    return Case(name, f"{text}{label}", apply(name, [x], [target]), (x,), compare, reason)


def _without_overflow(x: Array) -> Array:
    """Where 1 + exp(-x) neither overflows nor rounds coarsely: the C++ interpreter rounds each step of logistic."""
    low = {np.dtype(np.float64): -36.0, np.dtype(np.float32): -15.0}.get(x.dtype, -2.0)
    with np.errstate(all="ignore"):
        return x[~(x.astype(np.float64) < low)]


def _values(rng: Rng, text: str, full: bool) -> Array:
    if text in NARROW or (full and text in ("f16", "bf16")):
        return every(text)
    return np.concatenate([edges(text), sample(rng, text, (4096 if full else 128,))])


def unary(rng: Rng, full: bool) -> Iterator[Case]:
    """Unary ops on all their element types."""
    for text in (*FLOATS, *NARROW):
        x = _values(rng, text, full)
        for op in _EXACT:
            yield _unary(op, text, x, "values")
        yield _unary("is_finite", text, x, "bits", "i1")
        for op in ("real", "imag"):
            yield _unary(op, text, x, "values")
        for op in ELEMENTARY:
            yield _unary(op, text, _without_overflow(x) if op == "logistic" else x, "ulp")
    for text in INTEGERS:
        x = edges(text)
        for op in ("not", "popcnt", "count_leading_zeros", "negate"):
            yield _unary(op, text, x, "bits")
        for op in ("abs", "sign") if text in SIGNED else ():
            yield _unary(op, text, x, "bits")
    yield _unary("not", "i1", edges("i1"), "bits")
    for text, part in zip(COMPLEX, ("f32", "f64"), strict=True):
        x = sample(rng, text, (64,))
        finite = np.where(np.isfinite(x) & (abs(x) < 1e3), x, np.ones((), x.dtype))
        for op in ("negate", "real", "imag"):
            yield _unary(op, text, x, "values", part if op in ("real", "imag") else None)
        yield _unary("abs", text, finite, "ulp", part)
        large = finite[np.asarray((abs(finite) > 0.1) & (imag_part(finite) != 0))]
        for op in (*ELEMENTARY, "sqrt", "sign"):
            # The C++ interpreter takes log(1 + z) and exp(z) - 1 at their word: it loses small z, and -0.
            yield _unary(op, text, large if op in ("log_plus_one", "exponential_minus_one") else finite, "ulp")
    yield from _shapes()


def _shapes() -> Iterator[Case]:
    """Rank 0 and size 0."""
    for shape in ((), (0,), (2, 0, 3), (1, 1)):
        x = np.full(shape, -1.5, np.float32)
        for op in ("abs", "negate", "exponential"):
            yield _unary(op, "f32", x, "ulp", label=f"-{'x'.join(map(str, shape)) or 'scalar'}")


def _pairs(rng: Rng, text: str, full: bool) -> tuple[Array, Array]:
    pool = every(text) if text in NARROW and full else edges(text)
    if text in NARROW and not full:
        pool = every(text)[:: 1 if pool.size < 40 else 5]
    lhs, rhs = (np.ascontiguousarray(g).reshape(-1) for g in np.broadcast_arrays(pool[:, None], pool[None, :]))
    extra = 4096 if full else 64
    return np.concatenate([lhs, sample(rng, text, (extra,))]), np.concatenate([rhs, sample(rng, text, (extra,))])


def _binary(op: str, text: str, lhs: Array, rhs: Array, compare: Comparison, label: str = "") -> Case:
    name = f"stablehlo.{op}"
    return Case(name, f"{text}{label}", apply(name, [lhs, rhs], [type_of(lhs)]), (lhs, rhs), compare)


def binary(rng: Rng, full: bool) -> Iterator[Case]:
    """Binary ops on all their element types; divisions that the C++ interpreter dies of come apart, in `division`."""
    for text in (*FLOATS, *NARROW):
        lhs, rhs = _pairs(rng, text, full)
        for op in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"):
            yield _binary(op, text, lhs, rhs, "values")
        for op in ("atan2", "power"):
            yield _binary(op, text, lhs, rhs, "ulp")
    for text in (*INTEGERS, "i1"):
        lhs, rhs = _pairs(rng, text, full)
        for op in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
            yield _binary(op, text, lhs, rhs, "bits")
        if text == "i1":
            continue
        for op in ("subtract", "shift_left", "shift_right_arithmetic", "shift_right_logical", "power"):
            yield _binary(op, text, lhs, rhs, "bits")
        defined = _defined(rhs)
        for op in ("divide", "remainder"):
            yield _binary(op, text, lhs[defined], rhs[defined], "bits")
    for text in COMPLEX:
        lhs, rhs = (np.nan_to_num(sample(rng, text, (64,)), nan=1, posinf=2, neginf=-3) for _ in range(2))
        a, b = (np.where(abs(x) < 1e3, x, np.ones((), x.dtype)) for x in (lhs, rhs))
        for op in ("add", "subtract"):
            yield _binary(op, text, lhs, rhs, "values")
        a, b = (np.where(x == 0, np.ones((), x.dtype), x) for x in (a, b))
        for op in ("multiply", "divide", "power"):
            yield _binary(op, text, a, b, "ulp")
        for op in ("maximum", "minimum"):
            yield _binary(op, text, a, b, "values")


def _defined(rhs: Array) -> Array:
    return rhs.astype(np.int64) != 0


def division(rng: Rng, full: bool) -> Iterator[Case]:
    """Integer division by zero."""
    for text in INTEGERS:
        lhs, rhs = _pairs(rng, text, full)
        rest = ~_defined(rhs)
        for op in ("divide", "remainder"):
            case = _binary(op, text, lhs[rest], rhs[rest], "bits", "-by-zero")
            yield replace(case, without_cpp="dies of integer division by zero")


def ternary(rng: Rng, full: bool) -> Iterator[Case]:
    """select, clamp, compare and complex."""
    for text in ("f64", "f32", "bf16", "i1", "i4", "i32", "ui8", "complex<f32>"):
        pred, a, b = sample(rng, "i1", (60,)), sample(rng, text, (60,)), sample(rng, text, (60,))
        scalar = np.array(True)
        for label, p in (("", pred), ("-scalar", scalar)):
            types = [type_of(a)]
            yield Case(
                "stablehlo.select", f"{text}{label}", apply("stablehlo.select", [p, a, b], types), (p, a, b), "bits"
            )
    for text in ("f64", "f32", "f16", "f8E4M3FN", "i1", "i4", "i32", "ui8"):
        low, x, high = (sample(rng, text, (60,)) for _ in range(3))
        bounds = (np.array(1, dtype_of(text)), np.array(0, dtype_of(text)))
        for label, (lo, hi) in (("", (low, high)), ("-scalar", bounds)):
            inputs = (lo, x, hi)
            yield Case(
                "stablehlo.clamp", f"{text}{label}", apply("stablehlo.clamp", inputs, [type_of(x)]), inputs, "values"
            )
    yield from _compare(rng, full)
    for text in ("f32", "f64"):
        a, b = sample(rng, text, (50,)), sample(rng, text, (50,))
        result = tensor(a.shape, f"complex<{text}>")
        yield Case("stablehlo.complex", text, apply("stablehlo.complex", [a, b], [result]), (a, b), "bits")


def _compare(rng: Rng, full: bool) -> Iterator[Case]:
    for text in (*FLOATS, *NARROW, *INTEGERS, "i1", *COMPLEX):
        lhs, rhs = (
            _pairs(rng, text, full) if text not in COMPLEX else (sample(rng, text, (64,)), sample(rng, text, (64,)))
        )
        if text.endswith("FNUZ"):
            # Where their single NaN stands in the total order is a choice that XLA makes otherwise.
            kept = ~(np.isnan(lhs) | np.isnan(rhs))
            lhs, rhs = lhs[kept], rhs[kept]
        kinds = ["FLOAT", "TOTALORDER"] if text in (*FLOATS, *NARROW) else ["SIGNED" if text in SIGNED else "UNSIGNED"]
        kinds = ["FLOAT"] if text in COMPLEX else kinds
        for direction in ("EQ", "NE") if text in COMPLEX else ("EQ", "NE", "GE", "GT", "LE", "LT"):
            for kind in kinds:
                attributes = {
                    "comparison_direction": f"#stablehlo<comparison_direction {direction}>",
                    "compare_type": f"#stablehlo<comparison_type {kind}>",
                }
                code = apply("stablehlo.compare", [lhs, rhs], [tensor(lhs.shape, "i1")], attributes)
                reason = "compares TOTALORDER as FLOAT" if kind == "TOTALORDER" else ""
                yield Case("stablehlo.compare", f"{text}-{direction}-{kind}", code, (lhs, rhs), "bits", reason)
