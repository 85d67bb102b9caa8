"""Functions of complex numbers, as formulas of their parts: near the reference, at special values too."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import gcomp
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.pairs.transforms import root_of_unity
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.targets.base import target_named

Array = np.ndarray[Any, Any]

UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "cosine", "exponential",
    "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sign", "sine", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
BINARY = ("divide", "multiply", "power")
ANYWHERE = ("abs", "divide", "log", "log_plus_one", "multiply", "rsqrt", "sign", "sqrt", "tan", "tanh")
"""Right wherever the parts are infinite or NaN."""
CHLO = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh"}
DTYPES = {"f32": np.complex64, "f64": np.complex128}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 2.0, 1e-30, -3.0)


def both(op: str, part: str, arrays: list[Array]) -> tuple[Array, Array]:
    """What an op is, and what it becomes."""
    kind, count = f"complex<{part}>", arrays[0].size
    result = part if op == "abs" else kind
    arguments = ", ".join(f"%a{i}: tensor<{count}x{kind}>" for i in range(len(arrays)))
    names = ", ".join(f"%a{i}" for i in range(len(arrays)))
    name = f"{'chlo' if op in CHLO else 'stablehlo'}.{op}"
    type = f"(tensor<{count}x{kind}>) -> tensor<{count}x{result}>" if op == "abs" else f"tensor<{count}x{kind}>"
    if op in CHLO:
        type = f"{type} -> {type}"
    program = Program.parse(
        f"func.func @main({arguments}) -> tensor<{count}x{result}> {{\n"
        f"  %0 = {name} {names} : {type}\n  return %0 : tensor<{count}x{result}>\n}}"
    )
    expected = interpret(program, arrays)[0]
    PassManager(parse_pipeline("complex-to-pairs")).run(program)
    assert all("complex" not in str(v.type) for o in program.ops() if o.name == name for v in o.results)
    return expected, interpret(program, arrays)[0]


def drawn(part: str, low: float, high: float, seed: int) -> Array:
    """Numbers of both signs whose parts are powers of two of exponents in between."""
    rng = np.random.default_rng(seed)
    found = np.empty(2000, DTYPES[part])
    for half in (found.real, found.imag):
        half[...] = rng.choice([-1, 1], found.size) * 2.0 ** rng.uniform(low, high, found.size)
    return found


@pytest.mark.parametrize(
    "before, after", [("3x2xcomplex<f32>", "3x2xcomplex<f32>"), ("3x2xcomplex<f32>", "3xcomplex<f64>"),
                      ("3x2xcomplex<f64>", "3x2x2xcomplex<f32>")]
)  # fmt: skip
def test_bits_of_complex_numbers(before: str, after: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 2)).astype(np.float32 if "f32" in before else np.float64)
    z = x[0] + np.asarray(1j, DTYPES["f32" if "f32" in before else "f64"]) * x[1]
    text = f"""func.func @main(%z: tensor<{before}>) -> tensor<{after}> {{
      %0 = stablehlo.negate %z : tensor<{before}>
      %1 = stablehlo.bitcast_convert %0 : (tensor<{before}>) -> tensor<{after}>
      return %1 : tensor<{after}>
    }}"""
    (found,) = gcomp.compile(text, target="cpu")(z)
    assert found.tobytes() == (-z).tobytes() == interpret(Program.parse(text), [z])[0].tobytes()
    if before != after:
        with pytest.raises(UnsupportedError, match="XLA ends the process"):
            gcomp.compile(text, target="xla:cpu")


@pytest.mark.parametrize("part", DTYPES)
@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_functions_are_near_the_reference(op: str, part: str) -> None:
    """Within a few ulp of the number's size; f32 is computed in f64, and differs where its rounding is a tie."""
    count = 2 if op in BINARY else 1
    greatest = np.finfo(DTYPES[part]).maxexp - 2
    for low, high in ((-3, 3), (-30, 6), *(() if op == "power" else ((-greatest, greatest),))):
        expected, found = both(op, part, [drawn(part, low, high, seed) for seed in range(count)])
        size = np.abs(expected)
        finite = np.isfinite(expected) & (size > 0) & np.isfinite(size)
        assert np.isfinite(found[finite]).all()
        ulps = np.abs(found[finite].astype(np.complex128) - expected[finite]) / np.spacing(size[finite])
        assert ulps.max(initial=0) <= (1 if part == "f32" else _ULPS.get(op, 8)), (low, high)


