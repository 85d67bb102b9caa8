"""Bessel functions and their kin, by the approximations that torch has from Cephes (ATen/native/Math.h)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gcomp.frontends.fx import cephes
from gcomp.frontends.fx.definitions import defines
from gcomp.frontends.fx.torch_api import torch

QUARTER, THREE_QUARTERS = math.pi / 4, 3 * math.pi / 4
ROOT = math.sqrt(2 / math.pi)


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers are converted to the default floating type first, and narrow floats to float32."""

    @functools.wraps(function)
    def run(x: Any) -> Any:
        given = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        wide = torch.promote_types(given, torch.float32)
        return function(x.to(wide)).to(given)

    return run


def _power_series(x: Any, coefficients: Sequence[float]) -> Any:
    total = torch.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _chebyshev_series(x: Any, coefficients: Sequence[float]) -> Any:
    """Clenshaw's recurrence, half of the coefficient of order 0."""
    before, last, this = torch.zeros_like(x), torch.zeros_like(x), torch.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        before, last = last, this
        this = x * last - before + c
    return 0.5 * (this - before)


def _ratio(x: Any, table: cephes.Table, over: str, under: str) -> Any:
    return _power_series(x, table[over]) / _power_series(x, table[under])


# ---- of the first and second kind -----------------------------------------------------------------------------------


def _j0(x: Any) -> Any:
    x = x.abs()
    square = x * x
    near = (square - 5.78318596294678452118) * (square - 30.4712623436620863991) * _ratio(square, cephes.J0, "RP", "RQ")
    near = torch.where(x < 0.00001, 1.0 - square / 4.0, near)
    return torch.where(x <= 5.0, near, _wave(x, cephes.J0, QUARTER, torch.cos, torch.sin, -1))


def _j1(x: Any) -> Any:
    size = x.abs()
    square = size * size
    near = _ratio(square, cephes.J1, "RP", "RQ") * size * (square - 14.6819706421238932572)
    near = near * (square - 49.2184563216946036703)
    found = torch.where(size <= 5.0, near, _wave(size, cephes.J1, THREE_QUARTERS, torch.cos, torch.sin, -1))
    return torch.where(x < 0.0, -found, found)


def _wave(x: Any, table: cephes.Table, phase: float, first: Any, second: Any, sign: int) -> Any:
    """What Bessel functions are like far from 0."""
    inverse = 5.0 / x
    square = inverse * inverse
    shifted = x - phase
    own = _ratio(square, table, "PP", "PQ") * first(shifted)
    other = inverse * _ratio(square, table, "QP", "QQ") * second(shifted)
    return (own + sign * other) * ROOT / x.sqrt()


def _y0(x: Any) -> Any:
    near = _ratio(x * x, cephes.Y0, "YP", "YQ") + 2 / math.pi * x.log() * _j0(x)
    return _second_kind(x, near, _wave(x, cephes.J0, QUARTER, torch.sin, torch.cos, 1))


def _y1(x: Any) -> Any:
    near = x * _ratio(x * x, cephes.Y1, "YP", "YQ") + 2 / math.pi * (_j1(x) * x.log() - 1.0 / x)
    return _second_kind(x, near, _wave(x, cephes.J1, THREE_QUARTERS, torch.sin, torch.cos, 1))


def _second_kind(x: Any, near: Any, far: Any) -> Any:
    found = torch.where(x <= 5.0, near, far)
    return torch.where(x == 0.0, -math.inf, torch.where(x < 0.0, math.nan, found))


def _spherical_j0(x: Any) -> Any:
    square = x * x
    series = _power_series(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)])
    found = torch.where(x.abs() < 0.5, series, x.sin() / x)
    return torch.where(x.isinf(), 0.0, found)


# ---- modified -------------------------------------------------------------------------------------------------------


def _i0e(x: Any) -> Any:
    x = x.abs()
    near = _chebyshev_series(x / 2.0 - 2.0, cephes.I0["A"])
    return torch.where(x <= 8.0, near, _chebyshev_series(32.0 / x - 2.0, cephes.I0["B"]) / x.sqrt())


def _i1e(x: Any) -> Any:
    size = x.abs()
    near = _chebyshev_series(size / 2.0 - 2.0, cephes.I1["A"]) * size
    found = torch.where(size <= 8.0, near, _chebyshev_series(32.0 / size - 2.0, cephes.I1["B"]) / size.sqrt())
    return torch.where(x < 0.0, -found, found)


def _i0(x: Any) -> Any:
    return x.abs().exp() * _i0e(x)


def _i1(x: Any) -> Any:
    return x.abs().exp() * _i1e(x)


def _k0(x: Any, *, scaled: bool) -> Any:
    near = _chebyshev_series(x * x - 2.0, cephes.K0["A"]) - (0.5 * x).log() * _i0(x)
    return _third_kind(x, near, cephes.K0, scaled)


def _k1(x: Any, *, scaled: bool) -> Any:
    near = (0.5 * x).log() * _i1(x) + _chebyshev_series(x * x - 2.0, cephes.K1["A"]) / x
    return _third_kind(x, near, cephes.K1, scaled)


def _third_kind(x: Any, near: Any, table: cephes.Table, scaled: bool) -> Any:
    far = _chebyshev_series(8.0 / x - 2.0, table["B"]) / x.sqrt()
    found = torch.where(x <= 2.0, near * x.exp(), far) if scaled else torch.where(x <= 2.0, near, (-x).exp() * far)
    return torch.where(x == 0.0, math.inf, torch.where(x < 0.0, math.nan, found))


