"""Sizes whose formulas grow too large get symbols of their own: a host step binds each to the formula's value."""

from __future__ import annotations

import numpy as np

from gcomp.dims import Dim, Range, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_symbol, host
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.ir.types import tensor

_LONG = 48
"""A formula of more characters gets a symbol, once formulas do not fit any more."""


def shorten_sizes(ctx: NodeContext) -> NodeContext | None:
    """The node with symbols in place of long formulas in its operands; None where there is none to shorten.

    Inside of loops and branches, where no host step may stand, there is none either.
    """
    if ctx.b.point.block is not ctx.b.program.block:
        return None
    tensors = [v for v in ctx.values if isinstance(v, Value)]
    long = dict.fromkeys(s for v in tensors for s in _sizes(v) if isinstance(s, Dim) and len(str(s)) > _LONG)
    if not long:
        return None
    table = ctx.importer.short
    if fresh := [size for size in long if size not in table]:
        symbols = [_symbol(ctx, size) for size in fresh]
        vector = ctx.b.concatenate([ctx.b.reshape(ctx.b.dim(size), (1,)) for size in fresh], 0)
        role = f"sizes before {ctx.where.rsplit(': ', 1)[-1]}"
        host(ctx, "extents", [vector], [tensor((*symbols, 0), "i1")], {"role": role})
        table.update(zip(fresh, symbols, strict=True))
    return NodeContext(ctx.importer, ctx.scope, ctx.node, ctx.opset, [_restate(ctx, v) for v in ctx.values], ctx.where)


def _sizes(value: Value) -> list[Size]:
    known = value.known
    return [*value.shape, *(known.reshape(-1).tolist() if known is not None and known.dtype == object else ())]


def _symbol(ctx: NodeContext, size: Dim) -> Dim:
    """A symbol with the bounds of a formula."""
    low, high = ctx.ranges.bounds(size)
    symbol = data_dependent_symbol(ctx, size)
    known = Range(max(0, int(low)) if low is not None else 0, None if high is None else int(high))
    ctx.importer.data_dependent.ranges[str(symbol)] = known
    ctx.importer.ranges = ctx.ranges.with_ranges({str(symbol): known})
    return symbol


def _restate(ctx: NodeContext, value: AnyValue | None) -> AnyValue | None:
    table = ctx.importer.short
    if not isinstance(value, Value) or not any(size in table for size in _sizes(value)):
        return value
    if value.known is not None:
        known: Array = np.empty(value.known.size, object)
        known[:] = [table.get(s, s) if isinstance(s, Dim) else s for s in value.known.reshape(-1).tolist()]
        return Value(value.element, known.reshape(value.known.shape), None)
    shape = [table.get(size, size) if isinstance(size, Dim) else size for size in value.shape]
    return Value.of(ctx.b.reshape(value.read(ctx.b), shape))
