"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.frontends.fx.values import each
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of, with_shape


@imports("mm", "bmm", "matmul", "mv", "dot", "linear")
def matmul(ctx: NodeContext) -> Results:
    """The matrix product; of `linear` by the transposed weight, with a bias."""
    b = ctx.b
    if ctx.operator.startswith("aten::linear"):
        weight = ctx["weight"]
        order = list(range(rank_of(weight)))
        found = b.matmul(ctx["input"], b.transpose(weight, [*order[:-2], *order[-2:][::-1]]))
        return b.add(found, ctx["bias"]) if ctx.has("bias") else found
    names = {"mm": "mat2", "bmm": "mat2", "mv": "vec", "dot": "tensor", "matmul": "other"}
    second = names[ctx.operator.removeprefix("aten::").partition(".")[0]]
    return b.reshape(b.matmul(ctx["self"], ctx[second]), ctx.out_shape())


@imports("addmm", "baddbmm", "addmv")
def add_matmul(ctx: NodeContext) -> Results:
    """beta * self + alpha * (product); with a beta of 0, self does not count, even where it is NaN."""
    b = ctx.b
    first, second = {"addmm": ("mat1", "mat2"), "baddbmm": ("batch1", "batch2"), "addmv": ("mat", "vec")}[
        ctx.operator.removeprefix("aten::").partition(".")[0]
    ]
    product = b.matmul(ctx[first], ctx[second])
    text = dtype_text(product.type)
    alpha, beta = ctx.arg("alpha", 1), ctx.arg("beta", 1)
    if alpha != 1:
        product = b.multiply(product, ctx.scalar(alpha, text))
    if beta == 0:
        return product
    own = ctx["self"] if beta == 1 else b.multiply(ctx["self"], ctx.scalar(beta, text))
    return b.add(product, own)


@imports("convolution", "conv1d", "conv2d", "conv3d")
def convolution(ctx: NodeContext) -> Results:
    """A convolution or its transpose, of any number of spatial dimensions, in channels-first layout."""
    b = ctx.b
    x, weight = ctx["input"], ctx["weight"]
    spatial = rank_of(weight) - 2
    unbatched = rank_of(x) == spatial + 1
    if unbatched:
        x = b.reshape(x, (1, *shape_of(x)))
    stride, dilation = (each(ctx.integers(n), spatial) for n in ("stride", "dilation"))
    groups = ctx.arg("groups", 1)
    places = tuple(range(2, spatial + 2))
    low, high = _padding(ctx, shape_of(weight)[2:], dilation)
    if ctx.arg("transposed", False):
        found = _transpose(ctx, x, weight, stride, low, dilation, groups)
    else:
        found = b.convolution(
            x, weight, window_strides=stride, padding=_static_padding(ctx, zip(low, high, strict=True)),
            rhs_dilation=dilation, feature_group_count=groups, batch_group_count=1,
            dimension_numbers=ConvDimensions(0, 1, places, 1, 0, places, 0, 1, places),
        )  # fmt: skip
    if ctx.has("bias"):
        found = b.add(found, b.reshape(ctx["bias"], (shape_of(ctx["bias"])[0], *[1] * spatial)))
    return b.reshape(found, ctx.out_shape()) if unbatched else found


