"""A chlo.ragged_dot becomes masked dots, and a chlo.scan a loop: what XLA's CPU backend lacks, or takes in part only.

The meaning is the same to the bit: every product that counts is rounded as before, and what does not is left out after
it, not multiplied by 0 before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.decompositions.bodies import inline_block
from gcomp.decompositions.groups import runs
from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_integer
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, encode
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class RaggedDot(Pattern):
    """One dot for all groups, of which each row (or each run of the contracted dimension) keeps its own."""

    name = "ragged-dot-to-dots"
    roots = (chlo.RaggedDotOp,)

    def rewrite(self, op: chlo.RaggedDotOp, b: Builder) -> Sequence[SSAValue] | None:
        d = op.dimensions
        (ragged,) = d.lhs_ragged_dimensions
        numbers = DotDimensions(*d[:4])
        if ragged in d.lhs_batching_dimensions:
            return [_dot(op, b, op.lhs, op.rhs, numbers)]
        return [_contract(op, b) if ragged in d.lhs_contracting_dimensions else _free(op, b, numbers)]


def _dot(op: chlo.RaggedDotOp, b: Builder, lhs: SSAValue, rhs: SSAValue, numbers: DotDimensions) -> SSAValue:
    product = b.dot(lhs, rhs, numbers, element_of(op.result))
    words: Sequence[str] | None = op.value("precision_config")
    if words and isinstance(product, OpResult):
        product.op.properties["precision_config"] = encode("precision_config", words)
    return product


def _free(op: chlo.RaggedDotOp, b: Builder, numbers: DotDimensions) -> SSAValue:
    """The ragged dimension is free: the product of each row with each group's matrix, and of these its own."""
    d, rank = op.dimensions, rank_of(op.lhs)
    batch, used = list(d.lhs_batching_dimensions), {*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions}
    rows = [*batch, *(i for i in range(rank) if i not in used)]
    other = {*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions}
    columns = [i for i in range(rank_of(op.rhs)) if i not in other]
    group = len(rows) + columns.index(d.rhs_group_dimensions[0])
    product = _dot(op, b, op.lhs, op.rhs, numbers)
    places = [rows.index(i) for i in op.outer_dimensions()]
    inside = runs(b, op, shape_of(product), places, rows.index(d.lhs_ragged_dimensions[0]), group)
    text = dtype_text(product.type)
    if text == "i1" or is_integer(text):
        kept = b.select(inside, product, b.full_like(product, 0))
        return b.reduce(hlo.OrOp if text == "i1" else hlo.AddOp, kept, [group])
    # -0 added to a float leaves it as it is, -0 too; what is in no group is 0.
    nothing = complex(-0.0, -0.0) if is_complex(text) else -0.0
    kept = b.select(inside, product, b.full_like(product, nothing))
    total = b.insert(hlo.ReduceOp.apply(hlo.AddOp, kept, b.full((), nothing, text), [group])).results[0]
    return b.select(b.reduce(hlo.OrOp, inside, [group]), total, b.full_like(total, 0))


def _contract(op: chlo.RaggedDotOp, b: Builder) -> SSAValue:
    """The ragged dimension is contracted: one product for each group, of operands that are 0 outside of its run."""
    d, outer = op.dimensions, op.outer_dimensions()
    left = (*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions)
    partner = dict(zip(left, (*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions), strict=True))
    (ragged,) = d.lhs_ragged_dimensions
    count = shape_of(op.group_sizes)[-1]
    operands: list[SSAValue] = []
    for x, places, place in (
        (op.lhs, outer, ragged),
        (op.rhs, [partner[i] for i in outer], partner[ragged]),
    ):
        shape = (count, *shape_of(x))
        inside = runs(b, op, shape, [p + 1 for p in places], place + 1, 0)
        copies = b.broadcast(x, shape, range(1, len(shape)))
        operands.append(b.select(inside, copies, b.full_like(copies, 0)))
    shifted = [tuple(i + 1 for i in dimensions) for dimensions in d[:4]]
    numbers = DotDimensions((0, *shifted[0]), (0, *shifted[1]), shifted[2], shifted[3])
    return _dot(op, b, operands[0], operands[1], numbers)


