"""Reading expressions through broadcasts: which dimensions of a result a value varies along.

    read = Read.of(value)              # e.g. of divide(exp, broadcast_in_dim(reshape(reduce(exp))))
    read.operands(hlo.DivideOp)        # both operands, read at the same dimensions
    read.reduced(hlo.AddOp)            # what is summed, and along which dimensions

A broadcast, a transposition, and a reshape that only adds or takes away dimensions of size 1, change how a value lies
and not what it says; a `Read` looks through them and keeps, for each dimension of the value, the dimension of the
result that it becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.native import DimOp
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text, rank_of, shape_of

Places = tuple[int | None, ...]
"""For each dimension the dimension of the result that it becomes; None for one of size 1 that becomes none."""


@dataclass(frozen=True)
class Read:
    """A value as it appears at the `places` of a result of shape `shape`."""

    value: SSAValue
    places: Places
    shape: tuple[Size, ...]

    @staticmethod
    def of(value: SSAValue) -> Read:
        """A read of a value by itself: the identity permutation and the value's own shape."""
        return Read(value, tuple(range(rank_of(value))), shape_of(value))

    @property
    def element(self) -> str:
        """The value's element type."""
        return dtype_text(self.value.type)

    @property
    def along(self) -> frozenset[int]:
        """The dimensions of the result along which the value varies (of size 1 or more, if not broadcast)."""
        sizes = shape_of(self.value)
        return frozenset(p for p, size in zip(self.places, sizes, strict=True) if p is not None and size != 1)

    @property
    def whole(self) -> bool:
        """Whether the value itself is what the result has at its places, each dimension in its own."""
        return shape_of(self.value) == self.shape and self.places == tuple(range(len(self.shape)))

    @property
    def ordered(self) -> bool:
        """Whether the value's dimensions are in the order of the result's."""
        kept = [p for p in self.places if p is not None]
        return kept == sorted(kept)

    def at(self, value: SSAValue) -> Read:
        """Another value of this one's shape, at the same places."""
        return Read(value, self.places, self.shape)

    def op(self, *kinds: type[GraphOp]) -> Operation | None:
        """The op of one of these kinds that computes the value, if one does."""
        owner = self.value.owner
        return owner if isinstance(owner, kinds) else None

    def bare(self) -> Read:
        """What broadcasts, transpositions and reshapes by dimensions of size 1 lead to."""
        read = self
        while (source := read._source()) is not None:
            read = source
        return read

    def _source(self) -> Read | None:
        owner = self.value.owner
        if isinstance(owner, hlo.BroadcastInDimOp):
            inner, sizes = shape_of(owner.operand), shape_of(self.value)
            places = [
                self.places[d] if inner[i] == sizes[d] else None
                for i, d in enumerate(cast("Sequence[int]", owner.value("broadcast_dimensions")))
            ]
            return Read(owner.operand, tuple(places), self.shape)
        if isinstance(owner, hlo.TransposeOp):
            moved: list[int | None] = [None] * len(self.places)
            for i, d in enumerate(cast("Sequence[int]", owner.value("permutation"))):
                moved[d] = self.places[i]
            return Read(owner.operand, tuple(moved), self.shape)
        if isinstance(owner, hlo.ReshapeOp):
            kept = [p for p, size in zip(self.places, shape_of(self.value), strict=True) if size != 1]
            inner = shape_of(owner.operand)
            if [s for s in inner if s != 1] != [s for s in shape_of(self.value) if s != 1]:
                return None
            left = iter(kept)
            return Read(owner.operand, tuple(None if s == 1 else next(left) for s in inner), self.shape)
        return None

    def operands(self, *kinds: type[GraphOp]) -> list[Read] | None:
        """The operands of an elementwise op of one of these kinds, once broadcasts are looked through."""
        read = self.bare()
        op = read.op(*kinds)
        return None if op is None else [read.at(v) for v in op.operands]

    def operand(self, *kinds: type[GraphOp]) -> Read | None:
        """The operand of a unary op."""
        found = self.operands(*kinds)
        return None if found is None else found[0]

    def orders(self, *kinds: type[GraphOp]) -> Iterator[tuple[Read, Read]]:
        """The operands of a commutative op in both orders."""
        found = self.operands(*kinds)
        if found is not None and len(found) == 2:
            yield found[0], found[1]
            yield found[1], found[0]

    def number(self) -> float | None:
        """The number that a splat constant of floats is everywhere."""
        owner = self.bare().value.owner
        if not isinstance(owner, hlo.ConstantOp) or not is_float(dtype_text(owner.results[0].type)):
            return None
        array = owner.elements_attr.array()
        first = array.reshape(-1)[:1]
        if not array.size or (array.strides != (0,) * array.ndim and not bool((array == first).all())):
            return None
        return float(first.astype(np.float64)[0])

    def count(self) -> Size | None:
        """The size that a scalar is: a number, or a symbolic dimension."""
        if (number := self.number()) is not None:
            return int(number) if number.is_integer() else None
        read = self.bare()
        while (inner := read.operand(hlo.ConvertOp)) is not None:
            read = inner.bare()
        owner = read.value.owner
        return owner.formula if isinstance(owner, DimOp) else None

    def folded_read(self, *kinds: type[GraphOp], initial: bool = True) -> tuple[Read, frozenset[int]] | None:
        """What a fold of one tensor folds, and along which dimensions of the result.

        It folds from the identity, or without `initial` from anything. The tensor is read at all dimensions of the
        result. None where it has others.
        """
        read = self.bare()
        found = match_fold(read.value, initial)
        if found is None or found[0] not in kinds or rank_of(found[1]) != len(self.shape):
            return None
        _, source, axes = found
        taken = {p for p in read.places if p is not None}
        left = iter([p for p in range(len(self.shape)) if p not in taken])
        held = iter(read.places)
        # A kept dimension of size 1 that became none takes one of those that are left.
        kept = [next(held) if d not in axes else None for d in range(len(self.shape))]
        places = tuple(next(left) if p is None else p for p in kept)
        if any(size != self.shape[p] for p, size in zip(places, shape_of(source), strict=True)):
            return None
        return Read(source, places, self.shape), frozenset(places[d] for d in axes)

    def mean(self) -> tuple[Read, frozenset[int]] | None:
        """What is averaged, and along which dimensions: a sum divided by their count, or times its inverse."""
        sides = self.operands(hlo.DivideOp)
        if sides is not None and (found := sides[0].folded_read(hlo.AddOp)) is not None:
            number = sides[1].count()
            return found if number is not None and number == self._size(found[1]) else None
        for total, factor in self.orders(hlo.MultiplyOp):
            found, number, size = total.folded_read(hlo.AddOp), factor.number(), None
            if found is not None and number is not None:
                size = self._size(found[1])
            if (
                found is not None
                and number is not None
                and isinstance(size, int)
                and close(number * size, 1, factor.element)
            ):
                return found
        return None

    def _size(self, axes: frozenset[int]) -> Size:
        return dims.product([self.shape[a] for a in sorted(axes)])


