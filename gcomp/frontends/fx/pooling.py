"""Pooling windows: maxima with their places, averages, adaptive averages; running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.reduction import earliest
from gcomp.frontends.fx.registry import Results, imports, imports_table
from gcomp.frontends.fx.values import each
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import identity
from gcomp.ir.looping import running
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor


class _Windows:
    """Kernel, strides, dilations and padding of the last dimensions, for all dimensions of the operand."""

    def __init__(self, ctx: NodeContext, spatial: int, out: Sequence[Size]) -> None:
        rank, shape = ctx.rank(), ctx.shape()
        kernel = each(ctx.arg("kernel_size"), spatial)
        stride = each(ctx.arg("stride") or kernel, spatial)
        padding, dilation = each(ctx.arg("padding", 0), spatial), each(ctx.arg("dilation", 1), spatial)
        lead = rank - spatial
        self.spatial, self.low = spatial, padding
        self.high: list[Size] = []
        for i in range(spatial):
            # torch says how many windows there are: with ceil_mode the last may begin inside and end far outside.
            reach = (out[lead + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
            high: Size = reach - shape[lead + i] - padding[i]
            if not isinstance(high, int) and not ctx.arg("ceil_mode", False):
                # The last window ends where it is, and what is behind it counts for nothing.
                high = padding[i]
            self.high.append(high)
        pads = [[0, 0]] * lead + [[p, h] for p, h in zip(padding, self.high, strict=True)]
        self.properties: dict[str, Any] = {
            "window_dimensions": [1] * lead + kernel,
            "window_strides": [1] * lead + stride,
            "window_dilations": [1] * lead + dilation,
            "padding": pads,
        }


def _window(ctx: NodeContext, op: type[GraphOp], x: SSAValue, properties: dict[str, Any]) -> SSAValue:
    text = dtype_text(x.type)
    init = ctx.b.full((), identity(op, text), text)
    (x,), properties = _padded(ctx, [x], [init], properties)
    return ctx.b.emit(hlo.ReduceWindowOp, x, init, regions=[scalar_region(op, element_of(x))], **properties)


def _padded(
    ctx: NodeContext, operands: Sequence[SSAValue], inits: Sequence[SSAValue], properties: dict[str, Any]
) -> tuple[list[SSAValue], dict[str, Any]]:
    """Operands with padding of symbolic size behind them, and the windows with the rest: the op takes numbers."""
    pads: Sequence[Sequence[Size]] = properties.get("padding", [])
    behind: list[Size] = [0 if isinstance(high, int) else high for _, high in pads]
    if all(high == 0 for high in behind):
        return list(operands), properties
    padded = [ctx.b.pad(x, init, [0] * len(behind), behind) for x, init in zip(operands, inits, strict=True)]
    rest = [[low, high if isinstance(high, int) else 0] for low, high in pads]
    return padded, {**properties, "padding": rest}


def _max_pool(spatial: int) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The greatest of each window and its place in the plane; NaN beats all, of equal ones the first."""
        b, x = ctx.b, ctx["self"]
        windows, shape = _Windows(ctx, spatial, ctx.out_shape()), ctx.shape()
        values = _window(ctx, hlo.MaximumOp, x, windows.properties)
        plane = shape[ctx.rank() - spatial :]
        flat = 1
        for size in plane:
            flat = flat * size
        places = b.broadcast(b.reshape(b.iota((flat,), 0), plane), shape, range(ctx.rank() - spatial, ctx.rank()))
        return [values, _places(ctx, x, places, windows)]

    return run


def _places(ctx: NodeContext, x: SSAValue, places: SSAValue, windows: _Windows) -> SSAValue:
    b, text = ctx.b, dtype_text(x.type)
    types = [tensor((), text), tensor((), "i64")]

    region = b.region([*types, *types], earliest(b, text, "GT"))
    inits = [b.full((), identity(hlo.MaximumOp, text), text), b.full((), 2**63 - 1, "i64")]
    operands, properties = _padded(ctx, [x, places], inits, windows.properties)
    return b.emit_all(hlo.ReduceWindowOp, *operands, *inits, regions=[region], **properties)[1]


imports_table({f"max_pool{n}d_with_indices": _max_pool(n) for n in (2, 3)})


def _average_pool(spatial: int) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The mean of each window: by all its elements, those of the padding too, or only by those of the tensor."""
        b, x = ctx.b, ctx.b.widen(ctx["self"])
        windows = _Windows(ctx, spatial, ctx.out_shape())
        total = _window(ctx, hlo.AddOp, x, windows.properties)
        return b.convert(b.divide(total, _count(ctx, x, windows, ctx.out_shape())), ctx.out_dtype())

    return run


def _average_pool_gradient(spatial: int) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The gradient of average pooling: each window's cotangent is spread evenly over its elements."""
        b, grad, shape = ctx.b, ctx["grad_output"], ctx.shape()
        windows = _Windows(ctx, spatial, shape_of(grad))
        part = b.divide(grad, _count(ctx, grad, windows, shape_of(grad)))
        lead, properties = ctx.rank() - spatial, windows.properties
        kernel, strides = properties["window_dimensions"], properties["window_strides"]
        low: list[Size] = [k - 1 - p for k, p in zip(kernel, [0] * lead + windows.low, strict=True)]
        high: list[Size] = [
            size + k - 1 - before - ((count - 1) * stride + 1)
            for size, k, before, count, stride in zip(shape, kernel, low, shape_of(grad), strides, strict=True)
        ]
        spread = b.pad(part, b.scalar_like(grad, 0), low, high, [s - 1 for s in strides])
        return _window(ctx, hlo.AddOp, spread, {"window_dimensions": kernel})

    return run


