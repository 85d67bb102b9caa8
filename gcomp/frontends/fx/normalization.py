"""Softmax, norms, activations and attention: composites, which targets may know by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.types import element_of, rank_of, shape_of


@imports("_softmax", "softmax")
def softmax(ctx: NodeContext) -> Results:
    """exp(x - max) / sum along an axis."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return composite(ctx.b, "gcomp.softmax", [x], {"axis": ctx.axis()}) if ctx.rank() else ctx.b.full_like(x, 1)


@imports("_log_softmax", "log_softmax")
def log_softmax(ctx: NodeContext) -> Results:
    """The logarithm of softmax."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return composite(ctx.b, "gcomp.log_softmax", [x], {"axis": ctx.axis()}) if ctx.rank() else ctx.b.full_like(x, 0)


def _scale(ctx: NodeContext, x: SSAValue, count: int) -> SSAValue:
    shape = shape_of(x)[rank_of(x) - count :]
    return ctx["weight"] if ctx.has("weight") else ctx.b.full(shape, 1, element_of(x))


@imports("layer_norm")
def layer_norm(ctx: NodeContext) -> Results:
    """Normalized over the last dimensions, scaled and shifted."""
    x, count = ctx["input"], len(ctx.arg("normalized_shape"))
    inputs = [x, _scale(ctx, x, count), *([ctx["bias"]] if ctx.has("bias") else [])]
    return composite(ctx.b, "gcomp.layer_norm", inputs, {"axis": rank_of(x) - count, "epsilon": ctx.arg("eps", 1e-5)})


@imports("rms_norm")
def rms_norm(ctx: NodeContext) -> Results:
    """Divided by the root of the mean square over the last dimensions, and scaled."""
    x, count = ctx["input"], len(ctx.arg("normalized_shape"))
    # torch's default is the least difference of the type that it computes in.
    epsilon = ctx.arg("eps", 2.0**-52 if ctx.dtype("input") == "f64" else 2.0**-23)
    inputs = [x, _scale(ctx, x, count)]
    return composite(ctx.b, "gcomp.rms_norm", inputs, {"axis": rank_of(x) - count, "epsilon": epsilon})


@imports("gelu")
def gelu(ctx: NodeContext) -> Results:
    """x * Phi(x), exact or by tanh."""
    return composite(ctx.b, "gcomp.gelu", [ctx["self"]], {"approximate": ctx.arg("approximate", "none")})


@imports("scaled_dot_product_attention")
def attention(ctx: NodeContext) -> Results:
    """softmax(scale * q @ k.T + mask) @ v, masked above the diagonal where causal; heads of k and v may be shared."""
    if ctx.arg("dropout_p", 0.0):
        ctx.unsupported("it has dropout", "call model.eval() first")
    q, k, v = ctx["query"], ctx["key"], ctx["value"]
    k, v = _repeat_heads(ctx, q, k), _repeat_heads(ctx, q, v)
    return _attention(ctx, q, k, v, _mask(ctx, q, k))


@imports("_scaled_dot_product_flash_attention_for_cpu")
def attention_for_gradients(ctx: NodeContext) -> Results:
    """Attention, and the logarithms of the sums of its softmax, by which its gradients are computed."""
    b, found = ctx.b, attention(ctx)
    q = ctx["query"]
    mask = _mask(ctx, q, ctx["key"])
    scores = _scores(ctx, q, _repeat_heads(ctx, q, ctx["key"]), mask)
    last = rank_of(scores) - 1
    top = b.reduce(hlo.MaximumOp, scores, [last], keepdims=True)
    total = b.reduce(
        hlo.AddOp, b.emit(hlo.ExponentialOp, b.subtract(scores, b.broadcast_to(top, shape_of(scores)))), [last]
    )
    logarithm = b.add(b.emit(hlo.LogOp, total), b.reshape(top, shape_of(top)[:-1]))
    seen = None if mask is None else _sees_any(ctx, mask, shape_of(scores))
    if seen is not None:
        logarithm = b.select(seen, logarithm, b.full_like(logarithm, 0))
    return [*([found] if isinstance(found, SSAValue) else found), logarithm]


@imports("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_gradients(ctx: NodeContext) -> Results:
    """The gradients of q, k and v: with p the softmax, dv = p.T @ g and ds = p * (g @ v.T - sum(g * out))."""
    if ctx.arg("dropout_p", 0.0):
        ctx.unsupported("it has dropout")
    b, own = ctx.b, [ctx[name] for name in ("query", "key", "value")]
    q, k, v = own[0], _repeat_heads(ctx, own[0], own[1]), _repeat_heads(ctx, own[0], own[2])
    scores = _scores(ctx, q, k, _mask(ctx, q, k))
    q, k, v, g, out = (b.widen(x) for x in (q, k, v, ctx["grad_out"], ctx["out"]))
    n = rank_of(q) - 2
    sums = b.reshape(ctx["logsumexp"], (*shape_of(ctx["logsumexp"]), 1))
    p = b.emit(hlo.ExponentialOp, b.subtract(scores, b.broadcast_to(sums, shape_of(scores))))
    through = b.reduce(hlo.AddOp, b.multiply(g, out), [n + 1], keepdims=True)
    ds = b.scale(b.multiply(p, b.subtract(_product(b, g, v, n + 1, n + 1), through)), _factor(ctx, q))
    found = _product(b, ds, k, n + 1, n), _product(b, ds, q, n, n), _product(b, p, g, n, n)
    return [b.convert(_sum_heads(ctx, x, y), element_of(y)) for x, y in zip(found, own, strict=True)]


def _attention(ctx: NodeContext, q: SSAValue, k: SSAValue, v: SSAValue, mask: SSAValue | None) -> SSAValue:
    b, inputs = ctx.b, [q, k, v, *([] if mask is None else [mask])]
    found = composite(b, "gcomp.attention", inputs, {"scale": _factor(ctx, q)})[0]
    seen = None if mask is None else _sees_any(ctx, mask, (*shape_of(q)[:-1], shape_of(k)[-2]))
    if seen is None:
        return found
    wide = b.broadcast(seen, shape_of(found), range(rank_of(found) - 1))
    return b.select(wide, found, b.full_like(found, 0))


def _factor(ctx: NodeContext, q: SSAValue) -> float:
    """What scores are multiplied with: by default the inverse root of the number of features."""
    if (scale := ctx.arg("scale")) is not None:
        return float(scale)
    if not isinstance(features := shape_of(q)[-1], int):
        ctx.unsupported("the number of features is symbolic", "give a scale")
    return 1 / math.sqrt(features)


def _product(b: Builder, x: SSAValue, y: SSAValue, left: int, right: int) -> SSAValue:
    """The batched product of matrices over one dimension of each."""
    axes = tuple(range(rank_of(x) - 2))
    return b.dot(x, y, DotDimensions(axes, axes, (left,), (right,)))


def _scores(ctx: NodeContext, q: SSAValue, k: SSAValue, mask: SSAValue | None) -> SSAValue:
    """What softmax is taken of, in f32 or wider."""
    b, last = ctx.b, rank_of(q) - 1
    scores = _product(b, b.scale(b.widen(q), _factor(ctx, q)), b.widen(k), last, last)
    return scores if mask is None else b.add(scores, b.broadcast_to(b.widen(mask), shape_of(scores)))


def _sees_any(ctx: NodeContext, mask: SSAValue, shape: Sequence[Size]) -> SSAValue | None:
    """Whether a query sees any key, by the scores' shape: torch's attention to nothing is 0. None where all do."""
    if ctx.arg("is_causal", False):
        return None
    b = ctx.b
    best = b.reduce(hlo.MaximumOp, mask, [rank_of(mask) - 1])
    seen = b.compare(best, b.full_like(best, -math.inf), "NE")
    return b.broadcast_to(seen, shape[:-1])


def _sum_heads(ctx: NodeContext, gradient: SSAValue, x: SSAValue) -> SSAValue:
    """The gradient of x, whose heads may be shared by several of q's."""
    b, shape, wide = ctx.b, shape_of(x), shape_of(gradient)
    if shape[-3] == wide[-3]:
        return gradient
    share = cast(int, wide[-3]) // cast(int, shape[-3])
    parts = b.reshape(gradient, (*wide[:-3], shape[-3], share, *wide[-2:]))
    return b.reduce(hlo.AddOp, parts, [rank_of(x) - 2])


def _repeat_heads(ctx: NodeContext, q: SSAValue, x: SSAValue) -> SSAValue:
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
