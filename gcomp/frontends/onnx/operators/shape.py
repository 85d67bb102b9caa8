"""Operators on shapes, and tensors made from nothing: known values wherever they depend on shapes only."""

from __future__ import annotations

from typing import cast

import numpy as np
from onnx_ir import AttributeType
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_integer, text_of
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes, operand_size, operand_sizes
from gcomp.frontends.onnx.engine.folding import fill_array, known_range
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.engine.strings import constant_of, names_of
from gcomp.frontends.onnx.model.values import Array, Value, objects, size_list
from gcomp.ir import stablehlo as hlo


@imports("Constant")
def constant(ctx: NodeContext) -> Results:
    """Constant: a tensor, or from opset 12 on numbers."""
    if len(ctx.node.attributes) != 1:
        ctx.invalid(f"it has the attributes {', '.join(ctx.node.attributes) or 'none'}", "it must have exactly one")
    for name, dtype in (("value_int", np.int64), ("value_ints", np.int64), ("value_float", np.float32),
                        ("value_floats", np.float32)):  # fmt: skip
        attr = ctx.attribute(name)
        if attr is not None:
            return [Value.constant(np.asarray(attr.value, dtype))]
    if (texts := ctx.strings("value_strings")) is not None:
        return [names_of(texts, (len(texts),))]
    if ctx.attribute("value_string") is not None:
        return [names_of([ctx.string("value_string")], ())]
    if (attr := ctx.attribute("value")) is None or attr.type != AttributeType.TENSOR:
        ctx.unsupported("its value is neither a tensor nor numbers")
    return [constant_of(attr.as_tensor(), f"{ctx.where}, attribute `value`", ctx.node.outputs[0].name or "constant")]


@imports("Identity")
def identity(ctx: NodeContext) -> Results:
    """Identity."""
    return [ctx.any_value(0)]


@imports("Shape")
def shape(ctx: NodeContext) -> Results:
    """Shape, or from opset 15 on a part of it."""
    rank = ctx.rank()
    start, end = ctx.integer("start"), ctx.integer("end", rank)
    low, high = (min(max(i + rank if i < 0 else i, 0), rank) for i in (start, end))
    return [Value.sizes(list(ctx.shape()[low:high]))]


@imports("Size")
def size(ctx: NodeContext) -> Results:
    """Size: the number of elements."""
    return [Value.sizes(dims.product(ctx.shape()))]


@imports("ConstantOfShape")
def constant_of_shape(ctx: NodeContext) -> Results:
    """ConstantOfShape: f32 zeros by default."""
    value = ctx.tensor("value")
    value = np.zeros(1, np.float32) if value is None else value
    if value.size != 1:
        ctx.invalid(f"its value has shape {list(value.shape)}", "it must have one element")
    sizes = target_shape(ctx, 0)
    element, scalar = text_of(value.dtype), value.reshape(-1)[0]
    if all(isinstance(s, int) for s in sizes) and (is_integer(element) or element == "i1"):
        known = fill_array(cast("list[int]", sizes), scalar, element)
        if known is not None:
            return [Value.constant(known)]
    return [ctx.b.full(sizes, scalar, element)]


def target_shape(ctx: NodeContext, index: int) -> list[Size]:
    """The operand `index` as a shape. Raises InvalidModelError when a size is negative."""
    if ctx.rank(index) != 1:
        ctx.invalid(f"the shape has rank {ctx.rank(index)}", "a list of sizes is expected")
    sizes = operand_sizes(ctx, index, "shape")
    for s in sizes:
        if isinstance(s, int) and s < 0:
            ctx.invalid(f"the shape has the size {s}", "sizes are not negative")
    return sizes


