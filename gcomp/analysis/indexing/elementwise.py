"""Elementwise ops: each element reads the one at its own place, and scalars."""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.analysis.indexing.maps import IndexingMap, coordinates, identity, scalar
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size, dmin
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.op import GraphOp
from gcomp.ir.types import rank_of, shape_of


@maps(*POINTWISE, hlo.MapOp, chlo.ConstantLikeOp)
def pointwise(op: Operation) -> list[Maps]:
    """Operands of the result's shape, or scalars (a predicate, bounds)."""
    domain = shape_of(op.results[0])
    found: Maps = [identity(domain, s) if (s := shape_of(v)) or not domain else scalar(domain) for v in op.operands]
    return [found]


@maps(*PLAIN)
def broadcast(op: GraphOp) -> list[Maps]:
    """Operands aligned at the last dimension, or where `broadcast_dimensions` puts the one of lower rank."""
    domain = shape_of(op.results[0])
    given: tuple[int, ...] | None = (
        op.value("broadcast_dimensions") if "broadcast_dimensions" in op.properties else None
    )
    found: Maps = []
    for value in op.operands:
        rank = rank_of(value)
        trailing = range(len(domain) - rank, len(domain))
        places = trailing if given is None or rank == len(domain) else given
        found.append(spread(domain, shape_of(value), places))
    return [found]


def spread(domain: tuple[Size, ...], shape: tuple[Size, ...], places: range | tuple[int, ...]) -> IndexingMap:
    """Dimension i of the operand is dimension `places[i]` of the result, repeated where its size is 1."""
    own = coordinates(domain)
    indices = tuple([repeat_index(own[p], domain[p], size) for p, size in zip(places, shape, strict=True)])
    return IndexingMap(domain, shape, indices)


def repeat_index(coordinate: Size, size: Size, own: Size) -> Size:
    """The index into a dimension of size `own` that is spread over one of `size`: it has that size, or 1.

    The coordinate is multiplied by 1 or by 0, so that places stay a sum of multiples of coordinates.
    """
    if own == 1 or own == size:
        return coordinate if own != 1 else 0
    return coordinate * dmin(1, own - 1)