_ULPS = {"power": 2000, "logistic": 200, "log_plus_one": 1e9}
"""Of f64: a power's exponent is as large as its rounding is, and 1 + z cancels, as in the reference."""


@pytest.mark.parametrize("part", DTYPES)
@pytest.mark.parametrize("op", ANYWHERE)
def test_special_values_are_the_reference_s(op: str, part: str) -> None:
    grid = np.asarray([complex(a, b) for a, b in itertools.product(SPECIAL, SPECIAL)], DTYPES[part])
    arrays = [v.reshape(-1) for v in np.meshgrid(grid, grid)] if op in BINARY else [grid]
    expected, found = both(op, part, arrays)
    for old, new in ((expected.real, found.real), (expected.imag, found.imag)):
        np.testing.assert_array_equal(np.isnan(old), np.isnan(new))
        np.testing.assert_allclose(new, old, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 97, 360])
def test_roots_of_unity(n: int) -> None:
    found = np.asarray([root_of_unity(k, n) for k in range(n)])
    angles = 2 * np.pi * np.arange(n) / n
    np.testing.assert_allclose(found, np.stack([np.cos(angles), np.sin(angles)], axis=1), atol=2e-15)
    quarters = found[(4 * np.arange(n)) % n == 0]
    assert set(np.abs(quarters).ravel()) <= {0.0, 1.0}, "the roots on the axes are exact"


def test_angles_on_the_cut_have_the_sides_of_the_reference() -> None:
    """By parts: as a product with 1j, the reference took the other side where a part was -0."""
    zeros = [complex(a, b) for a in (0.0, -0.0, 1.0, -1.0) for b in (0.0, -0.0, 1e-7, -1e-7)]
    y, x = (np.array(grid, np.complex64).reshape(-1) for grid in np.meshgrid(zeros, zeros))
    expected, found = both("atan2", "f32", [y, x])
    assert np.allclose(found, expected, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("part", DTYPES)
def test_angles_are_near_the_reference(part: str) -> None:
    """A small angle is the logarithm of a number near 1, in the reference as well: of angles around 1, a few ulp."""
    expected, found = both("atan2", part, [drawn(part, -2, 2, seed) for seed in range(2)])
    assert np.abs(found - expected).max() <= 32 * np.finfo(DTYPES[part]).eps


def test_an_op_without_a_formula_is_refused_by_name_and_place() -> None:
    """Its kernel was named in its place, at no line."""
    t = "tensor<4xcomplex<f32>>"
    program = Program.parse(
        f'func.func @main(%x: {t}) -> {t} {{\n  %r = chlo.bessel_i1e %x : {t} -> {t} loc("m.py":7:3)\n'
        f"  return %r : {t}\n}}"
    )
    target = target_named("cpu")
    PassManager(parse_pipeline(target.pipeline())).run(program)
    with pytest.raises(UnsupportedError, match=r"(?s)chlo\.bessel_i1e of complex<f32>.*m\.py:7.*no formula"):
        target.lower(program, report=str)


EXACT = {"cbrt": lambda z: mp.root(z, 3), "log_plus_one": mp.log1p, "sign": mp.sign}


@pytest.mark.parametrize("part", DTYPES)
@pytest.mark.parametrize("op", ["cbrt", "log", "log_plus_one", "sign", "sqrt"])
def test_functions_of_numbers_whose_modulus_overflows(op: str, part: str) -> None:
    most = np.finfo(DTYPES[part]).max
    z = np.array([complex(a * most, b * most) for a in (-1, 0.75, 1) for b in (-1, 0.75, 1)], DTYPES[part])
    expected, found = both(op, part, [z])
    exact = EXACT.get(op) or getattr(mp, op)
    wanted = np.array([complex(exact(mp.mpc(complex(w)))) for w in z])
    for one in (expected, found):
        np.testing.assert_allclose(one, wanted, rtol=4 * np.finfo(DTYPES[part]).eps)
