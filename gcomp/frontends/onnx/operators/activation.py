"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import product
from gcomp.dtypes import is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add, imports
from gcomp.frontends.onnx.operators.elementwise import bound_values
from gcomp.frontends.onnx.operators.reduction import arg_extremum
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of

Activation = Callable[[Builder, SSAValue, Mapping[str, float]], SSAValue]


def _positive(b: Builder, x: SSAValue) -> SSAValue:
    return b.compare(x, b.scalar_like(x, 0), "GT")


def _relu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.maximum(x, b.scalar_like(x, 0))


def _leaky_relu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.select(b.compare(x, b.scalar_like(x, 0), "GE"), x, b.scale(x, a["alpha"]))


def _elu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.select(_positive(b, x), x, b.scale(b.emit(hlo.ExponentialMinusOneOp, x), a["alpha"]))


def _celu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    alpha = b.scalar_like(x, a["alpha"])
    below = b.multiply(b.emit(hlo.ExponentialMinusOneOp, b.divide(x, alpha)), alpha)
    zero = b.scalar_like(x, 0)
    return b.add(b.maximum(x, zero), b.minimum(below, zero))


def _selu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    below = b.scale(b.emit(hlo.ExponentialMinusOneOp, x), a["alpha"])
    return b.scale(b.select(_positive(b, x), x, below), a["gamma"])


