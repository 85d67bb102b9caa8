"""Attention: the composite where the node is plain attention, else ONNX's own definition of it."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_narrow_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir.composites import composite
from gcomp.ir.types import rank_of, shape_of


@imports("Attention", since=23)
def attention(ctx: NodeContext) -> Results:
    """Attention-23: as `gcomp.attention` without cache, cap, or boolean mask; heads may share keys and values.

    Narrow floats are computed with in f32, and rounded once: as ONNX Runtime does.
    """
    if ctx.has(6) and ctx.rank(6) != 1:
        ctx.invalid(f"its nonpad_kv_seqlen has rank {ctx.rank(6)}", "it must be a vector")
    _check_operands(ctx)
    _check_mask(ctx)
    if ctx.element() == ctx.element(1) and any(_is_narrow(v) for v in ctx.values[:3]):
        return _round_once(ctx)
    if not _is_plain(ctx):
        return ctx.importer.expand(ctx)
    heads, key_heads = ctx.integer("q_num_heads"), ctx.integer("kv_num_heads")
    query, key, value = _heads(ctx, 0, heads), _heads(ctx, 1, key_heads), _heads(ctx, 2, key_heads)
    batch, count, _, depth = shape_of(query)
    groups = dims.exact_div(count, shape_of(key)[1])
    if groups is None or not isinstance(depth, int) or not isinstance(groups, int):
        return ctx.importer.expand(ctx)
    key = ctx.restate(key, {0: batch, 3: depth})
    value = ctx.restate(value, {0: batch, 1: shape_of(key)[1], 2: shape_of(key)[2]})
    scale = ctx.number("scale", 1 / np.sqrt(depth))
    if not 0 < scale < np.inf:
        ctx.invalid(f"its scale is {scale}", "ONNX multiplies by its square root")
    y = attend(ctx, query, key, value, _mask(ctx, query, key), scale)
    return [y if ctx.rank() == 4 else merge_heads(ctx, y)]


def _is_narrow(value: AnyValue | None) -> bool:
    return isinstance(value, Value) and is_narrow_float(value.element)


def _round_once(ctx: NodeContext) -> Results:
    """The node on operands in f32; its results (the output, present key and value, scores) in their own types."""
    b = ctx.b
    values = [Value.of(b.widen(v.read(b))) if isinstance(v, Value) and _is_narrow(v) else v for v in ctx.values]
    wide = NodeContext(ctx.importer, ctx.scope, ctx.node, ctx.opset, values, ctx.where)
    elements = [ctx.element(i) for i in (0, 1, 2, 0)]
    results = [r.read(b) if isinstance(r, Value) else r for r in attention(wide)]
    return [b.convert(r, e) if isinstance(r, SSAValue) else r for r, e in zip(results, elements, strict=False)]


def split_heads(ctx: NodeContext, x: SSAValue, count: int) -> SSAValue:
    """(batch, sequence, heads * features) as (batch, heads, sequence, features)."""
    batch, length, width = shape_of(x)
    spread = ctx.b.reshape(x, (batch, length, count, ctx.divide_size(width, count, "features")))
    return ctx.b.transpose(spread, (0, 2, 1, 3))


def merge_heads(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """(batch, heads, sequence, features) as (batch, sequence, heads * features)."""
    batch, count, length, width = shape_of(x)
    return ctx.b.reshape(ctx.b.transpose(x, (0, 2, 1, 3)), (batch, length, count * width))


def attend(
    ctx: NodeContext, query: SSAValue, key: SSAValue, value: SSAValue, mask: SSAValue | None, scale: float
) -> SSAValue:
    """`gcomp.attention` on (batch, heads, sequence, features); the mask is added, and broadcasts to the scores.

    Heads of the query that share a head of the key are rows of one product: keys and values are not repeated.
    """
    b, (batch, heads, length, _) = ctx.b, shape_of(query)
    groups = ctx.static(dims.floordiv(heads, shape_of(key)[1]), "number of heads that share a key")
    if groups != 1:
        query = by_key_head(ctx, query, groups)
        mask = None if mask is None else mask_by_key_head(ctx, mask, groups, heads, length)
    masks = [] if mask is None else [mask]
    y = composite(b, "gcomp.attention", [query, key, value, *masks], {"scale": float(scale)})[0]
    return b.reshape(y, (batch, heads, length, shape_of(value)[3]))


def by_key_head(ctx: NodeContext, x: SSAValue, groups: int) -> SSAValue:
    """(batch, heads, sequence, n) as (batch, heads / groups, groups * sequence, n)."""
    batch, heads, length, width = shape_of(x)
    return ctx.b.reshape(x, (batch, dims.floordiv(heads, groups), groups * length, width))


def mask_by_key_head(ctx: NodeContext, mask: SSAValue, groups: int, heads: Size, length: Size) -> SSAValue:
    """What broadcasts to (batch, heads, sequence, keys), as what broadcasts to the scores of `by_key_head` queries."""
    b = ctx.b
    batch, own, rows, keys = (*[1] * (4 - rank_of(mask)), *shape_of(mask))
    mask = b.reshape(mask, (batch, own, rows, keys))
    if own == 1 and rows == 1:
        return mask
    if own == 1:
        wide = b.broadcast(mask, (batch, 1, groups, rows, keys), (0, 1, 3, 4))
        return b.reshape(wide, (batch, 1, groups * rows, keys))
    return by_key_head(ctx, b.broadcast(mask, (batch, heads, length, keys), range(4)), groups)


def _check_operands(ctx: NodeContext) -> None:
    """Raises InvalidModelError for queries, keys and values of different forms.

    ONNX's definition of the operator would take values of another length for other numbers than they are.
    """
    ranks = [ctx.rank(i) for i in range(3)]
    if ranks not in ([3, 3, 3], [4, 4, 4]):
        ctx.invalid(f"its inputs have ranks {ranks}", "three or four dims are expected, for all of them")
    if not 0 <= (cap := ctx.number("softcap")) < np.inf:
        ctx.invalid(f"its softcap is {cap}", "a bound of the scores is expected, or 0 for none")
    alike = [(0, 0, 1, 0, "batch"), (0, 0, 2, 0, "batch"), (1, -2, 2, -2, "length")]
    alike += [(1, 1, 2, 1, "number of heads")] if ranks[0] == 4 else []
    for i, a, j, c, what in alike:
        one, other = ctx.shape(i)[a], ctx.shape(j)[c]
        equal = ctx.ranges.equal(one, other)
        if equal is False:
            ctx.invalid(f"inputs {i} and {j} have the {what} {one} and {other}", "they must be the same")
        if equal is None:
            ctx.require("eq", one, other)


def _check_mask(ctx: NodeContext) -> None:
    """Raises InvalidModelError for a mask that does not broadcast to the scores; one of fewer keys is filled up."""
    if not ctx.has(3):
        return
    if not 1 <= ctx.rank(3) <= 4:
        ctx.invalid(f"its mask has rank {ctx.rank(3)}", "one to four dims are expected")
    past = ctx.shape(4)[-2] if ctx.has(4) and ctx.rank(4) > 1 else 0
    keys, width = past + ctx.shape(1)[-2], ctx.shape(3)[-1]
    if ctx.at_most(keys + 1, width):
        ctx.invalid(f"its mask is for {width} keys", f"there are {keys}")
    heads = ctx.shape()[1] if ctx.rank() == 4 else ctx.integer("q_num_heads")
    scores = (ctx.shape()[0], heads, ctx.shape()[-2])
    for size, wanted in zip(reversed(ctx.shape(3)[:-1]), reversed(scores), strict=False):
        if size != 1 and ctx.ranges.equal(size, wanted) is False:
            ctx.invalid(f"its mask has a dim of size {size}", f"the scores have {wanted} there")


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
    return ctx[index] if ctx.rank(index) == 4 else split_heads(ctx, ctx[index], count)


def _mask(ctx: NodeContext, query: SSAValue, key: SSAValue) -> SSAValue | None:
    """What is added to the scores."""
    b, masks = ctx.b, list[SSAValue]()
    shape = (shape_of(query)[2], shape_of(key)[2])
    if ctx.has(3):
        given = ctx[3]
        short = shape[1] - shape_of(given)[-1]
        if short != 0:
            rank = rank_of(given)
            lowest = b.scalar_like(given, -np.inf)
            given = b.pad(given, lowest, [0] * rank, [0] * (rank - 1) + [short])
        masks.append(given)
    if ctx.flag("is_causal"):
        seen = b.compare(b.iota(shape, 0), b.iota(shape, 1), "GE")
        zero, lowest = (b.scalar_like(query, v) for v in (0.0, -np.inf))
        masks.append(b.select(seen, zero, lowest))
    if len(masks) == 2:
        return b.add(masks[0], masks[1])
    return masks[0] if masks else None
