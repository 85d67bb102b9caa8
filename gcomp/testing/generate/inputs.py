"""Inputs for generated programs, drawn by choices: what `gcomp.reference.inputs` has, kind by kind and size by size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gcomp import dims
from gcomp.ir.program import Port, Program
from gcomp.reference.inputs import pools_of
from gcomp.reference.sizes import size_choices
from gcomp.reference.values import special_pool
from gcomp.testing.generate.choices import Choices, Seeded

Array = np.ndarray[Any, Any]
Mode = Literal["edges", "whole"]

_ALIKE, _VARIED = 0.12, 0.4
"""How often the values of an edge array are alike along some dimensions; how often they differ along one even then."""


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
    """Values for the symbols of the inputs: one of `size_choices`."""
    return choices.chosen(size_choices(program, ports=ports))


def value_for(text: str, shape: Sequence[int], choices: Choices, mode: Mode = "edges") -> Array:
    """An array of an element type. Each is of one kind of values, or of all kinds mixed."""
    if mode == "edges" and choices.flag(_ALIKE):
        varied = [size if choices.flag(_VARIED) else min(size, 1) for size in shape]
        rows = choices.fill(special_pool(text), math.prod(varied)).reshape(varied)
        return np.broadcast_to(rows, tuple(shape)).copy()
    count = math.prod(shape)
    pools = pools_of(text)
    pool = pools[0] if mode == "whole" else pools[choices.integer(0, len(pools) - 1)]
    return choices.fill(pool, count).reshape(tuple(shape))
