"""Write gcomp/lowering/tiles/expanding/coefficients.py: polynomials near functions, for programs of our own.

Usage: python tools/fit_functions.py [NAME ...]

Each is a minimax polynomial, by Remez' exchange on a grid of Chebyshev points, with mpmath; its coefficients are
rounded then. Names on the command line are fitted afresh; others keep what the file says.
"""

from __future__ import annotations

import argparse
import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

PAGE = Path("gcomp/lowering/tiles/expanding/coefficients.py")
HEAD = '''"""Coefficients of polynomials, the lowest power first. Written by `tools/fit_functions.py`; do not edit."""

# fmt: off
'''
LN2, HALF_ROOT = math.log(2) / 2 * 1.0001, math.sqrt(0.5)
SERIES = ((HALF_ROOT - 1) / (HALF_ROOT + 1)) ** 2 * 1.001
QUARTER = (math.pi / 4) ** 2 * 1.0001
Real = Any


@dataclass(frozen=True)
class Fit:
    """What a polynomial in x approximates on an interval, and by what its error is multiplied."""

    function: Callable[[Real], Real]
    interval: tuple[float, float]
    degree: int
    weight: Callable[[Real], Real] = lambda x: mp.mpf(1)
    single: bool = False
    """Whether coefficients are f32."""


def _log_rest(f: Real) -> Real:
    return (mp.log1p(f) - f + f * f / 2) / f**3


def _log_series(terms: int) -> Callable[[Real], Real]:
    """log((1 + s) / (1 - s)) / s without its first terms, over s ** (2 * terms), as a function of z = s * s."""

    def function(z: Real) -> Real:
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - sum(2 * z**k / (2 * k + 1) for k in range(terms))) / z**terms

    return function