def close(number: float | None, wanted: float, element: str) -> bool:
    """Whether a constant, or a product of some, is a number as far as an element type can say so."""
    return number is not None and abs(number - wanted) <= 4 * epsilon(element) * abs(wanted)


def epsilon(element: str) -> float:
    """The distance from 1 to the next number of an element type of floats."""
    return float(cast(Any, ml_dtypes.finfo)(dtype_of(element)).eps)


MOST_FACTORS = 32
"""Patterns look for a few. A value that is squared again and again has more of them than can be listed."""


def factors(read: Read) -> list[Read]:
    """The factors of a product in order, itself if it is none, or has more than `MOST_FACTORS`."""
    found: list[Read] = []
    left = [read]
    while left:
        if len(found) + len(left) > MOST_FACTORS:
            return [read]
        factor = left.pop()
        sides = factor.operands(hlo.MultiplyOp)
        if sides is None:
            found.append(factor)
        else:
            left += reversed(sides)
    return found


def same(a: Read, b: Read) -> bool:
    """Whether two reads are of one value at the same places."""
    a, b = a.bare(), b.bare()
    if a.value is not b.value:
        return False
    return all(p == q for p, q, size in zip(a.places, b.places, shape_of(a.value), strict=True) if size != 1)


def match_fold(value: SSAValue, initial: bool = True) -> tuple[type[GraphOp], SSAValue, frozenset[int]] | None:
    """Of a fold of one tensor of floats from the identity: by what, what, and along which of its dimensions.

    Without `initial` it may start from anything.
    """
    op = value.owner
    if not isinstance(op, hlo.ReduceOp) or len(op.operands) != 2 or (fold := applied_op(op.body)) is None:
        return None
    source, element = op.operands[0], dtype_text(op.operands[0].type)
    if fold not in _FOLDS or not is_float(element):
        return None
    if initial and Read.of(op.operands[1]).number() != float(identity(fold, element)):
        return None
    return fold, source, frozenset(cast("Sequence[int]", op.value("dimensions")))


_FOLDS = (hlo.AddOp, hlo.MaximumOp)
