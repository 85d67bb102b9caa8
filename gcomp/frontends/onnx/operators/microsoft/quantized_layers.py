"""Importers of com.microsoft: layers of transformers with quantized weights."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add
from gcomp.frontends.onnx.operators.microsoft.attention import multi_head_attention
from gcomp.frontends.onnx.operators.microsoft.quantized import known_operand, on
from gcomp.frontends.onnx.operators.microsoft.quantized_products import scale_products
from gcomp.frontends.onnx.operators.microsoft.signature import DOMAIN, contrib
from gcomp.frontends.onnx.operators.quantization import Granularity
from gcomp.frontends.onnx.operators.quantized_products import sum_products
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.gathering import take, wrap_indices
from gcomp.ir.types import shape_of


@contrib(
    "QEmbedLayerNormalization",
    "input_ids:i32[2] segment_ids:i32[2]? word_embedding_quant:Q[2] position_embedding_quant:Q[2] "
    "segment_embedding:Q[2]? gamma_quant:Q[1] beta_quant:Q[1] mask:i32[2]? word_embedding_scale:f32 "
    "position_embedding_scale:f32 segment_embedding_scale:f32? gamma_scale:f32 beta_scale:f32 "
    "word_embedding_zero_point:Q position_embedding_zero_point:Q segment_embedding_zero_point:Q? gamma_zero_point:Q "
    "beta_zero_point:Q",
    "epsilon",
)
def q_embed_layer_normalization(ctx: NodeContext) -> Results:
    """QEmbedLayerNormalization: layer normalization of summed embeddings, of which only the rows read are dequantized.

    The second result is the number of ones in each row of the mask, 0 without a mask.
    """
    b, (batch, length), width = ctx.b, ctx.shape(), ctx.shape(2)[1]
    if not ctx.has(1) == ctx.has(4) == ctx.has(10) == ctx.has(15):
        ctx.invalid("some inputs of segments are missing", "all four or none are expected")
    total = b.add(_rows(ctx, ctx[0], 2, 8, 13, width), _positions(ctx, batch, length, width))
    if ctx.has(1):
        segments = ctx.restate(ctx[1], {0: batch, 1: length})
        total = b.add(total, _rows(ctx, segments, 4, 10, 15, width))
    gamma, beta = (_reals(ctx, ctx.vector(i, width), s, z) for i, s, z in ((5, 11, 16), (6, 12, 17)))
    epsilon = float(ctx.number("epsilon", 1e-12))
    if not epsilon >= 0:
        ctx.invalid(f"epsilon is {epsilon}", "it must not be negative")
    y = composite(b, "gcomp.layer_norm", [total, gamma, beta], {"axis": 2, "epsilon": epsilon})[0]
    return [y, _words(ctx, batch, length)]


def _reals(ctx: NodeContext, x: SSAValue, scale: int, zero: int) -> SSAValue:
    """Quantized values as the f32 numbers that they stand for."""
    b, lie = ctx.b, Granularity(shape_of(x))
    centered = b.subtract(b.convert(x, "f32"), lie.spread(ctx, b.convert(ctx[zero], "f32")))
    return b.multiply(centered, lie.spread(ctx, ctx[scale]))


def _rows(ctx: NodeContext, ids: SSAValue, table: int, scale: int, zero: int, width: Size) -> SSAValue:
    rows = take(ctx.b, ctx.restate(ctx[table], {1: width}), wrap_indices(ctx.b, ids, ctx.shape(table)[0]), 0)
    return _reals(ctx, rows, scale, zero)


def _positions(ctx: NodeContext, batch: Size, length: Size, width: Size) -> SSAValue:
    """The first rows of the position embeddings, for every sequence."""
    rows = ctx.shape(3)[0]
    if not ctx.at_most(length, rows):
        if isinstance(length, int) and isinstance(rows, int):
            ctx.invalid(f"the sequence has {length} words", f"the position embeddings have {rows} rows")
        ctx.require("le", length, rows)
    table = ctx.restate(ctx.b.slice_axis(ctx[3], 0, 0, length), {1: width})
    return ctx.b.broadcast(_reals(ctx, table, 9, 14), (batch, length, width), (1, 2))


def _words(ctx: NodeContext, batch: Size, length: Size) -> SSAValue:
    """How many ones each row of the mask has."""
    b = ctx.b
    if not ctx.has(7):
        return b.full((batch,), 0, "i32")
    mask = ctx.restate(ctx[7], {0: batch, 1: length})
    return b.reduce(hlo.AddOp, b.convert(b.compare(mask, ctx.b.scalar_like(mask, 1), "EQ"), "i32"), [1])


@contrib(
    "QAttention",
    "input:byte[3] weight:byte[2] bias:f32[1] input_scale:f32 weight_scale:f32 mask_index:i32[1|2|3]? "
    "input_zero_point:byte? weight_zero_point:byte? past:f32[5]?",
    "num_heads! unidirectional scale mask_filter_value do_rotary past_present_share_buffer",
)
def q_attention(ctx: NodeContext) -> Results:
    """QAttention: queries, keys and values by one product of integers, per column of weights; then attention in f32."""
    if ctx.flag("do_rotary") or ctx.flag("past_present_share_buffer"):
        ctx.unsupported("it turns queries and keys, or writes keys into its operand", "export MultiHeadAttention")
    b, total = ctx.b, sum_products(ctx, (0, 6), (1, 7))
    width = ctx.static(shape_of(total)[2], "number of features")
    if width % 3 or not width:
        ctx.invalid(f"the weights make {width} features", "queries, keys and values of one size are expected")
    x = b.add(scale_products(ctx, total, ctx[3], ctx[4]), b.broadcast(ctx.vector(2, width), shape_of(total), (2,)))
    parts = [b.slice_axis(x, 2, i * width // 3, (i + 1) * width // 3) for i in range(3)]
    past: list[SSAValue | None] = [None, None]
    if ctx.has(8):
        both = ctx.restate(ctx[8], {0: 2})
        past = [b.reshape(b.slice_axis(both, 0, i, i + 1), ctx.shape(8)[1:]) for i in (0, 1)]
    inner = on(ctx, "MultiHeadAttention", [*parts, None, known_operand(ctx, 5), None, *past])
    y, *cache = multi_head_attention(inner)
    if not ctx.wants(1):
        return [y]
    present = [b.reshape(v, (1, *shape_of(v))) for v in cache if isinstance(v, SSAValue)]
    return [y, b.concatenate(present, 0)]


_ORDERED = (
    "QOrderedMatMul", "QOrderedAttention", "QOrderedLongformerAttention", "QOrderedGelu", "QOrderedLayerNormalization",
    "QuantizeWithOrder", "DequantizeWithOrder",
)  # fmt: skip
_REFUSED = {
    "MatMulFpQ4": ("its weights lie as ONNX Runtime's own kernels read them", "export the model with MatMulNBits"),
    "QMoE": ("its experts' weights lie as ONNX Runtime's own kernels read them", "export experts as MatMulNBits"),
} | dict.fromkeys(_ORDERED, ("its data lies in the order of one kind of GPU", "export the model with QuantizeLinear"))
"""Operator -> why it is not imported, and what to do instead."""


def _refuse(ctx: NodeContext) -> Results:
    why, fix = _REFUSED[ctx.op_type]
    ctx.unsupported(why, fix)


for _name in _REFUSED:
    add(_name, _refuse, domain=DOMAIN)
