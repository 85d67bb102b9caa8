"""Indices of slices of slices, and updates of updates, as XLA gets them: in range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import bit_width
from gcomp.ir.attributes import sizes_of
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.stablehlo.indexing import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp
from gcomp.ir.stablehlo.movement import ReshapeOp, TransposeOp
from gcomp.ir.structures import GatherDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor, with_element
from gcomp.lowering.xla.printer import Printer
from gcomp.runtime.template import hole

_READS = (DynamicSliceOp, GatherOp)


def keep_in_range(p: Printer, op: Operation, names: list[str], types: list[Attribute], indent: str) -> None:
    """Clamp the indices of an op that XLA may make one of with another, and change their names and types.

    XLA adds the indices of the two, and clamps the sum, where each should be clamped by itself. What is known to be in
    range stays as it is.
    """
    if not any(_merge(*pair) for pair in _neighbours(op)):
        return
    for i, most, dimension in _limits(op):
        if bit_width(dtype_text(types[i])) < 32:  # too small for a limit, perhaps
            wide = with_element(types[i], "i32")
            names[i] = p.line(f"stablehlo.convert {names[i]} : ({p.types([types[i]])}) -> {p.types([wide])}", indent)
            types[i] = wide
        type, scalar = p.types([types[i]]), p.types([with_element(tensor((), "i32"), dtype_text(types[i]))])
        zero = p.line(f"stablehlo.constant dense<0> : {scalar}", indent)
        limits, of = ", ".join(map(hole, most)), p.types([tensor((len(most),), dtype_text(types[i]))])
        high = p.line(f"stablehlo.constant dense<[{limits}]> : {of}", indent)
        places = [] if dimension is None else [dimension]
        if dimension is None:
            high = p.line(f"stablehlo.reshape {high} : ({of}) -> {scalar}", indent)
            of = scalar
        high = p.line(f"stablehlo.broadcast_in_dim {high}, dims = {places} : ({of}) -> {type}", indent)
        names[i] = p.line(f"stablehlo.clamp {zero}, {names[i]}, {high} : ({scalar}, {type}, {type}) -> {type}", indent)


def _merge(producer: Operation, consumer: Operation, index: int) -> bool:
    """Whether XLA may make one op of two, of which the second has the result of the first as an operand."""
    if isinstance(consumer, DynamicUpdateSliceOp):
        return isinstance(producer, DynamicUpdateSliceOp if index == 1 else _READS)
    return index == 0 and isinstance(producer, _READS) and isinstance(consumer, _READS)


def _neighbours(op: Operation) -> Iterator[tuple[Operation, Operation, int]]:
    """The ops that make what an op takes, and those that take what it makes, but for reshapes."""
    for i, value in enumerate(op.operands[:2]):
        while isinstance(value, OpResult) and isinstance(value.op, ReshapeOp):
            value = value.op.operand
        if isinstance(value, OpResult):
            yield value.op, op, i
    pending: list[SSAValue] = [*op.results]
    while pending:
        for use in pending.pop().uses:
            yield op, use.operation, use.index
            pending += use.operation.results if isinstance(use.operation, ReshapeOp) else ()


def _limits(op: Operation) -> Iterator[tuple[int, Sequence[Size], int | None]]:
    """The number of each operand that is an index, the greatest indices, and the dimension along which they lie."""
    shape = shape_of(op.operands[0])
    if isinstance(op, GatherOp):
        numbers: GatherDimensions = op.value("dimension_numbers")
        sizes, axis = sizes_of(op.slice_sizes), numbers.index_vector_dim
        if numbers.start_index_map:
            most = [shape[d] - sizes[d] for d in numbers.start_index_map]
            yield 1, most, axis if axis < rank_of(op.start_indices) else None
    elif isinstance(op, DynamicSliceOp):
        for d, size in enumerate(sizes_of(op.slice_sizes)):
            yield 1 + d, [shape[d] - size], None
    elif isinstance(op, DynamicUpdateSliceOp):
        for d, size in enumerate(shape_of(op.update)):
            yield 2 + d, [shape[d] - size], None


_NEAR = 64
"""How many ops are looked at before an update: XLA fuses no further."""


def gathers_from_its_place(op: Operation) -> bool:
    """Whether an op updates a tensor with what was gathered from the same one.

    XLA makes one loop of the gather and the update, in place, and so reads what it has written already. An element
    that is made of the one in its own place is read before it is written: what adds to a slice is right.
    """
    return isinstance(op, DynamicUpdateSliceOp) and _gathers_from(op)


def _gathers_from(update: DynamicUpdateSliceOp) -> bool:
    """Whether an update is computed from elements, of what it updates, that data choose: others than it replaces."""
    source = _skip_views(update.operand)
    pending, seen = [(update.update, True)], set[tuple[SSAValue, bool]]()
    while pending and len(seen) < _NEAR:
        current, in_place = pending.pop()
        if (current, in_place) in seen or not isinstance(current, OpResult):
            continue
        seen.add((current, in_place))
        op = current.op
        if (
            isinstance(op, _READS)
            and _skip_views(op.operands[0]) is source
            and not (in_place and _is_replaced(op, update))
        ):
            return True
        in_place = in_place and isinstance(op, UnaryOp | BinaryOp)
        pending += [(operand, in_place) for operand in op.operands]
    return False


def _is_replaced(read: Operation, update: DynamicUpdateSliceOp) -> bool:
    """Whether a slice is the one that an update replaces."""
    return (
        isinstance(read, DynamicSliceOp)
        and read.operands[0] is update.operand
        and tuple(read.operands[1:]) == tuple(update.operands[2:])
        and shape_of(read.results[0]) == shape_of(update.update)
    )


def _skip_views(value: SSAValue) -> SSAValue:
    """What a value shows in another shape or order."""
    while isinstance(value, OpResult) and isinstance(value.op, ReshapeOp | TransposeOp):
        value = value.op.operand
    return value
