"""Inputs to try a program on. Whoever judges a pass, a target or a kernel draws them from here.

    for one in input_sets(program, Exactness.E1, seed=0):
        print(one.kind, one.sizes, one.arrays)

A set holds values of one kind, so that one does not hide another: NaN everywhere says nothing of ordinary numbers, and
sums that overflow nothing of integers at their limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float, is_integer
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.ir.types import dtype_text, is_tensor, shape_of
from gcomp.reference.sizes import Sizes, ordinary_sizes, size_choices, symbols_in
from gcomp.reference.values import pools_of, special_pool

Array = np.ndarray[Any, Any]
Kind = Literal["plain", "whole", "integers", "mixed", "edges", "alike"]
"""What the values of a set are.

- plain: floats of a normal distribution, integers from 0 to 3
- whole: small whole numbers, with which no order of sums rounds; integers of at most 8 bits have all edges
- integers: as whole, but integers of every width are at their edges (limits, large indices and shifts)
- mixed: all kinds of values in one array, edges among them
- edges: zeros of both signs, infinities, NaN of several payloads, denormals, limits, among plain values: half of the
  elements, or, in sets of an odd seed, a few: NaN everywhere would hide what else happens
- alike: the same edge value (an infinity, NaN, a zero, a limit) all along some dimensions, or everywhere: rows in which
  nothing else hides what a reduction begins with, and what it makes of values that are all equal
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
_EXACT: tuple[Kind, ...] = ("edges", "mixed", "alike", "integers", "plain", "whole")
_ROUNDED: tuple[Kind, ...] = ("whole", "integers", "mixed", "plain", "edges", "alike")
"""The kinds that show most come first: where sums may be taken in another order, those in which none rounds."""
_EDGE_SHARE, _SPARSE = 0.5, 4
_NARROW = 8
"""Integers of so few bits have edges among the whole numbers: sums of them stay small."""
_VARIED = 0.4
"""How often values that are alike differ along a dimension."""
_FEW, _AGAIN = 32, 3
"""The fewer elements there are, the more draws it takes to see all kinds of values."""