def _padding(ctx: NodeContext, kernel: Sequence[Size], dilation: Sequence[int]) -> tuple[list[Size], list[Size]]:
    """The padding before and behind each spatial dimension: numbers, none at all, or what keeps the size."""
    given = ctx.arg("padding")
    if given not in ("same", "valid"):
        pads: list[Size] = list(each(given, len(kernel)))
        return pads, pads
    reach = [d * (k - 1) if given == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
    low: list[Size] = [r // 2 for r in reach]
    return low, [r - p for r, p in zip(reach, low, strict=True)]


def _static_padding(ctx: NodeContext, pads: Iterable[tuple[Size, Size]]) -> list[tuple[int, int]]:
    """The padding in numbers, which the op takes. Refused where it depends on sizes that are not known."""
    found: list[tuple[int, int]] = []
    for low, high in pads:
        if not (isinstance(low, int) and isinstance(high, int)):
            symbolic = low if not isinstance(low, int) else high
            ctx.unsupported(f"its padding depends on a symbolic size: {symbolic}", "give the kernel's dimensions sizes")
        found.append((low, high))
    return found


def _type(ctx: NodeContext, unbatched: bool) -> Tensor:
    """The convolution's type, with a batch dimension."""
    shape = ctx.out_shape()
    return with_shape(ctx.out_type(), (1, *shape) if unbatched else shape)


def _transpose(
    ctx: NodeContext, x: SSAValue, weight: SSAValue, stride: list[int], padding: list[Size], dilation: list[int],
    groups: int,
) -> SSAValue:  # fmt: skip
    """A transposed convolution, `output_padding` larger than it need be."""
    extra = each(ctx.arg("output_padding", 0), len(stride))
    unbatched = len(ctx.out_shape()) == len(stride) + 1
    return _spread(ctx, x, weight, _type(ctx, unbatched), (stride, padding, dilation, extra), groups)


def _spread(
    ctx: NodeContext, x: SSAValue, weight: SSAValue, result: Tensor, windows: Sequence[Sequence[Size]], groups: int
) -> SSAValue:
    """The gradient of a convolution by its input: what comes dilated by the stride, the kernel turned round."""
    b, (stride, padding, dilation, extra) = ctx.b, windows
    spatial = len(stride)
    kernel: list[Size] = list(shape_of(weight)[2:])
    places = list(range(2, spatial + 2))
    weight = b.emit(hlo.ReverseOp, weight, dimensions=places)
    if groups > 1:
        # (in, out / groups, ...) holds the groups in its first dimension; the op wants them in the outputs.
        count, each, *rest = shape_of(weight)
        weight = b.reshape(weight, (groups, count // groups, each, *rest))
        weight = b.transpose(weight, [1, 0, 2, *range(3, spatial + 3)])
        weight = b.reshape(weight, (count // groups, each * groups, *rest))
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    pads = _static_padding(ctx, [(r - p, r - p + e) for r, p, e in zip(reach, padding, extra, strict=True)])
    return b.emit(
        hlo.ConvolutionOp, x, weight, types=(result,), window_strides=[1] * spatial, padding=pads,
        lhs_dilation=list(stride), rhs_dilation=list(dilation), feature_group_count=groups, batch_group_count=1,
        dimension_numbers=ConvDimensions(0, 1, tuple(places), 0, 1, tuple(places), 0, 1, tuple(places)),
    )  # fmt: skip


@imports("convolution_backward")
def convolution_backward(ctx: NodeContext) -> Results:
    """The gradients of a convolution by its input, its weight and its bias; those that nobody wants are zeros."""
    b, (of_input, of_weight, of_bias) = ctx.b, ctx.arg("output_mask")
    grad, x, weight = ctx["grad_output"], ctx["input"], ctx["weight"]
    spatial, groups = rank_of(weight) - 2, ctx.arg("groups", 1)
    if rank_of(x) != spatial + 2:
        ctx.unsupported("it is the gradient of an unbatched convolution")
    stride, padding, dilation = (each(ctx.integers(n), spatial) for n in ("stride", "padding", "dilation"))
    # A transposed convolution is the gradient of one whose windows go over its result, and give its input.
    transposed = ctx.arg("transposed", False)
    image, found = (grad, x) if transposed else (x, grad)
    # What the last window leaves of the image has no gradient.
    reached = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(shape_of(found)[2:], stride, padding, dilation, shape_of(weight)[2:], strict=True)
    ]
    extra = [size - n for size, n in zip(shape_of(image)[2:], reached, strict=True)]
    places = tuple(range(2, spatial + 2))
    results: list[SSAValue] = [b.full((), 0, dtype_text(grad.type))] * 3
    if of_input and not transposed:
        results[0] = _spread(ctx, grad, weight, with_shape(x, shape_of(x)), (stride, padding, dilation, extra), groups)
    pads = [(p, p - e) for p, e in zip(padding, extra, strict=True)] if of_weight or transposed else []
    pads = _static_padding(ctx, pads)
    if of_input and transposed:
        results[0] = b.emit(
            hlo.ConvolutionOp, grad, weight, types=(with_shape(x, shape_of(x)),), window_strides=stride, padding=pads,
            rhs_dilation=dilation, feature_group_count=groups, batch_group_count=1,
            dimension_numbers=ConvDimensions(0, 1, places, 1, 0, places, 0, 1, places),
        )  # fmt: skip
    if of_weight:
        results[1] = b.emit(
            hlo.ConvolutionOp, image, found, types=(with_shape(weight, shape_of(weight)),), window_strides=dilation,
            padding=pads, rhs_dilation=stride, feature_group_count=1, batch_group_count=groups,
            dimension_numbers=ConvDimensions(1, 0, places, 0, 1, places, 1, 0, places),
        )  # fmt: skip
    if of_bias:
        results[2] = b.reduce(hlo.AddOp, grad, [0, *range(2, spatial + 2)])
    return results
