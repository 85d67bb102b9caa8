"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import element_of, rank_of, shape_of


@imports("BatchNormalization", since=7)
def batch_normalization(ctx: NodeContext) -> Results:
    """BatchNormalization: by given statistics at inference, else by the batch's own, with running ones updated."""
    b, x = ctx.b, ctx[0]
    epsilon = ctx.number("epsilon", 1e-5)
    if not ctx.rank():
        ctx.invalid("its input has rank 0", "(N, C, spatial...) is expected")
    if not ctx.flag("spatial", True) and ctx.rank(3) > 1:
        ctx.importer.opening.normalizes(_statistics(ctx), [], ctx.where)
        return [_normalize_by_activation(ctx, epsilon)]
    if ctx.rank() < 2:
        x = b.reshape(x, (*ctx.shape(), 1))
    stats = _widest(ctx)
    x = b.convert(x, stats)
    features = shape_of(x)[1]
    scale, offset, mean, variance = (b.convert(ctx.vector(i, features), stats) for i in range(1, 5))
    opening = ctx.importer.opening
    if not ctx.flag("training_mode") and not opening.training:
        opening.normalizes(_statistics(ctx), [], ctx.where)
        y = b.emit(hlo.BatchNormInferenceOp, x, scale, offset, mean, variance, epsilon=epsilon, feature_index=1)
        return [b.convert(b.reshape(y, ctx.shape()), ctx.element())]
    momentum = ctx.number("momentum", 0.9)
    y, batch_mean, batch_variance = b.emit_all(
        hlo.BatchNormTrainingOp, x, scale, offset, epsilon=epsilon, feature_index=1
    )

    def update(old: SSAValue, new: SSAValue) -> SSAValue:
        return b.add(b.scale(old, momentum), b.scale(new, 1 - momentum))

    running = [
        b.convert(update(old, new), ctx.element(index))
        for index, old, new in ((3, mean, batch_mean), (4, variance, batch_variance))
    ]
    opening.normalizes(_statistics(ctx), running, ctx.where)
    return [b.convert(b.reshape(y, ctx.shape()), ctx.element()), *running]


def _statistics(ctx: NodeContext) -> list[Value]:
    """The running mean and variance."""
    return [ctx.value(3), ctx.value(4)]


def _normalize_by_activation(ctx: NodeContext, epsilon: float) -> SSAValue:
    """With `spatial` 0 (before opset 9) there are statistics for each element of a sample: (C, spatial...)."""
    b, shape, rank = ctx.b, ctx.shape(), ctx.rank()
    if any(ctx.rank(i) != rank - 1 for i in range(1, 5)):
        ctx.invalid(f"its statistics have rank {ctx.rank(3)}", "with spatial 0 they have the shape of a sample")

    def run(x: SSAValue) -> SSAValue:
        fitted = (ctx.restate(ctx[i], dict(enumerate(shape[1:]))) for i in range(1, 5))
        scale, offset, mean, variance = (
            b.broadcast(b.convert(v, element_of(x)), shape, tuple(range(1, rank))) for v in fitted
        )
        deviation = b.emit(hlo.SqrtOp, b.add(variance, b.scalar_like(x, epsilon)))
        return b.add(b.multiply(b.divide(b.subtract(x, mean), deviation), scale), offset)

    return ctx.wide(ctx[0], run)


def _widest(ctx: NodeContext) -> str:
    """The element type to compute in: the widest of the inputs'."""
    texts = [ctx.element(i) for i in range(5)]
    for text in ("f64", "f32", "f16"):
        if text in texts and len(set(texts)) > 1:
            return "f32" if text == "f16" else text
    return texts[0]


@imports("LayerNormalization")
def layer_normalization(ctx: NodeContext) -> Results:
    """LayerNormalization: over the dims from `axis` on, in f32 or wider; mean and inverse deviation on request."""
    b, x = ctx.b, ctx[0]
    axis = ctx.axis(ctx.integer("axis", -1), ctx.rank())
    inputs = [x, ctx[1], *([ctx[2]] if ctx.has(2) else [])]
    attributes = {"axis": axis, "epsilon": float(ctx.number("epsilon", 1e-5))}
    y, mean, inverse = composite(b, "gcomp.layer_norm", inputs, attributes)
    stash = ctx.element_text(ctx.integer("stash_type", 1))
    return [y, *(b.convert(v, stash) for v in (mean, inverse))]


@imports("RMSNormalization")
def rms_normalization(ctx: NodeContext) -> Results:
    """RMSNormalization: over the dims from `axis` on, in f32 or wider."""
    axis = ctx.axis(ctx.integer("axis", -1), ctx.rank())
    attributes = {"axis": axis, "epsilon": float(ctx.number("epsilon", 1e-5))}
    if ctx.element() == ctx.element(1):
        return composite(ctx.b, "gcomp.rms_norm", [ctx[0], ctx[1]], attributes)
    b = ctx.b
    scale = b.convert(ctx[1], ctx.element())
    return [b.convert(v, ctx.element(1)) for v in composite(b, "gcomp.rms_norm", [ctx[0], scale], attributes)]


def standardize(ctx: NodeContext, x: SSAValue, axes: Sequence[int], epsilon: float) -> SSAValue:
    """`(x - mean) / sqrt(variance + epsilon)` over `axes`."""
    b = ctx.b
    centered = b.subtract(x, b.mean(x, axes, keepdims=True))
    variance = b.mean(b.multiply(centered, centered), axes, keepdims=True)
    return b.multiply(centered, b.emit(hlo.RsqrtOp, b.add(variance, b.scalar_like(x, epsilon))))


