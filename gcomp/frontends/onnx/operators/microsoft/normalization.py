"""Importers of com.microsoft: normalizations with residuals and embeddings.

What is narrower than f32 is summed and normalized in f32 and rounded once, as ONNX Runtime's kernels do it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive, wide_type
from gcomp.frontends.onnx.operators.normalization import standardize
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.gathering import take, wrap_indices
from gcomp.ir.types import rank_of, shape_of


def _epsilon(ctx: NodeContext, default: float) -> float:
    value = float(ctx.number("epsilon", default))
    if not value >= 0:
        ctx.invalid(f"epsilon is {value}", "it must not be negative")
    return value


def _parameter(ctx: NodeContext, index: int, width: Size, element: str) -> SSAValue:
    """A scale or bias: one number for each feature."""
    return ctx.b.convert(ctx.vector(index, width), element)


@contrib("SimplifiedLayerNormalization", "X:float scale:float", "axis epsilon stash_type", domain="")
def simplified_layer_normalization(ctx: NodeContext) -> Results:
    """SimplifiedLayerNormalization: RMS normalization over the dims from `axis` on, and the inverse root mean square.

    ONNX Runtime registers it in ONNX's own domain. The result has the dtype of the scale.
    """
    b, x = ctx.b, ctx[0]
    if not ctx.rank():
        ctx.invalid("its input has rank 0", "rank 1 or more is expected")
    axis, epsilon = ctx.axis(ctx.integer("axis", -1), ctx.rank()), _epsilon(ctx, 1e-5)
    wide = wide_type(ctx.element()) if ctx.element() != ctx.element(1) else ctx.element()
    inner = ctx.shape()[axis:]
    scale = b.convert(_trailing(ctx, ctx[1], inner), wide)
    y = composite(b, "gcomp.rms_norm", [b.convert(x, wide), scale], {"axis": axis, "epsilon": epsilon})[0]
    inverse = _inverse_rms(ctx, x, axis, epsilon) if ctx.wants(1) else None
    return [b.convert(y, ctx.element(1)), inverse]


def _trailing(ctx: NodeContext, scale: SSAValue, shape: tuple[Size, ...]) -> SSAValue:
    """A scale whose dims are the normalized ones (or 1, or fewer)."""
    if rank_of(scale) > len(shape):
        ctx.invalid(f"the scale has rank {rank_of(scale)}", f"{len(shape)} dims are normalized")
    own = shape_of(scale)
    pairs = zip(range(len(own)), own, shape[len(shape) - len(own) :], strict=True)
    return ctx.restate(scale, {i: s for i, size, s in pairs if size != 1})


def _inverse_rms(ctx: NodeContext, x: SSAValue, axis: int, epsilon: float) -> SSAValue:
    b = ctx.b
    wide = b.convert(x, wide_type(ctx.element()))
    square = b.mean(b.multiply(wide, wide), range(axis, rank_of(x)), keepdims=True)
    inverse = b.emit(hlo.RsqrtOp, b.add(square, ctx.b.scalar_like(square, epsilon)))
    return b.convert(inverse, ctx.element_text(ctx.integer("stash_type", 1)))


def _sum(ctx: NodeContext, bias: int) -> SSAValue:
    """Input plus skip (plus bias), in f32 or wider; the skip broadcasts over leading dims."""
    b, wide, shape = ctx.b, wide_type(ctx.element()), ctx.shape()
    skip = ctx[1]
    if rank_of(skip) > len(shape):
        ctx.invalid(f"skip has rank {rank_of(skip)}", f"the input has rank {len(shape)}")
    lead, own = len(shape) - rank_of(skip), shape_of(skip)
    # Only the batch may be broadcast: the sequence and the features are the input's.
    sizes = {i: shape[lead + i] for i in range(rank_of(skip)) if lead + i > 0 or own[i] != 1}
    skip = ctx.restate(skip, sizes)
    total = b.add(b.convert(ctx[0], wide), b.broadcast_to(b.convert(skip, wide), shape))
    if not ctx.has(bias):
        return total
    return b.add(total, b.broadcast(_parameter(ctx, bias, shape[-1], wide), shape, (len(shape) - 1,)))


@contrib("SkipLayerNormalization", "input:T[2|3] skip:T[2|3] gamma:T[1] beta:T[1]? bias:T[1]?", "epsilon")
def skip_layer_normalization(ctx: NodeContext) -> Results:
    """SkipLayerNormalization: layer normalization of input + skip + bias; mean, inverse deviation, and the sum."""
    b, wide, axis = ctx.b, wide_type(ctx.element()), ctx.rank() - 1
    total, width = _sum(ctx, 4), ctx.shape()[-1]
    parameters = [_parameter(ctx, i, width, wide) for i in (2, 3) if ctx.has(i)]
    attributes = {"axis": axis, "epsilon": _epsilon(ctx, 1e-12)}
    y, mean, inverse = composite(b, "gcomp.layer_norm", [total, *parameters], attributes)
    stats = [b.convert(v, "f32") for v in (mean, inverse)]
    return [b.convert(y, ctx.element()), *stats, b.convert(total, ctx.element())]


@contrib("SkipSimplifiedLayerNormalization", "input:T[2|3] skip:T[2|3] gamma:T[1] bias:T[1]?", "epsilon")
def skip_simplified_layer_normalization(ctx: NodeContext) -> Results:
    """SkipSimplifiedLayerNormalization: RMS normalization of input + skip + bias, and the sum."""
    b, wide, axis = ctx.b, wide_type(ctx.element()), ctx.rank() - 1
    if ctx.wants(1):
        ctx.unsupported("its result `mean` is for training, and RMS normalization has no mean")
    total, epsilon = _sum(ctx, 3), _epsilon(ctx, 1e-12)
    scale = _parameter(ctx, 2, ctx.shape()[-1], wide)
    y = composite(b, "gcomp.rms_norm", [total, scale], {"axis": axis, "epsilon": epsilon})[0]
    inverse = b.convert(_inverse_rms(ctx, total, axis, epsilon), "f32") if ctx.wants(2) else None
    return [b.convert(y, ctx.element()), None, inverse, b.convert(total, ctx.element())]


@contrib(
    "EmbedLayerNormalization",
    "input_ids:i32[2] segment_ids:i32[2]? word_embedding:T[2] position_embedding:T[2] segment_embedding:T[2]? "
    "gamma:T[1] beta:T[1] mask:i32[2]? position_ids:i32[2]?",
    "epsilon mask_index_type",
)
def embed_layer_normalization(ctx: NodeContext) -> Results:
    """EmbedLayerNormalization: layer normalization of the sum of word, position and segment embeddings.

    The other results are the number of ones in each row of the mask (0 without a mask), and the embeddings' sum.
    """
    b, (batch, length) = ctx.b, ctx.shape()
    wide, width = wide_type(ctx.element(2)), ctx.shape(2)[1]
    if ctx.has(1) != ctx.has(4):
        ctx.invalid(
            "it has segments without embeddings or the reverse", "segment_ids and segment_embedding go together"
        )
    total = b.add(_embed(ctx, 2, ctx[0], wide, width), _positions(ctx, batch, length, wide, width))
    if ctx.has(1):
        segments = ctx.restate(ctx[1], {0: batch, 1: length})
        total = b.add(total, _embed(ctx, 4, segments, wide, width))
    parameters = [_parameter(ctx, i, width, wide) for i in (5, 6)]
    y = composite(b, "gcomp.layer_norm", [total, *parameters], {"axis": 2, "epsilon": _epsilon(ctx, 1e-12)})[0]
    return [b.convert(y, ctx.element(2)), _mask_index(ctx, batch, length), b.convert(total, ctx.element(2))]


def _embed(ctx: NodeContext, table: int, ids: SSAValue, wide: str, width: Size) -> SSAValue:
    rows = wrap_indices(ctx.b, ids, ctx.shape(table)[0])
    return ctx.b.convert(take(ctx.b, ctx.restate(ctx[table], {1: width}), rows, 0), wide)


def _positions(ctx: NodeContext, batch: Size, length: Size, wide: str, width: Size) -> SSAValue:
    """The position embeddings: the first rows of the table, or those that position_ids name."""
    b, shape = ctx.b, (batch, length, width)
    if not ctx.has(8):
        rows = ctx.shape(3)[0]
        if not ctx.at_most(length, rows):
            if isinstance(length, int) and isinstance(rows, int):
                ctx.invalid(f"the sequence has {length} words", f"position_embedding has {rows} rows")
            ctx.require("le", length, rows)
        table = ctx.restate(b.slice_axis(ctx[3], 0, 0, length), {1: width})
        return b.broadcast(b.convert(table, wide), shape, (1, 2))
    own = ctx.shape(8)
    ids = ctx.restate(ctx[8], {1: length} if own[0] == 1 else {0: batch, 1: length})
    return b.broadcast_to(_embed(ctx, 3, ids, wide, width), shape)


def _mask_index(ctx: NodeContext, batch: Size, length: Size) -> SSAValue | None:
    b = ctx.b
    if not ctx.wants(1):
        return None
    if not ctx.has(7):
        return b.full((batch,), 0, "i32")
    mask = ctx.restate(ctx[7], {0: batch, 1: length})
    ones = b.compare(mask, ctx.b.scalar_like(mask, 1), "EQ")
    return b.reduce(hlo.AddOp, b.convert(ones, "i32"), [1])


_GROUP_NORM = "activation! groups! channels_last epsilon"


@contrib("GroupNorm", "X:float[4] gamma:float[1] beta:float[1]", _GROUP_NORM)
def group_norm(ctx: NodeContext) -> Results:
    """GroupNorm: over groups of channels, NHWC or NCHW; SiLU after it on request."""
    y = _group_normalized(ctx, ctx.b.convert(ctx[0], wide_type(ctx.element())))
    return [ctx.b.convert(y, ctx.element())]


@contrib("SkipGroupNorm", "X:T[4] gamma:float[1] beta:float[1] skip:T[2|4] bias:T[1]?", _GROUP_NORM)
def skip_group_norm(ctx: NodeContext) -> Results:
    """SkipGroupNorm: GroupNorm of X + skip + bias, and the sum; skip is as X or (batch, channels)."""
    b, shape, wide = ctx.b, ctx.shape(), wide_type(ctx.element())
    channel = 3 if ctx.flag("channels_last", True) else 1
    total = b.convert(ctx[0], wide)
    skip = b.convert(ctx[3], wide)
    if rank_of(skip) == 2:
        skip = ctx.restate(skip, {0: shape[0], 1: shape[channel]})
        total = b.add(total, b.broadcast(skip, shape, (0, channel)))
    else:
        own = shape_of(skip)
        skip = ctx.restate(skip, {i: s for i, s in enumerate(shape) if i in (0, channel) or own[i] != 1})
        total = b.add(total, b.broadcast_to(skip, shape))
    if ctx.has(4):
        total = b.add(total, b.broadcast(_parameter(ctx, 4, shape[channel], wide), shape, (channel,)))
    return [b.convert(_group_normalized(ctx, total), ctx.element()), b.convert(total, ctx.element())]


def _group_normalized(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """`x` (f32 or wider) normalized by the node's attributes."""
    b, shape, text = ctx.b, shape_of(x), wide_type(ctx.element())
    last, count, activation = ctx.flag("channels_last", True), positive(ctx, "groups"), ctx.integer("activation")
    if activation not in (0, 1):
        ctx.invalid(f"activation is {activation}", "it must be 0 (none) or 1 (SiLU)")
    channel = 3 if last else 1
    per = ctx.divide_size(shape[channel], count, "channels")
    spread = (*shape[:channel], count, per, *shape[channel + 1 :])
    axes = (1, 2, 4) if last else (2, 3, 4)
    y = b.reshape(standardize(ctx, b.reshape(x, spread), axes, _epsilon(ctx, 1e-5)), shape)
    scale, bias = (b.broadcast(_parameter(ctx, i, shape[channel], text), shape, (channel,)) for i in (1, 2))
    y = b.add(b.multiply(y, scale), bias)
    return b.multiply(y, b.emit(hlo.LogisticOp, y)) if activation else y


