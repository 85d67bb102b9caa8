"""Pooling: the windows of `windows`, folded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.windows import Windows
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity, lowest
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import dtype_text, element_of, tensor


def _windows(ctx: NodeContext) -> Windows:
    if ctx.rank() < 3:
        ctx.invalid(f"its input has rank {ctx.rank()}", "(N, C, spatial...) is expected")
    return Windows.of(ctx, ctx.integers("kernel_shape") or [], ctx.shape()[2:])


def _fold(ctx: NodeContext, op: type[GraphOp], x: SSAValue, windows: Windows) -> SSAValue:
    """Each window folded with a binary op."""
    init = ctx.b.scalar_like(x, identity(op, dtype_text(x.type)))
    x, padding = windows.apply(ctx, x, init)
    region = scalar_region(op, element_of(x))
    return ctx.b.emit(hlo.ReduceWindowOp, x, init, regions=(region,), **_properties(windows, padding))


def _properties(windows: Windows, padding: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return {
        "window_dimensions": (1, 1, *windows.kernel),
        "window_strides": (1, 1, *windows.strides),
        "window_dilations": (1, 1, *windows.dilations),
        "padding": [(0, 0), (0, 0), *padding],
    }


@imports("MaxPool")
def max_pool(ctx: NodeContext) -> Results:
    """MaxPool: padding never wins; the second result is each maximum's place in the whole tensor."""
    windows = _windows(ctx)
    if not ctx.wants(1):
        return [_fold(ctx, hlo.MaximumOp, ctx[0], windows)]
    return _max_with_indices(ctx, windows)


def _max_with_indices(ctx: NodeContext, windows: Windows) -> Results:
    b, x = ctx.b, ctx[0]
    limit = int(np.iinfo(np.int64).max)
    start, nowhere = ctx.b.scalar_like(x, lowest(dtype_text(x.type))), b.constant(limit, "i64")
    places = _places(ctx)
    padded, padding = windows.apply(ctx, x, start)
    places, _ = windows.apply(ctx, places, nowhere)

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, at, other, there = args
        earlier = b.emit(hlo.AndOp, b.compare(other, value, "EQ"), b.compare(there, at, "LT"))
        chosen = b.emit(hlo.OrOp, b.compare(other, value, "GT"), earlier)
        return [b.select(chosen, other, value), b.select(chosen, there, at)]

    region = b.region([tensor((), element_of(x)), tensor((), "i64")] * 2, body)
    return b.emit_all(
        hlo.ReduceWindowOp, padded, places, start, nowhere, regions=(region,), **_properties(windows, padding)
    )


def _places(ctx: NodeContext) -> SSAValue:
    """Each element's position in the flattened tensor; `storage_order` 1 counts spatial dims column by column."""
    b, shape = ctx.b, ctx.shape()
    order = list(range(len(shape)))
    if ctx.flag("storage_order"):
        order = [0, 1, *reversed(order[2:])]
    total: SSAValue | None = None
    stride: Size = 1
    for axis in reversed(order):
        part = b.multiply(b.iota(shape, axis), b.dim(stride))
        total = part if total is None else b.add(total, part)
        stride = stride * shape[axis]
    return cast(SSAValue, total)


_TABLE_LIMIT = 1 << 20
"""Larger tables of counts are left to the program to compute: sizes come from the model, and may be anything."""


@imports("AveragePool")
def average_pool(ctx: NodeContext) -> Results:
    """AveragePool: sums divided by how many elements a window covers, padding counted on request."""
    x, windows = ctx[0], _windows(ctx)

    def run(x: SSAValue) -> SSAValue:
        return ctx.b.divide(_fold(ctx, hlo.AddOp, x, windows), _count_covered(ctx, x, windows))

    return [ctx.wide(x, run)]


def _count_covered(ctx: NodeContext, x: SSAValue, windows: Windows) -> SSAValue:
    """How many elements each window covers: a scalar where all cover the same."""
    b, counted = ctx.b, ctx.flag("count_include_pad")
    padded = any(p != 0 for p in (*windows.low, *windows.high))
    if not windows.ceil and (counted or not padded):
        return ctx.b.scalar_like(x, math.prod(windows.kernel))
    if any(isinstance(s, Dim) for s in windows.spatial) or _table_size(windows) > _TABLE_LIMIT:
        return _count_covered_symbolically(ctx, x, windows, counted)
    per_axis = [_count_covered_along(windows, i, counted) for i in range(len(windows.kernel))]
    total: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.ones((), np.float64)
    for counts in per_axis:
        total = np.multiply.outer(total, counts)
    if total.size == 0 or bool((total == total.flat[0]).all()):
        return ctx.b.scalar_like(x, float(total.flat[0]) if total.size else 1.0)
    return b.constant(total[None, None], dtype_text(x.type))


def _table_size(windows: Windows) -> int:
    """How many entries the largest table has that `_count_covered` would make."""
    counts = [max(cast(int, count), 0) for count in windows.counts()]
    return max(math.prod(counts), *(count * size for count, size in zip(counts, windows.kernel, strict=True)))


