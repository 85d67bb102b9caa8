"""Results with padding around them: a kernel writes what it computes into the larger one, and others what is around it.

So a convolution, or any other window, reads what another kernel wrote, borders included, and nothing is copied. Only a
result that nothing in the kernel reads is written so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.analysis.work import element_bytes
from gcomp.dims import Ranges, Size, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Step, blocks_of, is_covered, power_of_two

LEAST, BLOCK = 16, 128
"""Elements that a program writes: so many at least where they fill a row, and at most."""
ROWS = 32
"""Rows beside which a program writes a few elements each, at most."""


def pads_of(launch: LaunchOp) -> Mapping[int, hlo.PadOp]:
    """The ops that put something around a result and nothing else, by its number; nothing reads what they give."""
    ops = enumerate(value.owner for value in launch.returned.operands)
    return {j: op for j, op in ops if isinstance(op, hlo.PadOp) and op.surrounds and op.result.has_one_use()}


def surrounded(
    launch: LaunchOp, frame: Frame, places: Mapping[SSAValue, IndexingMap]
) -> Mapping[SSAValue, IndexingMap]:
    """Where elements lie in the padded results of a launch, for those whose places are known without padding."""
    return {
        op.result: place_within(frame, op, places[op.operand])
        for op in pads_of(launch).values() if op.result not in places and op.operand in places
    }  # fmt: skip


def place_within(frame: Frame, op: hlo.PadOp, access: IndexingMap) -> IndexingMap:
    """Where an element of what is padded lies in the result."""
    low = sizes_of(op.edge_padding_low)
    return frame.access(shape_of(op.result), [i + n for i, n in zip(access.indices, low, strict=True)])


def borders(launch: LaunchOp, name: str, ranges: Ranges) -> tuple[Step, ...]:
    """The kernels that write what is around padded results: one for each side of a dimension that has padding."""
    return tuple([
        _border(KernelWriter(launch, f"{name}_border{j}_{axis}{side}", ranges), j, op, axis, first, end)
        for j, op in pads_of(launch).items() if 0 not in shape_of(op.result)
        for axis, (low, size) in enumerate(zip(sizes_of(op.edge_padding_low), shape_of(op.operand), strict=True))
        for side, first, end in (("low", 0, low), ("high", low + size, shape_of(op.result)[axis]))
        if ranges.bounds(end - first) != (0, 0)
    ])  # fmt: skip


def _border(writer: KernelWriter, j: int, op: hlo.PadOp, axis: int, first: Size, end: Size) -> Step:
    """Writes the elements of a result from the first to an end along a dimension: runs in memory.

    Of the dimensions before it, around which other kernels write, only what is within.
    """
    b, frame, shape, within = writer.b, writer.frame(), shape_of(op.result), shape_of(op.operand)
    low = sizes_of(op.edge_padding_low)
    inner = (end - first, *shape[axis + 1 :])
    run, block = product(inner), BLOCK
    if axis > 0 and isinstance(run, int) and axis == len(shape) - 1 and run < LEAST:
        return _beside_rows(writer, j, op, first, run)
    if isinstance(run, int):
        even = run & -run
        block = min(block, even if even >= LEAST else power_of_two(run))
    outer: list[Size] = [*within[:axis], blocks_of(run, block)]
    program = writer.frame()
    program.coordinate(product(outer), b.program_id(0))
    places = [program.position(program.access((1,), (place,)).indices[0]) for place in delinearize(d(0), outer)]
    for extent, place in zip(within[:axis], places, strict=False):
        frame.coordinate(extent, place)
    lanes = b.add(b.multiply(places[-1], b.position(block)), b.iota(block, 0, 1))
    frame.coordinate(run, lanes, partial=not is_covered(frame, run, block))
    before: list[Size] = [(0 if within[k] == 1 else d(k)) + low[k] for k in range(axis)]
    own, *after = delinearize(d(axis), inner)
    access = frame.access(shape, [*before, own + first, *after])
    padding = writer.elements(frame)(op.padding_value, frame.access((), ()))
    writer.store(j, frame, access, b.broadcast(padding, (block,)))
    moved = product([*within[:axis], run, element_bytes(op.result.type)])
    return replace(writer.step((product(outer),)), moved=moved)


def _beside_rows(writer: KernelWriter, j: int, op: hlo.PadOp, first: Size, run: int) -> Step:
    """Writes a few elements of each row of a result, from the first on, where they would fill no vector."""
    b, frame, shape = writer.b, writer.frame(), shape_of(op.result)
    *outer, rows, _ = shape_of(op.operand)
    *before, low, _ = sizes_of(op.edge_padding_low)
    block = next((n for n in range(ROWS, 1, -1) if isinstance(rows, int) and rows % n == 0), ROWS)
    counts = [*outer, blocks_of(rows, block)]
    program = writer.frame()
    program.coordinate(product(counts), b.program_id(0))
    places = [program.position(program.access((1,), (place,)).indices[0]) for place in delinearize(d(0), counts)]
    for extent, place in zip(outer, places, strict=False):
        frame.coordinate(extent, place)
    lanes = b.add(b.multiply(places[-1], b.position(block)), b.iota(block, 0, 2))
    row = frame.coordinate(rows, lanes, partial=not is_covered(frame, rows, block))
    column = frame.coordinate(run, b.iota(run, 1, 2))
    indices: list[Size] = [(0 if outer[k] == 1 else d(k)) + n for k, n in enumerate(before)]
    access = frame.access(shape, [*indices, (0 if rows == 1 else d(row)) + low, d(column) + first])
    padding = writer.elements(frame)(op.padding_value, frame.access((), ()))
    writer.store(j, frame, access, b.broadcast(padding, (block, run)))
    moved = product([*outer, rows, run, element_bytes(op.result.type)])
    return replace(writer.step((product(counts),)), moved=moved)


__all__ = ["borders", "pads_of", "place_within", "surrounded"]
