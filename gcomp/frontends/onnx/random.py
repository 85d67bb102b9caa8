"""Random operators, from a counter-based generator.

Each node draws from its own stream: the key is the node's `seed` where it has one, and otherwise made of its name. The
bits are Philox's; the same model gives the same numbers at every call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.reduction import scan
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, tensor


def uniform(ctx: NodeContext, shape: Sequence[Size]) -> SSAValue:
    """f32 numbers in [0, 1), multiples of 2**-24."""
    b = ctx.b
    state = b.constant(np.array([_key(ctx), 0], np.uint64))
    bits = b.emit_all(hlo.RngBitGeneratorOp, state, types=(state.type, tensor(shape, "ui32")), rng_algorithm="PHILOX")[
        1
    ]
    top = b.emit(hlo.ShiftRightLogicalOp, bits, b.full_like(bits, 8))
    return b.scaled(b.convert(top, "f32"), 2.0**-24)


def _key(ctx: NodeContext) -> int:
    seed = ctx.attribute("seed")
    text = repr(seed.value) if seed is not None else ctx.where.rsplit(": ", 1)[-1]
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def normal(ctx: NodeContext, shape: Sequence[Size]) -> SSAValue:
    """f32 numbers of the standard normal distribution."""
    b = ctx.b
    u = uniform(ctx, shape)
    # The middle of each of the 2**24 intervals: never 0 or 1, whose quantiles are infinite.
    centered = b.add(b.scaled(u, 2.0), b.full((), 2.0**-24 - 1.0, "f32"))
    return b.scaled(b.emit(chlo.ErfInvOp, centered), 2.0**0.5)


def _drawn(ctx: NodeContext, shape: Sequence[Size], element: str) -> SSAValue:
    b = ctx.b
    if "Normal" in ctx.op_type:
        x, factor, shift = normal(ctx, shape), ctx.number("scale", 1.0), ctx.number("mean", 0.0)
    else:
        low, high = ctx.number("low", 0.0), ctx.number("high", 1.0)
        x, factor, shift = uniform(ctx, shape), high - low, low
    return b.convert(b.add(b.scaled(x, factor), b.full((), shift, "f32")), element)


@imports("RandomNormal", "RandomUniform")
def random(ctx: NodeContext) -> Results:
    """RandomNormal, RandomUniform."""
    return [_drawn(ctx, ctx.integers("shape") or [], ctx.dtype("dtype", "f32"))]


@imports("RandomNormalLike", "RandomUniformLike")
def random_like(ctx: NodeContext) -> Results:
    """RandomNormalLike, RandomUniformLike."""
    return [_drawn(ctx, ctx.shape(), ctx.dtype("dtype", ctx.element()))]


@imports("Bernoulli")
def bernoulli(ctx: NodeContext) -> Results:
    """Bernoulli: 1 with the probability that the input says."""
    b = ctx.b
    hit = b.compare(uniform(ctx, ctx.shape()), b.convert(ctx[0], "f32"), "LT")
    return [b.convert(hit, ctx.dtype("dtype", ctx.element()))]


@imports("Multinomial")
def multinomial(ctx: NodeContext) -> Results:
    """Multinomial: classes drawn by unnormalized log probabilities."""
    b, x = ctx.b, ctx.b.convert(ctx[0], "f32")
    batch, classes = ctx.shape()
    count = ctx.integer("sample_size", 1)
    weights = b.composite("gcomp.softmax", [x], {"axis": 1})[0]
    cumulative = scan(b, hlo.AddOp, weights, 1)
    shape = (batch, count, classes)
    drawn = b.broadcast(uniform(ctx, (batch, count)), shape, (0, 1))
    passed = b.compare(drawn, b.broadcast(cumulative, shape, (0, 2)), "GE")
    index = b.reduce(hlo.AddOp, b.convert(passed, "i64"), [2])
    last = b.subtract(b.dim(classes), b.constant(1, "i64"))
    return [b.convert(b.minimum(index, last), ctx.dtype("dtype", "i32"))]


def training_dropout(ctx: NodeContext) -> Results:
    """Dropout in training: elements are dropped with probability `ratio`, the rest scaled to keep the mean."""
    b, x = ctx.b, ctx[0]
    ratio = float(ctx.scalar(1, "ratio")) if ctx.has(1) else 0.5
    if ratio == 0:
        return [x, b.full(ctx.shape(), True, "i1")]
    kept = b.compare(uniform(ctx, ctx.shape()), b.full((), ratio, "f32"), "GE")
    scaled = b.divide(x, b.full((), 1 - ratio, element_of(x)))
    return [b.select(kept, scaled, b.full((), 0, element_of(x))), kept]