class Scan(Pattern):
    """A loop over the slices that writes each output's slice in its place."""

    name = "scan-to-while"
    roots = (chlo.ScanOp,)

    def rewrite(self, op: chlo.ScanOp, b: Builder) -> Sequence[SSAValue] | None:
        axis: int = op.value("dimension")
        count = op.scan_size()
        if count == 0:
            return [*(b.full(shape_of(v), 0, element_of(v)) for v in op.outputs), *op.inits]
        # A slice must fit even where there turns out to be none to take.
        room = count if isinstance(count, int) else dims.dmax(count, 1)
        inputs = [self._padded(b, x, axis, room) for x in op.inputs]
        buffers = [b.full(_resize(v, axis, room), 0, element_of(v)) for v in op.outputs]
        operands = [b.constant(0, "i64"), *op.inits, *buffers]

        def body(args: Sequence[SSAValue]) -> list[SSAValue]:
            carries, outputs = args[1 : 1 + len(op.inits)], args[1 + len(op.inits) :]
            position = args[0]
            if op.value("is_reverse"):
                position = b.subtract(b.dim(count - 1), position)
            taken = [_slice_of(b, x, axis, position) for x in inputs]
            made = inline_block(b, op.body.block, [*taken, *carries])
            parts, after = made[: len(outputs)], made[len(outputs) :]
            written = [_write(b, o, part, axis, position) for o, part in zip(outputs, parts, strict=True)]
            return [b.add(args[0], b.constant(1, "i64")), *after, *written]

        types = [v.type for v in operands]
        condition = b.region(types, lambda args: [b.compare(args[0], b.dim(count), "LT")])
        results = list(b.emit_all(hlo.WhileOp, *operands, regions=(condition, b.region(types, body))))
        carries, outputs = results[1 : 1 + len(op.inits)], results[1 + len(op.inits) :]
        return [*(b.slice_axis(v, axis, 0, count) for v in outputs), *carries]

    def _padded(self, b: Builder, x: SSAValue, axis: int, room: Size) -> SSAValue:
        none = [0] * rank_of(x)
        high = [room - size if i == axis else 0 for i, size in enumerate(shape_of(x))]
        return b.pad(x, b.scalar_like(x, 0), none, high)


def _resize(x: SSAValue, axis: int, size: Size) -> list[Size]:
    return [size if i == axis else s for i, s in enumerate(shape_of(x))]


def _starts(b: Builder, rank: int, axis: int, position: SSAValue) -> list[SSAValue]:
    return [position if i == axis else b.constant(0, "i64") for i in range(rank)]


def _slice_of(b: Builder, x: SSAValue, axis: int, position: SSAValue) -> SSAValue:
    """The slice of `x` at a position, without the dimension."""
    part = b.emit(hlo.DynamicSliceOp, x, *_starts(b, rank_of(x), axis, position), slice_sizes=_resize(x, axis, 1))
    return b.reshape(part, [s for i, s in enumerate(shape_of(x)) if i != axis])


def _write(b: Builder, buffer: SSAValue, part: SSAValue, axis: int, position: SSAValue) -> SSAValue:
    update = b.emit(hlo.ReshapeOp, part, types=(tensor(_resize(buffer, axis, 1), element_of(buffer)),))
    return b.emit(hlo.DynamicUpdateSliceOp, buffer, update, *_starts(b, rank_of(buffer), axis, position))


@dataclass(frozen=True)
class ExpandChlo(Pass):
    """Write chlo.ragged_dot and chlo.scan as StableHLO."""

    name: ClassVar[str] = "expand-chlo"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (RaggedDot(), Scan()), context)