def _of_square(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda s: function(mp.sqrt(s))


def _scaled_erfc(t: Real) -> Real:
    """(1 + 2 x) * exp(x * x) * erfc(x), where t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _scaled_erf_inv(w: Real) -> Real:
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def _stirling_rest(u: Real) -> Real:
    x = 1 / mp.sqrt(u)
    return (mp.loggamma(x) - (x - 0.5) * (mp.log(x) - 1) - (mp.log(2 * mp.pi) - 1) / 2) * x


FITS: dict[str, Fit] = {
    # (exp(x) - 1 - x) / x ** 2
    "EXP_F32": Fit(lambda x: (mp.expm1(x) - x) / x**2, (-LN2, LN2), 4, lambda x: x, True),
    "EXP_F64": Fit(lambda x: (mp.expm1(x) - x) / x**2, (-LN2, LN2), 10, lambda x: x),
    # Of z = x ** 2: (tanh(x) / x - 1) / z
    "TANH_F32": Fit(_of_square(lambda x: (mp.tanh(x) / x - 1) / x**2), (0, 0.5501**2), 4, lambda z: z, True),
    # (log(1 + f) - f + f ** 2 / 2) / f ** 3
    "LOG_F32": Fit(_log_rest, (HALF_ROOT - 1.0001, 2 * HALF_ROOT - 0.9999), 7, lambda f: f * f, True),
    # Of z = s ** 2: (log((1 + s) / (1 - s)) - 2 s) / s ** 3, and without its next term, over s ** 5
    "LOG_F64": Fit(_log_series(1), (0, SERIES), 7, lambda z: z),
    "LOG_PAIR_F64": Fit(_log_series(2), (0, SERIES), 9, lambda z: z * z),
    # Of s = r ** 2: (sin(r) / r - 1) / s, (cos(r) - 1 + s / 2) / s ** 2
    "SIN_F32": Fit(_of_square(lambda r: (mp.sin(r) / r - 1) / r**2), (0, QUARTER), 3, lambda s: s),
    "COS_F32": Fit(_of_square(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), (0, QUARTER), 3, lambda s: s * s),
    "SIN_F64": Fit(_of_square(lambda r: (mp.sin(r) / r - 1) / r**2), (0, QUARTER), 6, lambda s: s),
    "COS_F64": Fit(_of_square(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), (0, QUARTER), 5, lambda s: s * s),
    # Of s = x ** 2: erf(x) / x - 1; and -log(erfc(x)) beyond
    "ERF_F32": Fit(_of_square(lambda x: mp.erf(x) / x - 1), (0, 0.87), 5, single=True),
    "ERF_TAIL_F32": Fit(lambda x: -mp.log(mp.erfc(x)), (0.92, 4), 7, mp.erfc, True),
    "ERF_F64": Fit(_of_square(lambda x: mp.erf(x) / x - 1), (0, 1.0001), 12),
    "ERFC_F64": Fit(_scaled_erfc, (-1, 0.76), 22, lambda t: 1 / _scaled_erfc(t)),
    # cbrt(x) near enough for iterations
    "CBRT": Fit(mp.cbrt, (0.35, 2.84), 6),
    # Of z = x ** 2: (atan(x) / x - 1) / z, (asin(x) / x - 1) / z
    "ATAN_F64": Fit(_of_square(lambda x: (mp.atan(x) / x - 1) / x**2), (0, 0.1915), 11, lambda z: z),
    "ASIN_F64": Fit(_of_square(lambda x: (mp.asin(x) / x - 1) / x**2), (0, 0.2501), 12, lambda z: z),
    # erf_inv(x) / x near enough for one iteration, of w = -log(1 - x ** 2), and of its root
    "ERF_INV": Fit(_scaled_erf_inv, (0, 5), 9),
    "ERF_INV_FAR": Fit(lambda v: _scaled_erf_inv(v * v), (2.2, 6.1), 13),
    # lgamma(2 + t) / (t * (1 + t)); and what Stirling's formula lacks, times x, of x ** -2
    "LGAMMA": Fit(lambda t: mp.loggamma(2 + t) / (t * (1 + t)), (-1 + 2**-40, 1), 28),
    "STIRLING": Fit(_stirling_rest, (0, 1 / 64), 7),
}


def _grid(low: float, high: float, count: int) -> list[Real]:
    """Chebyshev points, ends included, without 0, where functions are limits."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    points = [middle - half * mp.cos(mp.pi * k / (count - 1)) for k in range(count)]
    least = half * mp.mpf(2) ** -60
    return [p if abs(p) > least else least for p in points]


def _remez(degree: int, points: Sequence[Real], targets: Sequence[Real], weights: Sequence[Real]) -> list[Real]:
    """The coefficients with the least largest weighted error."""
    count = degree + 2
    chosen = [round(k * (len(points) - 1) / (count - 1)) for k in range(count)]
    solved: list[Real] = []
    for _ in range(20):
        rows = [[*(points[i] ** p for p in range(degree + 1)), (-1) ** k / weights[i]] for k, i in enumerate(chosen)]
        solved = list(mp.lu_solve(mp.matrix(rows), mp.matrix([targets[i] for i in chosen])))[:-1]
        errors = [
            (mp.polyval(solved[::-1], x) - y) * w for x, y, w in zip(points, targets, weights, strict=True)
        ]  # fmt: skip
        found = _extremes(errors, count)
        if len(found) < count or found == chosen:
            break
        chosen = found
    return solved


def _extremes(errors: Sequence[Real], count: int) -> list[int]:
    """Of each run of errors of one sign the largest; without the smaller ones at the ends, where there are too many."""
    runs: list[int] = []
    for i, error in enumerate(errors):
        if runs and mp.sign(errors[runs[-1]]) == mp.sign(error):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def fitted(fit: Fit) -> tuple[list[float], float]:
    """The coefficients, and the largest weighted error."""
    points = _grid(*fit.interval, 24 * (fit.degree + 2))
    targets, weights = [fit.function(x) for x in points], [abs(fit.weight(x)) for x in points]
    # Where the weight is 0, any value does.
    kept = [i for i, w in enumerate(weights) if w > mp.mpf(2) ** -50 * max(weights)]
    points, targets, weights = ([values[i] for i in kept] for values in (points, targets, weights))
    numbers = [
        float(np.float32(float(c))) if fit.single else float(c) for c in _remez(fit.degree, points, targets, weights)
    ]
    errors = (abs(mp.polyval(numbers[::-1], x) - y) * w for x, y, w in zip(points, targets, weights, strict=True))
    return numbers, float(max(errors))


def _written() -> dict[str, tuple[float, ...]]:
    """What the file says."""
    nodes = [node for node in ast.parse(PAGE.read_text("utf-8")).body if isinstance(node, ast.Assign)]
    return {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in nodes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="fit these only")
    names: list[str] = parser.parse_args().names
    mp.mp.prec = 300
    known = _written() if PAGE.exists() else {}
    text = HEAD
    for name, fit in FITS.items():
        if names and name not in names and name in known:
            numbers = known[name]
        else:
            numbers, error = fitted(fit)
            print(f"{name}: 2 ** {math.log2(error):.1f}", flush=True)
        text += f"\n{name} = (\n" + "".join(f"    {number!r},\n" for number in numbers) + ")\n"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
