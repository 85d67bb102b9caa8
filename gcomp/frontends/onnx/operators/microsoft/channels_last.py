"""Importers of com.microsoft: convolution and pooling of tensors with channels last."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.convolution import add_bias, convolve
from gcomp.frontends.onnx.operators.microsoft.quantized import on
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.pooling import max_pool
from gcomp.ir.types import rank_of


def _first(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """A tensor with channels last, with channels in dim 1."""
    rank = rank_of(x)
    return ctx.b.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def _between(ctx: NodeContext, compute: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """Compute on operand 0 with channels in dim 1; they are last in the result."""
    rank = ctx.rank()
    if rank < 3:
        ctx.invalid(f"its input has rank {rank}", "rank 3 or more is expected")
    return ctx.b.transpose(compute(_first(ctx, ctx[0])), (0, *range(2, rank), 1))


@contrib("NhwcConv", "X:T W:T B:T[1]?", "auto_pad dilations group kernel_shape pads strides")
def nhwc_conv(ctx: NodeContext) -> Results:
    """NhwcConv: Conv with channels last in X, in the result, and in the kernel (out, spatial..., in / group).

    The schema's text repeats Conv's, where the kernel has its channels first. ONNX Runtime's kernels (there is none for
    CPUs) and the tools that write this operator have them last.
    """

    def compute(x: SSAValue) -> SSAValue:
        if ctx.rank(1) != rank_of(x):
            ctx.invalid(f"W has rank {ctx.rank(1)}", f"X has rank {rank_of(x)}")
        return add_bias(ctx, convolve(ctx, x, _first(ctx, ctx[1]), ctx.b.scalar_like(x, 0)), 2)

    return [_between(ctx, compute)]


@contrib("NhwcMaxPool", "x:byte", "auto_pad ceil_mode dilations kernel_shape! pads strides")
def nhwc_max_pool(ctx: NodeContext) -> Results:
    """NhwcMaxPool: MaxPool of quantized values with channels last."""

    def compute(x: SSAValue) -> SSAValue:
        (y,) = max_pool(on(ctx, "MaxPool", [x]))
        assert isinstance(y, SSAValue)
        return y

    return [_between(ctx, compute)]
