"""Where a kernel's values lie in its iteration space, followed from one value through ops that keep elements apart.

A schedule knows the coordinates of the op that it is built around. Elementwise ops, reshapes and transpositions carry
them on, to what is computed from its result and to what its operand is computed from. What a schedule makes of this is
only a choice of who computes what: elements are computed from their true indices, whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d, is_permutation, is_pointwise
from gcomp.analysis.indexing.movement import reshape_map
from gcomp.analysis.indexing.table import operand_maps
from gcomp.analysis.panels import takes_first
from gcomp.dims import Size, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.ir.types import is_tensor, shape_of
from gcomp.lowering.tiles.elements.table import Elements
from gcomp.lowering.tiles.frames import Frame, delinearize

Accesses = dict[SSAValue, IndexingMap]


def relate(
    launch: LaunchOp,
    elements: Elements,
    seeds: Mapping[SSAValue, IndexingMap],
    spread: Sequence[tuple[Size, Size]] = (),
) -> Accesses:
    """The element of each value that belongs to a point of the frame, as far as that follows from `seeds`.

    `spread` are coordinates with their extents over which what is broadcast may be spread. `elements` are told from
    which elements they follow, so that what is known of those is found.
    """
    frame = elements.frame
    found: Accesses = dict(seeds)
    users: dict[SSAValue, list[Operation]] = {}
    for op in launch.block.ops:
        for value in dict.fromkeys(op.operands):
            users.setdefault(value, []).append(op)
    pending = list(found)
    while pending:
        value = pending.pop(0)
        access = found[value]
        forward = list(_forward(frame, value, access, users.get(value, []), spread))
        for other, there in [*forward, *_back(frame, value, access)]:
            if other not in found:
                found[other] = there
                pending.append(other)
        elements.sources |= {(other, value): (there, access) for other, there in forward if found[other] == there}
    return found


def _forward(
    frame: Frame, value: SSAValue, access: IndexingMap, users: Sequence[Operation], spread: Sequence[tuple[Size, Size]]
) -> Iterator[tuple[SSAValue, IndexingMap]]:
    for op in users:
        if not op.results or not is_tensor(op.results[0].type):
            continue
        result, shape = op.results[0], shape_of(op.results[0])
        if isinstance(op, hlo.ReshapeOp):
            yield result, frame.through(access, reshape_map(access.shape, shape))
        elif isinstance(op, hlo.TransposeOp):
            permutation: tuple[int, ...] = op.value("permutation")
            yield result, frame.access(shape, [access.indices[k] for k in permutation])
        elif isinstance(op, hlo.SliceOp):
            ends = zip(access.indices, shape, access.shape, strict=True)
            if takes_first(op) and all(size == whole or frame.holds(size - 1 - index) for index, size, whole in ends):
                yield result, frame.access(shape, access.indices)
        elif isinstance(op, hlo.BroadcastInDimOp):
            indices = _spread(op, access, spread)
            if indices is not None:
                yield result, frame.access(shape, indices)
        elif role_of(op) is Role.ELEMENTWISE and shape == access.shape:
            yield result, access
        elif role_of(op) in PER_ELEMENT and (indices := _carried(op, value, access)) is not None:
            yield result, frame.access(shape, indices)


def _carried(op: Operation, value: SSAValue, access: IndexingMap) -> Sequence[Size] | None:
    """The indices of an op's result that reads each element of a value once, as a gather does its indices."""
    maps = [m for operand, m in zip(op.operands, operand_maps(op)[0], strict=False) if operand is value]
    if not maps or any(m is None or m != maps[0] or not is_permutation(m) for m in maps):
        return None
    assert maps[0] is not None
    places = dict(zip(maps[0].indices, access.indices, strict=True))
    return [0 if size == 1 else places[d(k)] for k, size in enumerate(maps[0].domain)]


def _spread(
    op: hlo.BroadcastInDimOp, access: IndexingMap, spread: Sequence[tuple[Size, Size]]
) -> Sequence[Size] | None:
    """The indices of a broadcast's result whose new dimensions hold one of the coordinates of `spread`."""
    shape = shape_of(op.results[0])
    dimensions: tuple[int, ...] = op.value("broadcast_dimensions")
    kept = {to: k for k, to in enumerate(dimensions) if shape[to] == access.shape[k]}
    new = [shape[k] for k in range(len(shape)) if k not in kept]
    place = next((c for c, extent in spread if extent == product(new)), 0 if product(new) == 1 else None)
    if place is None:
        return None
    rest = iter(delinearize(place, new))
    return [access.indices[kept[k]] if k in kept else next(rest) for k in range(len(shape))]


def _back(frame: Frame, value: SSAValue, access: IndexingMap) -> Iterator[tuple[SSAValue, IndexingMap]]:
    op = value.owner
    if not isinstance(op, Operation):
        return
    role = role_of(op)
    if isinstance(op, hlo.ReshapeOp | hlo.TransposeOp) or role is Role.ELEMENTWISE:
        maps = operand_maps(op)[next(i for i, r in enumerate(op.results) if r is value)]
        for operand, m in zip(op.operands, maps, strict=True):
            if m is not None and (role is not Role.ELEMENTWISE or is_pointwise(m)):
                yield operand, frame.through(access, m)