@imports("Range")
def sequence(ctx: NodeContext) -> Results:
    """Range: start + i * step, as many as there are before the limit."""
    element = ctx.element()
    for i in range(3):
        if ctx.shape(i) not in ((), (1,)):
            ctx.invalid(f"input {i} has shape [{', '.join(map(str, ctx.shape(i)))}]", "a number is expected")
    bounds = [ctx.known_value(i) for i in range(3)]
    if any(k is None for k in bounds):
        return [_data_dependent_range(ctx)]
    start, limit, step = (cast(Array, k).reshape(-1)[0] for k in bounds)
    if step == 0:
        ctx.invalid("the step is 0", "a range must move")
    if not is_integer(element):
        count = max(int(np.ceil(np.float64(limit - start) / np.float64(step))), 0)
        index = ctx.b.iota((count,), 0, element)
        return [ctx.b.add(ctx.b.multiply(index, ctx[2]), ctx[0])]
    first, last, by = (size_list(objects(v))[0] for v in (start, limit, step))
    if (known := known_range(first, last, by, element)) is not None:
        return [Value(element, known, None)]
    number = by if isinstance(by, int) else ctx.static(by, "step")
    count = dims.ceildiv(last - first, number) if number > 0 else dims.ceildiv(first - last, -number)
    index = ctx.b.iota((ctx.greater(count, 0),), 0, element)
    scaled = index if number == 1 else ctx.b.multiply(index, ctx[2])
    return [scaled if first == 0 else ctx.b.add(scaled, ctx[0])]


def _data_dependent_range(ctx: NodeContext) -> SSAValue:
    """A range whose length depends on data: counted in f64, as ONNX Runtime does."""
    b = ctx.b
    start, limit, step = (b.reshape(ctx[i], ()) for i in range(3))
    distance = b.convert(b.subtract(limit, start), "f64")
    steps = b.emit(hlo.CeilOp, b.divide(distance, b.convert(step, "f64")))
    # A step of 0 gives NaN or infinity: a size that the host step refuses.
    counted = b.convert(b.maximum(steps, b.full((), 0, "f64")), "i64")
    (count,) = data_dependent_sizes(ctx, counted, "length")
    return b.add(b.multiply(b.iota((count,), 0, ctx.element()), step), start)


@imports("EyeLike")
def eye_like(ctx: NodeContext) -> Results:
    """EyeLike: ones on the k-th diagonal."""
    b, shape, element = ctx.b, ctx.shape(), ctx.dtype("dtype", ctx.element())
    if len(shape) != 2:
        ctx.invalid(f"its input has rank {len(shape)}", "a matrix is expected")
    rows, columns = b.iota(shape, 0), b.iota(shape, 1)
    hit = b.compare(b.add(rows, b.constant(ctx.integer("k"), "i64")), columns, "EQ")
    return [b.convert(hit, element)]


@imports("OneHot")
def one_hot(ctx: NodeContext) -> Results:
    """OneHot: a new axis of size `depth`; indices out of [-depth, depth) give all off values."""
    b, indices = ctx.b, ctx[0]
    depth = operand_size(ctx, 1, "depth")
    if ctx.at_most(depth, -1):
        ctx.invalid(f"the depth is {depth}", "sizes are not negative")
    rank = ctx.rank()
    axis = ctx.axis(ctx.integer("axis", -1), rank + 1)
    shape = (*ctx.shape()[:axis], depth, *ctx.shape()[axis:])
    positions = b.convert(indices, "i64")
    wrapped = b.select(b.compare(positions, b.constant(0, "i64"), "LT"), b.add(positions, b.dim(depth)), positions)
    spread = b.broadcast(wrapped, shape, [i for i in range(rank + 1) if i != axis])
    hit = b.emit(hlo.CompareOp, b.iota(shape, axis), spread, comparison_direction="EQ", compare_type="SIGNED")
    values = ctx[2]
    off, on = (b.reshape(b.slice(values, (i,), (i + 1,)), ()) for i in (0, 1))
    return [b.select(hit, on, off)]


@imports("Trilu")
def trilu(ctx: NodeContext) -> Results:
    """Trilu: the upper (or lower) triangle from the k-th diagonal on, else 0."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    if len(shape) < 2:
        ctx.invalid(f"its input has rank {len(shape)}", "rank 2 or more is expected")
    rows, columns = b.iota(shape[-2:], 0), b.iota(shape[-2:], 1)
    diagonal = b.add(rows, b.reshape(b.convert(ctx[1], "i64"), ())) if ctx.has(1) else rows
    keep = b.compare(columns, diagonal, "GE" if ctx.flag("upper", True) else "LE")
    return [b.select(b.broadcast_to(keep, shape), x, ctx.b.scalar_like(x, 0))]
