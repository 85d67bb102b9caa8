"""What If, Loop and Scan share: what graphs need of sizes, bodies in blocks, rows of outputs, and the while op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir
from xdsl.ir import Attribute, Block, Region, SSAValue

from gcomp.dims import Constraint, Dim, Range, Ranges, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_symbol, host
from gcomp.frontends.onnx.model.containers import AnyValue, kind_of, leaves
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, rank_of, shape_of, tensor
from gcomp.records import record

MOST_ROWS = 1 << 40
"""Loops that would give more rows are refused: their trip count means that there is no limit."""


@record
class Mark:
    """A point of an import to which it can go back when something else has to be tried."""

    constraints: int
    ranges: Ranges
    data_dependent: dict[str, Range]

    @staticmethod
    def of(ctx: NodeContext) -> Mark:
        """Where the import is."""
        return Mark(len(ctx.b.constraints), ctx.ranges, dict(ctx.importer.data_dependent.ranges))

    def undo(self, ctx: NodeContext) -> None:
        """Forget what was noted of sizes since."""
        del ctx.b.constraints[self.constraints :]
        ctx.importer.ranges = self.ranges
        ctx.importer.data_dependent.ranges = dict(self.data_dependent)

    def take(self, ctx: NodeContext) -> list[Constraint]:
        """What was noted since, which holds no longer: what a graph relies on holds where it runs."""
        noted = ctx.b.constraints[self.constraints :]
        del ctx.b.constraints[self.constraints :]
        ctx.importer.ranges = self.ranges
        return noted


def note_where(ctx: NodeContext, runs: Size, constraints: Sequence[Constraint]) -> None:
    """Note what a graph needs where `runs`, which is 1 or 0, is 1: its sizes are multiplied by it."""
    for c in constraints:
        lhs = c.lhs if c.kind == "divides" else runs * c.lhs
        ctx.b.constraints.append(replace(c, lhs=lhs, rhs=runs * c.rhs))


def decide_on_host(ctx: NodeContext, predicate: SSAValue) -> tuple[SSAValue, Dim]:
    """Let the host read a condition: the same condition as a size decides it, and the size, which is 1 or 0."""
    b, taken = ctx.b, data_dependent_symbol(ctx, 1)
    host(ctx, "extents", [b.convert(b.reshape(predicate, (1,)), "i64")], [tensor((taken, 0), "i1")],
         {"role": f"condition of {ctx.where.rsplit(': ', 1)[-1]}"})  # fmt: skip
    return b.compare(b.dim(taken), b.constant(0, "i64"), "NE"), taken


def emit_where(
    ctx: NodeContext, runs: Size, carried: Sequence[SSAValue], loop: Callable[[], Sequence[SSAValue]]
) -> Sequence[SSAValue]:
    """A loop (how often it ran, what it carried last, rows) in a branch that `runs`, 1 or 0, decides: else nothing."""
    if runs == 1:
        return loop()
    b, blocks = ctx.b, (Block(), Block())
    with b.inside(blocks[0]):
        results = loop()
        b.insert(hlo.ReturnOp.of(*results))
    with b.inside(blocks[1]):
        rows = [b.full(shape_of(row), 0, element_of(row)) for row in results[1 + len(carried) :]]
        b.insert(hlo.ReturnOp.of(b.constant(0, "i64"), *carried, *rows))
    predicate = b.compare(b.dim(runs), b.constant(0, "i64"), "NE")
    return b.emit_all(hlo.IfOp, predicate, regions=[Region(block) for block in blocks])


@record
class Row:
    """What each iteration gives to an output: it goes along `axis`, which is new or (`joined`) one of its own."""

    value: SSAValue
    axis: int
    backward: bool = False
    joined: bool = False

    @property
    def size(self) -> Size:
        """How much of the axis it takes."""
        return shape_of(self.value)[self.axis] if self.joined else 1

    def shape(self, count: Size) -> list[Size]:
        """The shape of `count` rows."""
        sizes = list(shape_of(self.value))
        return [*sizes[: self.axis], self.size * count, *sizes[self.axis + self.joined :]]


def import_body(
    ctx: NodeContext,
    graph: onnx_ir.Graph,
    types: Sequence[Attribute],
    arguments: Callable[[Sequence[SSAValue]], Sequence[AnyValue]],
) -> tuple[Block, list[AnyValue]]:
    """A body in a new block that takes the iteration (i64) and values of `types`; its results, read in the block."""
    b = ctx.b
    block = Block(arg_types=[tensor((), "i64"), *types])
    try:
        with b.inside(block), ctx.importer.streams.iteration(block.args[0]):
            results = ctx.importer.run_body(ctx, graph, arguments(block.args))
            for value in results:
                for leaf in leaves(value):
                    leaf.read(b)
    except BaseException:
        block.erase()
        raise
    return block, results


def tensors(ctx: NodeContext, values: Sequence[AnyValue], what: str) -> list[SSAValue]:
    """Results of a body that must be tensors."""
    read: list[SSAValue] = []
    for value in values:
        if not isinstance(value, Value):
            ctx.invalid(f"its {what} is {kind_of(value)}", "a tensor is expected")
        read.append(value.read(ctx.b))
    return read


def emit_while(
    ctx: NodeContext,
    block: Block,
    carried: Sequence[SSAValue],
    after: Sequence[SSAValue],
    test: Callable[[Sequence[SSAValue]], SSAValue],
    rows: Sequence[tuple[Row, Size]] = (),
) -> list[SSAValue]:
    """A while around `block`, which takes the iteration and `carried` and computes `after`.

    It goes on as long as `test` holds for the iteration and the carried values. The results: how often it ran, what was
    carried last, and the rows in buffers with room for as many as stand beside them.
    """
    b = ctx.b
    rooms = [ctx.greater(count, 1) for _, count in rows]
    buffers = [b.full(row.shape(room), 0, element_of(row.value)) for (row, _), room in zip(rows, rooms, strict=True)]
    operands = [b.constant(0, "i64"), *carried, *buffers]
    with b.inside(block):
        index = block.args[0]
        written = [
            _write_row(ctx, block.insert_arg(buffer.type, len(block.args)), row, index, count)
            for buffer, (row, count) in zip(buffers, rows, strict=True)
        ]
        b.insert(hlo.ReturnOp.of(b.add(index, b.constant(1, "i64")), *after, *written))
    condition = b.region([v.type for v in operands], lambda args: [test(args)])
    results = list(b.emit_all(hlo.WhileOp, *operands, regions=(condition, Region(block))))
    kept, filled = results[: 1 + len(carried)], results[1 + len(carried) :]
    # A buffer has room for one row at least, as an update must fit even where no iteration makes one.
    return [
        *kept,
        *(
            b.slice_axis(buffer, row.axis, 0, row.size * count)
            for buffer, (row, count) in zip(filled, rows, strict=True)
        ),
    ]


def _write_row(ctx: NodeContext, buffer: SSAValue, row: Row, index: SSAValue, count: Size) -> SSAValue:
    b = ctx.b
    if row.backward:
        index = b.subtract(b.dim(count - 1), index)
    shape, size = shape_of(row.value), row.size
    slab = row.value if row.joined else b.reshape(row.value, (*shape[: row.axis], 1, *shape[row.axis :]))
    place = index if size == 1 else b.multiply(index, b.dim(size))
    zero = b.constant(0, "i64")
    starts = [place if i == row.axis else zero for i in range(rank_of(buffer))]
    return b.emit(hlo.DynamicUpdateSliceOp, buffer, slab, *starts)


def never_empty(ctx: NodeContext, x: SSAValue, axis: int) -> SSAValue:
    """`x`, or where it may be empty along an axis, `x` and a slice of zeros that a loop never reads."""
    size = shape_of(x)[axis]
    if ctx.at_most(1, size):
        return x
    nothing = [0] * rank_of(x)
    more: list[Size] = [ctx.greater(1 - size, 0) if i == axis else 0 for i in range(rank_of(x))]
    return ctx.b.pad(x, ctx.b.scalar_like(x, 0), nothing, more)


def slice_at(ctx: NodeContext, x: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    """The slice of `x` at `index`, the axis removed."""
    b, shape, zero = ctx.b, shape_of(x), ctx.b.constant(0, "i64")
    starts = [index if i == axis else zero for i in range(len(shape))]
    sizes = [1 if i == axis else s for i, s in enumerate(shape)]
    picked = b.emit(hlo.DynamicSliceOp, x, *starts, slice_sizes=sizes)
    return b.reshape(picked, [s for i, s in enumerate(shape) if i != axis])


def shape_text(x: SSAValue) -> str:
    """A shape for people: `[n, 3]`."""
    return f"[{', '.join(map(str, shape_of(x)))}]"


def alike(ctx: NodeContext, x: SSAValue, like: SSAValue) -> SSAValue | None:
    """`x` with its type written as that of `like`; None where they are not known to be the same."""
    if x.type == like.type:
        return x
    pairs = list(zip(shape_of(x), shape_of(like), strict=False))
    same = element_of(x) == element_of(like) and rank_of(x) == rank_of(like)
    return ctx.b.reshape(x, shape_of(like)) if same and all(ctx.ranges.equal(a, c) for a, c in pairs) else None
