"""Operators whose result sizes depend on data: folded where the data is constant, otherwise host steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_symbol, host
from gcomp.frontends.onnx.engine.evaluation import evaluate
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import element_of, shape_of, tensor
from gcomp.reference.numpy.host import unique as distinct
from gcomp.reference.numpy.images import CHANNELS


@imports("NonZero")
def non_zero(ctx: NodeContext) -> Results:
    """NonZero: coordinates in row-major order, i64[rank, n], one column for each element that is not 0."""
    known = ctx.known_value(0)
    if known is not None and known.dtype != object:
        found = np.nonzero(np.atleast_1d(known))
        return [Value.constant(np.stack(found).astype(np.int64))]
    return [_positions(ctx, ctx[0])]


def _positions(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """Where `x` is not 0; a host step unless all its elements are one number."""
    owner = x.owner if isinstance(x, OpResult) else None
    if isinstance(owner, hlo.BroadcastInDimOp) and not shape_of(owner.operands[0]):
        number = evaluate(ctx.b.program, owner.operands[0])
        if number is not None and number.dtype != object:
            nowhere = np.zeros((len(shape_of(x)), 0), np.int64)
            return _everywhere(ctx, shape_of(x)) if number else ctx.b.constant(nowhere)
    count = data_dependent_symbol(ctx, dims.product(shape_of(x)))
    return host(ctx, "nonzero", [x], [tensor((max(len(shape_of(x)), 1), count), "i64")], {})[0]


def _everywhere(ctx: NodeContext, shape: Sequence[Size]) -> SSAValue:
    """The coordinates of all elements, i64[rank, n]: exporters write a range so."""
    b, total = ctx.b, dims.product(shape)
    return b.concatenate([b.reshape(b.iota(shape, i), (1, total)) for i in range(len(shape))], 0)


@imports("Compress")
def compress(ctx: NodeContext) -> Results:
    """Compress: the slices for which a condition holds; the condition may be shorter than the axis."""
    b, x = ctx.b, ctx[0]
    if ctx.rank(1) != 1:
        ctx.invalid(f"its condition has rank {ctx.rank(1)}", "it must be of rank 1")
    axis = 0 if ctx.attribute("axis") is None else ctx.axis(ctx.integer("axis"), ctx.rank())
    if ctx.attribute("axis") is None:
        x = b.reshape(x, (dims.product(ctx.shape()),))
    size, given = shape_of(x)[axis], ctx.shape(1)[0]
    if not ctx.at_most(given, size):
        if ctx.ranges.less_equal(given, size) is False:
            ctx.invalid(f"its condition has {given} elements", f"the axis has {size}")
        ctx.require("le", given, size)
    known = ctx.known_value(1)
    if known is not None and known.dtype != object:
        chosen = b.constant(np.flatnonzero(known).astype(np.int64))
    else:
        positions = _positions(ctx, ctx[1])
        chosen = b.reshape(positions, shape_of(positions)[1:])
    return [take(b, x, chosen, axis)]


@imports("Unique")
def unique(ctx: NodeContext) -> Results:
    """Unique: distinct elements or slices, sorted or in order of appearance, with where they are and how many."""
    axis = None if ctx.attribute("axis") is None else ctx.axis(ctx.integer("axis"), ctx.rank())
    ascending = ctx.flag("sorted", True)
    known = ctx.known_value(0)
    if known is not None and known.dtype != object:
        return [Value.constant(v) for v in distinct(known, axis=axis, sorted=ascending)]
    shape = ctx.shape()
    total: Size = dims.product(shape) if axis is None else shape[axis]
    count = data_dependent_symbol(ctx, total)
    kept = (count,) if axis is None else (*shape[:axis], count, *shape[axis + 1 :])
    types = [tensor(kept, element_of(ctx[0])), *(tensor((n,), "i64") for n in (count, total, count))]
    return list(host(ctx, "unique", [ctx[0]], types, {"axis": axis, "sorted": ascending}))


@imports("ImageDecoder")
def image_decoder(ctx: NodeContext) -> Results:
    """ImageDecoder: the pixels of an encoded image, u8[height, width, channel]."""
    if ctx.rank() != 1 or ctx.element() != "ui8":
        ctx.invalid("its input is no vector of bytes", "it is an encoded image")
    pixels = ctx.string("pixel_format", "RGB")
    if pixels not in CHANNELS:
        ctx.invalid(f"pixel_format is {pixels!r}", f"there are: {', '.join(CHANNELS)}")
    shape = (data_dependent_symbol(ctx), data_dependent_symbol(ctx), CHANNELS[pixels])
    return list(host(ctx, "decode_image", [ctx[0]], [tensor(shape, "ui8")], {"pixel_format": pixels}))


@imports("NonMaxSuppression", since=10)
def non_max_suppression(ctx: NodeContext) -> Results:
    """NonMaxSuppression: (batch, class, box) of the boxes kept, i64[n, 3]; none without a limit per class."""
    b = ctx.b
    boxes, scores = ctx[0], ctx[1]
    if ctx.rank(0) != 3 or ctx.rank(1) != 3:
        ctx.invalid(f"boxes are {ctx.shape()} and scores {ctx.shape(1)}", "[batch, box, 4] and [batch, class, box]")
    boxes = ctx.restate(boxes, {2: 4})
    boxes, scores = ctx.match_dims(boxes, 0, scores, 0)
    boxes, scores = ctx.match_dims(boxes, 1, scores, 2)
    most = b.reshape(ctx[2], ()) if ctx.has(2) else b.constant(0, "i64")
    overlap = b.reshape(ctx[3], ()) if ctx.has(3) else b.constant(0.0, "f32")
    least = b.reshape(ctx[4], ()) if ctx.has(4) else b.constant(-np.inf, "f32")
    centered = ctx.integer("center_point_box")
    if centered not in (0, 1):
        ctx.invalid(f"center_point_box is {centered}", "it must be 0 or 1")
    count = data_dependent_symbol(ctx, dims.product(shape_of(scores)))
    operands = [boxes, scores, most, overlap, least]
    return list(host(ctx, "non_max_suppression", operands, [tensor((count, 3), "i64")], {"centered": bool(centered)}))
