"""CHLO's functions against mpmath, math, and their definitions at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gcomp.dtypes import DTYPES, text_of
from gcomp.reference.numpy import chlo
from gcomp.reference.numpy.dtypes import float_format, width_of
from gcomp.reference.numpy.rounding import from_value_bits, value_bits

from .samples import FLOATS, INTEGERS, edges, integers, pairs, same_bits, same_values

mpmath = pytest.importorskip("mpmath", reason="mpmath, which comes with sympy, is not installed")

UNIT = np.random.default_rng(0).uniform(-1, 1, 60)
WIDE = np.random.default_rng(1).normal(scale=8, size=60)
POSITIVE = 10.0 ** np.random.default_rng(2).uniform(-3, 3, 60)

# Function, exact function, arguments, largest error in ulp of float64.
CASES: dict[str, tuple[Callable[..., object], np.ndarray, float]] = {
    "acos": (mpmath.acos, UNIT, 2),
    "acosh": (mpmath.acosh, POSITIVE + 1, 3),
    "asin": (mpmath.asin, UNIT, 2),
    "asinh": (mpmath.asinh, WIDE, 3),
    "atan": (mpmath.atan, WIDE, 2),
    "atanh": (mpmath.atanh, UNIT, 3),
    "cosh": (mpmath.cosh, WIDE, 3),
    "sinh": (mpmath.sinh, WIDE, 3),
    "tan": (mpmath.tan, WIDE, 3),
    "erf": (mpmath.erf, WIDE / 8, 2),
    "erfc": (mpmath.erfc, WIDE / 2, 6),
    "erf_inv": (mpmath.erfinv, UNIT, 4),
    "bessel_i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), WIDE * 4, 16),
    "digamma": (mpmath.digamma, POSITIVE + 2, 12),
    "lgamma": (lambda x: mpmath.re(mpmath.loggamma(x)), POSITIVE + 3, 12),
}


@pytest.mark.parametrize("name", CASES)
def test_accuracy(name: str) -> None:
    exact, x, limit = CASES[name]
    got = getattr(chlo, name)(x)
    with mpmath.workdps(60):
        expected = np.array([float(exact(mpmath.mpf(v))) for v in x.tolist()])
    assert (np.abs(got - expected) <= limit * np.spacing(np.abs(expected))).all()
    single = getattr(chlo, name)(x.astype(np.float32))
    assert single.dtype == np.float32


def test_zeta_and_polygamma_accuracy() -> None:
    rng = np.random.default_rng(3)
    x, q = rng.uniform(1.1, 20, 40), rng.uniform(0.1, 50, 40)
    n, y = rng.integers(0, 6, 40).astype(np.float64), np.concatenate([rng.uniform(2, 40, 20), -rng.uniform(0.1, 9, 20)])
    with mpmath.workdps(120):
        zeta = np.array([float(mpmath.zeta(mpmath.mpf(a), mpmath.mpf(b))) for a, b in zip(x, q, strict=True)])
        poly = np.array([float(mpmath.polygamma(int(a), mpmath.mpf(b))) for a, b in zip(n, y, strict=True)])
    assert (np.abs(chlo.zeta(x, q) - zeta) <= 16 * np.spacing(zeta)).all()
    assert (np.abs(chlo.polygamma(n, y) - poly) <= 1e-13 * np.abs(poly) + 1e-14).all()


def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    table = {
        "acos": [(1, 0), (2, nan), (nan, nan)],
        "acosh": [(1, 0), (0.5, nan), (inf, inf)],
        "atanh": [(1, inf), (-1, -inf), (2, nan), (-0.0, -0.0)],
        "erf": [(inf, 1), (-inf, -1), (-0.0, -0.0), (nan, nan)],
        "erfc": [(inf, 0), (-inf, 2)],
        "erf_inv": [
            (1, inf),
            (-1, -inf),
            (1.5, nan),
            (-0.0, -0.0),
            (1e-40, np.float32(1e-40) * math.sqrt(math.pi) / 2),
        ],
        "lgamma": [(0, inf), (-1, inf), (1, 0), (2, 0), (inf, inf), (-inf, inf), (nan, nan)],
        "digamma": [(0, nan), (-2, nan), (inf, inf), (-inf, nan), (nan, nan)],
        "bessel_i1e": [(0, 0), (-0.0, -0.0), (inf, 0), (nan, nan)],
    }
    for name, rows in table.items():
        x, expected = (np.array(c, np.float64).astype(np.float32) for c in zip(*rows, strict=True))
        assert same_values(getattr(chlo, name)(x), expected), name
    cases = [
        (1, 2, inf),
        (0.5, 2, nan),
        (2, 0, inf),
        (3, -1, nan),
        (2.5, -0.5, nan),
        (inf, 1, 1),
        (2, inf, 0),
        (2, nan, nan),
    ]
    x, q, expected = (np.array(c, np.float32) for c in zip(*cases, strict=True))
    assert same_values(chlo.zeta(x, q), expected)
    assert np.isnan(chlo.polygamma(np.array([0.5, -1.0]), np.array([1.0, 1.0]))).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=text_of)
def test_classes(dtype: np.dtype) -> None:
    x = edges(dtype)
    wide = x.astype(np.float64)
    assert chlo.is_inf(x).tolist() == np.isinf(wide).tolist()
    assert chlo.is_pos_inf(x).tolist() == (wide == np.inf).tolist()
    assert chlo.is_neg_inf(x).tolist() == (wide == -np.inf).tolist()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if width_of(d) <= 8 and float_format(d).has_sign], ids=text_of)
def test_next_after_walks_through_all_values(dtype: np.dtype) -> None:
    bits = np.arange(1 << width_of(dtype), dtype=np.uint8)
    wide = from_value_bits(bits, dtype).astype(np.float32)
    values = sorted({float(v) for v in wide if not np.isnan(v)})
    x = np.array(values, np.float32).astype(dtype)
    top, bottom = (np.full(x.shape, values[i], np.float32).astype(dtype) for i in (-1, 0))
    up, down = chlo.next_after(x, top), chlo.next_after(x, bottom)
    assert up.astype(np.float32).tolist() == values[1:] + values[-1:]
    assert down.astype(np.float32).tolist() == values[:1] + values[:-1]


def test_next_after_is_nextafter() -> None:
    for dtype in (np.float32, np.float64):
        x, y = pairs(edges(np.dtype(dtype)))
        assert same_values(chlo.next_after(x, y), np.nextafter(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=text_of)
def test_mulhi(dtype: np.dtype) -> None:
    a, b = pairs(edges(dtype))
    expected = [x * y >> width_of(dtype) for x, y in zip(integers(a), integers(b), strict=True)]
    assert integers(chlo.mulhi(a, b)) == expected


def test_conj_square_constants() -> None:
    z = np.array([1 + 2j, complex(3, -0.0)], np.complex64)
    assert same_bits(chlo.conj(z), np.conj(z))
    assert chlo.square(z).tolist() == [-3 + 4j, 9 + 0j]
    assert chlo.square(np.array([3, -4], np.int8)).tolist() == [9, 16]
    nan = np.array([0x7FC01234], np.uint32).view(np.float32)
    assert same_bits(chlo.constant(value=nan), nan) and value_bits(chlo.conj(nan))[0] == 0x7FC01234
    like = chlo.constant_like(np.zeros((2, 3), DTYPES["bf16"]), value=1.5)
    assert like.shape == (2, 3) and like.dtype == DTYPES["bf16"] and float(like[1, 2]) == 1.5
    assert chlo.constant_like(np.zeros(1, np.int64), value=2**62 + 1).tolist() == [2**62 + 1]