def _hard_sigmoid(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return bound_values(
        b, b.add(b.scale(x, a["alpha"]), b.scalar_like(x, a["beta"])), b.scalar_like(x, 0), b.scalar_like(x, 1)
    )


def _hard_swish(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.multiply(x, _hard_sigmoid(b, x, {"alpha": 1 / 6, "beta": 0.5}))


def _swish(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.multiply(x, b.emit(hlo.LogisticOp, x if a["alpha"] == 1 else b.scale(x, a["alpha"])))


def softplus(b: Builder, x: SSAValue) -> SSAValue:
    """`log(1 + exp(x))`, written so that it neither overflows nor cancels."""
    decay = b.emit(hlo.ExponentialOp, b.emit(hlo.NegateOp, b.emit(hlo.AbsOp, x)))
    return b.add(b.maximum(x, b.scalar_like(x, 0)), b.emit(hlo.LogPlusOneOp, decay))


def _mish(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.multiply(x, b.emit(hlo.TanhOp, softplus(b, x)))


def _softsign(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.divide(x, b.add(b.emit(hlo.AbsOp, x), b.scalar_like(x, 1)))


def _thresholded_relu(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    return b.select(b.compare(x, b.scalar_like(x, a["alpha"]), "GT"), x, b.scalar_like(x, 0))


def _shrink(b: Builder, x: SSAValue, a: Mapping[str, float]) -> SSAValue:
    if is_integer(element := dtype_text(x.type)):
        # The limit and the bias need not be integers: -2 with limit and bias 1.5 is -0.5, which truncates to 0.
        return b.convert(_shrink(b, b.convert(x, "f64"), a), element)
    bias, limit = b.scalar_like(x, a["bias"]), a["lambd"]
    inner = b.select(b.compare(x, b.scalar_like(x, limit), "GT"), b.subtract(x, bias), b.scalar_like(x, 0))
    return b.select(b.compare(x, b.scalar_like(x, -limit), "LT"), b.add(x, bias), inner)


_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
ACTIVATIONS: dict[str, tuple[Activation, dict[str, float]]] = {
    "Relu": (_relu, {}),
    "LeakyRelu": (_leaky_relu, {"alpha": 0.01}),
    "Elu": (_elu, {"alpha": 1.0}),
    "Celu": (_celu, {"alpha": 1.0}),
    "Selu": (_selu, _SELU),
    "HardSigmoid": (_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": (_hard_swish, {}),
    "Swish": (_swish, {"alpha": 1.0}),
    "Mish": (_mish, {}),
    "Softplus": (lambda b, x, a: softplus(b, x), {}),
    "Softsign": (_softsign, {}),
    "ThresholdedRelu": (_thresholded_relu, {"alpha": 1.0}),
    "Shrink": (_shrink, {"bias": 0.0, "lambd": 0.5}),
}
"""Operator -> its function, and the defaults of its attributes."""


def activation_importer(activation: Activation, defaults: Mapping[str, float]) -> Callable[[NodeContext], Results]:
    """The importer of an activation whose attributes have these defaults."""

    def run(ctx: NodeContext) -> Results:
        return [activation(ctx.b, ctx[0], {name: ctx.number(name, value) for name, value in defaults.items()})]

    return run


for _name, (_activation, _defaults) in ACTIVATIONS.items():
    add(_name, activation_importer(_activation, _defaults), since=6 if _name == "Selu" else 1)


@imports("PRelu", since=7)
def prelu(ctx: NodeContext) -> Results:
    """PRelu: the slope broadcasts to x."""
    b, x = ctx.b, ctx[0]
    negative = b.compare(x, ctx.b.scalar_like(x, 0), "LT")
    return [b.select(negative, b.multiply(x, b.broadcast_to(ctx[1], shape_of(x))), x)]


@imports("Gelu")
def gelu(ctx: NodeContext) -> Results:
    """Gelu: exact, or by tanh."""
    approximate = ctx.string("approximate", "none")
    if approximate not in ("none", "tanh"):
        ctx.invalid(f"approximate is {approximate!r}", "it must be none or tanh")
    return composite(ctx.b, "gcomp.gelu", [ctx[0]], {"approximate": approximate})


_COMPOSITES = {"Softmax": "gcomp.softmax", "LogSoftmax": "gcomp.log_softmax"}


@imports("Softmax", "LogSoftmax", since=13)
def softmax(ctx: NodeContext) -> Results:
    """Softmax-13: along one axis."""
    return along_axis(ctx.b, _COMPOSITES[ctx.op_type], ctx[0], ctx.axis(ctx.integer("axis", -1), ctx.rank()))


def along_axis(b: Builder, name: str, x: SSAValue, axis: int) -> Results:
    """A softmax composite along `axis`."""
    attributes: dict[str, Any] = {"axis": axis}
    return composite(b, name, [x], attributes)


@imports("Softmax", "LogSoftmax")
def softmax_flattened(ctx: NodeContext) -> Results:
    """Softmax-1, Softmax-11: over all dims from `axis` on, as if they were one."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    axis = ctx.axis(ctx.integer("axis", 1), ctx.rank())
    if axis == rank_of(x) - 1:
        return along_axis(b, _COMPOSITES[ctx.op_type], x, axis)
    flat = b.reshape(x, (*shape[:axis], product(shape[axis:])))
    return [b.reshape(v, shape) for v in composite(b, _COMPOSITES[ctx.op_type], [flat], {"axis": axis})]


@imports("Hardmax", since=13)
def hardmax(ctx: NodeContext) -> Results:
    """Hardmax-13: 1 at the first maximum along one axis, else 0."""
    return [first_maximum(ctx.b, ctx[0], ctx.axis(ctx.integer("axis", -1), ctx.rank()))]


@imports("Hardmax")
def hardmax_flattened(ctx: NodeContext) -> Results:
    """Hardmax-1, Hardmax-11: over all dims from `axis` on, as if they were one."""
    b, shape = ctx.b, ctx.shape()
    axis = ctx.axis(ctx.integer("axis", 1), ctx.rank())
    flat = b.reshape(ctx[0], (*shape[:axis], product(shape[axis:])))
    return [b.reshape(first_maximum(b, flat, axis), shape)]


def first_maximum(b: Builder, x: SSAValue, axis: int) -> SSAValue:
    """1 where the first maximum along `axis` is, else 0, in the element type of `x`."""
    best = arg_extremum(b, x, axis, largest=True, last=False)
    shape = shape_of(x)
    positions = b.iota(shape, axis)
    hit = b.compare(positions, b.broadcast(best, shape, [i for i in range(len(shape)) if i != axis]), "EQ")
    return b.convert(hit, element_of(x))
