"""Sequences, resolved while the model is imported: how many elements there are is always known."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import onnx_ir
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.containers import AnyValue, SequenceValue, type_text
from gcomp.frontends.onnx.model.declarations import declared_element
from gcomp.frontends.onnx.model.values import Value, size_list
from gcomp.frontends.onnx.operators.iteration import slice_at, tensors
from gcomp.frontends.onnx.operators.movement import agree_dims
from gcomp.ir.types import rank_of, shape_of

_MOST_PARTS = 1 << 14


@imports("SequenceConstruct")
def sequence_construct(ctx: NodeContext) -> Results:
    """SequenceConstruct: a sequence of the operands, which have one dtype."""
    items = tuple(ctx.value(i) for i in range(len(ctx.values)))
    return [SequenceValue(items, items[0].element)]


@imports("SequenceEmpty")
def sequence_empty(ctx: NodeContext) -> Results:
    """SequenceEmpty: no elements, of a dtype (float32 unless stated)."""
    return [SequenceValue((), ctx.dtype("dtype", "f32"))]


@imports("SequenceLength")
def sequence_length(ctx: NodeContext) -> Results:
    """SequenceLength: i64[]."""
    return [Value.sizes(len(ctx.sequence(0).items))]


@imports("SequenceAt")
def sequence_at(ctx: NodeContext) -> Results:
    """SequenceAt: the element at a position; where data decide it, elements must be of one shape."""
    items, known = ctx.sequence(0).items, ctx.known_value(1)
    if known is not None and known.dtype != object:
        return [items[_position(ctx, 1, len(items) - 1)]]
    if not items:
        ctx.invalid("its sequence is empty", "there is no element at any position")
    b, shapes = ctx.b, [item.shape for item in items]
    if any(shape != shapes[0] for shape in shapes):
        ctx.unsupported(f"the position depends on the data, and the elements have the shapes {shapes}")
    stacked = _join(ctx, [item.read(b) for item in items], 0, stack=True)
    position = b.convert(b.reshape(ctx[1], ()), "i64")
    from_end = b.add(position, b.constant(len(items), "i64"))
    # ONNX knows no other positions than those of elements; a slice begins within bounds.
    return [slice_at(ctx, stacked, 0, b.select(b.compare(position, b.constant(0, "i64"), "LT"), from_end, position))]


@imports("SequenceInsert")
def sequence_insert(ctx: NodeContext) -> Results:
    """SequenceInsert: the sequence with a tensor before a position, or at its end."""
    sequence, new = ctx.sequence(0), ctx.value(1)
    if new.element != sequence.element:
        ctx.invalid(f"the tensor is {type_text(new)}", f"the sequence is {type_text(sequence)}")
    count = len(sequence.items)
    place = _position(ctx, 2, count, count) if ctx.has(2) else count
    return [SequenceValue((*sequence.items[:place], new, *sequence.items[place:]), sequence.element)]


@imports("SequenceErase")
def sequence_erase(ctx: NodeContext) -> Results:
    """SequenceErase: the sequence without the element at a position, or without its last."""
    sequence = ctx.sequence(0)
    count = len(sequence.items)
    if not count:
        ctx.invalid("its sequence is empty", "there is no element to erase")
    place = _position(ctx, 1, count - 1) if ctx.has(1) else count - 1
    return [SequenceValue((*sequence.items[:place], *sequence.items[place + 1 :]), sequence.element)]


def _position(ctx: NodeContext, index: int, last: int, count: int | None = None) -> int:
    """A constant position from 0 to `last`; a negative one counts from the end, where `count` elements are."""
    array = ctx.constant(index, "position")
    count = last + 1 if count is None else count
    if array.size != 1:
        ctx.invalid(f"its position has shape {array.shape}", "one integer is expected")
    position = int(array.reshape(()))
    if not -count <= position <= last:
        ctx.invalid(f"position {position} is out of range", f"the sequence has {count} elements")
    return position + count if position < 0 else position


@imports("ConcatFromSequence")
def concat_from_sequence(ctx: NodeContext) -> Results:
    """ConcatFromSequence: the elements concatenated along an axis, or stacked along a new one."""
    items = ctx.sequence(0).items
    if not items:
        ctx.invalid("its sequence is empty", "there is nothing to concatenate")
    stack = ctx.integer("new_axis")
    if stack not in (0, 1):
        ctx.invalid(f"new_axis is {stack}", "it must be 0 or 1")
    values = [item.read(ctx.b) for item in items]
    axis = ctx.axis(ctx.integer("axis"), rank_of(values[0]) + stack)
    return [_join(ctx, values, axis, stack=stack == 1)]


def _join(ctx: NodeContext, values: list[SSAValue], axis: int, *, stack: bool) -> SSAValue:
    if stack:
        if len({rank_of(v) for v in values}) != 1:
            ctx.invalid(f"its elements have the shapes {[shape_of(v) for v in values]}", "they must be the same")
        values = [ctx.b.reshape(v, (*shape_of(v)[:axis], 1, *shape_of(v)[axis:])) for v in values]
    return ctx.b.concatenate(agree_dims(ctx, values, axis), axis)


@imports("SplitToSequence")
def split_to_sequence(ctx: NodeContext) -> Results:
    """SplitToSequence: slices along an axis: of given sizes, of one size (the last may be less), or of size 1.

    Only those of size 1, where no sizes are given, may lose the axis.
    """
    b, x = ctx.b, ctx[0]
    axis = ctx.axis(ctx.integer("axis"), rank_of(x))
    total = shape_of(x)[axis]
    keep = ctx.integer("keepdims", 1)
    if keep not in (0, 1):
        ctx.invalid(f"keepdims is {keep}", "it must be 0 or 1")
    sizes, starts = _parts(ctx, total), list[Size]([0])
    for size in sizes:
        starts.append(starts[-1] + size)
    x = ctx.restate(x, {axis: starts[-1]})
    parts = [b.slice_axis(x, axis, low, high) for low, high in pairwise(starts)]
    if not keep and not ctx.has(1):
        parts = [b.reshape(p, [s for i, s in enumerate(shape_of(p)) if i != axis]) for p in parts]
    return [SequenceValue(tuple(Value.of(p) for p in parts), ctx.element())]


def _parts(ctx: NodeContext, total: Size) -> list[Size]:
    """The sizes of the parts of an axis of size `total`."""
    if ctx.has(1) and ctx.rank(1) == 1:
        known = ctx.known_value(1)
        sizes = size_list(known) if known is not None else data_dependent_sizes(ctx, ctx[1], "split", None)
        if any(ctx.ranges.less_equal(0, size) is False for size in sizes):
            ctx.invalid(f"the split is {sizes}", "sizes are not negative")
        for size in sizes:
            if not ctx.at_most(0, size):
                ctx.require("le", 0, size)
        return sizes
    if ctx.has(1) and ctx.rank(1) != 0:
        ctx.invalid(f"the split has rank {ctx.rank(1)}", "a number or a list is expected")
    size: Size = 1 if not ctx.has(1) else _part(ctx)
    count = dims.ceildiv(total, size)
    if isinstance(count, Dim):
        ctx.unsupported(
            f"an axis of size {total} is split into parts of size {size}, so that the number of parts is not known",
            fix="bind the symbolic dims with dims=",
        )
    if count > _MOST_PARTS:
        ctx.unsupported(f"the sequence would have {count} elements")
    return [size] * (count - 1) + [total - size * (count - 1)] * (count > 0)


def _part(ctx: NodeContext) -> Size:
    known = ctx.known_value(1)
    if known is None:
        ctx.data_dependent("split")
    (size,) = size_list(known)
    if not ctx.at_most(1, size):
        if isinstance(size, int):
            ctx.invalid(f"the split is {size}", "it must be positive")
        ctx.require("le", 1, size)
    return size


@imports("SequenceMap")
def sequence_map(ctx: NodeContext) -> Results:
    """SequenceMap: a graph applied to the elements of sequences, position by position; tensors go to every call."""
    graph, count = ctx.graph("body"), len(ctx.sequence(0).items)
    values = [ctx.any_value(i) for i in range(len(ctx.values))]
    for i, value in enumerate(values):
        if isinstance(value, SequenceValue) and len(value.items) != count:
            ctx.invalid(f"input {i} has {len(value.items)} elements", f"input 0 has {count}")
    if len(graph.inputs) != len(values) or len(graph.outputs) != ctx.result_count:
        ctx.invalid(
            f"its body has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs",
            f"the node has {len(values)} and {ctx.result_count}",
        )
    calls = [
        ctx.importer.run_body(ctx, graph, [v.items[i] if isinstance(v, SequenceValue) else v for v in values])
        for i in range(count)
    ]
    return [_collect(ctx, output, [call[i] for call in calls]) for i, output in enumerate(graph.outputs)]


def _collect(ctx: NodeContext, output: onnx_ir.Value, results: list[AnyValue]) -> SequenceValue:
    tensors(ctx, results, "body's result")
    items = tuple(cast("list[Value]", results))
    element = items[0].element if items else declared_element(output)
    if element is None:
        ctx.unsupported(f"its sequence is empty, and its body does not say of which dtype `{output.name}` is")
    if any(item.element != element for item in items):
        ctx.invalid(f"its body's result `{output.name}` has several dtypes", "they go into one sequence")
    return SequenceValue(items, element)
