"""Importers of com.microsoft: attention whose heads of queries share heads of keys, with the caches of decoders."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_sizes
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.attention import merge_heads, split_heads
from gcomp.frontends.onnx.operators.microsoft.attention import scale_of
from gcomp.frontends.onnx.operators.microsoft.rotary import rotate_heads
from gcomp.frontends.onnx.operators.microsoft.scores import (
    Keys,
    attend_by_steps,
    bias_checked,
    cache_checked,
    compute_attention,
    place_positions,
)
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive, wide_type
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.types import rank_of, shape_of

_INPUTS = (
    "query:T[3] key:T[3]? value:T[3]? past_key:any[4]? past_value:any[4]? seqlens_k:i32 total_sequence_length:i32 "
    "cos_cache:T[2]? sin_cache:T[2]? position_ids:i64[2]? attention_bias:T[4]? head_sink:T[1]? k_scale:f32? "
    "v_scale:f32? q_norm_weight:T[1]? k_norm_weight:T[1]?"
)
_ATTRIBUTES = (
    "num_heads! kv_num_heads! scale softcap local_window_size do_rotary rotary_interleaved smooth_softmax causal "
    "qk_output qk_norm_epsilon sliding_window_cache kv_cache_bit_width k_quant_type v_quant_type"
)


@contrib("GroupQueryAttention", _INPUTS, _ATTRIBUTES)
def group_query_attention(ctx: NodeContext) -> Results:
    """GroupQueryAttention: causal attention of new positions and of those that a cache holds.

    Row i of the batch holds `seqlens_k[i] + 1` positions after the step. The present is as long as the past or as
    `total_sequence_length`, whichever is more: so a buffer keeps its length, and a cache without room grows. Positions
    of the present beyond a row's own are the past's, or 0 (ONNX Runtime makes them 0 unless the buffer is shared).
    """
    _check_supported(ctx)
    query, key, value = _heads(ctx)
    batch, _, length, _ = shape_of(query)
    total = operand_sizes(ctx, 6, "total sequence length")
    if len(total) != 1:
        ctx.invalid(f"total_sequence_length has {len(total)} numbers", "one is expected")
    ends = _ends(ctx, batch)
    starts = _starts(ctx, ends, length, total[0])
    if ctx.flag("do_rotary"):
        query, key = _rotate(ctx, query, key, starts, length, total[0])
    keys, present = _update_cache(ctx, key, value, starts, total[0])
    y, scores = _attend(ctx, query, keys, _visible_keys(ctx, length, total[0], starts, ends))
    return [merge_heads(ctx, y), *present, scores]


_PRECISE = ("", "NONE")
_PAIRS = {
    1: "key and value",
    3: "past_key and past_value",
    7: "cos_cache and sin_cache",
    14: "q_norm_weight and k_norm_weight",
}
"""Input -> the names of it and of the next, which goes with it."""


def _check_supported(ctx: NodeContext) -> None:
    """Raises for what gcomp does not import, and for combinations that do not exist."""
    if ctx.flag("sliding_window_cache"):
        ctx.unsupported("its cache is a sliding window", fix="export the model with a cache of all positions")
    kinds = ctx.string("k_quant_type", "NONE"), ctx.string("v_quant_type", "NONE")
    stored = {ctx.element(i) for i in (3, 4) if ctx.has(i)} | {ctx.element()}
    if any(kind not in _PRECISE for kind in kinds) or ctx.has(12) or ctx.has(13) or len(stored) > 1:
        ctx.unsupported("its cache is quantized", fix="export the model with a cache of the queries' dtype")
    for first, names in _PAIRS.items():
        if ctx.has(first) != ctx.has(first + 1):
            ctx.invalid(f"one of {names} is missing", "they go together")
    if ctx.flag("do_rotary") and not ctx.has(7):
        ctx.invalid("it turns features without tables of angles", "do_rotary needs cos_cache and sin_cache")
    window = ctx.integer("local_window_size", -1)
    if window == 0 or window < -1 or (window > 0 and not ctx.flag("causal", True)):
        ctx.invalid(f"local_window_size is {window}", "it is positive and for causal attention, or -1 (none)")
    qk = ctx.integer("qk_output")
    if qk not in (0, 1, 2) or (ctx.wants(3) and not qk):
        ctx.invalid(f"qk_output is {qk}", "it must be 0, 1 or 2, and 1 or 2 where output_qk is named")
    if ctx.number("softcap") < 0:
        ctx.invalid(f"softcap is {ctx.number('softcap')}", "it must not be negative")


def _heads(ctx: NodeContext) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Queries, keys and values as (batch, heads, sequence, features), normalized on request."""
    b, heads, shared = ctx.b, positive(ctx, "num_heads"), positive(ctx, "kv_num_heads")
    if heads % shared:
        ctx.invalid(f"num_heads is {heads} and kv_num_heads {shared}", "one must be a multiple of the other")
    if ctx.has(1):
        query, key, value = (split_heads(ctx, ctx[i], n) for i, n in ((0, heads), (1, shared), (2, shared)))
    else:
        packed = split_heads(ctx, ctx[0], heads + 2 * shared)
        limits = (0, heads, heads + shared, heads + 2 * shared)
        query, key, value = (b.slice_axis(packed, 1, limits[i], limits[i + 1]) for i in range(3))
    batch, _, length, width = shape_of(query)
    key, value = (ctx.restate(v, {0: batch, 2: length, 3: width}) for v in (key, value))
    if ctx.has(14):
        query, key = _normalize(ctx, query, 14), _normalize(ctx, key, 15)
    return query, key, value