def _count_covered_along(windows: Windows, i: int, counted: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    size, low, high = (cast(int, s) for s in (windows.spatial[i], windows.low[i], windows.high[i]))
    starts = np.arange(cast(int, windows.counts()[i])) * windows.strides[i] - low
    places = starts[:, None] + np.arange(windows.kernel[i]) * windows.dilations[i]
    first, last = (-low, size + high) if counted else (0, size)
    return ((places >= first) & (places < last)).sum(axis=1).astype(np.float64)


def _count_covered_symbolically(ctx: NodeContext, x: SSAValue, windows: Windows, counted: bool) -> SSAValue:
    b = ctx.b
    spatial = tuple(windows.spatial)
    if counted:
        spatial = tuple(s + lo + hi for s, lo, hi in zip(spatial, windows.low, windows.high, strict=True))
        rest = windows.excess()
        none = (0,) * len(spatial)
        windows = Windows(spatial, windows.kernel, windows.strides, windows.dilations, none, rest)
    ones = b.full((1, 1, *spatial), 1, element_of(x))
    return _fold(ctx, hlo.AddOp, ones, windows)


def _norm(ctx: NodeContext) -> float:
    """The `p` of a p-norm: a float in opset 1, an integer since."""
    p = ctx.number("p", 2.0) if ctx.opset < 2 else ctx.integer("p", 2)
    if not 0 < p < math.inf:
        ctx.invalid(f"p is {p}", "a positive number is expected")
    return p


@imports("LpPool")
def lp_pool(ctx: NodeContext) -> Results:
    """LpPool: the p-norm of each window."""
    b, windows, p = ctx.b, _windows(ctx), _norm(ctx)

    def run(x: SSAValue) -> SSAValue:
        power = ctx.b.scalar_like(x, p)
        powers = b.binary(hlo.PowerOp, b.emit(hlo.AbsOp, x), power)
        total = _fold(ctx, hlo.AddOp, powers, windows)
        return b.binary(hlo.PowerOp, total, ctx.b.scalar_like(total, 1 / p))

    return [ctx.wide(ctx[0], run)]


@imports("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(ctx: NodeContext) -> Results:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool: all spatial dims become 1."""
    b, axes = ctx.b, list(range(2, ctx.rank()))

    def run(x: SSAValue) -> SSAValue:
        if ctx.op_type == "GlobalMaxPool":
            return b.reduce(hlo.MaximumOp, x, axes, keepdims=True)
        if ctx.op_type == "GlobalAveragePool":
            return b.mean(x, axes, keepdims=True)
        p = _norm(ctx)
        powers = b.binary(hlo.PowerOp, b.emit(hlo.AbsOp, x), ctx.b.scalar_like(x, p))
        total = b.reduce(hlo.AddOp, powers, axes, keepdims=True)
        return b.binary(hlo.PowerOp, total, ctx.b.scalar_like(total, 1 / p))

    return [ctx.wide(ctx[0], run)]


@imports("MaxUnpool")
def max_unpool(ctx: NodeContext) -> Results:
    """MaxUnpool: values put back at the places that MaxPool reported, zero elsewhere."""
    from gcomp.ir.attributes import ScatterDimensions

    b, x, shape = ctx.b, ctx[0], ctx.shape()
    kernel = ctx.integers("kernel_shape") or []
    n = ctx.rank() - 2
    strides, pads = ctx.integers("strides") or [1] * n, ctx.integers("pads") or [0] * (2 * n)
    if n < 1 or len(kernel) != n or len(strides) != n or min(kernel) < 1 or min(strides) < 1:
        ctx.invalid(f"kernel_shape is {kernel} and strides {strides}", f"{n} positive sizes are expected")
    if len(pads) != 2 * n or min(pads) < 0:
        ctx.invalid(f"pads is {pads}", f"{2 * n} numbers from 0 on are expected")
    inferred = [(shape[2 + i] - 1) * strides[i] - pads[i] - pads[n + i] + kernel[i] for i in range(n)]
    natural: list[Size] = [*shape[:2], *inferred]
    given = operand_sizes(ctx, 2, "output_shape") if ctx.has(2) else natural
    if len(given) != ctx.rank() or any(ctx.at_most(size, -1) for size in given):
        ctx.invalid(f"the result has sizes {', '.join(map(str, given))}", f"{ctx.rank()} from 0 on are expected")
    count = dims.product(shape)
    indices = b.reshape(ctx[1], (count, 1))
    if given != natural:
        indices = _move_places(ctx, indices, natural, given)
    scalar = tensor((), element_of(x))
    region = b.region([scalar, scalar], lambda args: [args[1]])
    flat = b.emit(
        hlo.ScatterOp,
        b.full((dims.product(given),), 0, element_of(x)),
        indices,
        b.reshape(x, (count,)),
        regions=(region,),
        scatter_dimension_numbers=ScatterDimensions((), (0,), (), (), (0,), 1),
    )
    return [b.reshape(flat, given)]


def _move_places(ctx: NodeContext, indices: SSAValue, source: Sequence[Size], target: Sequence[Size]) -> SSAValue:
    """Flat places in a tensor of shape `source` as flat places in one of shape `target`."""
    b = ctx.b
    rest, total, stride = indices, b.full_like(indices, 0), cast(Size, 1)
    for old, new in zip(reversed(source), reversed(target), strict=True):
        size = b.dim(old)
        at = b.binary(hlo.RemainderOp, rest, size)
        total = b.add(total, b.multiply(at, b.dim(stride)))
        rest, stride = b.divide(rest, size), stride * new
    return total
