"""Softmax, norms, activations and attention: composites, which targets may know by name."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir.types import element_of, rank_of, shape_of


@imports("_softmax", "softmax")
def softmax(ctx: NodeContext) -> Results:
    """exp(x - max) / sum along an axis."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return ctx.b.composite("gcomp.softmax", [x], {"axis": ctx.axis()}) if ctx.rank() else ctx.b.full_like(x, 1)


@imports("_log_softmax", "log_softmax")
def log_softmax(ctx: NodeContext) -> Results:
    """The logarithm of softmax."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return ctx.b.composite("gcomp.log_softmax", [x], {"axis": ctx.axis()}) if ctx.rank() else ctx.b.full_like(x, 0)


def _scale(ctx: NodeContext, x: SSAValue, count: int) -> SSAValue:
    shape = shape_of(x)[rank_of(x) - count :]
    return ctx["weight"] if ctx.has("weight") else ctx.b.full(shape, 1, element_of(x))


@imports("layer_norm")
def layer_norm(ctx: NodeContext) -> Results:
    """Normalized over the last dimensions, scaled and shifted."""
    x, count = ctx["input"], len(ctx.arg("normalized_shape"))
    inputs = [x, _scale(ctx, x, count), *([ctx["bias"]] if ctx.has("bias") else [])]
    return ctx.b.composite("gcomp.layer_norm", inputs, {"axis": rank_of(x) - count, "epsilon": ctx.arg("eps", 1e-5)})


@imports("rms_norm")
def rms_norm(ctx: NodeContext) -> Results:
    """Divided by the root of the mean square over the last dimensions, and scaled."""
    x, count = ctx["input"], len(ctx.arg("normalized_shape"))
    # torch's default is the least difference of the type that it computes in.
    epsilon = ctx.arg("eps", 2.0**-52 if ctx.dtype("input") == "f64" else 2.0**-23)
    inputs = [x, _scale(ctx, x, count)]
    return ctx.b.composite("gcomp.rms_norm", inputs, {"axis": rank_of(x) - count, "epsilon": epsilon})


@imports("gelu")
def gelu(ctx: NodeContext) -> Results:
    """x * Phi(x), exact or by tanh."""
    return ctx.b.composite("gcomp.gelu", [ctx["self"]], {"approximate": ctx.arg("approximate", "none")})


@imports("scaled_dot_product_attention")
def attention(ctx: NodeContext) -> Results:
    """softmax(scale * q @ k.T + mask) @ v, masked above the diagonal where causal; heads of k and v may be shared."""
    b = ctx.b
    q, k, v = ctx["query"], ctx["key"], ctx["value"]
    if ctx.arg("dropout_p", 0.0):
        ctx.unsupported("it has dropout", "call model.eval() first")
    if ctx.arg("enable_gqa", False):
        k, v = _shared_heads(ctx, q, k), _shared_heads(ctx, q, v)
    scale = ctx.arg("scale")
    if scale is None:
        features = shape_of(q)[-1]
        if not isinstance(features, int):
            ctx.unsupported("the number of features is symbolic", "give a scale")
        scale = 1 / math.sqrt(features)
    mask = _mask(ctx, q, k)
    inputs = [q, k, v, *([] if mask is None else [mask])]
    return b.composite("gcomp.attention", inputs, {"scale": float(scale)})


def _shared_heads(ctx: NodeContext, q: SSAValue, x: SSAValue) -> SSAValue:
    """Each head of k or v repeated for the heads of q that share it."""
    b, shape = ctx.b, shape_of(x)
    heads, wanted = shape[-3], shape_of(q)[-3]
    if heads == wanted:
        return x
    if not isinstance(heads, int) or not isinstance(wanted, int) or wanted % heads:
        ctx.unsupported(f"{wanted} heads share {heads}")
    lead, rest = shape[:-2], shape[-2:]
    wide = (*lead, wanted // heads, *rest)
    places = [*range(len(lead)), *range(len(lead) + 1, len(lead) + 3)]
    return b.reshape(b.broadcast(x, wide, places), (*lead[:-1], wanted, *rest))


def _mask(ctx: NodeContext, q: SSAValue, k: SSAValue) -> SSAValue | None:
    """What is added to the scores: 0 where a key counts, -inf where it does not."""
    b, text = ctx.b, element_of(q)
    if ctx.arg("is_causal", False):
        shape = (shape_of(q)[-2], shape_of(k)[-2])
        seen = b.compare(b.iota(shape, 0), b.iota(shape, 1), "GE")
        return b.select(seen, b.full(shape, 0, text), b.full(shape, -math.inf, text))
    if not ctx.has("attn_mask"):
        return None
    mask = ctx["attn_mask"]
    if ctx.dtype("attn_mask") != "i1":
        return b.convert(mask, text)
    return b.select(mask, b.full(shape_of(mask), 0, text), b.full(shape_of(mask), -math.inf, text))