# ---- Airy's function ------------------------------------------------------------------------------------------------


def _airy(x: Any) -> Any:
    root = x.abs().sqrt()
    angle = 2.0 * x.abs() * root / 3.0
    inverse = 1.0 / angle
    square = inverse * inverse
    scale = 1 / math.sqrt(math.pi) / root.sqrt()
    turned = angle + math.pi / 4
    left = turned.sin() * (1.0 + square * _ratio(square, cephes.AIRY, "AFN", "AFD"))
    left = scale * (left - turned.cos() * inverse * _ratio(square, cephes.AIRY, "AGN", "AGD"))
    right = scale * _ratio(inverse, cephes.AIRY, "AN", "AD") / (2.0 * angle.exp())
    found = torch.where(x < -2.09, left, torch.where(x >= 2.09, right, _airy_series(x)))
    found = torch.where(x > 103.892, 0.0, found)
    return torch.where(x.isinf(), math.nan, found)


def _airy_series(x: Any) -> Any:
    """Maclaurin's, for numbers below 2.09, whose terms vanish soon."""
    cube = x * x * x
    f, g, m, n, k = torch.ones_like(x), x, torch.ones_like(x), x, 1
    for _ in range(16):
        m, n = m * cube / ((k + 1) * (k + 2)), n * cube / ((k + 2) * (k + 3))
        f, g, k = f + m, g + n, k + 3
    return 0.355028053887817239260 * f - 0.258819403792806798405 * g


# ---- of the normal distribution -------------------------------------------------------------------------------------


def _erfcx(x: Any) -> Any:
    """exp(x * x) * erfc(x), in double precision; by its asymptotic series where erfc is tiny."""
    wide = x.double()
    near = (wide * wide).exp() * torch.special.erfc(wide)
    inverse = 0.5 / (wide * wide)
    series = _power_series(inverse, [(-1) ** k * math.prod(range(1, 2 * k, 2)) for k in range(8, -1, -1)])
    found = torch.where(wide < 20.0, near, series / (wide * math.sqrt(math.pi)))
    return found.to(x.dtype)


def _log_ndtr(x: Any) -> Any:
    t = x * math.sqrt(0.5)
    return torch.where(x < -1.0, (_erfcx(-t) / 2).log() - t * t, torch.log1p(-torch.special.erfc(t) / 2))


def _ndtri(y: Any) -> Any:
    edge = 0.13533528323661269189
    upper = y > 1.0 - edge
    p = torch.where(upper, 1.0 - y, y)
    middle = p - 0.5
    square = middle * middle
    near = (middle + middle * (square * _ratio(square, cephes.NDTRI, "P0", "Q0"))) * math.sqrt(2 * math.pi)
    x = (-2.0 * p.log()).sqrt()
    z = 1.0 / x
    tail = torch.where(x < 8.0, _ratio(z, cephes.NDTRI, "P1", "Q1"), _ratio(z, cephes.NDTRI, "P2", "Q2"))
    far = x - x.log() / x - z * tail
    found = torch.where(p > edge, near, torch.where(upper, far, -far))
    found = torch.where((y < 0.0) | (y > 1.0), math.nan, found)
    return torch.where(y == 0.0, -math.inf, torch.where(y == 1.0, math.inf, found))


# ---- derivatives of digamma -----------------------------------------------------------------------------------------


@defines("polygamma")
def _polygamma(n: int, self: Any) -> Any:
    if n == 0:
        return torch.digamma(self)
    return _of_floats(functools.partial(_derivative, n))(self)


def _derivative(n: int, x: Any) -> Any:
    """By the zeta function; below 1/2 by reflection, which has no series that begins at a pole."""
    lower, odd = x < 0.5, n % 2 == 1
    found = torch.special.zeta(float(n + 1), torch.where(lower, 1.0 - x, x)) * math.factorial(n)
    found = found if odd else -found
    place = (x - x.round()) * math.pi
    reflected = (-found if odd else found) - math.pi ** (n + 1) * _power_series(1.0 / place.tan(), _cotangent(n))
    found = torch.where(lower, reflected, found)
    pole = (x <= 0.0) & (x == x.floor())
    return torch.where(pole, math.inf if odd else -math.inf, found)


def _cotangent(n: int) -> Sequence[float]:
    """The n-th derivative of the cotangent c, a polynomial of c: each is -(1 + c^2) times that of the one before."""
    rising = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(rising)][1:]
        rising = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            rising[k] -= c
            rising[k + 2] -= c
    return rising[::-1]


for _names, _function in {
    ("special_bessel_j0",): _j0,
    ("special_bessel_j1",): _j1,
    ("special_bessel_y0",): _y0,
    ("special_bessel_y1",): _y1,
    ("special_spherical_bessel_j0",): _spherical_j0,
    ("i0", "special_i0", "special_modified_bessel_i0"): _i0,
    ("special_i0e",): _i0e,
    ("special_i1", "special_modified_bessel_i1"): _i1,
    ("special_i1e",): _i1e,
    ("special_modified_bessel_k0",): functools.partial(_k0, scaled=False),
    ("special_modified_bessel_k1",): functools.partial(_k1, scaled=False),
    ("special_scaled_modified_bessel_k0",): functools.partial(_k0, scaled=True),
    ("special_scaled_modified_bessel_k1",): functools.partial(_k1, scaled=True),
    ("special_airy_ai",): _airy,
    ("special_erfcx",): _erfcx,
    ("special_log_ndtr",): _log_ndtr,
    ("special_ndtri",): _ndtri,
}.items():
    defines(*_names)(_of_floats(_function))
