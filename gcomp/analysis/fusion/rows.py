"""When reductions and what surrounds them fit in one kernel: their rows agree.

A kernel that reduces works row by row: all that one element of a reduction's result needs is a row. The reduction's
result may be used again inside the kernel only for elements of the same row: softmax reads the maximum of its own row,
and so may follow it in the kernel; a mean over all rows may not. The row of an element is a formula of its coordinates,
from the indexing maps; two rows agree where the formulas are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.fusion.dataflow import Dataflow
from gcomp.analysis.indexing.maps import IndexingMap, coordinates, d, linear
from gcomp.analysis.indexing.simplify import simplify
from gcomp.dims import Size, product, substitute, symbols_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.roles import Role
from gcomp.ir.types import shape_of
from gcomp.records import record

Shape = tuple[Size, ...]


@record
class Rows:
    """How a kernel's work falls into rows: their number, and whether some value waits for a reduction of its row."""

    count: Size
    passes: int
    """How often a row is gone over: once more than the longest chain of reductions that wait for each other, if
    something else waits for the last of them."""

    length: int | None
    """Elements of the longest row, where all have static sizes and their elements are neighbours in memory."""


class Mismatch(Exception):
    """Two formulas of a row differ; the message says where."""


def rows_of(flow: Dataflow, members: Sequence[int], outputs: Sequence[int]) -> Rows | str:
    """The rows of a set of ops that holds reductions and ops of single elements; or why they do not agree."""
    try:
        return _rows(flow, members, outputs)
    except Mismatch as mismatch:
        return str(mismatch)


def _rows(flow: Dataflow, members: Sequence[int], outputs: Sequence[int]) -> Rows:
    row: dict[SSAValue, Size] = {}
    counts: set[Size] = set()
    domains: list[Shape] = []
    for i in members:
        op = flow.ops[i]
        if flow.roles[i] is Role.REDUCTION:
            shape = shape_of(op.results[0])
            counts.add(product(shape))
            domains.append(shape_of(op.operands[0]))
            own = linear(shape, coordinates(shape))
            _check_inputs(flow, i, own, row)
            row.update(dict.fromkeys(op.results, own))
        elif (found := _read_rows(flow, i, row)) is not None:
            row.update(dict.fromkeys(op.results, found))
    if len(counts) > 1:
        raise Mismatch(f"its reductions have {' and '.join(sorted(map(str, counts)))} rows")
    (count,) = counts
    _check_outputs(flow, outputs, count, domains, row)
    ops = [flow.ops[i] for i in members]
    depth = waits_of(ops)
    passes = max((depth[v] + (v in row and not _is_reduced(flow, v)) for v in depth), default=1) or 1
    return Rows(count, passes, longest_row(ops))


def waits_of(ops: Iterable[Operation]) -> dict[SSAValue, int]:
    """How many reductions that wait for each other each result of some ops waits for, itself included."""
    found: dict[SSAValue, int] = {}
    for op in ops:
        depth = max((found.get(v, 0) for v in op.operands), default=0) + isinstance(op, hlo.ReduceOp)
        found.update(dict.fromkeys(op.results, depth))
    return found


def longest_row(ops: Iterable[Operation]) -> int | None:
    """Elements of the longest row that reductions go over; None unless all are static, of neighbours in memory."""
    longest = 0
    for op in ops:
        if not isinstance(op, hlo.ReduceOp):
            continue
        shape = shape_of(op.operands[0])
        extents: list[Size] = [shape[k] for k in op.value("dimensions")]
        size = product(extents)
        if not isinstance(size, int) or not is_inner(op):
            return None
        longest = max(longest, size)
    return longest


def is_inner(op: hlo.ReduceOp) -> bool:
    """Whether neighbours in memory belong to one row of a reduction."""
    shape = shape_of(op.operands[0])
    last = max((k for k, n in enumerate(shape) if n != 1), default=0)
    return last in op.value("dimensions")


def _is_reduced(flow: Dataflow, value: SSAValue) -> bool:
    return flow.roles[flow.producer[value]] is Role.REDUCTION


def _check_inputs(flow: Dataflow, i: int, own: Size, row: Mapping[SSAValue, Size]) -> None:
    for value, m in zip(flow.ops[i].operands, flow.maps(i)[0], strict=True):
        if value in row and m is not None and _through(flow, m, row[value]) != own:
            raise Mismatch(f"{flow.ops[i].name} needs rows other than its own of {_name(flow, value)}")


def _read_rows(flow: Dataflow, i: int, row: Mapping[SSAValue, Size]) -> Size | None:
    """The row that an op of single elements reads; None where it reads none."""
    found: Size | None = None
    for n, value in enumerate(flow.ops[i].operands):
        if value not in row:
            continue
        if flow.pointwise(i, n):
            read = row[value]
        else:
            maps = [m[n] for m in flow.maps(i)]
            if any(m is None or m.conditions or not m.exact for m in maps):
                raise Mismatch(f"{flow.ops[i].name} reads {_name(flow, value)} in some places only, or where data say")
            read = _through(flow, maps[0], row[value]) if maps[0] is not None else 0
        if any(name.startswith("$r") for name in symbols_of(read)):
            raise Mismatch(f"{flow.ops[i].name} reads several rows of {_name(flow, value)}")
        if found is not None and read != found:
            raise Mismatch(f"{flow.ops[i].name} reads two rows, that of {_name(flow, value)} among them")
        found = read
    return found


def _through(flow: Dataflow, m: IndexingMap, row: Size) -> Size:
    """The row that an element reads through a map, in simplest form."""
    if isinstance(row, int):
        return row
    read = substitute(row, {d(k).text: index for k, index in enumerate(m.indices)})
    place = IndexingMap(m.domain, (1,), (read,), m.ranges)
    return simplify(place, flow.nominal.ranges).indices[0]


def _check_outputs(
    flow: Dataflow, outputs: Sequence[int], count: Size, domains: Sequence[Shape], row: Mapping[SSAValue, Size]
) -> None:
    """Check that each output of a kernel has one element per row, or one per element that a reduction reads."""
    sizes = {count, *map(product, domains)}
    for i in outputs:
        shape = shape_of(flow.ops[i].results[0])
        if product(shape) not in sizes:
            raise Mismatch(f"{flow.ops[i].name} is of neither the rows' size nor that of what is reduced")
        if not any(v in row for v in flow.ops[i].results) and shape not in domains:
            raise Mismatch(f"{flow.ops[i].name} is written too, and has another shape than what is reduced")


def _name(flow: Dataflow, value: SSAValue) -> str:
    return flow.ops[flow.producer[value]].name
