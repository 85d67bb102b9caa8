"""Importers of com.microsoft: attention with one head of keys for each head of queries."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.attention import merge_heads, split_heads
from gcomp.frontends.onnx.operators.microsoft.scores import (
    Keys,
    append_keys,
    attend_by_steps,
    bias_checked,
    causal,
    compute_attention,
    hiding,
    join_masks,
    key_mask,
    write_keys,
    written_positions,
)
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive, wide_type
from gcomp.ir.types import rank_of, shape_of


def scale_of(ctx: NodeContext, query: SSAValue) -> float:
    """The attribute `scale`, or (absent or 0) the inverse root of the size of a head."""
    given, size = ctx.number("scale"), ctx.static(shape_of(query)[3], "size of a head")
    if size < 1:
        ctx.invalid(f"a head has {size} features", "one or more are expected")
    return float(given) if given else size**-0.5


# ---- Attention ---------------------------------------------------------------------------------------------------


@contrib(
    "Attention",
    "input:T[3] weights:T[2] bias:T[1]? mask_index:i32[1|2|3|4]? past:T[5]? attention_bias:T[4]? "
    "past_sequence_length:i32?",
    "num_heads! unidirectional qkv_hidden_sizes scale mask_filter_value do_rotary rotary_embedding_dim "
    "past_present_share_buffer",
)
def attention(ctx: NodeContext) -> Results:
    """Attention: queries, keys and values by one product of the input; keys and values before them may be cached."""
    if ctx.flag("do_rotary"):
        ctx.unsupported("it turns queries and keys by angles of its own", fix="export RotaryEmbedding nodes instead")
    b, heads = ctx.b, positive(ctx, "num_heads")
    query, key, value = (split_heads(ctx, v, heads) for v in _project(ctx))
    past = None
    if ctx.has(4):
        halves = (b.slice_axis(ctx.restate(ctx[4], {0: 2}), 0, i, i + 1) for i in (0, 1))
        past = [b.reshape(v, ctx.shape(4)[1:]) for v in halves]
    keys = _with_past(ctx, past, key, value, ctx.get(6) if ctx.flag("past_present_share_buffer") else None)
    mask = _mask(ctx, 3, 5, keys, query, causal_rows=ctx.flag("unidirectional"))
    y = compute_attention(ctx, query, keys.key, keys.value, mask, scale_of(ctx, query))
    present = None
    if ctx.wants(1):
        if shape_of(keys.key) != shape_of(keys.value):
            ctx.invalid("it has a present and values of another width than keys", "they are one tensor")
        present = b.concatenate([b.reshape(v, (1, *shape_of(v))) for v in (keys.key, keys.value)], 0)
    return [merge_heads(ctx, y), present]


def _project(ctx: NodeContext) -> list[SSAValue]:
    """The input's product with the weights plus bias, cut into queries, keys and values."""
    b, x = ctx.b, ctx.matmul(ctx[0], ctx[1])
    width = ctx.static(shape_of(x)[2], "number of features")
    if ctx.has(2):
        x = b.add(x, b.broadcast(ctx.vector(2, width), shape_of(x), (2,)))
    sizes = ctx.integers("qkv_hidden_sizes") or [width // 3] * 3
    if len(sizes) != 3 or min(sizes) < 1 or sum(sizes) != width or sizes[0] != sizes[1]:
        ctx.invalid(f"queries, keys and values have {sizes} features", f"the weights make {width}, keys as queries")
    starts = (0, sizes[0], sizes[0] + sizes[1])
    return [b.slice_axis(x, 2, start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _with_past(
    ctx: NodeContext, past: list[SSAValue] | None, key: SSAValue, value: SSAValue, count: SSAValue | None
) -> Keys:
    """All keys and values: the node's own after cached ones, or in buffers that hold `count` before them."""
    if past is None:
        return Keys(key, value, shape_of(key)[2], 0)
    if count is None:
        return append_keys(ctx, past[0], past[1], key, value)
    if shape_of(count) not in ((), (1,)):
        ctx.invalid(f"past_sequence_length has shape {list(shape_of(count))}", "one number is expected")
    return write_keys(ctx, past[0], past[1], key, value, count)


def _mask(ctx: NodeContext, mask: int, bias: int, keys: Keys, query: SSAValue, *, causal_rows: bool) -> SSAValue | None:
    """What is added to the scores: padding, causality, and the operand `bias`."""
    batch, _, length, _ = shape_of(query)
    element = wide_type(ctx.element())
    padding = key_mask(ctx, mask, batch, length, keys, element) if ctx.has(mask) else None
    # One row sees all keys that there are.
    seen = causal(ctx, length, keys) if causal_rows and length != 1 else written_positions(ctx, length, keys)
    added = bias_checked(ctx, bias, query, keys) if ctx.has(bias) else None
    return join_masks(ctx, element, hiding(ctx, seen, padding, element), added)


# ---- MultiHeadAttention ------------------------------------------------------------------------------------------


@contrib(
    "MultiHeadAttention",
    "query:T[3|5] key:T[3|4|5]? value:T[3|4]? bias:T[1]? key_padding_mask:i32[1|2|3]? attention_bias:T[4]? "
    "past_key:T[4]? past_value:T[4]? past_sequence_length:i32? cache_indirection:i32[3]?",
    "num_heads! unidirectional scale mask_filter_value",
)
def multi_head_attention(ctx: NodeContext) -> Results:
    """MultiHeadAttention: of separate queries, keys and values, or packed ones; keys before them may be cached."""
    if ctx.has(9):
        ctx.unsupported("its cache is shared by beams (cache_indirection)")
    _check_pair(ctx, 6, 7, "past_key", "past_value")
    query, key, value = _operands(ctx, positive(ctx, "num_heads"), bias=3)
    if ctx.has(6) and ctx.has(1) and ctx.rank(1) == 4:
        ctx.invalid("it has a cache and keys that are one", "past_key is for keys of rank 3")
    past = [ctx[6], ctx[7]] if ctx.has(6) else None
    keys = _with_past(ctx, past, key, value, ctx.get(8))
    mask = _mask(ctx, 4, 5, keys, query, causal_rows=ctx.flag("unidirectional"))
    return _results(ctx, query, keys, mask)


def _results(ctx: NodeContext, query: SSAValue, keys: Keys, mask: SSAValue | None) -> Results:
    """The output, the cache, and on request the scores."""
    scale = scale_of(ctx, query)
    if not ctx.wants(3):
        return [
            merge_heads(ctx, compute_attention(ctx, query, keys.key, keys.value, mask, scale)),
            keys.key,
            keys.value,
        ]
    y, scores, _ = attend_by_steps(ctx, query, keys.key, keys.value, mask, scale=scale)
    return [merge_heads(ctx, y), keys.key, keys.value, ctx.b.convert(scores, ctx.element())]


def _check_pair(ctx: NodeContext, first: int, second: int, *names: str) -> None:
    if ctx.has(first) != ctx.has(second):
        ctx.invalid(f"one of {' and '.join(names)} is missing", "they go together")


def _operands(ctx: NodeContext, heads: int, bias: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Queries, keys and values as (batch, heads, sequence, features), with their biases."""
    if ctx.rank() == 5:
        return _unpack(ctx, 0, 3, heads, bias)
    if not ctx.has(1):
        ctx.invalid("it has no keys", "only queries of rank 5 hold them too")
    if ctx.rank(1) == 5:
        if ctx.has(2) or ctx.has(bias):
            ctx.invalid("it has packed keys and values, and values or biases too", "they go without")
        key, value = _parts(ctx, 1, 2, heads)
        query = split_heads(ctx, ctx[0], heads)
        return query, *_match(ctx, query, key, value)
    if not ctx.has(2) or ctx.rank(2) != ctx.rank(1):
        ctx.invalid(f"it has keys of rank {ctx.rank(1)} and values of another", "they go together")
    if ctx.rank(1) == 4:
        # Such keys and values are complete: only the queries' part of the bias is added.
        query = split_heads(ctx, _query_biased(ctx, bias), heads)
        return query, *_match(ctx, query, ctx[1], ctx[2])
    flat = _add_biases(ctx, [ctx[0], ctx[1], ctx[2]], bias)
    query, key, value = (split_heads(ctx, v, heads) for v in flat)
    return query, *_match(ctx, query, key, value)


def _match(ctx: NodeContext, query: SSAValue, key: SSAValue, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Keys and values whose batch, heads and features fit the queries."""
    batch, heads, _, width = shape_of(query)
    key = ctx.restate(key, {0: batch, 1: heads, 3: width})
    return key, ctx.restate(value, {0: batch, 1: heads, 2: shape_of(key)[2]})


def _parts(ctx: NodeContext, index: int, count: int, heads: int) -> list[SSAValue]:
    """The parts of an operand (batch, sequence, heads, parts, features), as (batch, heads, sequence, features)."""
    b, x = ctx.b, ctx.restate(ctx[index], {2: heads, 3: count})
    batch, length, _, _, width = shape_of(x)
    cut = (b.reshape(b.slice_axis(x, 3, i, i + 1), (batch, length, heads, width)) for i in range(count))
    return [b.transpose(v, (0, 2, 1, 3)) for v in cut]


def _unpack(ctx: NodeContext, index: int, count: int, heads: int, bias: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Queries, keys and values of one operand."""
    if ctx.has(1) or ctx.has(2):
        ctx.invalid("its queries hold keys and values, and there are others", "they go without")
    parts = _parts(ctx, index, count, heads)
    flat = _add_biases(ctx, [merge_heads(ctx, v) for v in parts], bias) if ctx.has(bias) else []
    query, key, value = [split_heads(ctx, v, heads) for v in flat] or parts
    return query, key, value


def _add_biases(ctx: NodeContext, values: list[SSAValue], index: int) -> list[SSAValue]:
    """Queries, keys and values (batch, sequence, features), plus their parts of one bias."""
    if not ctx.has(index):
        return values
    b, results = ctx.b, list[SSAValue]()
    widths = [ctx.static(shape_of(v)[2], "number of features") for v in values]
    bias, start = ctx.vector(index, sum(widths)), 0
    for x, width in zip(values, widths, strict=True):
        part = b.slice_axis(bias, 0, start, start + width)
        results.append(b.add(x, b.broadcast(part, shape_of(x), (2,))))
        start += width
    return results


def _query_biased(ctx: NodeContext, index: int) -> SSAValue:
    b, x = ctx.b, ctx[0]
    if not ctx.has(index):
        return x
    width, own = ctx.static(shape_of(x)[2], "number of features"), ctx.static(ctx.shape(index)[0], "size of the bias")
    if own < width:
        ctx.invalid(f"the bias has {own} numbers", f"the queries have {width} features")
    return b.add(x, b.broadcast(b.slice_axis(ctx[index], 0, 0, width), shape_of(x), (2,)))


# ---- decoders ----------------------------------------------------------------------------------------------------


@contrib(
    "DecoderMaskedMultiHeadAttention",
    "query:T[3] key:T[3|4]? value:T[3|4]? mask_index:i32[2]? attention_bias:T[4]? past_key:T[4]? past_value:T[4]? "
    "past_sequence_length:i32? beam_width:i32? cache_indirection:i32[3]? bias:T[1]?",
    "num_heads! past_present_share_buffer output_qk scale mask_filter_value",
)
def decoder_masked_multi_head_attention(ctx: NodeContext) -> Results:
    """DecoderMaskedMultiHeadAttention: of one new position, with cached keys or with those of an encoder."""
    if ctx.has(9):
        ctx.unsupported("its cache is shared by beams (cache_indirection)")
    _check_pair(ctx, 5, 6, "past_key", "past_value")
    heads = positive(ctx, "num_heads")
    if not ctx.has(1) and not ctx.has(2):
        width = ctx.divide_size(ctx.shape()[2], 3, "features")
        cut = [ctx.b.slice_axis(ctx[0], 2, width * i, width * (i + 1)) for i in range(3)]
        query, key, value = (split_heads(ctx, v, heads) for v in _add_biases(ctx, cut, 10))
    else:
        query, key, value = _operands(ctx, heads, bias=10)
    query = ctx.restate(query, {2: 1})
    own: Size = 1 if rank_of(ctx[1] if ctx.has(1) else ctx[0]) == 3 else shape_of(key)[2]
    key, value = ctx.restate(key, {2: own}), ctx.restate(value, {2: own})
    shared = ctx.flag("past_present_share_buffer") and ctx.has(5)
    if shared and not ctx.has(7):
        ctx.invalid("past_sequence_length is missing", "buffers that caches share need it")
    keys = _with_past(ctx, [ctx[5], ctx[6]] if ctx.has(5) else None, key, value, ctx[7] if shared else None)
    return _results(ctx, query, keys, _mask(ctx, 3, 4, keys, query, causal_rows=False))


@contrib("PackedAttention", "input:T weights:T bias:T token_offset:i32 lengths:i32 bias:T?", "num_heads! scale "
         "qkv_hidden_sizes")  # fmt: skip
@contrib("PackedMultiHeadAttention", "query:T key:T? value:T? bias:T? token_offset:i32 lengths:i32 bias:T?",
         "num_heads! scale mask_filter_value")  # fmt: skip
def packed_attention(ctx: NodeContext) -> Results:
    """PackedAttention, PackedMultiHeadAttention: refused."""
    ctx.unsupported(
        "it works on sequences of different lengths packed into one, whose places are data",
        fix="convert the model without packing (padding removal)",
    )
