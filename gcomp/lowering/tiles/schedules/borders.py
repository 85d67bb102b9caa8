"""Results with padding around them: a kernel writes what it computes into the larger one, and others what is around it.

So a convolution, or any other window, reads what another kernel wrote, borders included, and nothing is copied. Only a
result that nothing in the kernel reads is written so.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Ranges, Size, dmin, floordiv, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Step, blocks_of, is_covered, power_of_two

LEAST, BLOCK = 16, 128
"""Elements that a program writes: so many at least where they fill a row, and at most."""


def surrounded(
    launch: LaunchOp, frame: Frame, places: Mapping[SSAValue, IndexingMap]
) -> Mapping[SSAValue, IndexingMap]:
    """Where elements lie in the padded results of a launch, for those whose places are known without padding."""
    found: dict[SSAValue, IndexingMap] = {}
    for op in _pads(launch).values():
        if op.result not in places and op.operand in places:
            low = sizes_of(op.edge_padding_low)
            indices = [i + n for i, n in zip(places[op.operand].indices, low, strict=True)]
            found[op.result] = frame.access(shape_of(op.result), indices)
    return found


def borders(launch: LaunchOp, name: str, ranges: Ranges) -> tuple[Step, ...]:
    """The kernels that write what is around the padded results of a launch: one for each dimension with padding."""
    return tuple([
        _border(KernelWriter(launch, f"{name}_border{j}_{axis}", ranges), j, op, axis)
        for j, op in _pads(launch).items() if 0 not in shape_of(op.result)
        for axis, (size, within) in enumerate(zip(shape_of(op.result), shape_of(op.operand), strict=True))
        if size != within
    ])  # fmt: skip


def _pads(launch: LaunchOp) -> Mapping[int, hlo.PadOp]:
    """The ops that put something around a result and nothing else, by its number; nothing reads what they give."""
    ops = enumerate(value.owner for value in launch.returned.operands)
    return {j: op for j, op in ops if isinstance(op, hlo.PadOp) and op.surrounds and op.result.has_one_use()}


def _border(writer: KernelWriter, j: int, op: hlo.PadOp, axis: int) -> Step:
    """Writes the elements of a result before and after those of its operand along a dimension.

    Of the dimensions before it, around which other kernels write, only what is within.
    """
    b, frame, shape, within = writer.b, writer.frame(), shape_of(op.result), shape_of(op.operand)
    low, high = (sizes_of(edges) for edges in (op.edge_padding_low, op.edge_padding_high))
    row, block = product(shape[axis + 1 :]), BLOCK
    if isinstance(row, int):
        even = row & -row
        block = min(block, even if even >= LEAST else power_of_two(row))
    outer: list[Size] = [*within[:axis], low[axis] + high[axis], blocks_of(row, block)]
    program = writer.frame()
    program.coordinate(product(outer), b.program_id(0))
    places = [program.position(program.access((1,), (place,)).indices[0]) for place in delinearize(d(0), outer)]
    for extent, place in zip(outer[:-1], places, strict=False):
        frame.coordinate(extent, place)
    lanes = b.add(b.multiply(places[-1], b.position(block)), b.iota(block, 0, 1))
    frame.coordinate(row, lanes, partial=not is_covered(frame, row, block))
    before: list[Size] = [(0 if within[k] == 1 else d(k)) + low[k] for k in range(axis)]
    own = _beside(d(axis), low[axis], within[axis])
    access = frame.access(shape, [*before, own, *delinearize(d(axis + 1), shape[axis + 1 :])])
    padding = writer.elements(frame)(op.padding_value, frame.access((), ()))
    writer.store(j, frame, access, b.broadcast(padding, (block,)))
    return writer.step((product(outer),))


def _beside(n: Size, low: Size, size: Size) -> Size:
    """The index of the n-th of the elements before and after so many others."""
    return n + size * dmin(floordiv(n, low), 1) if low else n + size


__all__ = ["borders", "surrounded"]
