"""Importers of com.microsoft: rotary embedding."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size, exact_div
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.attention import merge_heads, split_heads
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import element_of, shape_of

_ROTARY = "num_heads rotary_embedding_dim interleaved is_packed_batching scale"


@contrib("RotaryEmbedding", "input:T[3|4] position_ids:i64[1|2] cos_cache:T[2] sin_cache:T[2]", _ROTARY)
def rotary_embedding(ctx: NodeContext) -> Results:
    """RotaryEmbedding: pairs of features turned by the angles of their position.

    The input is (batch, sequence, heads * features) or (batch, heads, sequence, features); position_ids are
    (batch, sequence), or the first position alone.
    """
    if ctx.flag("is_packed_batching"):
        ctx.unsupported("sequences of different lengths are packed into one", fix="export the model with padding")
    if ctx.number("scale", 1.0) != 1:
        ctx.unsupported("its scale is not 1: ONNX Runtime's kernels read it and do not apply it")
    half = ctx.static(ctx.shape(2)[1], "number of angles")
    x = ctx[0] if ctx.rank() == 4 else split_heads(ctx, ctx[0], _head_count(ctx, half))
    batch, _, length, _ = shape_of(x)
    y = rotate_heads(ctx, x, 2, _position_ids(ctx, batch, length), interleaved=ctx.flag("interleaved"))
    return [y if ctx.rank() == 4 else merge_heads(ctx, y)]


def _head_count(ctx: NodeContext, half: int) -> int:
    """The number of heads in a flat input: heads are as wide as what is rotated, unless only a part is."""
    part, heads = ctx.integer("rotary_embedding_dim"), ctx.integer("num_heads")
    if part < 0 or heads < 0 or (part and not heads):
        ctx.invalid(f"rotary_embedding_dim is {part} and num_heads {heads}", "a part of a head needs their number")
    if part:
        return heads
    count = exact_div(ctx.shape()[2], 2 * half) if half else None
    if not isinstance(count, int) or not count:
        ctx.invalid(f"the input has {ctx.shape()[2]} features", f"heads of {2 * half} features are turned")
    return count


def _position_ids(ctx: NodeContext, batch: Size, length: Size) -> SSAValue:
    """Positions as (batch or 1, sequence)."""
    b = ctx.b
    if ctx.rank(1) == 2:
        return ctx.restate(ctx[1], {0: batch, 1: length})
    first = b.reshape(ctx.restate(ctx[1], {0: 1}), (1, 1))
    return b.add(first, b.reshape(b.iota((length,), 0), (1, length)))


def rotate_heads(ctx: NodeContext, x: SSAValue, caches: int, positions: SSAValue, *, interleaved: bool) -> SSAValue:
    """(batch, heads, sequence, features) turned by the angles at `positions`, (batch or 1, sequence).

    The operands `caches` and `caches + 1` are the tables of cosines and sines, (positions, half the features turned);
    features beyond stay as they are.
    """
    b, (batch, heads, length, width) = ctx.b, shape_of(x)
    half = ctx.static(ctx.shape(caches)[1], "number of angles")
    if ctx.rank(caches) != 2 or ctx.rank(caches + 1) != 2:
        ctx.invalid("a table of angles is no matrix", "they are (positions, half the features turned)")
    sines = ctx.restate(ctx[caches + 1], {0: ctx.shape(caches)[0], 1: half})
    if isinstance(width, int) and 2 * half > width:
        ctx.invalid(f"angles for {2 * half} features", f"a head has {width}")
    cos, sin = (_angles(ctx, table, positions) for table in (ctx[caches], sines))

    def run(wide: SSAValue) -> SSAValue:
        turned = b.slice_axis(wide, 3, 0, 2 * half)
        pairs = b.reshape(turned, (batch, heads, length, *((half, 2) if interleaved else (2, half))))
        axis = 4 if interleaved else 3
        shape = (batch, heads, length, half)
        real, imaginary = (b.reshape(b.slice_axis(pairs, axis, i, i + 1), shape) for i in (0, 1))
        c, s = (b.convert(b.broadcast_to(v, shape), element_of(wide)) for v in (cos, sin))
        parts = (
            b.subtract(b.multiply(real, c), b.multiply(imaginary, s)),
            b.add(b.multiply(real, s), b.multiply(imaginary, c)),
        )
        whole = (*shape, 1) if interleaved else (*shape[:3], 1, half)
        joined = b.reshape(b.concatenate([b.reshape(p, whole) for p in parts], axis), shape_of(turned))
        return b.concatenate([joined, *([b.slice_axis(wide, 3, 2 * half, width)] if width != 2 * half else [])], 3)

    return ctx.wide(x, run)


def _angles(ctx: NodeContext, table: SSAValue, positions: SSAValue) -> SSAValue:
    """Rows of a table at positions, as (batch or 1, 1, sequence, angles)."""
    rows = take(ctx.b, table, positions, 0)
    batch, length, half = shape_of(rows)
    return ctx.b.reshape(rows, (batch, 1, length, half))


@contrib("GemmaRotaryEmbedding", "emb:float[3] q:T[4] q_rot:T[4] k:T[4] k_rot:T[4]")
def gemma_rotary_embedding(ctx: NodeContext) -> Results:
    """GemmaRotaryEmbedding: `x * cos(emb) + x_rot * sin(emb)` of queries and keys, angles rounded to their dtype."""
    b, (batch, length, width) = ctx.b, ctx.shape()
    shape = (batch, 1, length, width)
    cos, sin = (b.convert(b.reshape(b.emit(op, ctx[0]), shape), ctx.element(1)) for op in (hlo.CosineOp, hlo.SineOp))
    results: list[SSAValue] = []
    for i in (1, 3):
        x = ctx.restate(ctx[i], {0: batch, 2: length, 3: width})
        other = ctx.restate(ctx[i + 1], dict(enumerate(shape_of(x))))
        results.append(b.add(b.multiply(x, cos), b.multiply(other, sin)))
    return results
