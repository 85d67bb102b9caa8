"""How far expanded functions are from the exact ones, as mpmath computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Region

from gcomp.dtypes import dtype_of
from gcomp.ir.types import ELEMENT_TYPES
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder, integer
from gcomp.lowering.tiles.evaluate import Memory, run
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.functions import FUNCTIONS

Array = np.ndarray[Any, Any]
Exact = Callable[..., Any]


def _log_gamma(x: Any) -> Any:
    return mp.loggamma(x).real


def _erfc(x: Any) -> Any:
    # mpmath has no exponents for its smallest ones.
    return mp.erfc(x) if x < 1000 else mp.mpf(0)


def _power(x: Any, y: Any) -> Any:
    """Of x >= 0; what no float holds is replaced by something else that none holds."""
    return mp.exp(max(-2000, min(2000, y * mp.log(x)))) if x else mp.nan


EXACT: dict[str, Exact] = {
    "exponential": mp.exp, "exponential2": lambda x: mp.power(2, x), "exponential_minus_one": mp.expm1,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)), "tanh": mp.tanh, "sinh": mp.sinh, "cosh": mp.cosh,
    "log": mp.log, "log_plus_one": mp.log1p, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "power": _power, "rsqrt": lambda x: 1 / mp.sqrt(x) if x else mp.nan, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "sine": mp.sin, "cosine": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "atan2": mp.atan2, "erf": mp.erf, "erfc": _erfc, "erf_inv": mp.erfinv, "lgamma": _log_gamma,
}  # fmt: skip
"""Functions that are approximated -> the exact ones."""


def kernel_of(name: str, dtype: str, arity: int, count: int) -> tile.KernelOp:
    """A kernel that applies a function to `count` elements, a power of two, 4096 at a time."""
    element, size = ELEMENT_TYPES[dtype], min(count, 4096)
    block = Block(arg_types=[tile.BufferType(element)] * (arity + 1))
    b = TileBuilder(block)
    at = b.add(b.multiply(b.program_id(0), b.position(size)), b.iota(size, 0, 1))
    b.store(block.args[arity], at, b.apply(name, *(b.load(v, at, None) for v in block.args[:arity])), None)
    b.insert(tile.YieldOp.create())
    properties = {
        "sym_name": StringAttr("kernel"),
        "grid": ArrayAttr([StringAttr(str(count // size))]),
        "roles": ArrayAttr([StringAttr(role) for role in (*["in"] * arity, "out")]),
        "num_warps": integer(1),
        "num_stages": integer(1),
    }
    return tile.KernelOp.create(properties=properties, regions=[Region(block)])


def applied(name: str, *operands: Array) -> Array:
    """What the expanded function gives."""
    count = operands[0].size
    padded = [np.resize(x, 1 << (count - 1).bit_length()) for x in operands]
    kind = {4: "f32", 8: "f64"}[operands[0].itemsize]
    kernel = kernel_of(name, kind, len(operands), padded[0].size)
    expand(kernel)
    kernel.verify()
    target = Memory.empty(padded[0].size, kind)
    run(kernel, (max(1, padded[0].size // 4096),), [*map(Memory.of, padded), target])
    return target.data[:count]


def record_underflows(patch: pytest.MonkeyPatch) -> list[str]:
    """The functions that give denormals, or 0 for what is not 0, in kernels evaluated from now on.

    Processors take a hundred times as long for either.
    """
    found: list[str] = []

    def watched(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Array) -> Any:
            result = compute(*operands)
            kind = np.asarray(result).dtype
            if kind in (np.float32, np.float64):
                small = np.abs(result) < np.finfo(kind).tiny
                small &= np.all([np.isfinite(x) & (x != 0) for x in operands], 0) if len(operands) == 2 else result != 0
                found.extend([name] * int(small.sum()))
            return result

        return call

    for name in ("multiply", "divide", "fma"):
        function = FUNCTIONS[name]
        patch.setitem(FUNCTIONS, name, replace(function, meaning=watched(name, function.meaning)))
    return found


def meaning(name: str, *operands: Array) -> Array:
    """What the function means, by the reference."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name].meaning(*operands))


def _exactly(name: str, lane: Sequence[float]) -> Any:
    """The exact result; None where there is none, or an infinite one."""
    try:
        found = EXACT[name](*map(mp.mpf, lane)) if np.isfinite(lane).all() else None
    except (ValueError, ZeroDivisionError):
        return None
    return found if isinstance(found, mp.mpf) and mp.isfinite(found) else None


def distances(name: str, found: Array, *operands: Array) -> Array:
    """Distances from the exact results in units of their last place; 0 where that has no finite result."""
    info = np.finfo(found.dtype)
    least, bits = info.minexp - info.nmant, info.nmant
    over = mp.mpf(2) ** (info.maxexp)
    far: list[float] = []
    with mp.workprec(150):
        for value, *lane in zip(found.tolist(), *(x.tolist() for x in operands), strict=True):
            exact = _exactly(name, lane)
            if exact is None:
                far.append(0.0)
                continue
            # What is beyond the largest number is as far as what is rounded to infinity.
            exact = max(-over, min(over, exact))
            # Between its poles, lgamma is a difference, and is as exact as what is subtracted.
            size = max(abs(exact), _log_gamma(-mp.mpf(lane[0]))) if name == "lgamma" and lane[0] < 0 else exact
            exponent = max(mp.frexp(size)[1] - 1 - bits, least) if size else least
            number = mp.mpf(value) if np.isfinite(value) else mp.sign(mp.mpf(value)) * over
            far.append(float(abs(number - exact) / mp.mpf(2) ** exponent))
    return np.array(far)


def bits_of(random: np.random.Generator, dtype: str, count: int) -> Array:
    """Floats of any bits."""
    kind = np.uint32 if dtype == "f32" else np.uint64
    return random.integers(0, np.iinfo(kind).max, count, kind, endpoint=True).view(dtype_of(dtype))


def samples(name: str, dtype: str, count: int, seed: int = 0) -> Sequence[Array]:
    """Operands: of any bits, of all sizes, and near the places where the function is 0, or grows without end."""
    random = np.random.default_rng(seed)
    part = count // 8
    signs = random.choice([-1.0, 1.0], part)
    limit = {"f32": 105.0, "f64": 750.0}[dtype]
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([
            bits_of(random, dtype, part).astype(np.float64),
            random.normal(size=part),
            random.normal(size=part) * 10,
            random.uniform(-limit, limit, part),
            random.uniform(-1, 1, part),
            signs * (1 + signs * random.exponential(size=part) * 1e-2),
            signs * 10.0 ** random.uniform(-10, 4, part),
            random.integers(-16, 16, part) * random.choice([0.5, np.pi / 2, 1.0], part),
        ]).astype(dtype_of(dtype))  # fmt: skip
    if FUNCTIONS[name].arity == 1:
        return [x]
    return [np.abs(x) if name == "power" else x, random.permutation(x)]
