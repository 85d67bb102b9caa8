"""Attention: the composite where the node is plain attention, else ONNX's own definition of it."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.ir.types import element_of, rank_of, shape_of


@imports("Attention", since=23)
def attention(ctx: NodeContext) -> Results:
    """Attention-23: as `gcomp.attention` without cache, cap, or boolean mask; grouped heads are repeated."""
    if not _is_plain(ctx):
        return ctx.importer.expand(ctx)
    b = ctx.b
    heads, key_heads = ctx.integer("q_num_heads"), ctx.integer("kv_num_heads")
    query, key, value = _heads(ctx, 0, heads), _heads(ctx, 1, key_heads), _heads(ctx, 2, key_heads)
    count, depth = shape_of(query)[1], shape_of(query)[3]
    groups = dims.exact_div(count, shape_of(key)[1])
    if groups is None or not isinstance(depth, int) or not isinstance(groups, int):
        return ctx.importer.expand(ctx)
    key, value = (_repeated(ctx, v, groups) for v in (key, value))
    key = ctx.restated(key, {0: shape_of(query)[0], 1: count, 3: depth})
    value = ctx.restated(value, {0: shape_of(query)[0], 1: count, 2: shape_of(key)[2]})
    scale = ctx.number("scale", 1 / np.sqrt(depth))
    mask = _mask(ctx, query, key)
    y = b.composite("gcomp.attention", [query, key, value, *mask], {"scale": float(scale)})[0]
    if ctx.rank() == 4:
        return [y]
    batch, _, length, width = shape_of(y)
    return [b.reshape(b.transpose(y, (0, 2, 1, 3)), (batch, length, count * width))]


_ATTRIBUTES = {"q_num_heads", "kv_num_heads", "scale", "is_causal", "softcap", "qk_matmul_output_mode"}
"""The attributes that plain attention may have; others (windows, precisions) change its meaning."""


def _is_plain(ctx: NodeContext) -> bool:
    if not ctx.node.attributes.keys() <= _ATTRIBUTES:
        return False
    extra = any(ctx.has(i) for i in range(4, 7)) or any(ctx.wants(i) for i in (1, 2, 3))
    masked = ctx.has(3) and (ctx.element(3) != ctx.element() or ctx.rank(3) > 4)
    alike = ctx.element() == ctx.element(1) == ctx.element(2) and ctx.element() in ("f32", "f64")
    return alike and not extra and not masked and not ctx.number("softcap")


def _heads(ctx: NodeContext, index: int, count: int) -> SSAValue:
    """An operand as (batch, heads, sequence, features)."""
    x, shape = ctx[index], ctx.shape(index)
    if len(shape) == 4:
        return x
    width = ctx.divided(shape[2], count, "features")
    return ctx.b.transpose(ctx.b.reshape(x, (shape[0], shape[1], count, width)), (0, 2, 1, 3))


def _repeated(ctx: NodeContext, x: SSAValue, times: int) -> SSAValue:
    if times == 1:
        return x
    batch, heads, length, width = shape_of(x)
    wide = ctx.b.broadcast(x, (batch, heads, times, length, width), (0, 1, 3, 4))
    return ctx.b.reshape(wide, (batch, heads * times, length, width))


def _mask(ctx: NodeContext, query: SSAValue, key: SSAValue) -> list[SSAValue]:
    """What is added to the scores."""
    b, masks = ctx.b, list[SSAValue]()
    shape = (shape_of(query)[2], shape_of(key)[2])
    if ctx.has(3):
        given = ctx[3]
        short = shape[1] - shape_of(given)[-1]
        if short != 0:
            rank = rank_of(given)
            lowest = b.full((), -np.inf, element_of(given))
            given = b.pad(given, lowest, [0] * rank, [0] * (rank - 1) + [short])
        masks.append(given)
    if ctx.flag("is_causal"):
        seen = b.compare(b.iota(shape, 0), b.iota(shape, 1), "GE")
        zero, lowest = (b.full((), v, element_of(query)) for v in (0.0, -np.inf))
        masks.append(b.select(seen, zero, lowest))
    if len(masks) == 2:
        masks = [b.add(masks[0], masks[1])]
    return masks
