"""Random operators, from a counter-based generator.

Each node draws from its own stream (`streams`), which the program's `seed` input moves; a node's `seed` attribute is
part of its key. docs/guides/semantics.md states the bits and how they become numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.frontends.onnx.engine.context import NodeContext, label
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.reduction import scan
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.drawing import standard_normal, unit_interval
from gcomp.ir.types import element_of, shape_of

_DRAWN = {"f64": ("ui64", 53)}
"""Element type -> the bits drawn for one number, and how many of them are kept. All others are drawn as f32."""

_DISTRIBUTED = ("f32", "f64", "f16", "bf16")


def uniform(ctx: NodeContext, shape: Sequence[Size], element: str = "f32") -> SSAValue:
    """Numbers in [0, 1): multiples of 2**-24 in f32, of 2**-53 in f64."""
    drawn, kept = _DRAWN.get(element, ("ui32", 24))
    seed = ctx.attribute("seed")
    name = label(ctx.node) if seed is None else f"{label(ctx.node)}\0{seed.value!r}"
    bits = ctx.importer.streams.bits(name, shape, drawn)
    return unit_interval(ctx.b, bits, kept, element)


def normal(ctx: NodeContext, shape: Sequence[Size], element: str = "f32") -> SSAValue:
    """Numbers of the standard normal distribution."""
    return standard_normal(ctx.b, uniform(ctx, shape, element), _DRAWN.get(element, ("", 24))[1])


def _finite(ctx: NodeContext, name: str, default: float) -> float:
    value = ctx.number(name, default)
    if not math.isfinite(value):
        ctx.invalid(f"{name} is {value}", "there is no such distribution")
    return value


def _draw(ctx: NodeContext, shape: Sequence[Size], element: str) -> SSAValue:
    if element not in _DISTRIBUTED:
        ctx.invalid(f"its result's dtype is {element}", f"it must be one of {', '.join(_DISTRIBUTED)}")
    if any(isinstance(size, int) and size < 0 for size in shape):
        ctx.invalid(f"its shape is {list(map(str, shape))}", "no size is negative")
    return _normal(ctx, shape, element) if "Normal" in ctx.op_type else _uniform(ctx, shape, element)


def _normal(ctx: NodeContext, shape: Sequence[Size], element: str) -> SSAValue:
    b, computed = ctx.b, "f64" if element == "f64" else "f32"
    mean, scale = _finite(ctx, "mean", 0.0), _finite(ctx, "scale", 1.0)
    if scale < 0:
        ctx.invalid(f"scale is {scale}", "a standard deviation is not negative")
    x = b.scale(normal(ctx, shape, computed), scale)
    return b.convert(b.add(x, b.full((), mean, computed)), element)


def _uniform(ctx: NodeContext, shape: Sequence[Size], element: str) -> SSAValue:
    """low + (high - low) * u. Where rounding reaches `high`, the number before it in the element type."""
    b, computed = ctx.b, "f64" if element == "f64" else "f32"
    low, high = _finite(ctx, "low", 0.0), _finite(ctx, "high", 1.0)
    if low > high:
        ctx.invalid(f"low is {low} and high is {high}", "low must not be above high")
    x = b.scale(uniform(ctx, shape, computed), high - low)
    x = b.convert(b.add(x, b.full((), low, computed)), element)
    dtype = dtype_of(element)
    least, end = np.asarray(low).astype(dtype), np.asarray(high).astype(dtype)
    last = np.maximum(np.nextafter(end, np.asarray(-np.inf).astype(dtype)), least)
    return b.minimum(x, b.full((), last, element))


@imports("RandomNormal", "RandomUniform")
def random(ctx: NodeContext) -> Results:
    """RandomNormal, RandomUniform."""
    return [_draw(ctx, ctx.integers("shape") or [], ctx.dtype("dtype", "f32"))]


@imports("RandomNormalLike", "RandomUniformLike")
def random_like(ctx: NodeContext) -> Results:
    """RandomNormalLike, RandomUniformLike."""
    return [_draw(ctx, ctx.shape(), ctx.dtype("dtype", ctx.element()))]


@imports("Bernoulli")
def bernoulli(ctx: NodeContext) -> Results:
    """Bernoulli: 1 with the probability that the input says; never for 0 (and NaN), always for 1."""
    b, element = ctx.b, ctx.dtype("dtype", ctx.element())
    computed = "f64" if ctx.element() == "f64" else "f32"
    hit = b.compare(uniform(ctx, ctx.shape(), computed), b.convert(ctx[0], computed), "LT")
    return [b.convert(hit, element)]


@imports("Multinomial")
def multinomial(ctx: NodeContext) -> Results:
    """Multinomial: classes drawn by unnormalized log probabilities; a class of probability 0 never is."""
    b, computed, element = ctx.b, "f64" if ctx.element() == "f64" else "f32", ctx.dtype("dtype", "i32")
    count = ctx.integer("sample_size", 1)
    if ctx.rank() != 2 or ctx.shape()[1] == 0:
        ctx.invalid(f"its input has shape {list(map(str, ctx.shape()))}", "it must be (batch, classes)")
    if element not in ("i32", "i64") or count < 0:
        ctx.invalid(f"dtype is {element} and sample_size {count}", "it draws a number of i32 or i64")
    batch, classes = ctx.shape()
    weights = composite(b, "gcomp.softmax", [b.convert(ctx[0], computed)], {"axis": 1})[0]
    shape = (batch, count, classes)
    drawn = b.broadcast(uniform(ctx, (batch, count), computed), shape, (0, 1))
    passed = b.compare(drawn, b.broadcast(scan(b, hlo.AddOp, weights, 1), shape, (0, 2)), "GE")
    index = b.reduce(hlo.AddOp, b.convert(passed, "i64"), [2])
    return [b.convert(b.minimum(index, _last_possible(ctx, weights)), element)]


def _last_possible(ctx: NodeContext, weights: SSAValue) -> SSAValue:
    """For each row (batch, 1) the last class of any probability: the sum of all may round to less than a draw."""
    b, shape = ctx.b, shape_of(weights)
    possible = b.compare(weights, ctx.b.scalar_like(weights, 0), "GT")
    return b.reduce(hlo.MaximumOp, b.select(possible, b.iota(shape, 1), b.full((), 0, "i64")), [1], keepdims=True)


def training_dropout(ctx: NodeContext) -> Results:
    """Dropout in training: elements are dropped with probability `ratio`, the rest scaled to keep the mean."""
    b, x = ctx.b, ctx[0]
    ratio = _ratio(ctx)
    kept = b.compare(uniform(ctx, ctx.shape()), b.convert(ratio, "f32"), "GE")

    def scale(wide: SSAValue) -> SSAValue:
        rest = b.subtract(b.scalar_like(wide, 1), b.convert(ratio, element_of(wide)))
        return b.divide(wide, rest)

    return [b.select(kept, ctx.wide(x, scale), b.scalar_like(x, 0)), kept]


def check_ratio(ctx: NodeContext) -> None:
    """Raises InvalidModelError for a dropout whose ratio is no number, also where it is not used."""
    if ctx.has(1) and ctx.shape(1) not in ((), (1,)):
        ctx.invalid(f"its ratio has shape {list(map(str, ctx.shape(1)))}", "it must be a scalar")


def _ratio(ctx: NodeContext) -> SSAValue:
    """The ratio of a dropout, of rank 0; where it depends on data, one outside of [0, 1] keeps all or nothing."""
    if not ctx.has(1):
        return ctx.b.full((), ctx.number("ratio", 0.5), "f32")  # an attribute, before opset 12
    known, ratio = ctx.known_value(1), ctx[1]
    if known is not None and not 0 <= float(known.reshape(-1)[0]) <= 1:
        ctx.invalid(f"its ratio is {float(known.reshape(-1)[0])}", "it must be between 0 and 1")
    return ctx.b.reshape(ratio, ())
