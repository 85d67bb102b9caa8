"""Formulas of special functions: near the reference everywhere, and of its class at every edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gcomp.decompositions import special as formulas
from gcomp.decompositions.real import Real
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.reference.interpreter import interpret
from gcomp.reference.numpy import special as reference
from gcomp.reference.numpy.bounds import BOUNDS, ULPS, ulp

Array = np.ndarray[Any, Any]

F64 = np.dtype(np.float64)
COUNT = 4000
POSITIVE = np.array(
    [0.0, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-17, 0.3, 0.5, 1 - 2.0**-53, 1.0, 1 + 2.0**-52, 1.4616321449683623, 1.5]
    + [2.0, 2.5, 3.0, 4.25, 9.999999999999998, 10.0, 12.0, 23.999999999999996, 24.0, 30.0, 100.75, 170.0, 171.0, 172.0]
    + [359.0, 400.0, 401.0, 1e5, 2.0**52 - 0.5, 2.0**53, 1e16, 1e20, 1e154, 1e160, 1e300, 1.79e308, np.inf]
)
EDGES = np.concatenate([POSITIVE, -POSITIVE, [np.nan]])
ORDERS = np.concatenate(
    [np.arange(26.0), [50, 169, 170, 171, 172, 1e16, 1e300, np.inf, -0.0, -1, -2, 0.5, -np.inf, np.nan]]
)


def computed(name: str, *arrays: Array) -> Array:
    """What the reference interpreter makes of a formula."""
    program = Program.empty([(f"x{i}", tensor(x.shape, "f64")) for i, x in enumerate(arrays)])
    b = Builder(program)
    result: Real = getattr(formulas, name)(*[Real(b, value) for value in program.block.args])
    program.finish([("y", result.value)])
    program.verify()
    return interpret(program, arrays)[0]


def allowed(name: str, exact: Array, *arrays: Array) -> Array:
    """How far from the reference a result may be; a product with n! brings the errors of both factors along."""
    if name != "polygamma":
        return np.asarray(BOUNDS[name](*arrays))
    n, x = arrays
    factorials = np.array([math.gamma(v + 1) if 0 <= v < 171 else 0.0 for v in n.tolist()])
    derivative = ULPS["zeta"] * np.maximum(ulp(exact, F64), factorials * ulp(reference.zeta(n + 1, x), F64))
    return np.where(n == 0, BOUNDS["digamma"](x), derivative)


def check(name: str, *arrays: Array) -> None:
    """NaN, infinities and signed zeros are the reference's; other results are within the bound."""
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(reference, name)(*arrays))
        actual = computed(name, *arrays)
        limit = allowed(name, expected, *arrays)
        nan, number = np.isnan(expected), np.isfinite(expected)
        near = np.abs(actual - expected) <= limit
    same = np.where(number & (expected != 0), near, (actual == expected) & (np.signbit(actual) == np.signbit(expected)))
    wrong = np.flatnonzero(~np.where(nan, np.isnan(actual), same))
    assert not wrong.size, [(*(float(x[i]) for x in arrays), actual[i], expected[i]) for i in wrong[:5].tolist()]


def pairs(x: Array, y: Array) -> tuple[Array, Array]:
    """Each of x with each of y."""
    return np.repeat(x, y.size), np.tile(y, x.size)


def drawn(low: float, high: float, seed: int) -> Array:
    """Positive numbers whose decimal logarithms are even in between."""
    return 10.0 ** np.random.default_rng(seed).uniform(low, high, COUNT)


def uniform(low: float, high: float, seed: int) -> Array:
    return np.random.default_rng(seed).uniform(low, high, COUNT)


def whole(low: int, high: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(low, high, COUNT).astype(np.float64)


@pytest.mark.parametrize("name", ["digamma", "bessel_i1e"])
def test_functions_of_one_number(name: str) -> None:
    """Near poles, zeros and the joints of their formulas, and of every magnitude."""
    magnitudes = drawn(-323, 308, 0)
    near = [uniform(low, high, 1) for low, high in ((-30, 30), (0, 3), (8, 32), (-1000, 1000))]
    poles = np.concatenate([np.nextafter(-np.arange(50.0), way) for way in (-np.inf, np.inf)])
    check(name, np.concatenate([EDGES, magnitudes, -magnitudes, poles, *near]))


def test_zeta_at_edges() -> None:
    check("zeta", *pairs(EDGES, EDGES))


@pytest.mark.parametrize(
    ("x", "q"),
    [
        (uniform(1, 20, 2), uniform(0, 50, 3)),
        (1 + drawn(-15, 4, 4), drawn(-10, 10, 5)),
        (1 + drawn(-16, 308, 6), drawn(-310, 308, 7)),
        (whole(1, 300, 8), drawn(-3, 4, 9)),
        # Where powers are subnormal, and where q + 12 is in another binade than q.
        (uniform(90, 130, 10), uniform(200, 2100, 11)),
        (uniform(1, 120, 12), 2.0 ** whole(1, 12, 13) - uniform(0, 14, 14)),
    ],
    ids=["usual", "wide", "widest", "whole", "subnormal", "binades"],
)
def test_zeta_of_positive_numbers(x: Array, q: Array) -> None:
    check("zeta", x, q)


def test_zeta_of_negative_numbers() -> None:
    """Exponents that are no whole numbers have no value there; those that are, by reflection."""
    for q in (-uniform(0, 30, 15), -drawn(-18, 10, 16)):
        check("zeta", whole(2, 30, 17), q)
        check("zeta", whole(2, 600, 18), q)
        check("zeta", uniform(1, 30, 19), q)


def test_polygamma_at_edges() -> None:
    check("polygamma", *pairs(ORDERS, EDGES))


@pytest.mark.parametrize(
    ("n", "x"),
    [
        (whole(0, 20, 20), uniform(-30, 50, 21)),
        (whole(0, 175, 22), drawn(-5, 10, 23)),
        (np.ones(COUNT), uniform(-5, 30, 24)),
        (whole(8, 171, 25), uniform(0.2, 60, 26)),
    ],
    ids=["usual", "wide", "trigamma", "high"],
)
def test_polygamma(n: Array, x: Array) -> None:
    check("polygamma", n, x)


def test_polygamma_has_the_exact_factorials() -> None:
    """At 1, where zeta of a high order is 1 to the last bit, derivatives are factorials."""
    orders = np.arange(60.0, 171.0)
    with np.errstate(all="ignore"):
        actual = np.abs(computed("polygamma", orders, np.ones_like(orders)))
    exact = np.array([float(math.factorial(int(n))) for n in orders])
    assert (np.abs(actual - exact) <= ULPS["zeta"] * ulp(exact, F64)).all()
