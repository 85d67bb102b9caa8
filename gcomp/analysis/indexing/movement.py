"""Data movement: broadcast, concatenate, pad, reshape, reverse, slice, transpose, and casts of bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gcomp.analysis.indexing.elementwise import spread
from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates, d, identity, scalar
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size, floordiv, mod, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.types import shape_of


@maps(hlo.BroadcastInDimOp)
def broadcast_in_dim(op: hlo.BroadcastInDimOp) -> list[Maps]:
    """Dimension i of the operand becomes dimension `broadcast_dimensions[i]`."""
    return [[spread(shape_of(op.result), shape_of(op.operand), op.value("broadcast_dimensions"))]]


@maps(hlo.BroadcastOp)
def broadcast(op: hlo.BroadcastOp) -> list[Maps]:
    """The operand repeated along new leading dimensions."""
    domain, shape = shape_of(op.result), shape_of(op.operand)
    return [[spread(domain, shape, range(len(domain) - len(shape), len(domain)))]]


@maps(hlo.TransposeOp)
def transpose(op: hlo.TransposeOp) -> list[Maps]:
    """Dimension i of the result is dimension `permutation[i]` of the operand."""
    domain = shape_of(op.result)
    permutation: tuple[int, ...] = op.value("permutation")
    own = coordinates(domain)
    indices = tuple([own[permutation.index(k)] for k in range(len(domain))])
    return [[IndexingMap(domain, shape_of(op.operand), indices)]]


@maps(hlo.ReverseOp)
def reverse(op: hlo.ReverseOp) -> list[Maps]:
    """The last element comes first."""
    shape, reversed_ = shape_of(op.operand), op.value("dimensions")
    indices = [
        size - 1 - x if i in reversed_ else x for i, (size, x) in enumerate(zip(shape, coordinates(shape), strict=True))
    ]
    return [[IndexingMap(shape, shape, tuple(indices))]]


@maps(hlo.SliceOp)
def slice_(op: hlo.SliceOp) -> list[Maps]:
    """Every `strides[i]`-th element from `start_indices[i]` on."""
    domain = shape_of(op.result)
    steps = zip(sizes_of(op.start_indices), op.value("strides"), coordinates(domain), strict=True)
    return [[IndexingMap(domain, shape_of(op.operand), tuple([start + stride * x for start, stride, x in steps]))]]


@maps(hlo.PadOp)
def pad(op: hlo.PadOp) -> list[Maps]:
    """Elements lie `interior + 1` apart, the first at `low`; the padding value is read where there is none."""
    domain, shape = shape_of(op.result), shape_of(op.operand)
    indices: list[Size] = []
    conditions: list[Condition] = []
    gaps: tuple[int, ...] = op.value("interior_padding")
    for i, (size, low, gap) in enumerate(zip(shape, sizes_of(op.edge_padding_low), gaps, strict=True)):
        indices.append(inside(d(i) - low, size, gap + 1, conditions))
    found = simplify(IndexingMap(domain, shape, tuple(indices), (), tuple(conditions)))
    return [[found, scalar(domain).loosen()]]


def inside(position: Size, size: Size, step: int, conditions: list[Condition]) -> Size:
    """The index of the element at a position where elements lie `step` apart; conditions say that there is one."""
    if step == 1:
        conditions.append(Condition(position, 0, size))
        return position
    conditions.append(Condition(position, 0, (size - 1) * step + 1))
    conditions.append(Condition(mod(position, step), 0, 1))
    return floordiv(position, step)


@maps(hlo.ConcatenateOp)
def concatenate(op: hlo.ConcatenateOp) -> list[Maps]:
    """Each operand is read where the result's index along `dimension` falls in its piece."""
    domain = shape_of(op.result)
    dimension: int = op.value("dimension")
    own = coordinates(domain)
    found: Maps = []
    offset: Size = 0
    for value in op.operands:
        shape = shape_of(value)
        piece = (*own[:dimension], own[dimension] - offset, *own[dimension + 1 :])
        conditions = (Condition(own[dimension], offset, offset + shape[dimension]),)
        found.append(simplify(IndexingMap(domain, shape, piece, (), conditions)))
        offset = offset + shape[dimension]
    return [found]


# ---- reshape ------------------------------------------------------------------------------------------------------


@maps(hlo.ReshapeOp)
def reshape(op: hlo.ReshapeOp) -> list[Maps]:
    """The element at the same place in row-major order."""
    return [[reshape_map(shape_of(op.result), shape_of(op.operand))]]


@lru_cache(4096)
def reshape_map(domain: tuple[Size, ...], shape: tuple[Size, ...]) -> IndexingMap:
    """Runs of dimensions with equal products are taken one by one, so that what stays as it is stays a coordinate."""
    if domain == shape:
        return identity(domain)
    indices: list[Size] = [0] * len(shape)
    if 0 in domain:
        return IndexingMap(domain, shape, tuple(indices))
    own = coordinates(domain)
    for new, old in equal_runs(domain, shape):
        flat: Size = 0
        for i in new:
            flat = flat * domain[i] + own[i]
        stride: Size = 1
        for k in reversed(old):
            quotient = floordiv(flat, stride)
            indices[k] = quotient if k == old[0] else mod(quotient, shape[k])
            stride = stride * shape[k]
    return simplify(IndexingMap(domain, shape, tuple(indices)))


def equal_runs(new: Sequence[Size], old: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of two shapes in runs that hold as many elements in both, as short as is known; none of size 1."""
    a = [i for i, size in enumerate(new) if size != 1]
    b = [k for k, size in enumerate(old) if size != 1]
    groups: list[tuple[list[int], list[int]]] = []
    while (run := _first_run([new[i] for i in a], [old[k] for k in b])) is not None:
        groups.append((a[: run[0]], b[: run[1]]))
        a, b = a[run[0] :], b[run[1] :]
    tail: list[tuple[list[int], list[int]]] = []
    # Where the sizes in front cannot be shown equal, those behind may still be.
    while (run := _first_run([new[i] for i in reversed(a)], [old[k] for k in reversed(b)])) is not None:
        tail.append((a[-run[0] :], b[-run[1] :]))
        a, b = a[: -run[0]], b[: -run[1]]
    return [*groups, *([(a, b)] if b else []), *tail]


def _first_run(a: Sequence[Size], b: Sequence[Size]) -> tuple[int, int] | None:
    """How many dimensions at the front of two shapes are the least with equal products."""
    products = {product(a[:i]): i for i in range(len(a), 0, -1)}
    return next(((products[p], k) for k in range(1, len(b) + 1) if (p := product(b[:k])) in products), None)


@maps(hlo.BitcastConvertOp)
def bitcast_convert(op: hlo.BitcastConvertOp) -> list[Maps]:
    """Narrower elements are parts of one along a new last dimension; a wider one is made of all along it."""
    domain, shape = shape_of(op.result), shape_of(op.operand)
    own, ranging = coordinates(domain), Ranging()
    indices = own[: len(shape)]
    if len(shape) > len(domain):
        indices = (*own, ranging(shape[-1]))
    return [[IndexingMap(domain, shape, indices, tuple(ranging.sizes))]]
