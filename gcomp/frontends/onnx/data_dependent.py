"""Operators whose result sizes depend on data: imported where the data is constant."""

from __future__ import annotations

import numpy as np

from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.indexing import take
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.frontends.onnx.values import Value
from gcomp.ir.types import shape_of


@imports("NonZero")
def non_zero(ctx: NodeContext) -> Results:
    """NonZero: coordinates in row-major order, one column for each element that is not 0."""
    found = np.nonzero(np.atleast_1d(ctx.constant(0, "number of elements that are not 0")))
    return [Value.constant(np.stack(found).astype(np.int64))]


@imports("Compress")
def compress(ctx: NodeContext) -> Results:
    """Compress: the slices for which a condition holds."""
    b, x = ctx.b, ctx[0]
    chosen = np.flatnonzero(ctx.constant(1, "condition"))
    axis = ctx.attribute("axis")
    if axis is None:
        x, position = b.reshape(x, (_count(ctx),)), 0
    else:
        position = ctx.axis(ctx.integer("axis"), ctx.rank())
    return [take(b, x, b.constant(chosen.astype(np.int64)), position)]


def _count(ctx: NodeContext) -> int:
    from gcomp import dims

    return ctx.static(dims.product(shape_of(ctx[0])), "number of elements")


@imports("Unique")
def unique(ctx: NodeContext) -> Results:
    """Unique: distinct elements or slices, sorted or in order of appearance, with where they are and how many."""
    x = ctx.constant(0, "number of distinct elements")
    axis = None if ctx.attribute("axis") is None else ctx.axis(ctx.integer("axis"), ctx.rank())
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ctx.flag("sorted", True):
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        inverse = np.argsort(order)[inverse]
        first, counts = first[order], counts[order]
    return [Value.constant(values), *(Value.constant(v.astype(np.int64)) for v in (first, inverse, counts))]
