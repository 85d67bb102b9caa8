"""Inputs for a program: values at the edges of each element type, and sizes at the edges of each symbol's range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gcomp import dims
from gcomp.ir.program import Port, Program
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.values import pools_of

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
