"""Importers of com.microsoft: pieces cut out of tensors."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size, floordiv
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of


@contrib("CropAndResize", "X:f32[4] rois:f32[2] batch_indices:i32[1] crop_size:i32[1]", "extrapolation_value mode")
def crop_and_resize(ctx: NodeContext) -> Results:
    """CropAndResize: boxes (y1, x1, y2, x2), in units of the image, resized so that corners meet; value outside."""
    mode, crop = ctx.string("mode", "bilinear").lower(), ctx.ints_of(3, "crop_size")
    if mode not in ("bilinear", "nearest"):
        ctx.invalid(f"mode is {mode!r}", "bilinear or nearest is expected")
    if len(crop) != 2 or min(crop) < 1:
        ctx.invalid(f"crop_size is {crop}", "a height and a width from 1 on are expected")
    b, (_, channels, height, width), count = ctx.b, ctx.shape(), ctx.shape(1)[0]
    boxes, images = ctx.restate(ctx[1], {1: 4}), ctx.restate(ctx[2], {0: count})
    rows = _positions(ctx, boxes, 0, crop[0], height)
    columns = _positions(ctx, boxes, 1, crop[1], width)
    shape = (count, *crop)
    first = b.multiply(b.convert(images, "i64"), b.dim(height))
    pixels = b.reshape(b.transpose(ctx[0], (0, 2, 3, 1)), (ctx.shape()[0] * height * width, channels))

    def pixel(row: SSAValue, column: SSAValue) -> SSAValue:
        """The pixels (boxes, height, width, channels) at whole positions; outside ones are any."""
        y, x = (_inside(ctx, v, size) for v, size in ((row, height), (column, width)))
        line = b.multiply(b.add(b.broadcast(first, shape_of(y), (0,)), y), b.dim(width))
        places = b.add(b.broadcast(line, shape, (0, 1)), b.broadcast(x, shape, (0, 2)))
        return take(b, pixels, places, 0)

    y = _sample(ctx, mode, rows, columns, pixel, (*shape, channels))
    inside = b.emit(hlo.AndOp, b.broadcast(_is_inside(ctx, rows, height), shape, (0, 1)),
                    b.broadcast(_is_inside(ctx, columns, width), shape, (0, 2)))  # fmt: skip
    kept = b.broadcast(inside, shape_of(y), (0, 1, 2))
    outside = ctx.b.scalar_like(y, ctx.number("extrapolation_value"))
    return [b.transpose(b.select(kept, y, outside), (0, 3, 1, 2))]


def _last(ctx: NodeContext, size: Size) -> SSAValue:
    """The last place of a dim, in f32."""
    return ctx.b.convert(ctx.b.dim(size - 1), "f32")


def _positions(ctx: NodeContext, boxes: SSAValue, axis: int, count: int, size: Size) -> SSAValue:
    """Where each box (boxes, count) is sampled along an axis; both ends are met exactly, one sample is the middle."""
    b, last = ctx.b, _last(ctx, size)
    shape = (shape_of(boxes)[0], count)
    start, end = (b.reshape(b.slice_axis(boxes, 1, i, i + 1), shape[:1]) for i in (axis, axis + 2))
    if count == 1:
        middle = b.multiply(b.scale(b.add(start, end), 0.5), last)
        return b.reshape(middle, shape)
    step = b.divide(b.multiply(b.subtract(end, start), last), ctx.b.scalar_like(start, count - 1))
    place = b.iota(shape, 1)
    moved = b.multiply(b.convert(place, "f32"), b.broadcast(step, shape, (0,)))
    at = b.add(b.broadcast(b.multiply(start, last), shape, (0,)), moved)
    final = b.compare(place, ctx.b.scalar_like(place, count - 1), "EQ")
    return b.select(final, b.broadcast(b.multiply(end, last), shape, (0,)), at)


def _is_inside(ctx: NodeContext, at: SSAValue, size: Size) -> SSAValue:
    """Whether positions lie inside a dim."""
    b = ctx.b
    low = b.compare(at, ctx.b.scalar_like(at, 0), "GE")
    return b.emit(hlo.AndOp, low, b.compare(at, b.broadcast(_last(ctx, size), shape_of(at), ()), "LE"))


def _inside(ctx: NodeContext, at: SSAValue, size: Size) -> SSAValue:
    """Whole positions as indices, moved into a dim."""
    b = ctx.b
    within = b.minimum(b.maximum(at, ctx.b.scalar_like(at, 0)), b.broadcast(_last(ctx, size), shape_of(at), ()))
    return b.convert(within, "i64")


def _sample(
    ctx: NodeContext, mode: str, rows: SSAValue, columns: SSAValue, pixel: Callable[[SSAValue, SSAValue], SSAValue],
    shape: tuple[Size, ...],
) -> SSAValue:  # fmt: skip
    """The image at positions, (boxes, height, width, channels)."""
    b = ctx.b
    if mode == "nearest":
        return pixel(*(b.emit(hlo.RoundNearestAfzOp, v) for v in (rows, columns)))
    (top, bottom), (left, right) = ([b.emit(op, v) for op in (hlo.FloorOp, hlo.CeilOp)] for v in (rows, columns))
    down = b.broadcast(b.subtract(rows, top), shape, (0, 1))
    along = b.broadcast(b.subtract(columns, left), shape, (0, 2))

    def between(start: SSAValue, end: SSAValue, part: SSAValue) -> SSAValue:
        return b.add(start, b.multiply(b.subtract(end, start), part))

    above, below = (between(pixel(row, left), pixel(row, right), along) for row in (top, bottom))
    return between(above, below, down)


@contrib("UnfoldTensor", "input:any", "dim size! step")
def unfold_tensor(ctx: NodeContext) -> Results:
    """UnfoldTensor: all slices of `size` elements along a dim, `step` apart; the slices' own dim is the last."""
    if not ctx.rank():
        ctx.invalid("its input has rank 0", "rank 1 or more is expected")
    b, axis = ctx.b, ctx.axis(ctx.integer("dim", -1), ctx.rank())
    size, step, whole = positive(ctx, "size"), positive(ctx, "step", 1), ctx.shape()[axis]
    if not ctx.at_most(size, whole):
        if not isinstance(whole, Dim):
            ctx.invalid(f"size is {size}", f"the dim has size {whole}")
        ctx.require("le", size, whole)
    shape = (floordiv(whole - size, step) + 1, size)
    start, place = (b.iota(shape, i) for i in (0, 1))
    slices = take(b, ctx[0], b.add(b.multiply(start, ctx.b.scalar_like(start, step)), place), axis)
    rank = ctx.rank() + 1
    order = [i for i in range(rank) if i != axis + 1]
    return [b.transpose(slices, (*order, axis + 1))]
