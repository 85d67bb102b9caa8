"""The groups of a ragged dot: consecutive runs of a dimension, of sizes that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, rank_of, shape_of


def runs(b: Builder, op: Any, shape: Sequence[Size], outer: Sequence[int], ragged: int, group: int) -> SSAValue:
    """Which positions along dimension `ragged` of a shape are in the group that dimension `group` counts."""
    sizes = _within(b, op.group_sizes, shape[ragged])
    own, count = shape_of(sizes), shape_of(sizes)[-1]
    rank = rank_of(sizes)
    # Running sums: each group's end is the sum of the sizes up to it.
    square = (*own, count)
    copies = b.broadcast(sizes, square, [*range(rank - 1), rank])
    earlier = b.compare(b.iota(square, rank), b.iota(square, rank - 1), "LE")
    ends = b.reduce(hlo.AddOp, b.select(earlier, copies, b.full_like(copies, 0)), [rank])
    places = [*(outer if rank > 1 else ()), group]
    first, last = (b.broadcast(v, shape, places) for v in (b.subtract(ends, sizes), ends))
    position = b.iota(shape, ragged)
    return b.emit(hlo.AndOp, b.compare(position, first, "GE"), b.compare(position, last, "LT"))


def _within(b: Builder, sizes: SSAValue, most: Size) -> SSAValue:
    """Sizes of groups in i64, from 0 to the whole dimension's: sums of larger ones could leave 64 bits."""
    if dtype_text(sizes.type) == "ui64":
        sizes = b.minimum(sizes, b.full_like(sizes, 2**63 - 1))
    wide = b.convert(sizes, "i64")
    whole = b.broadcast(b.convert(b.dim(most), "i64"), shape_of(wide), ())
    return b.minimum(b.maximum(wide, b.full_like(wide, 0)), whole)