def _check_rank(ctx: NodeContext, least: int) -> None:
    if ctx.rank() < least:
        ctx.invalid(f"its input has rank {ctx.rank()}", "(N, C, spatial...) is expected")


def _per_channel(ctx: NodeContext, vector: SSAValue, like: SSAValue) -> SSAValue:
    return ctx.b.broadcast(vector, shape_of(like), (1,))


@imports("InstanceNormalization")
def instance_normalization(ctx: NodeContext) -> Results:
    """InstanceNormalization: each channel of each sample over its spatial dims."""
    b = ctx.b
    _check_rank(ctx, 3)

    def run(x: SSAValue) -> SSAValue:
        y = standardize(ctx, x, list(range(2, rank_of(x))), ctx.number("epsilon", 1e-5))
        scale, bias = (_per_channel(ctx, b.convert(ctx.vector(i, shape_of(x)[1]), element_of(x)), x) for i in (1, 2))
        return b.add(b.multiply(y, scale), bias)

    return [ctx.wide(ctx[0], run)]


@imports("GroupNormalization", since=18)
def group_normalization(ctx: NodeContext) -> Results:
    """GroupNormalization: groups of channels over their spatial dims; scales per group (18) or per channel (21)."""
    _check_rank(ctx, 3)
    b, shape, count = ctx.b, ctx.shape(), ctx.integer("num_groups", 1)
    per = ctx.divide_size(shape[1], count, "channels")
    grouped: list[Size] = [shape[0], count, per, *shape[2:]]

    def run(x: SSAValue) -> SSAValue:
        y = standardize(ctx, b.reshape(x, grouped), list(range(2, len(grouped))), ctx.number("epsilon", 1e-5))
        size = count if ctx.opset < 21 else shape[1]
        scale, bias = (_spread_groups(ctx, b.convert(ctx.vector(i, size), element_of(x)), grouped) for i in (1, 2))
        return b.reshape(b.add(b.multiply(y, scale), bias), shape)

    return [ctx.wide(ctx[0], run)]


def _spread_groups(ctx: NodeContext, vector: SSAValue, shape: Sequence[Size]) -> SSAValue:
    if ctx.opset < 21:
        return ctx.b.broadcast(vector, shape, (1,))
    return ctx.b.broadcast(ctx.b.reshape(vector, shape[1:3]), shape, (1, 2))


@imports("MeanVarianceNormalization")
def mean_variance_normalization(ctx: NodeContext) -> Results:
    """MeanVarianceNormalization: `(x - mean) / (deviation + 1e-9)`."""
    b = ctx.b
    given = ctx.integers("axes")
    axes = [a for a in (0, 2, 3) if a < ctx.rank()] if given is None else [ctx.axis(a, ctx.rank()) for a in given]
    ctx.distinct(axes)

    def run(x: SSAValue) -> SSAValue:
        centered = b.subtract(x, b.mean(x, axes, keepdims=True))
        variance = b.mean(b.multiply(centered, centered), axes, keepdims=True)
        return b.divide(centered, b.add(b.emit(hlo.SqrtOp, variance), b.scalar_like(x, 1e-9)))

    return [ctx.wide(ctx[0], run)]


@imports("LpNormalization")
def lp_normalization(ctx: NodeContext) -> Results:
    """LpNormalization: divided by the 1-norm or 2-norm along an axis; a zero norm gives zeros."""
    b, p = ctx.b, ctx.integer("p", 2)
    axis = [ctx.axis(ctx.integer("axis", -1), ctx.rank())]
    if p not in (1, 2):
        ctx.invalid(f"p is {p}", "it must be 1 or 2")

    def run(x: SSAValue) -> SSAValue:
        if p == 1:
            norm = b.reduce(hlo.AddOp, b.emit(hlo.AbsOp, x), axis, keepdims=True)
        else:
            norm = b.emit(hlo.SqrtOp, b.reduce(hlo.AddOp, b.multiply(x, x), axis, keepdims=True))
        zero = b.compare(norm, b.scalar_like(x, 0), "EQ")
        return b.divide(x, b.select(zero, b.scalar_like(x, 1), norm))

    return [ctx.wide(ctx[0], run)]


@imports("LRN")
def local_response_normalization(ctx: NodeContext) -> Results:
    """LRN: divided by a power of the mean square of neighbouring channels."""
    b, size, rank = ctx.b, ctx.integer("size", 1), ctx.rank()
    alpha, beta, bias = ctx.number("alpha", 1e-4), ctx.number("beta", 0.75), ctx.number("bias", 1.0)
    _check_rank(ctx, 2)
    if size < 1:
        ctx.invalid(f"size is {size}", "a positive number is expected")
    padding = [(0, 0)] * rank
    padding[1] = ((size - 1) // 2, size // 2)

    def run(x: SSAValue) -> SSAValue:
        total = b.emit(
            hlo.ReduceWindowOp,
            b.multiply(x, x),
            b.scalar_like(x, 0),
            regions=(scalar_region(hlo.AddOp, element_of(x)),),
            window_dimensions=[size if i == 1 else 1 for i in range(rank)],
            padding=padding,
        )
        scale = b.add(b.scale(total, alpha / size), b.scalar_like(x, bias))
        return b.divide(x, b.binary(hlo.PowerOp, scale, b.scalar_like(x, beta)))

    return [ctx.wide(ctx[0], run)]
