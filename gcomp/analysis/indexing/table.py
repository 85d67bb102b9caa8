"""The table of indexing maps: for each op class, a row that gives what each result reads of each operand.

`MAPS` is the whole table; `gcomp.analysis.indexing.rows` fills it, a file for each family of ops. A row returns, for
each result, a map for each operand, or None where the result reads none of it: a token, or an operand that matters for
another result only. Values that a region takes from around its op are not operands: any element of those may be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, whole
from gcomp.dims import DimError, Size, symbols_of
from gcomp.ir.stablehlo.control import TokenType
from gcomp.ir.types import is_tensor, shape_of

Maps = list[IndexingMap | None]
"""What one result reads of each operand."""
Row = Callable[[Any], Sequence[Maps]]
R = TypeVar("R", bound=Row)

MAPS: dict[type[Operation], Row] = {}
"""Op class -> what its results read."""

WITHOUT: dict[type[Operation], str] = {}
"""Op class -> why it has no row."""


def maps(*ops: type[Operation]) -> Callable[[R], R]:
    """Register a function as the row of op classes."""

    def register(row: R) -> R:
        for op in ops:
            MAPS[op] = row
        return row

    return register


def without(reason: str, *ops: type[Operation]) -> None:
    """Say why op classes have no row."""
    for op in ops:
        WITHOUT[op] = reason


def operand_maps(op: Operation) -> Sequence[Maps]:
    """For each result of an op, what its elements read of each operand. Of an op that has no row, nothing is known."""
    if any(map(_unknown, (*op.operands, *op.results))):
        return opaque(op)
    try:
        return MAPS.get(type(op), opaque)(op)
    except DimError:
        # A formula beyond the limits of the algebra, or a division by the size of what is empty.
        return opaque(op)


def _unknown(value: SSAValue) -> bool:
    """Whether a size of a value is not even a formula: two such sizes look the same, and need not be."""
    return is_tensor(value.type) and any(
        not isinstance(size, int) and "_" in symbols_of(size) for size in shape_of(value)
    )


def opaque(op: Operation) -> list[Maps]:
    """The row of which nothing is known: each result may read all of each operand but tokens."""
    return [
        [None if isinstance(v.type, TokenType) else whole(domain, extent(v), exact=False) for v in op.operands]
        for domain in map(extent, op.results)
    ]


def extent(value: SSAValue) -> tuple[Size, ...]:
    """The shape of a value; what is no tensor (a tuple, a token) counts as one element."""
    return shape_of(value) if is_tensor(value.type) else ()
