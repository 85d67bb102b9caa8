"""Importers of com.microsoft: operators that ONNX took over later, as ONNX Runtime had them before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.convolution import conv_transpose
from gcomp.frontends.onnx.operators.data_dependent import unique as distinct
from gcomp.frontends.onnx.operators.indexing import gather_nd
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.padding import pad as onnx_pad
from gcomp.frontends.onnx.operators.shape import sequence, trilu
from gcomp.frontends.onnx.operators.vision import grid_sample
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of

contrib("Trilu", "X:any k:i64?", "upper")(trilu)
contrib("GatherND", "data:any indices:int")(gather_nd)
contrib("GridSample", "X:float[4] Grid:float[4]", "align_corners mode padding_mode")(grid_sample)


@contrib("SampleOp", "X:any")
def sample(ctx: NodeContext) -> Results:
    """SampleOp: the identity."""
    return [ctx.value(0)]


@contrib("ExpandDims", "X:any axis:i32")
def expand_dims(ctx: NodeContext) -> Results:
    """ExpandDims: a dim of size 1 before `axis`, which counts in the result."""
    shape = list(ctx.shape())
    shape.insert(ctx.axis(int(ctx.scalar(1, "axis")), len(shape) + 1), 1)
    return [ctx.b.reshape(ctx[0], shape)]


@contrib("Pad", "data:T pads:i64[1|2] value:T?", "mode")
def pad(ctx: NodeContext) -> Results:
    """Pad: all starts, then all ends, of every axis; negative ones crop."""
    if ctx.rank(1) == 2 and ctx.shape(1)[0] != 1:
        ctx.invalid(f"pads has shape {list(ctx.shape(1))}", "one row is expected")
    if ctx.has(2) and ctx.shape(2) not in ((), (1,)):
        ctx.invalid(f"the value has shape {list(ctx.shape(2))}", "a scalar is expected")
    known = ctx.known_value(1)
    if known is not None:
        pads = Value("i64", known.reshape(-1), None)
    else:
        pads = Value.of(ctx.b.reshape(ctx[1], (ctx.shape(1)[-1],)))
    return onnx_pad(_as_standard(ctx, "Pad", [ctx.values[0], pads, ctx.values[2] if ctx.has(2) else None]))


@contrib("Range", "start:N limit:N delta:N?")
def arange(ctx: NodeContext) -> Results:
    """Range: start + i * delta (1 by default), as many as there are before the limit."""
    for i in range(len(ctx.values)):
        if ctx.shape(i) not in ((), (1,)):
            ctx.invalid(f"input {i} has shape {list(ctx.shape(i))}", "a scalar is expected")
    step = _scalar(ctx, 2) if ctx.has(2) else Value.constant(np.ones((), dtype_of(ctx.element())))
    return sequence(_as_standard(ctx, "Range", [_scalar(ctx, 0), _scalar(ctx, 1), step]))


def _scalar(ctx: NodeContext, index: int) -> Value:
    value = ctx.value(index)
    known = ctx.known_value(index)
    return Value.of(ctx.b.reshape(ctx[index], ())) if known is None else Value(value.element, known.reshape(()), None)


@contrib("Unique", "x:any[1]")
def unique(ctx: NodeContext) -> Results:
    """Unique: distinct elements in order of appearance, where each element is among them, and how many of each."""
    values, _, places, counts = distinct(_as_standard(ctx, "Unique", ctx.values, [onnx_ir.AttrInt64("sorted", 0)]))
    return [values, places, counts]


# ---- transforms --------------------------------------------------------------------------------------------------


def _check_fft(ctx: NodeContext) -> None:
    if not ctx.flag("onesided", True) or ctx.flag("normalized"):
        ctx.invalid("onesided is 0 or normalized is 1", "neither exists")
    if ctx.integer("signal_ndim", 1) != 1:
        ctx.unsupported("its signal has more than one dim")


@contrib("Rfft", "X:T", "onesided normalized signal_ndim")
def rfft(ctx: NodeContext) -> Results:
    """Rfft: of the last dim; real and imaginary parts are a new last dim."""
    _check_fft(ctx)
    if not ctx.rank():
        ctx.invalid("its input has rank 0", "rank 1 or more is expected")
    size = ctx.static(ctx.shape()[-1], "signal's length")
    return [ctx.wide(ctx[0], lambda x: _join(ctx, ctx.b.emit(hlo.FftOp, x, fft_type="RFFT", fft_length=[size])))]


def _join(ctx: NodeContext, x: SSAValue) -> SSAValue:
    shape = shape_of(x)
    parts = [ctx.b.reshape(ctx.b.emit(op, x), (*shape, 1)) for op in (hlo.RealOp, hlo.ImagOp)]
    return ctx.b.concatenate(parts, len(shape))


@contrib("Irfft", "X:T", "onesided normalized signal_ndim")
def irfft(ctx: NodeContext) -> Results:
    """Irfft: the inverse of Rfft for even lengths, scaled by 1 / length."""
    _check_fft(ctx)
    if ctx.rank() < 2 or ctx.ranges.equal(ctx.shape()[-1], 2) is False:
        ctx.invalid(f"its input has shape {list(ctx.shape())}", "real and imaginary parts are a last dim of 2")
    b, count = ctx.b, 2 * (ctx.static(ctx.shape()[-2], "signal's length") - 1)
    if count < 1:
        ctx.invalid("the signal has fewer than two frequencies", "an even length above 0 is expected")

    def run(x: SSAValue) -> SSAValue:
        axis, shape = rank_of(x) - 1, shape_of(x)[:-1]
        real, imaginary = (b.reshape(b.slice_axis(x, axis, i, i + 1), shape) for i in (0, 1))
        return b.emit(hlo.FftOp, b.emit(hlo.ComplexOp, real, imaginary), fft_type="IRFFT", fft_length=[count])

    return [ctx.wide(ctx[0], run)]


# ---- distances and matrices --------------------------------------------------------------------------------------


@contrib("CDist", "A:T[2] B:T[2]", "metric")
def cdist(ctx: NodeContext) -> Results:
    """CDist: the (squared) euclidean distance between each row of A and each row of B."""
    b, metric = ctx.b, ctx.string("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        ctx.unsupported(f"its metric is {metric!r}; ONNX Runtime and gcomp know sqeuclidean and euclidean")
    x, y = ctx.match_dims(ctx[0], 1, ctx[1], 1)
    (rows, width), columns = shape_of(x), shape_of(y)[0]
    shape = (rows, columns, width)
    # Differences first: the expansion into squares and products cancels where rows are close.
    gap = b.subtract(b.broadcast(x, shape, (0, 2)), b.broadcast(y, shape, (1, 2)))
    total = b.reduce(hlo.AddOp, b.multiply(gap, gap), [2])
    return [b.emit(hlo.SqrtOp, total) if metric == "euclidean" else total]


@contrib(
    "ConvTransposeWithDynamicPads",
    "X:T W:T Pads:i64[1]? B:T[1]?",
    "kernel_shape output_padding dilations strides auto_pad group",
)
def conv_transpose_with_dynamic_pads(ctx: NodeContext) -> Results:
    """ConvTransposeWithDynamicPads: ConvTranspose whose pads are an input."""
    pads = [onnx_ir.AttrInt64s("pads", ctx.ints_of(2, "pads"))] if ctx.has(2) else []
    return conv_transpose(_as_standard(ctx, "ConvTranspose", [*ctx.values[:2], *ctx.values[3:]], pads))


def _as_standard(
    ctx: NodeContext, operator: str, values: Sequence[AnyValue | None], attributes: Sequence[onnx_ir.Attr] = ()
) -> NodeContext:
    """The node as one of ONNX's own operators, with other operands and more attributes."""
    given = [*ctx.node.attributes.values(), *attributes]
    outputs = [onnx_ir.Value(name=o.name) for o in ctx.node.outputs]
    node = onnx_ir.Node("", operator, [], given, outputs=outputs, name=ctx.node.name)
    return NodeContext(ctx.importer, ctx.scope, node, ctx.opset, values, ctx.where)