def _count(ctx: NodeContext, x: SSAValue, windows: _Windows, out: Sequence[Size]) -> SSAValue:
    """How many elements each window has, or what is to be divided by instead."""
    b, lead = ctx.b, rank_of(x) - windows.spatial
    if (divisor := ctx.arg("divisor_override")) is not None:
        return b.full(out, divisor, element_of(x))
    ones = b.full((*[1] * lead, *ctx.shape()[lead:]), 1, element_of(x))
    properties = dict(windows.properties)
    if ctx.arg("count_include_pad", True):
        # The padding that was asked for counts; what ceil_mode adds behind it does not.
        pads = [0] * lead + windows.low
        ones = b.pad(ones, b.scalar_like(x, 1), pads, pads)
        rest = [[0, h - p] for h, p in zip(windows.high, windows.low, strict=True)]
        properties["padding"] = [[0, 0]] * lead + rest
    found = _window(ctx, hlo.AddOp, ones, properties)
    return b.broadcast(found, out, range(rank_of(x)))


imports_table({f"avg_pool{n}d": _average_pool(n) for n in (2, 3)})
imports_table({f"avg_pool{n}d_backward": _average_pool_gradient(n) for n in (2, 3)})


def _adaptive_average(spatial: int) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The means of as many windows as are asked for, which overlap where they do not divide the size."""
        b, x = ctx.b, ctx.b.widen(ctx["self"])
        out, lead = ctx.out_shape(), ctx.rank() - spatial
        for i in range(lead, ctx.rank()):
            size, count = shape_of(x)[i], out[i]
            if count == 1:
                x = b.mean(x, [i], keepdims=True)
            elif isinstance(size, int) and isinstance(count, int):
                x = _window_means(ctx, x, i, size, count)
            else:
                ctx.unsupported("its windows depend on a symbolic size", "give the dimension a fixed size")
        return b.convert(x, ctx.out_dtype())

    return run


def _window_means(ctx: NodeContext, x: SSAValue, axis: int, size: int, count: int) -> SSAValue:
    """The means of `count` windows along an axis."""
    b, shape = ctx.b, list(shape_of(x))
    if size % count == 0:
        split = [*shape[:axis], count, size // count, *shape[axis + 1 :]]
        return b.mean(b.reshape(x, split), [axis + 1])
    weights = np.zeros((size, count))
    for i in range(count):
        start, end = i * size // count, -(-(i + 1) * size // count)
        weights[start:end, i] = 1 / (end - start)
    product = b.dot(x, b.constant(weights, dtype_text(x.type)), DotDimensions((), (), (axis,), (0,)))
    rank = len(shape)
    return b.transpose(product, [*range(axis), rank - 1, *range(axis, rank - 1)])


imports_table({f"_adaptive_avg_pool{n}d": _adaptive_average(n) for n in (2, 3)})


def _running(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """Each element combined with all before it along an axis."""
        x = ctx.b.convert(ctx["self"], ctx.out_dtype())
        if not ctx.rank():
            return x
        unit = ctx.b.scalar_like(x, identity(op, dtype_text(x.type)))
        return running(ctx.b, x, ctx.axis(), lambda y, z: ctx.b.emit(op, y, z), unit)

    return run


imports_table({"cumsum": _running(hlo.AddOp), "cumprod": _running(hlo.MultiplyOp)})


@imports("_native_batch_norm_legit_no_training")
def batch_norm(ctx: NodeContext) -> Results:
    """(x - mean) / sqrt(variance + eps) * weight + bias along dimension 1, with the statistics given."""
    b, x = ctx.b, ctx["input"]
    mean, variance = ctx["running_mean"], ctx["running_var"]
    text = dtype_text(mean.type)
    scale = ctx["weight"] if ctx.has("weight") else b.full_like(mean, 1)
    offset = ctx["bias"] if ctx.has("bias") else b.full_like(mean, 0)
    found = b.emit(
        hlo.BatchNormInferenceOp, b.convert(x, text), scale, offset, mean, variance,
        epsilon=float(ctx.arg("eps")), feature_index=1,
    )  # fmt: skip
    empty = [b.full((0,), 0, text), b.full((0,), 0, text)]
    return [b.convert(found, element_of(x)), *empty]