def _normalize(ctx: NodeContext, x: SSAValue, index: int) -> SSAValue:
    scale = ctx.vector(index, shape_of(x)[3])
    attributes = {"axis": 3, "epsilon": float(ctx.number("qk_norm_epsilon", 1e-6))}
    return composite(ctx.b, "gcomp.rms_norm", [x, scale], attributes)[0]


# ---- places ------------------------------------------------------------------------------------------------------


def _ends(ctx: NodeContext, batch: Size) -> SSAValue:
    """How many positions each row of the batch holds after the step, i32[batch]."""
    lengths = ctx[5]
    if rank_of(lengths) == 2:
        lengths = ctx.b.reshape(ctx.restate(lengths, {0: batch, 1: 1}), (batch,))
    elif rank_of(lengths) != 1:
        ctx.invalid(f"seqlens_k has rank {rank_of(lengths)}", "one number for each row of the batch is expected")
    lengths = ctx.restate(lengths, {0: batch})
    return ctx.b.add(lengths, ctx.b.scalar_like(lengths, 1))


def _in_prompt(ctx: NodeContext, length: Size, total: Size, first: SSAValue, else_: SSAValue) -> SSAValue:
    """`first` in a first prompt, whose positions are all there are, else the other."""
    prompt = ctx.ranges.equal(total, length)
    if prompt is None:
        b = ctx.b
        return b.select(b.compare(b.dim(total, "i32"), b.dim(length, "i32"), "EQ"), first, else_)
    return first if prompt else else_


def _starts(ctx: NodeContext, ends: SSAValue, length: Size, total: Size) -> SSAValue:
    """How many positions each row held before the step, i32[batch]: none in a prompt, whatever it is padded to."""
    b = ctx.b
    return _in_prompt(ctx, length, total, b.full_like(ends, 0), b.subtract(ends, b.dim(length, "i32")))


def _positions(ctx: NodeContext, starts: SSAValue, length: Size, total: Size) -> SSAValue:
    """The positions that queries and keys are turned by, i64[batch or 1, sequence]."""
    b, batch = ctx.b, shape_of(starts)[0]
    steps = b.reshape(b.iota((length,), 0), (1, length))
    if not ctx.has(9):
        return b.add(b.reshape(b.convert(starts, "i64"), (batch, 1)), steps)
    given = ctx.restate(ctx[9], {0: batch, 1: length})
    # The operator's own words: of a first prompt, only the first element is used.
    first = b.add(b.slice(given, (0, 0), (1, 1)), steps)
    return _in_prompt(ctx, length, total, b.broadcast_to(first, (batch, length)), given)


