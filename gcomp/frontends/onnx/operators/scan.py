"""Scan: a while over slices of its scan inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir
from xdsl.ir import Block, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.iteration import (
    Mark,
    Row,
    emit_where,
    emit_while,
    import_body,
    never_empty,
    note_where,
    slice_at,
    tensors,
)
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor
from gcomp.records import record


@record
class _Scan:
    """A scan over inputs that all have `length` slices along their axes."""

    graph: onnx_ir.Graph
    states: Sequence[SSAValue]
    inputs: Sequence[SSAValue]
    axes: Sequence[int]
    backward: Sequence[bool]
    output_axes: Sequence[int]
    output_backward: Sequence[bool]
    length: Size


@imports("Scan", since=9)
def scan(ctx: NodeContext) -> Results:
    """Scan-9: each scan input and output has an axis and a direction."""
    graph = ctx.graph("body")
    states, inputs = _operands(ctx, graph, 0)
    outs = len(graph.outputs) - len(states)
    axes = [
        ctx.axis(axis, rank_of(x))
        for axis, x in zip(_integer_list(ctx, "scan_input_axes", len(inputs)), inputs, strict=True)
    ]
    inputs, length = _agree_sizes(ctx, inputs, axes)
    form = _Scan(
        graph, states, inputs, axes, _directions(ctx, "scan_input_directions", len(inputs)),
        _integer_list(ctx, "scan_output_axes", outs), _directions(ctx, "scan_output_directions", outs), length,
    )  # fmt: skip
    return _run(ctx, form, None)


@imports("Scan", since=8)
def scan_8(ctx: NodeContext) -> Results:
    """Scan-8: one scan along axis 1 for each element of the batch (axis 0), of a length of its own.

    A backward scan begins at the last slice of its own length. Rows after that length, which ONNX leaves undefined, are
    zeros, as in ONNX Runtime.
    """
    b, graph = ctx.b, ctx.graph("body")
    states, inputs = _operands(ctx, graph, 1)
    outs = len(graph.outputs) - len(states)
    backward = _directions(ctx, "directions", len(inputs))
    for value, least in [*((v, 1) for v in states), *((v, 2) for v in inputs)]:
        if rank_of(value) < least:
            ctx.invalid(f"an input has shape {shape_of(value)}", "axis 0 is the batch, and axis 1 the sequence")
    inputs, length = _agree_sizes(ctx, inputs, [1] * len(inputs))
    every, batch = _agree_sizes(ctx, [*inputs, *states], [0] * (len(inputs) + len(states)))
    every = [never_empty(ctx, x, 0) for x in every]
    lengths = None if not ctx.has(0) else never_empty(ctx, ctx.vector(0, batch), 0)
    block = Block(arg_types=[tensor((), "i64")])
    index = block.args[0]
    with b.inside(block), ctx.importer.streams.iteration(index):
        parts = [slice_at(ctx, x, 0, index) for x in every]
        limit = None if lengths is None else b.minimum(slice_at(ctx, lengths, 0, index), b.dim(length))
        own, first = parts[: len(inputs)], parts[len(inputs) :]
        zeros = [0] * outs
        form = _Scan(graph, first, own, [0] * len(own), backward, zeros, [False] * outs, length)
        results = _run(ctx, form, limit)
    total = b.dim(batch)
    rows = [(Row(v, 0), batch) for v in results]
    return emit_while(ctx, block, [], [], lambda args: b.compare(args[0], total, "LT"), rows)[1:]


def _operands(ctx: NodeContext, graph: onnx_ir.Graph, first: int) -> tuple[list[SSAValue], list[SSAValue]]:
    """The initial states and the scan inputs, which begin at input `first`."""
    count, given = ctx.integer("num_scan_inputs"), len(ctx.values) - first
    if not 1 <= count <= given:
        ctx.invalid(f"num_scan_inputs is {count}", f"the node has {max(given, 0)} states and scan inputs")
    states = [ctx[i] for i in range(first, len(ctx.values) - count)]
    inputs = [ctx[i] for i in range(len(ctx.values) - count, len(ctx.values))]
    if len(graph.outputs) < len(states) or len(graph.outputs) < ctx.result_count:
        ctx.invalid(
            f"its body has {len(graph.outputs)} outputs",
            f"there are {len(states)} states, and the node has {ctx.result_count} outputs",
        )
    return states, inputs


def _integer_list(ctx: NodeContext, attribute: str, count: int) -> list[int]:
    """A list attribute with one integer for each of `count` inputs or outputs; zeros when it is absent."""
    values = ctx.integers(attribute)
    if values is None:
        return [0] * count
    if len(values) != count:
        ctx.invalid(f"{attribute} is {values}", f"it must have {count} elements")
    return values


def _directions(ctx: NodeContext, attribute: str, count: int) -> list[bool]:
    values = _integer_list(ctx, attribute, count)
    if any(value not in (0, 1) for value in values):
        ctx.invalid(f"{attribute} is {values}", "a direction is 0 (forward) or 1 (backward)")
    return [value == 1 for value in values]


def _agree_sizes(ctx: NodeContext, values: Sequence[SSAValue], axes: Sequence[int]) -> tuple[list[SSAValue], Size]:
    """The values with their sizes along the axes written alike, and that size."""
    sizes = [shape_of(x)[axis] for x, axis in zip(values, axes, strict=True)]
    size = next((s for s in sizes if isinstance(s, int)), sizes[0])
    return [ctx.restate(x, {axis: size}) for x, axis in zip(values, axes, strict=True)], size


def _run(ctx: NodeContext, form: _Scan, limit: SSAValue | None) -> list[SSAValue]:
    """The final states and the rows of a scan over the first `limit` slices (all of them where it is None)."""
    b = ctx.b
    total = b.dim(form.length) if limit is None else limit
    last = b.subtract(total, b.constant(1, "i64"))
    inputs = [never_empty(ctx, x, axis) for x, axis in zip(form.inputs, form.axes, strict=True)]

    def arguments(args: Sequence[SSAValue]) -> list[Value]:
        index = args[0]
        mirrored = b.subtract(last, index) if any(form.backward) else index
        places = [mirrored if back else index for back in form.backward]
        slices = [slice_at(ctx, x, axis, at) for x, axis, at in zip(inputs, form.axes, places, strict=True)]
        return [Value.of(v) for v in (*args[1:], *slices)]

    mark = Mark.of(ctx)
    block, values = import_body(ctx, form.graph, [v.type for v in form.states], arguments)
    with b.inside(block):
        results = tensors(ctx, values, "result")
        after, outs = results[: len(form.states)], results[len(form.states) :]
        after = [_state(ctx, i, new, old) for i, (new, old) in enumerate(zip(after, form.states, strict=True))]
    noted = [] if ctx.at_most(1, form.length) else mark.take(ctx)
    runs = dims.dmin(1, form.length) if noted else 1
    note_where(ctx, runs, noted)
    rows = [
        (Row(v, ctx.axis(axis, rank_of(v) + 1), back), form.length)
        for v, axis, back in zip(outs, form.output_axes, form.output_backward, strict=True)
    ]
    test: Callable[[Sequence[SSAValue]], SSAValue] = lambda args: b.compare(args[0], total, "LT")  # noqa: E731
    found = emit_where(ctx, runs, form.states, lambda: emit_while(ctx, block, form.states, after, test, rows))
    return [*found[1:]]


def _state(ctx: NodeContext, index: int, new: SSAValue, old: SSAValue) -> SSAValue:
    """A state after an iteration, of the type that it had before."""
    before, after = shape_of(old), shape_of(new)
    if dtype_text(new.type) != dtype_text(old.type) or len(before) != len(after):
        ctx.invalid(f"state {index} goes from {old.type} to {new.type}", "its type must stay the same")
    return ctx.restate(new, dict(enumerate(before)))
