"""Importers of com.microsoft: activations and softmax fused with biases and residuals."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import product
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import composite
from gcomp.ir.types import element_of, rank_of, shape_of


def _with_bias(ctx: NodeContext, index: int) -> SSAValue:
    """The first input plus one number for each of its features."""
    b, x, rank = ctx.b, ctx[0], ctx.rank()
    if not ctx.has(index):
        return x
    if not rank:
        ctx.invalid("its input has rank 0", "a bias needs a last dim")
    return b.add(x, b.broadcast(ctx.vector(index, ctx.shape()[-1]), ctx.shape(), (rank - 1,)))


def _gelu(ctx: NodeContext, x: SSAValue, approximate: str) -> SSAValue:
    return composite(ctx.b, "gcomp.gelu", [x], {"approximate": approximate})[0]


@contrib("Gelu", "X:T")
def gelu(ctx: NodeContext) -> Results:
    """Gelu: by erf."""
    return [_gelu(ctx, ctx[0], "none")]


@contrib("BiasGelu", "A:T B:T[1]")
def bias_gelu(ctx: NodeContext) -> Results:
    """BiasGelu: Gelu of A plus one number for each feature."""
    return [_gelu(ctx, _with_bias(ctx, 1), "none")]


@contrib("FastGelu", "X:T bias:T[1]?")
def fast_gelu(ctx: NodeContext) -> Results:
    """FastGelu: Gelu by tanh, of X plus one number for each feature."""
    return [_gelu(ctx, _with_bias(ctx, 1), "tanh")]


@contrib("QuickGelu", "X:T", "alpha")
def quick_gelu(ctx: NodeContext) -> Results:
    """QuickGelu: `x * sigmoid(alpha * x)`."""
    b, x = ctx.b, ctx[0]
    return [b.multiply(x, b.emit(hlo.LogisticOp, b.scale(x, ctx.number("alpha", 1.702))))]


@contrib("ScaledSiLU", "X:T scale:float[0]?", "alpha")
def scaled_silu(ctx: NodeContext) -> Results:
    """ScaledSiLU: `z * sigmoid(z)` of `z = scale * x`, each step rounded to the dtype of X; the scale is a scalar."""
    b, x = ctx.b, ctx[0]
    if ctx.has(1):
        wide = "f64" if "f64" in (ctx.element(), ctx.element(1)) else "f32"
        z = b.convert(b.multiply(b.convert(x, wide), b.convert(ctx[1], wide)), ctx.element())
    else:
        z = ctx.wide(x, lambda v: b.scale(v, ctx.number("alpha", 1.0)))
    return [b.multiply(z, b.emit(hlo.LogisticOp, z))]


@contrib("BiasSplitGelu", "X:T bias:T[1]")
def bias_split_gelu(ctx: NodeContext) -> Results:
    """BiasSplitGelu: of X plus bias, the left half of the features times the Gelu of the right one."""
    b, x = ctx.b, _with_bias(ctx, 1)
    axis, size = rank_of(x) - 1, shape_of(x)[-1]
    half = ctx.divide_size(size, 2, "features")
    left, right = b.slice_axis(x, axis, 0, half), b.slice_axis(x, axis, half, half + half)
    return [b.multiply(left, _gelu(ctx, right, "none"))]


@contrib("BiasAdd", "X:T bias:T[1] skip:T")
def bias_add(ctx: NodeContext) -> Results:
    """BiasAdd: X plus one number for each feature, plus a residual."""
    x = _with_bias(ctx, 1)
    return [ctx.b.add(x, _alike(ctx, 2, x))]


def _alike(ctx: NodeContext, index: int, x: SSAValue) -> SSAValue:
    """An operand of the shape of `x`."""
    if ctx.rank(index) != rank_of(x):
        ctx.invalid(f"input {index} has rank {ctx.rank(index)}", f"rank {rank_of(x)} is expected")
    return ctx.restate(ctx[index], dict(enumerate(shape_of(x))))


@contrib("BiasDropout", "data:T bias:T residual:T? ratio:float? training_mode:i1?", "seed")
def bias_dropout(ctx: NodeContext) -> Results:
    """BiasDropout at inference: data plus bias plus residual; the mask is all true."""
    b, x, rank = ctx.b, ctx[0], ctx.rank()
    if ctx.has(4) and bool(ctx.scalar(4, "training_mode")):
        ctx.unsupported("it is in training mode", fix="export the model for inference")
    bias = ctx.vector(1, ctx.shape()[-1]) if ctx.rank(1) == 1 and rank > 1 else _alike(ctx, 1, x)
    total = b.add(x, b.broadcast_to(bias, ctx.shape()))
    if ctx.has(2):
        total = b.add(total, _alike(ctx, 2, x))
    return [total, b.full(ctx.shape(), True, "i1") if ctx.wants(1) else None]


@contrib("BiasSoftmax", "data:T bias:T", "axis is_inner_broadcast!")
def bias_softmax(ctx: NodeContext) -> Results:
    """BiasSoftmax: softmax of data plus a bias that broadcasts to it, over the dims from `axis` on as if one."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    if not shape:
        ctx.invalid("its input has rank 0", "rank 1 or more is expected")
    axis = ctx.axis(ctx.integer("axis", 1), len(shape))
    if ctx.rank(1) > len(shape):
        ctx.invalid(f"the bias has rank {ctx.rank(1)}", f"the data has rank {len(shape)}")
    if ctx.flag("is_inner_broadcast") and ctx.rank(1) != len(shape):
        # Broadcast dims are then in the middle: which ones would have to be guessed.
        ctx.unsupported(f"its bias has rank {ctx.rank(1)}, the data {len(shape)}, and dims between are broadcast")

    def run(wide: SSAValue) -> SSAValue:
        total = b.add(wide, b.broadcast_to(b.convert(ctx[1], element_of(wide)), shape))
        flat = b.reshape(total, (*shape[:axis], product(shape[axis:])))
        return b.reshape(composite(b, "gcomp.softmax", [flat], {"axis": axis})[0], shape)

    return [ctx.wide(x, run)]
