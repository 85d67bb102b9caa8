"""Importers of com.microsoft: products and convolutions fused with transposes, activations and residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.activation import ACTIVATIONS
from gcomp.frontends.onnx.operators.contraction import gemm
from gcomp.frontends.onnx.operators.convolution import add_bias, convolve
from gcomp.frontends.onnx.operators.elementwise import bound_values
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of

_CONV = "auto_pad kernel_shape dilations strides pads group activation activation_params"
_UNARY = {"Sigmoid": hlo.LogisticOp, "Tanh": hlo.TanhOp}


def activate(ctx: NodeContext, x: SSAValue, given: Mapping[str, float]) -> SSAValue:
    """`x` through the activation that the node names, if it does, with what is given of the activation's attributes."""
    name = ctx.string("activation")
    if name in ("", "Identity"):
        return x
    if name in _UNARY:
        return ctx.b.emit(_UNARY[name], x)
    if name not in ACTIVATIONS:
        known = ", ".join(sorted((*ACTIVATIONS, *_UNARY)))
        ctx.unsupported(f"its activation is {name!r}, which is none of {known}")
    function, defaults = ACTIVATIONS[name]
    return function(ctx.b, x, {k: given.get(k, v) for k, v in defaults.items()})


# ---- products ----------------------------------------------------------------------------------------------------


@contrib("FusedMatMul", "A:T B:T", "transA transB transBatchA transBatchB alpha")
def fused_matmul(ctx: NodeContext) -> Results:
    """FusedMatMul: `alpha * A @ B`, NumPy's matmul on transposed operands."""
    return [_product(ctx, ctx[0], ctx[1])]


@contrib("TransposeMatMul", "A:T B:T", "transA transB alpha")
def transpose_matmul(ctx: NodeContext) -> Results:
    """TransposeMatMul: the older name of FusedMatMul."""
    return [_product(ctx, ctx[0], ctx[1])]


@contrib(
    "FusedMatMulActivation",
    "A:T B:T",
    "transA transB transBatchA transBatchB alpha activation! activation_alpha activation_beta activation_gamma "
    "activation_axis",
)
def fused_matmul_activation(ctx: NodeContext) -> Results:
    """FusedMatMulActivation: FusedMatMul, then an activation."""
    if ctx.attribute("activation_axis") is not None:
        ctx.unsupported("its activation works along an axis")
    return [activate(ctx, _product(ctx, ctx[0], ctx[1]), _gemm_parameters(ctx))]


def _product(ctx: NodeContext, x: SSAValue, y: SSAValue) -> SSAValue:
    if not rank_of(x) or not rank_of(y):
        ctx.invalid("an input has rank 0", "vectors or matrices are expected")
    x = _transpose_operand(ctx, x, ctx.flag("transBatchA"), ctx.flag("transA"))
    y = _transpose_operand(ctx, y, ctx.flag("transBatchB"), ctx.flag("transB"))
    result, alpha = ctx.matmul(x, y), ctx.number("alpha", 1.0)
    return result if alpha == 1 else ctx.b.scale(result, alpha)


def _transpose_operand(ctx: NodeContext, x: SSAValue, batch: bool, last: bool) -> SSAValue:
    """An operand (rows, batch..., columns) as (batch..., rows, columns), and its last two dims swapped, on request."""
    rank = rank_of(x)
    order = list(range(rank))
    if batch and rank > 2:
        order = [*range(1, rank - 1), 0, rank - 1]
    if last and rank > 1:
        order[-2:] = reversed(order[-2:])
    return ctx.b.transpose(x, order)


@contrib(
    "FusedGemm",
    "A:T[2] B:T[2] C:T?",
    "alpha beta transA transB activation activation_alpha activation_beta activation_gamma",
)
def fused_gemm(ctx: NodeContext) -> Results:
    """FusedGemm: Gemm, then an activation."""
    (result,) = gemm(ctx)
    assert isinstance(result, SSAValue)
    return [activate(ctx, result, _gemm_parameters(ctx))]


def _gemm_parameters(ctx: NodeContext) -> dict[str, float]:
    names = ("alpha", "beta", "gamma")
    return {n: ctx.number(f"activation_{n}") for n in names if ctx.attribute(f"activation_{n}") is not None}


# ---- convolutions ------------------------------------------------------------------------------------------------


@contrib("FusedConv", "X:T W:T B:T[1]? Z:T?", _CONV)
def fused_conv(ctx: NodeContext) -> Results:
    """FusedConv: a convolution plus bias plus a residual Z of its shape, then an activation."""
    result = add_bias(ctx, convolve(ctx, ctx[0], ctx[1], ctx.b.scalar_like(ctx[0], 0)), 2)
    return [_conv_activated(ctx, _with_residual(ctx, result))]


@contrib("NhwcFusedConv", "X:T W:T B:T[1]? Z:T?", _CONV)
def nhwc_fused_conv(ctx: NodeContext) -> Results:
    """NhwcFusedConv: FusedConv with channels last in X, Z and the result; the kernel is as Conv's."""
    b, rank = ctx.b, ctx.rank()
    if rank < 3:
        ctx.invalid(f"X has rank {rank}", "rank 3 or more is expected")
    x = b.transpose(ctx[0], (0, rank - 1, *range(1, rank - 1)))
    result = add_bias(ctx, convolve(ctx, x, ctx[1], ctx.b.scalar_like(x, 0)), 2)
    result = b.transpose(result, (0, *range(2, rank), 1))
    return [_conv_activated(ctx, _with_residual(ctx, result))]


def _with_residual(ctx: NodeContext, x: SSAValue) -> SSAValue:
    if not ctx.has(3):
        return x
    if ctx.rank(3) != rank_of(x):
        ctx.invalid(f"Z has rank {ctx.rank(3)}", f"the result has rank {rank_of(x)}")
    return ctx.b.add(x, ctx.restate(ctx[3], dict(enumerate(shape_of(x)))))


_PARAMETERS: Mapping[str, Sequence[str]] = {
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("low", "high"),
}
"""Activation -> what the attribute activation_params lists."""


def _conv_activated(ctx: NodeContext, x: SSAValue) -> SSAValue:
    name, values = ctx.string("activation"), ctx.numbers("activation_params") or []
    names = _PARAMETERS.get(name, ())
    if len(values) != len(names):
        ctx.invalid(f"activation_params has {len(values)} numbers", f"{name or 'no activation'} takes {len(names)}")
    if name == "Clip":
        low, high = (ctx.b.scalar_like(x, v) for v in values)
        return bound_values(ctx.b, x, low, high)
    return activate(ctx, x, dict(zip(names, values, strict=True)))
