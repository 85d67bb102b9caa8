"""Inputs for a program: values at the edges of each element type, and sizes at the edges of each symbol's range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from gcomp import dims
from gcomp.dtypes import dtype_of, is_complex, is_float, real_of
from gcomp.ir.program import Port, Program
from gcomp.testing.cases.values import edges
from gcomp.testing.generate.choices import Choices, Seeded

Array = np.ndarray[Any, Any]
Mode = Literal["edges", "whole"]

_UNBOUNDED = 3
_TRIES = 32


def inputs_for(program: Program, source: Choices | int = 0, mode: Mode = "edges") -> list[Array]:
    """Inputs that fit the program's signature.

    `edges` mixes zeros of both signs, NaN with payloads, infinities, denormals, extremes, near ties, and ordinary
    numbers. `whole` has small whole numbers only, with which sums and products are exact in every order.
    """
    choices = Seeded(source) if isinstance(source, int) else source
    ports = program.inputs()
    sizes = sizes_for(program, choices, ports)
    return [value_for(port.dtype, [dims.evaluate(s, sizes) for s in port.shape], choices, mode) for port in ports]


def sizes_for(program: Program, choices: Choices, ports: Sequence[Port] | None = None) -> Mapping[str, int]:
    """Values for the symbols of the inputs: the least, the greatest, or another of their ranges.

    Where the program has constraints, values that meet them are looked for; the last try stands.
    """
    if ports is None:
        ports = program.inputs()
    names = sorted({name for port in ports for size in port.shape for name in dims.symbols_of(size)})
    if not names:
        return {}
    ranges, constraints = program.ranges, program.constraints
    sizes: dict[str, int] = {}
    for _ in range(_TRIES):
        sizes = {name: _size(ranges[name], choices) for name in names}
        known = [c for c in constraints if c.symbols <= sizes.keys()]
        if all(c.check(sizes) is None for c in known) and _defined(ports, sizes):
            break
    return sizes


def _defined(ports: Sequence[Port], sizes: Mapping[str, int]) -> bool:
    return all(dims.evaluate(size, sizes) >= 0 for port in ports for size in port.shape)


def _size(known: dims.Range, choices: Choices) -> int:
    high = known.hi if known.hi is not None else known.lo + _UNBOUNDED * known.multiple_of
    steps = (high - known.lo) // known.multiple_of
    kind = choices.integer(0, 2)
    step = 0 if kind == 0 else steps if kind == 1 else choices.integer(0, steps)
    return known.lo + step * known.multiple_of


def value_for(text: str, shape: Sequence[int], choices: Choices, mode: Mode = "edges") -> Array:
    """An array of an element type. Each is of one kind of values, or of all kinds mixed."""
    count = math.prod(shape)
    pools = pools_of(text)
    pool = pools[0] if mode == "whole" else pools[choices.integer(0, len(pools) - 1)]
    return choices.fill(pool, count).reshape(tuple(shape))


@lru_cache(maxsize=None)
def pools_of(text: str) -> tuple[Array, ...]:
    """The kinds of values of an element type: small whole numbers, ordinary ones, all mixed, edges."""
    whole = whole_numbers(text)
    if text == "i1":
        return (whole,)
    extreme = edges(text)
    if is_float(text):
        extreme = np.concatenate([extreme, _payloads(text)])
    ordinary = _ordinary(text)
    mixed = np.concatenate([np.resize(whole, 40), ordinary, extreme])
    return whole, ordinary, mixed, extreme


def whole_numbers(text: str) -> Array:
    """Small whole numbers that the type holds."""
    if text == "i1":
        return np.array([False, True])
    low = {"i2": -2, "ui2": 0, "f8E8M0FNU": 1}.get(text, 0 if text[0] == "u" else -3)
    high = {"i2": 1, "f8E8M0FNU": 2}.get(text, 3)
    numbers = sorted(range(low, high + 1), key=lambda n: (abs(n), -n))
    if is_complex(text):
        return np.array([complex(n, m) for n in numbers[:5] for m in (0, 1, -2)]).astype(dtype_of(text))
    return np.array(numbers).astype(dtype_of(text))


def _ordinary(text: str) -> Array:
    rng, dtype = np.random.default_rng(7), dtype_of(text)
    if is_complex(text):
        return (rng.standard_normal(64) + 1j * rng.standard_normal(64)).astype(dtype)
    if is_float(text):
        with np.errstate(all="ignore"):
            return (rng.standard_normal(64) * np.exp2(rng.integers(-3, 4, 64))).astype(dtype)
    return np.resize(np.concatenate([edges(text), np.arange(8).astype(dtype), whole_numbers(text)]), 64)


def _payloads(text: str) -> Array:
    """Quiet NaNs of several payloads and both signs, where the type has payloads."""
    dtype = dtype_of(real_of(text))
    patterns = {
        "f64": (0x7FF8000000000123, 0xFFF8000000000000, 0xFFFC000000000001), "f32": (0x7FC00123, 0xFFC00000, 0xFFE00001),
        "f16": (0x7E23, 0xFE00, 0x7F01), "bf16": (0x7FC3, 0xFFC0, 0x7FE1), "f8E5M2": (0x7E, 0x7F, 0xFF),
    }.get(text, ())  # fmt: skip
    return np.array(patterns, f"u{dtype.itemsize}").view(dtype)