@dataclass(frozen=True)
class InputSet:
    """Inputs of one kind at one choice of sizes; the arrays are made when they are asked for."""

    kind: Kind
    sizes: Sizes
    ports: tuple[Port, ...]
    seed: int
    asked: Mapping[int, tuple[Size, ...]] = field(default_factory=dict[int, tuple[Size, ...]])
    """The inputs that say what shape a value has, by number, and that shape: other values have no meaning."""

    @cached_property
    def arrays(self) -> list[Array]:
        """The inputs, in the program's order."""
        rng, pairs = np.random.default_rng(self.seed), zip(self.ports, self.shapes, strict=True)
        found = [draw(port.dtype, shape, self.kind, rng, sparse=bool(self.seed % 2)) for port, shape in pairs]
        for i, sizes in self.asked.items():
            found[i] = np.array([dims.evaluate(size, self.sizes) for size in sizes]).astype(found[i].dtype)
        return found

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the inputs."""
        return [tuple(dims.evaluate(size, self.sizes) for size in port.shape) for port in self.ports]

    @property
    def elements(self) -> int:
        """How many elements the inputs have."""
        return sum(map(math.prod, self.shapes))

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        return f"{self.kind} at {sizes}" if sizes else self.kind


def input_sets(
    program: Program,
    exactness: Exactness = Exactness.E0,
    seed: int = 0,
    *,
    most: int | None = None,
    kinds: Sequence[Kind] | None = None,
    sizes: Sequence[Sizes] | None = None,
    extra: Iterable[Size] = (),
) -> list[InputSet]:
    """Sets of inputs for a program: every kind, and every choice of sizes, within the first few.

    `exactness` is what they are to show a breach of, and orders the kinds; the seed says where to begin, so that even
    a few sets of many seeds see all. `most` is how many there are at most; by default as many as it takes to have every
    kind and all sizes once. `extra` are formulas of sizes, as for `size_choices`.
    """
    ports = tuple(program.inputs())
    choices = list(sizes) if sizes is not None else size_choices(program, extra, ports=ports)
    if kinds is None:
        kinds = _rotate([k for k in (_ROUNDED if exactness is Exactness.E2 else _EXACT) if tells(k, ports)], seed)
        choices = _rotate(choices, seed // len(kinds))
    pairs: Iterator[tuple[Kind, Sizes]] = (
        (kinds[(i + turn) % len(kinds)], chosen) for turn in range(len(kinds)) for i, chosen in enumerate(choices)
    )
    limit = max(len(kinds), len(choices)) if most is None else most
    asked = _shape_inputs(program)
    found = [
        InputSet(kind, chosen, ports, seed * 1000 + i, asked) for i, (kind, chosen) in enumerate(islice(pairs, limit))
    ]
    return found if most is not None else with_more_draws(found)


def with_more_draws(found: list[InputSet]) -> list[InputSet]:
    """The same sets; of those that hold rare values in few elements, other draws, too."""
    kinds = ("edges", "mixed", "alike", "integers")
    rare = [one for one in found if one.ports and one.kind in kinds and one.elements <= _FEW]
    again = [replace(one, seed=one.seed + len(found) * (k + 1)) for k in range(_AGAIN) for one in rare]
    return [*found, *again[: 3 * _AGAIN]]


_SHAPES = {
    "stablehlo.rng": 2, "stablehlo.dynamic_reshape": 1, "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_iota": 0,
}  # fmt: skip
"""The operand that says what shape the result has."""


def _shape_inputs(program: Program) -> dict[int, tuple[Size, ...]]:
    """The inputs that say what shape a value has whose shape is known otherwise, and that shape."""
    names, found = set(symbols_in(program)), dict[int, tuple[Size, ...]]()
    for i, arg in enumerate(program.block.args):
        for use in arg.uses if is_tensor(arg.type) and is_integer(dtype_text(arg.type)) else ():
            if _SHAPES.get(use.operation.name) == use.index:
                shape = shape_of(use.operation.results[0])
                if all(dims.symbols_of(size) <= names for size in shape):
                    found[i] = shape
    return found


def _rotate(items: Sequence[Any], by: int) -> list[Any]:
    by %= len(items)
    return [*items[by:], *items[:by]]


def tells(kind: Kind, ports: Sequence[Port]) -> bool:
    """Whether a kind says something that the others do not."""
    wide = any(is_integer(port.dtype) and bit_width(port.dtype) > _NARROW for port in ports)
    return kind != "integers" or wide or not ports


def sample_inputs(program: Program, seed: int = 0) -> list[Array]:
    """Plain inputs of ordinary sizes: normally distributed floats, integers from 0 to 3, random booleans."""
    return InputSet("plain", ordinary_sizes(program), tuple(program.inputs()), seed, _shape_inputs(program)).arrays


def draw(text: str, shape: Sequence[int], kind: Kind, rng: np.random.Generator, *, sparse: bool = False) -> Array:
    """An array of an element type and a kind of values; `sparse`: with few edges."""
    if kind == "plain":
        return _plain(text, shape, rng)
    if kind == "alike":
        varied = [size if rng.random() < _VARIED else min(size, 1) for size in shape]
        return np.broadcast_to(_draw(special_pool(text), varied, rng), tuple(shape)).copy()
    whole, _, mixed, extreme = pools_of(text) if text != "i1" else pools_of(text) * 4
    if kind == "mixed":
        return _draw(mixed, shape, rng)
    if kind in ("whole", "integers"):
        limits = is_integer(text) and (kind == "integers" or bit_width(text) <= _NARROW)
        return _draw(extreme if limits else whole, shape, rng)
    share = min(_EDGE_SHARE, _SPARSE / max(1, math.prod(shape))) if sparse else _EDGE_SHARE
    taken = rng.random(shape) < share
    found = np.asarray(np.where(taken, _draw(extreme, shape, rng), _plain(text, shape, rng)))
    if sparse or math.prod(shape) > _FEW:
        return found
    # Of a few elements, chance may leave out NaN in set after set: what matters most comes in turn.
    special = rng.permutation(special_pool(text))
    share = _EDGE_SHARE if math.prod(shape) > 1 else 1.0
    return np.where(rng.random(shape) < share, np.resize(special, shape), found)


def _draw(pool: Array, shape: Sequence[int], rng: np.random.Generator) -> Array:
    return np.asarray(pool[rng.integers(0, pool.size, tuple(shape))])


def _plain(text: str, shape: Sequence[int], rng: np.random.Generator) -> Array:
    dtype = dtype_of(text)
    if is_complex(text):
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if is_float(text):
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.integers(0, 2 if text == "i1" else 4, shape)).astype(dtype)


__all__ = ["KINDS", "InputSet", "Kind", "draw", "input_sets", "pools_of", "sample_inputs", "tells", "with_more_draws"]
