"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex, real_of
from gcomp.frontends.jaxpr.avals import size_of
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.contraction import precision_of
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions
from gcomp.ir.types import shape_of


@imports("conv_general_dilated")
def conv_general_dilated(ctx: EqnContext) -> Results:
    """Dot products of a kernel with windows: strided, padded (or cut), dilated, in groups. Complex ones by three real
    ones, as JAX has it on CPU."""
    b, (x, kernel) = ctx.b, ctx.operands
    out = ctx.out_dtype()
    if not is_complex(ctx.dtype()):
        return _convolution(ctx, x, kernel, out)
    # (a + bi)(c + di) = (k1 - k3) + (k1 + k2)i: Gauss.
    part = real_of(out)
    a, im, c, d = (b.emit(op, v) for v in (x, kernel) for op in (hlo.RealOp, hlo.ImagOp))
    k1 = _convolution(ctx, b.add(a, im), c, part)
    k2 = _convolution(ctx, a, b.subtract(d, c), part)
    k3 = _convolution(ctx, im, b.add(c, d), part)
    return b.emit(hlo.ComplexOp, b.subtract(k1, k3), b.add(k1, k2))


def _convolution(ctx: EqnContext, x: SSAValue, kernel: SSAValue, element: str) -> SSAValue:
    """A convolution of real numbers. Its sizes are written as gcomp writes them."""
    b, params = ctx.b, ctx.params
    low, high = _padding(ctx)
    numbers = params["dimension_numbers"]
    lhs, rhs, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    if not all(isinstance(p, int) for p in (*low, *high)):
        x = _pad(ctx, x, lhs[2:], low, high)
        low, high = [0] * len(low), [0] * len(high)
    return b.convolution(
        x, kernel, element,
        window_strides=list(params["window_strides"]),
        padding=list(zip(low, high, strict=True)),
        lhs_dilation=list(params["lhs_dilation"]),
        rhs_dilation=list(params["rhs_dilation"]),
        dimension_numbers=ConvDimensions(
            lhs[0], lhs[1], tuple(lhs[2:]), rhs[1], rhs[0], tuple(rhs[2:]), out[0], out[1], tuple(out[2:])
        ),
        feature_group_count=int(params["feature_group_count"]),
        batch_group_count=int(params["batch_group_count"]),
        precision_config=precision_of(ctx),
    )  # fmt: skip


def _padding(ctx: EqnContext) -> tuple[list[Size], list[Size]]:
    pairs = ctx.params["padding"]
    return [size_of(low) for low, _ in pairs], [size_of(high) for _, high in pairs]


def _pad(ctx: EqnContext, x: SSAValue, spatial: Sequence[int], low: Sequence[Size], high: Sequence[Size]) -> SSAValue:
    """The input with symbolic padding."""
    if any(d != 1 for d in ctx.params["lhs_dilation"]):
        ctx.unsupported("its padding is symbolic, and its input is dilated", "pad the input (jax.lax.pad) before")
    rank = len(shape_of(x))
    before: list[Size] = [0] * rank
    after: list[Size] = [0] * rank
    for i, lo, hi in zip(spatial, low, high, strict=True):
        before[i], after[i] = lo, hi
    return ctx.b.pad(x, ctx.b.scalar_like(x, 0), before, after)