@contrib("GatedRMSNorm", "X:T scale:T[1] gate:T", "activation epsilon")
def gated_rms_norm(ctx: NodeContext) -> Results:
    """GatedRMSNorm: RMS normalization of each group of the last dim that is as long as the scale, times a gate."""
    b, shape, wide = ctx.b, ctx.shape(), wide_type(ctx.element())
    gates = {"silu": True, "swish": True, "sigmoid": False}
    kind = ctx.string("activation", "silu")
    if kind not in gates or not shape or ctx.rank(2) != len(shape):
        ctx.invalid(f"activation is {kind!r}, X and gate have ranks {len(shape)} and {ctx.rank(2)}",
                    f"it must be one of {', '.join(gates)}, and the ranks one of 1 or more")  # fmt: skip
    width = ctx.static(ctx.shape(1)[0], "size of the scale")
    count = ctx.divide_size(shape[-1], width, "features")
    x = b.reshape(b.convert(ctx[0], wide), (*shape[:-1], count, width))
    attributes = {"axis": len(shape), "epsilon": _epsilon(ctx, 1e-5)}
    y = b.reshape(composite(b, "gcomp.rms_norm", [x, b.convert(ctx[1], wide)], attributes)[0], shape)
    gate = b.convert(ctx.restate(ctx[2], dict(enumerate(shape))), wide)
    opened = b.emit(hlo.LogisticOp, gate)
    y = b.multiply(y, b.multiply(gate, opened) if gates[kind] else opened)
    return [b.convert(y, ctx.element())]
