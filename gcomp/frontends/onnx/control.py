"""Control flow: If, Loop and Scan as regions, or inlined where what they decide on is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import onnx_ir
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gcomp.dims import Dim, Size
from gcomp.errors import UnsupportedError
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.frontends.onnx.values import Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, rank_of, shape_of, tensor

UNROLL_LIMIT = 128
"""Loops whose carried shapes change are unrolled up to this many iterations."""


@imports("If")
def conditional(ctx: NodeContext) -> Results:
    """If: one branch alone where the condition is known."""
    condition = ctx.known(0)
    branches = [ctx.graph("then_branch"), ctx.graph("else_branch")]
    if condition is not None and condition.dtype != object:
        chosen = branches[0] if bool(condition.reshape(-1)[0]) else branches[1]
        return ctx.importer.run_body(chosen, [], ctx.scope)
    b = ctx.b
    predicate = b.reshape(ctx[0], ())
    regions = [_branch(ctx, g) for g in branches]
    types = [list(cast("Operation", r.block.last_op).operand_types) for r in regions]
    if types[0] != types[1]:
        ctx.unsupported(
            "its branches give results of different shapes or dtypes",
            fix="bind the symbolic dims that the condition depends on with dims=, or make it a constant",
        )
    return b.emit_all(hlo.IfOp, predicate, regions=regions)


def _branch(ctx: NodeContext, graph: onnx_ir.Graph) -> Region:
    return ctx.b.region([], lambda _: [v.read(ctx.b) for v in ctx.importer.run_body(graph, [], ctx.scope)])


@dataclass
class _Body:
    """A loop body, imported into a block: what it takes and returns."""

    block: Block
    results: list[SSAValue]
    goes_on: Value


@imports("Loop")
def loop(ctx: NodeContext) -> Results:
    """Loop: a while; unrolled where carried shapes change; scan outputs need a trip count known from shapes."""
    b, graph = ctx.b, ctx.graph("body")
    trips = _trips(ctx)
    condition = _condition(ctx)
    if trips == 0 or (condition.known is not None and not bool(condition.known.reshape(-1)[0])):
        trips = 0
    initial = [ctx.value(i) for i in range(2, len(ctx.values))]
    scans = len(graph.outputs) - 1 - len(initial)
    if scans < 0 or len(graph.inputs) != 2 + len(initial):
        ctx.invalid(
            f"its body has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs",
            f"{len(initial)} values are carried",
        )
    noted = len(b.constraints)
    carried = [v.read(b) for v in initial]
    try:
        body = _loop_body(ctx, graph, [v.type for v in carried], condition)
    except UnsupportedError:
        # What depends on the iteration is known once the loop is unrolled.
        if not isinstance(trips, int) or trips > UNROLL_LIMIT or condition.known is None:
            raise
        return _unrolled(ctx, graph, trips, condition, initial, scans)
    states, rows = body.results[: len(initial)], body.results[len(initial) :]
    endless = body.goes_on.known is not None and bool(np.all(body.goes_on.known))
    if [v.type for v in states] != [v.type for v in carried] or (isinstance(trips, int) and trips <= 1):
        del b.constraints[noted:]
        return _unrolled(ctx, graph, trips, condition, initial, scans)
    if scans and (trips is None or not endless):
        ctx.data_dependent("number of iterations")
    return _while(ctx, body, trips, condition, carried, rows)


def _trips(ctx: NodeContext) -> Size | None:
    """The trip count, or None when there is none or it depends on data."""
    if not ctx.has(0):
        return None
    known = ctx.known(0)
    if known is None:
        return None
    size = known.reshape(-1).tolist()[0]
    return size if isinstance(size, Dim) else max(int(size), 0)


def _condition(ctx: NodeContext) -> Value:
    if not ctx.has(1):
        return Value.constant(np.asarray(True))
    known = ctx.known(1)
    return ctx.value(1) if known is None else Value.constant(known.reshape(()).astype(np.bool_))


def _loop_body(ctx: NodeContext, graph: onnx_ir.Graph, types: Sequence[object], condition: Value) -> _Body:
    """Import the body into a new block that takes the iteration and the carried values."""
    b = ctx.b
    block = Block(arg_types=[tensor((), "i64"), tensor((), "i1"), *cast("Sequence[Attribute]", types)])
    shape = graph.inputs[0].shape
    with b.inside(block):
        iteration = block.args[0] if shape is None or len(shape) == 0 else b.reshape(block.args[0], (1,))
        again = Value.constant(np.asarray(True)) if condition.known is not None else Value.of(block.args[1])
        arguments = [Value.of(iteration), again, *(Value.of(a) for a in block.args[2:])]
        results = ctx.importer.run_body(graph, arguments, ctx.scope)
        return _Body(block, [v.read(b) for v in results[1:]], results[0])


def _unrolled(
    ctx: NodeContext, graph: onnx_ir.Graph, trips: Size | None, condition: Value, initial: Sequence[Value], scans: int
) -> Results:
    if not isinstance(trips, int) or trips > UNROLL_LIMIT or condition.known is None:
        ctx.unsupported(
            "the shapes of the values that it carries change, and how often it runs is not known",
            fix=f"make the trip count a constant of at most {UNROLL_LIMIT}",
        )
    b, states = ctx.b, list(initial)
    rows: list[list[SSAValue]] = [[] for _ in range(scans)]
    for i in range(trips):
        index = np.asarray(i if not graph.inputs[0].shape or not len(graph.inputs[0].shape) else [i], np.int64)
        results = ctx.importer.run_body(graph, [Value.constant(index), condition, *states], ctx.scope)
        states = results[1 : 1 + len(states)]
        for row, value in zip(rows, results[1 + len(states) :], strict=True):
            row.append(value.read(b))
        if results[0].known is None or results[0].symbolic:
            ctx.data_dependent("condition")
        if not bool(np.all(results[0].known)):
            break
    return [*states, *(_stacked(ctx, graph, k, row) for k, row in enumerate(rows))]


def _stacked(ctx: NodeContext, graph: onnx_ir.Graph, index: int, rows: Sequence[SSAValue]) -> SSAValue:
    b = ctx.b
    if rows:
        return b.concatenate([b.reshape(r, (1, *shape_of(r))) for r in rows], 0)
    position = len(graph.outputs) - ctx.result_count + len(ctx.values) - 2 + index
    if not 0 <= position < len(graph.outputs):
        ctx.unsupported("it never runs, and leaves out results that its body gives")
    value = graph.outputs[position]
    shape = list(value.shape or ())
    if value.dtype is None or not all(isinstance(d, int) for d in shape):
        ctx.unsupported("it never runs, and the shape of what it would give is not stated")
    return b.full((0, *cast("list[int]", shape)), 0, ctx.element_text(int(value.dtype)))


def _while(
    ctx: NodeContext,
    body: _Body,
    trips: Size | None,
    condition: Value,
    carried: Sequence[SSAValue],
    rows: Sequence[SSAValue],
) -> Results:
    b = ctx.b
    zero, start = b.constant(0, "i64"), condition.read(b)
    limit = _limit(ctx, trips)
    buffers = [b.full((cast(Size, trips), *shape_of(r)), 0, element_of(r)) for r in rows]
    operands = [zero, b.reshape(start, ()), *carried, *buffers]
    with b.inside(body.block):
        extra = [body.block.insert_arg(v.type, len(body.block.args)) for v in buffers]
        count, places = body.block.args[0], list[SSAValue]()
        for buffer, row in zip(extra, rows, strict=True):
            places.append(_written(ctx, buffer, row, count))
        goes_on = b.reshape(body.goes_on.read(b), ())
        following = b.add(count, b.constant(1, "i64"))
        b.insert(hlo.ReturnOp.of(following, goes_on, *body.results[: len(carried)], *places))

    def test(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if limit is None:
            return [args[1]]
        return [b.emit(hlo.AndOp, args[1], b.compare(args[0], limit, "LT"))]

    regions = (b.region([v.type for v in operands], test), Region(body.block))
    return list(b.emit_all(hlo.WhileOp, *operands, regions=regions))[2:]


def _limit(ctx: NodeContext, trips: Size | None) -> SSAValue | None:
    if trips is not None:
        return ctx.b.dim(trips)
    return ctx.b.reshape(ctx[0], ()) if ctx.has(0) else None


def _written(ctx: NodeContext, buffer: SSAValue, row: SSAValue, index: SSAValue, axis: int = 0) -> SSAValue:
    """`buffer` with `row` at `index` along `axis`."""
    b, zero = ctx.b, ctx.b.constant(0, "i64")
    shape = shape_of(row)
    slab = b.reshape(row, (*shape[:axis], 1, *shape[axis:]))
    starts = [index if i == axis else zero for i in range(rank_of(buffer))]
    return b.emit(hlo.DynamicUpdateSliceOp, buffer, slab, *starts)


@imports("Scan", since=9)
def scan(ctx: NodeContext) -> Results:
    """Scan-9: a while over slices of the scan inputs; the trip count is their size."""
    b, graph = ctx.b, ctx.graph("body")
    count = ctx.integer("num_scan_inputs")
    states = [ctx[i] for i in range(len(ctx.values) - count)]
    inputs = [ctx[i] for i in range(len(states), len(ctx.values))]
    outs = len(graph.outputs) - len(states)
    if count < 1 or outs < 0 or not inputs:
        ctx.invalid(f"num_scan_inputs is {count}", f"the node has {len(ctx.values)} inputs")
    axes = [
        ctx.axis(a, rank_of(x)) for a, x in zip(ctx.integers("scan_input_axes") or [0] * count, inputs, strict=True)
    ]
    backward = ctx.integers("scan_input_directions") or [0] * count
    out_axes = ctx.integers("scan_output_axes") or [0] * outs
    out_backward = ctx.integers("scan_output_directions") or [0] * outs
    length = shape_of(inputs[0])[axes[0]]
    last = b.subtract(b.dim(length), b.constant(1, "i64"))
    block = Block(arg_types=[tensor((), "i64"), *(v.type for v in states)])
    with b.inside(block):
        index = block.args[0]
        mirrored = b.subtract(last, index)
        slices = [_slab(ctx, x, a, mirrored if r else index) for x, a, r in zip(inputs, axes, backward, strict=True)]
        arguments = [Value.of(v) for v in (*block.args[1:], *slices)]
        results = [v.read(b) for v in ctx.importer.run_body(graph, arguments, ctx.scope)]
    after, rows = results[: len(states)], results[len(states) :]
    if [v.type for v in after] != [v.type for v in states]:
        ctx.unsupported("the shapes or dtypes of its states change")
    places = [ctx.axis(a, rank_of(r) + 1) for a, r in zip(out_axes, rows, strict=True)]
    buffers = [b.full(_with(shape_of(r), a, length), 0, element_of(r)) for r, a in zip(rows, places, strict=True)]
    with b.inside(block):
        extra = [block.insert_arg(v.type, len(block.args)) for v in buffers]
        written = [
            _written(ctx, buffer, row, mirrored if r else index, a)
            for buffer, row, a, r in zip(extra, rows, places, out_backward, strict=True)
        ]
        b.insert(hlo.ReturnOp.of(b.add(index, b.constant(1, "i64")), *after, *written))
    operands = [b.constant(0, "i64"), *states, *buffers]
    total = b.dim(length)
    test = b.region([v.type for v in operands], lambda args: [b.compare(args[0], total, "LT")])
    return list(b.emit_all(hlo.WhileOp, *operands, regions=(test, Region(block))))[1:]


def _with(shape: Sequence[Size], axis: int, size: Size) -> list[Size]:
    return [*shape[:axis], size, *shape[axis:]]


def _slab(ctx: NodeContext, x: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    """The slice of `x` at `index`, the axis removed."""
    b, shape, zero = ctx.b, shape_of(x), ctx.b.constant(0, "i64")
    starts = [index if i == axis else zero for i in range(len(shape))]
    sizes = [1 if i == axis else s for i, s in enumerate(shape)]
    picked = b.emit(hlo.DynamicSliceOp, x, *starts, slice_sizes=sizes)
    return b.reshape(picked, [s for i, s in enumerate(shape) if i != axis])
