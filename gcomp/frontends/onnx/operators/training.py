"""Optimizers of `ai.onnx.preview.training`: a learning rate, a step count, then groups of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of

DOMAIN = "ai.onnx.preview.training"
Update = Callable[[NodeContext, SSAValue, SSAValue, Sequence[SSAValue]], list[SSAValue]]
"""From the rate, the step and one tensor of each group to the new tensors (the gradient has none)."""


def _regularize(ctx: NodeContext, x: SSAValue, gradient: SSAValue) -> SSAValue:
    return ctx.b.add(ctx.b.scale(x, ctx.number("norm_coefficient")), gradient)


def _adagrad(ctx: NodeContext, rate: SSAValue, step: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    b, (x, gradient, h) = ctx.b, tensors
    decay = b.scale(b.convert(step, element_of(rate)), ctx.number("decay_factor"))
    rate = b.divide(rate, b.add(decay, ctx.b.scalar_like(rate, 1)))
    gradient = _regularize(ctx, x, gradient)
    squares = b.add(h, b.multiply(gradient, gradient))
    scale = b.add(b.emit(hlo.SqrtOp, squares), ctx.b.scalar_like(x, ctx.number("epsilon", 1e-6)))
    return [b.subtract(x, b.divide(b.multiply(b.convert(rate, element_of(x)), gradient), scale)), squares]


def _momentum(ctx: NodeContext, rate: SSAValue, step: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    b, (x, gradient, v) = ctx.b, tensors
    gradient, alpha = _regularize(ctx, x, gradient), ctx.number("alpha")
    started = b.compare(step, ctx.b.scalar_like(step, 0), "GT")
    beta = b.select(started, ctx.b.scalar_like(x, ctx.number("beta")), ctx.b.scalar_like(x, 1))
    after = b.add(b.scale(v, alpha), b.multiply(beta, gradient))
    direction = after
    if ctx.string("mode") == "nesterov":
        direction = b.add(gradient, b.scale(after, alpha))
    return [b.subtract(x, b.multiply(b.convert(rate, element_of(x)), direction)), after]


def _adam(ctx: NodeContext, rate: SSAValue, step: SSAValue, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    b, (x, gradient, v, h) = ctx.b, tensors
    alpha, beta = ctx.number("alpha", 0.9), ctx.number("beta", 0.999)
    gradient = _regularize(ctx, x, gradient)
    first = b.add(b.scale(v, alpha), b.scale(gradient, 1 - alpha))
    second = b.add(b.scale(h, beta), b.scale(b.multiply(gradient, gradient), 1 - beta))
    scale = b.add(b.emit(hlo.SqrtOp, second), ctx.b.scalar_like(x, ctx.number("epsilon", 1e-6)))
    count, one = b.convert(step, element_of(rate)), ctx.b.scalar_like(rate, 1)
    left_alpha, left_beta = (
        b.subtract(one, b.binary(hlo.PowerOp, ctx.b.scalar_like(rate, value), count)) for value in (alpha, beta)
    )
    corrected = b.divide(b.multiply(rate, b.emit(hlo.SqrtOp, left_beta)), left_alpha)
    rate = b.select(b.compare(step, ctx.b.scalar_like(step, 0), "GT"), corrected, rate)
    moved = b.subtract(x, b.multiply(b.convert(rate, element_of(x)), b.divide(first, scale)))
    return [b.scale(moved, 1 - ctx.number("norm_coefficient_post")), first, second]


def _importer(update: Update, groups: int) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        values = ctx.operands()
        rate, step = (ctx.b.reshape(v, ()) for v in values[:2])
        count = (len(values) - 2) // groups
        if len(values) != 2 + groups * count:
            ctx.invalid(f"it has {len(values)} inputs", f"two and {groups} for each tensor are expected")
        news = [update(ctx, rate, step, values[2 + i :: count]) for i in range(count)]
        return [new[k] for k in range(len(news[0])) for new in news]

    return run


for _name, _update, _groups in (("Adagrad", _adagrad, 3), ("Momentum", _momentum, 3), ("Adam", _adam, 4)):
    add(_name, _importer(_update, _groups), 1, DOMAIN)
