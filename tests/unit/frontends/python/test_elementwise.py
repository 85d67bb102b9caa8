"""Elementwise operations have NumPy's values and types, at once and traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gcomp import ops
from gcomp.errors import UsageError

from .agreement import ALL, FLOATS, INTEGERS, NUMBERS, PAIRS, REALS, agree, array, at_once

SHAPES = ((3, 4), (), (0,), (2, 1, 5))
EXACT_UNARY: dict[str, tuple[Any, tuple[str, ...]]] = {
    "abs": (np.abs, (*REALS,)), "negative": (np.negative, (*NUMBERS, "complex64")), "sign": (np.sign, NUMBERS),
    "square": (np.square, REALS), "floor": (np.floor, REALS), "ceil": (np.ceil, REALS), "trunc": (np.trunc, REALS),
    "rint": (np.rint, REALS), "isnan": (np.isnan, ALL), "isinf": (np.isinf, ALL), "isfinite": (np.isfinite, ALL),
    "real": (np.real, ALL), "imag": (np.imag, ALL), "conj": (np.conj, NUMBERS + ("complex64",)),
    "logical_not": (np.logical_not, ALL), "invert": (np.invert, ("bool", *INTEGERS)), "sqrt": (np.sqrt, REALS),
    "round": (np.round, NUMBERS),
}  # fmt: skip
CLOSE_UNARY: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "sinh": np.sinh, "cosh": np.cosh, "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan,
    "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh,
    "sigmoid": lambda x: (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.exp(x).dtype),
    "rsqrt": lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(np.exp(x).dtype),
}  # fmt: skip
EXACT_BINARY: dict[str, tuple[Any, tuple[str, ...]]] = {
    "add": (np.add, ALL), "subtract": (np.subtract, (*NUMBERS, "complex64")),
    "maximum": (np.maximum, REALS), "minimum": (np.minimum, REALS), "fmax": (np.fmax, REALS), "fmin": (np.fmin, REALS),
    "floor_divide": (np.floor_divide, REALS), "remainder": (np.remainder, REALS), "fmod": (np.fmod, REALS),
    "multiply": (np.multiply, REALS), "divide": (np.divide, REALS),
    "bitwise_and": (np.bitwise_and, ("bool", *INTEGERS)), "bitwise_or": (np.bitwise_or, ("bool", *INTEGERS)),
    "bitwise_xor": (np.bitwise_xor, ("bool", *INTEGERS)),
    "equal": (np.equal, ALL), "not_equal": (np.not_equal, ALL), "less": (np.less, REALS),
    "less_equal": (np.less_equal, REALS), "greater": (np.greater, REALS), "greater_equal": (np.greater_equal, REALS),
    "logical_and": (np.logical_and, ALL), "logical_or": (np.logical_or, ALL), "logical_xor": (np.logical_xor, ALL),
    "copysign": (np.copysign, FLOATS), "nextafter": (np.nextafter, FLOATS),
}  # fmt: skip
CLOSE_BINARY: dict[str, tuple[Any, tuple[str, ...]]] = {
    "arctan2": (np.arctan2, REALS), "hypot": (np.hypot, FLOATS), "logaddexp": (np.logaddexp, FLOATS),
    "power": (np.power, FLOATS),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT_UNARY)
def test_unary(name: str) -> None:
    function, dtypes = EXACT_UNARY[name]
    for i, dtype in enumerate(dtypes):
        x = array(np.random.default_rng(i), SHAPES[i % len(SHAPES)] if i else (3, 4), dtype)
        agree(getattr(ops, name), function, x)


@pytest.mark.parametrize("name", CLOSE_UNARY)
def test_functions(name: str) -> None:
    for i, dtype in enumerate(("bool", "int8", "uint8", "int16", "int32", "int64", *FLOATS)):
        x = array(np.random.default_rng(i), (3, 5), dtype, edges=dtype not in INTEGERS)
        # NumPy's own functions of narrow types are not always rounded correctly: an ulp of theirs is given.
        agree(getattr(ops, name), CLOSE_UNARY[name], x, exact=False)


@pytest.mark.parametrize("name", EXACT_BINARY)
def test_binary(name: str) -> None:
    function, dtypes = EXACT_BINARY[name]
    for i, dtype in enumerate(dtypes):
        rng = np.random.default_rng(i)
        left, right = PAIRS[i % len(PAIRS)]
        agree(getattr(ops, name), function, array(rng, left, dtype), array(rng, right, dtype))


@pytest.mark.parametrize("name", CLOSE_BINARY)
def test_functions_of_two(name: str) -> None:
    function, dtypes = CLOSE_BINARY[name]
    for i, dtype in enumerate(dtypes):
        rng = np.random.default_rng(i)
        agree(getattr(ops, name), function, array(rng, (3, 4), dtype), array(rng, (4,), dtype), exact=False)


@pytest.mark.parametrize("name", ["multiply", "divide"])
def test_complex(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = array(rng, (3, 4), "complex64"), array(rng, (4,), "complex64")
    agree(getattr(ops, name), getattr(np, name), x, y, exact=False)


def test_abs_and_sign_of_complex() -> None:
    x = array(np.random.default_rng(0), (3, 4), "complex64")
    agree(ops.abs, np.abs, x, exact=False)
    agree(ops.sign, np.sign, x, exact=False)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, y = array(rng, (3, 4), dtype, edges=False), rng.integers(0, 4, (3, 4)).astype(dtype)
    agree(ops.power, np.power, x, y)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 2.0, True])
def test_powers_with_numbers(exponent: Any) -> None:
    for dtype in FLOATS:
        x = np.abs(array(np.random.default_rng(2), (3, 4), dtype))
        agree(lambda x: x**exponent, lambda x: x**exponent, x, exact=False)
    if isinstance(exponent, int) and exponent >= 0:
        agree(lambda x: x**exponent, lambda x: x**exponent, np.arange(-3, 4, dtype=np.int32))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = array(rng, (3, 4), dtype), rng.integers(0, 80, (3, 4)).astype(dtype)
    agree(ops.left_shift, np.left_shift, x, y)
    agree(ops.right_shift, np.right_shift, x, y)


def test_signed_beside_unsigned() -> None:
    x = np.array([-1, 0, 1, 2**62], np.int64)
    y = np.array([2**64 - 1, 0, 1, 2**63], np.uint64)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        agree(getattr(ops, name), getattr(np, name), x, y)
        agree(getattr(ops, name), getattr(np, name), y, x[:, None].astype(np.int8))
    agree(ops.add, np.add, x, y)


@pytest.mark.parametrize("decimals", [-1, 1, 3])
def test_round_to_decimals(decimals: int) -> None:
    x = array(np.random.default_rng(4), (4, 4), "float32") * 100
    agree(lambda x: ops.round(x, decimals), lambda x: np.round(x, decimals), x)


def test_where_and_clip() -> None:
    rng = np.random.default_rng(5)
    c, x, y = array(rng, (3, 1), "int32"), array(rng, (3, 4), "float32"), array(rng, (4,), "int16")
    agree(ops.where, np.where, c, x, y)
    agree(lambda x: ops.clip(x, -1, 1), lambda x: np.clip(x, -1, 1), x)
    agree(lambda x: ops.clip(x, min=0), lambda x: np.clip(x, 0, None), x)


def test_special_functions() -> None:
    x = np.linspace(-2.5, 2.5, 11)
    (got,), (comp,) = at_once(ops.erf, x), at_once(ops.erfc, x)
    np.testing.assert_allclose(got, [math.erf(v) for v in x], rtol=1e-14)
    np.testing.assert_allclose(comp, [math.erfc(v) for v in x], rtol=1e-14)
    np.testing.assert_allclose(at_once(ops.erfinv, got)[0], x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(at_once(ops.lgamma, x + 3)[0], [math.lgamma(v + 3) for v in x], rtol=1e-13)
    step = 1e-5
    slope = [(math.lgamma(v + 3 + step) - math.lgamma(v + 3 - step)) / (2 * step) for v in x]
    np.testing.assert_allclose(at_once(ops.digamma, x + 3)[0], slope, rtol=1e-6)


@pytest.mark.parametrize("source", ALL)
def test_astype(source: str) -> None:
    x = array(np.random.default_rng(6), (3, 4), source, edges=False)
    for target in ("bool", "int32", "float32", "float64"):
        if source.startswith("complex") and target != "bool":
            agree(lambda x, t=target: x.astype(t), lambda x, t=target: x.real.astype(t), x)
        elif source != "bool" or target != "bool":
            agree(lambda x, t=target: x.astype(t), lambda x, t=target: x.astype(t), x)


def test_what_numpy_refuses() -> None:
    flags = np.array([True, False])
    for wrong in (
        lambda: ops.negative(flags),
        lambda: ops.subtract(flags, flags),
        lambda: ops.sign(flags),
        lambda: ops.bitwise_and(1.5, 2.5),
        lambda: ops.power(np.arange(3), -1),
        lambda: ops.floor(1j),
        lambda: ops.less(1j, 2j),
        lambda: ops.add(np.uint8(1), 300),
    ):
        with pytest.raises(UsageError, match=r"test_elementwise\.py"):
            wrong()