def _rotate(
    ctx: NodeContext, query: SSAValue, key: SSAValue, starts: SSAValue, length: Size, total: Size
) -> tuple[SSAValue, SSAValue]:
    places, turn = _positions(ctx, starts, length, total), ctx.flag("rotary_interleaved")
    return rotate_heads(ctx, query, 7, places, interleaved=turn), rotate_heads(ctx, key, 7, places, interleaved=turn)


def _update_cache(
    ctx: NodeContext, key: SSAValue, value: SSAValue, starts: SSAValue, total: Size
) -> tuple[Keys, list[SSAValue]]:
    """The keys that scores are made with, `total` of them, and the present keys and values."""
    b, length = ctx.b, shape_of(key)[2]
    if not ctx.has(3):
        # Without a past the new positions are all there are.
        key, value = (ctx.restate(v, {2: total}) for v in (key, value))
        return Keys(key, value, total, 0), [key, value]
    if not ctx.at_most(length, total):
        if ctx.ranges.less_equal(length, total) is False:
            ctx.invalid(f"total_sequence_length is {total}", f"the step alone has {length}")
        ctx.require("le", length, total)
    present: list[SSAValue] = []
    room: Size | None = None
    for index, new in ((3, key), (4, value)):
        past = cache_checked(ctx, ctx[index], new)
        past = past if room is None else ctx.restate(past, {2: shape_of(ctx[3])[2]})
        room = ctx.greater(total, shape_of(past)[2])
        grown = b.pad(past, ctx.b.scalar_like(past, 0), [0] * 4, [0, 0, room - shape_of(past)[2], 0])
        present.append(place_positions(ctx, ctx.restate(grown, {2: room}), new, starts))
    used = [b.slice_axis(v, 2, 0, total) for v in present]
    return Keys(used[0], used[1], total, 0), present


# ---- scores ------------------------------------------------------------------------------------------------------


def _visible_keys(ctx: NodeContext, length: Size, total: Size, starts: SSAValue, ends: SSAValue) -> SSAValue:
    """Whether a row sees a key, i1[batch, 1, rows, keys]."""
    b, batch = ctx.b, shape_of(starts)[0]
    shape = (batch, 1, length, total)
    column, end = b.iota(shape, 3, "i32"), b.reshape(ends, (batch, 1, 1, 1))
    if not ctx.flag("causal", True):
        return b.compare(column, b.broadcast_to(end, shape), "LT")
    row = b.add(b.iota((batch, 1, length, 1), 2, "i32"), b.reshape(starts, (batch, 1, 1, 1)))
    # A row that is padding stands for the last that is none: it sees what there is, and its result is a number.
    row = b.minimum(row, b.subtract(end, ctx.b.scalar_like(end, 1)))
    seen = b.compare(column, b.broadcast_to(row, shape), "LE")
    window = ctx.integer("local_window_size", -1)
    if window < 1:
        return seen
    oldest = b.subtract(row, b.full((), window, "i32"))
    return b.emit(hlo.AndOp, seen, b.compare(column, b.broadcast_to(oldest, shape), "GT"))


def _attend(ctx: NodeContext, query: SSAValue, keys: Keys, seen: SSAValue) -> tuple[SSAValue, SSAValue | None]:
    """The result, and on request the scores (0 where a row does not see a key) or the weights."""
    b, heads = ctx.b, shape_of(query)[1]
    element, scale, cap = wide_type(ctx.element()), scale_of(ctx, query), float(ctx.number("softcap"))
    zero = b.full((), 0, element)
    bias = bias_checked(ctx, 10, query, keys) if ctx.has(10) else None
    mask = b.select(seen, zero if bias is None else b.convert(bias, element), b.full((), -np.inf, element))
    wanted = ctx.integer("qk_output") if ctx.wants(3) else 0
    sink = ctx.vector(11, heads) if ctx.has(11) else None
    if sink is None and ctx.integer("smooth_softmax") == 1:
        sink = b.full((heads,), 0, element)
    if not cap and sink is None and not wanted:
        return compute_attention(ctx, query, keys.key, keys.value, mask, scale), None
    y, scores, weights = attend_by_steps(ctx, query, keys.key, keys.value, mask, scale=scale, cap=cap, sink=sink)
    if not wanted:
        return y, None
    return y, b.convert(weights if wanted == 2 else b.select(seen, scores, zero), ctx.element())
