"""Convolutions, in NCHW as ONNX says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes, operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.windows import AUTO_PADS, Windows
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions, ScatterDimensions
from gcomp.ir.types import element_of, rank_of, shape_of, tensor


def nchw(spatial: int) -> ConvDimensions:
    """The dimension numbers of an (N, C, spatial...) input and an (O, I, spatial...) kernel."""
    dimensions = tuple(range(2, 2 + spatial))
    return ConvDimensions(0, 1, dimensions, 1, 0, dimensions, 0, 1, dimensions)


@imports("Conv")
def conv(ctx: NodeContext) -> Results:
    """Conv: grouped, dilated, any number of spatial dims."""
    result = convolve(ctx, ctx[0], ctx[1], ctx.b.scalar_like(ctx[0], 0))
    return [add_bias(ctx, result, 2)]


def convolve(ctx: NodeContext, x: SSAValue, kernel: SSAValue, fill: SSAValue) -> SSAValue:
    """A convolution by the node's attributes; what SAME padding adds to symbolic dims is `fill`."""
    _check_ranks(ctx, x, kernel)
    sizes = kernel_sizes(ctx, kernel)
    count = groups(ctx, x, kernel)
    taken = shape_of(kernel)[1]
    x = ctx.restate(x, {1: taken * count})
    windows = Windows.of(ctx, sizes, shape_of(x)[2:])
    windows.fit(ctx)
    x, padding = windows.apply(ctx, x, fill)
    return ctx.b.convolution(
        x,
        kernel,
        window_strides=windows.strides,
        padding=padding,
        rhs_dilation=windows.dilations,
        dimension_numbers=nchw(len(sizes)),
        feature_group_count=count,
    )


def _check_ranks(ctx: NodeContext, x: SSAValue, kernel: SSAValue) -> None:
    if rank_of(x) != rank_of(kernel) or rank_of(x) < 3:
        ctx.invalid(
            f"the input has rank {rank_of(x)} and the kernel {rank_of(kernel)}", "equal ranks from 3 on are expected"
        )


def kernel_sizes(ctx: NodeContext, kernel: SSAValue) -> list[int]:
    """The kernel's spatial sizes, which `kernel_shape` must repeat if it is given."""
    sizes = [ctx.static(s, "kernel size") for s in shape_of(kernel)[2:]]
    stated = ctx.integers("kernel_shape")
    if stated is not None and stated != sizes:
        ctx.invalid(f"kernel_shape is {stated}", f"the kernel's shape is {list(shape_of(kernel))}")
    return sizes


def groups(ctx: NodeContext, x: SSAValue, kernel: SSAValue) -> int:
    """The group count, checked against the channels."""
    count = ctx.integer("group", 1)
    channels, taken, out = shape_of(x)[1], shape_of(kernel)[1], shape_of(kernel)[0]
    if count < 1 or ctx.ranges.equal(channels, taken * count) is False or (isinstance(out, int) and out % count):
        ctx.invalid(f"{count} groups of {taken} channels", f"the input has {channels} channels, the kernel makes {out}")
    return count


def add_bias(ctx: NodeContext, x: SSAValue, index: int) -> SSAValue:
    """`x` plus one number for each channel, from an optional operand."""
    if not ctx.has(index):
        return x
    return ctx.b.add(x, ctx.b.broadcast(ctx.vector(index, shape_of(x)[1]), shape_of(x), (1,)))


@imports("ConvTranspose")
def conv_transpose(ctx: NodeContext) -> Results:
    """ConvTranspose: the input spread by the strides, convolved with the mirrored kernel."""
    x, kernel = ctx[0], ctx[1]
    _check_ranks(ctx, x, kernel)
    sizes = kernel_sizes(ctx, kernel)
    n = len(sizes)
    strides, dilations = (_integers(ctx, name, n, least=1) for name in ("strides", "dilations"))
    extra = _integers(ctx, "output_padding", n, least=0)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        ctx.invalid(f"output_padding is {extra}", "it must be less than the stride or the dilation")
    reach = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
    low, high = _transposed_padding(ctx, shape_of(x)[2:], strides, reach, extra)
    cut = zip(shape_of(x)[2:], strides, reach, extra, low, high, strict=True)
    if any(ctx.at_most(k * (size - 1) + r + e - lo - hi, -1) for size, k, r, e, lo, hi in cut):
        ctx.invalid(f"its padding cuts off {low} and {high}", "that is more than there is")
    result = ctx.b.convolution(
        ctx.restate(x, {1: shape_of(kernel)[0]}),
        _transposed_kernel(ctx, kernel),
        padding=[(r - 1 - lo, r - 1 - hi + e) for r, lo, hi, e in zip(reach, low, high, extra, strict=True)],
        lhs_dilation=strides,
        rhs_dilation=dilations,
        dimension_numbers=nchw(n),
        feature_group_count=ctx.integer("group", 1),
    )
    return [add_bias(ctx, result, 2)]


def _integers(ctx: NodeContext, name: str, count: int, *, least: int) -> list[int]:
    """An attribute that lists one number, `least` by default and at least, for each spatial dim."""
    values = ctx.integers(name) or [least] * count
    if len(values) != count or min(values) < least:
        ctx.invalid(f"{name} is {values}", f"{count} numbers from {least} on are expected")
    return values


def _transposed_kernel(ctx: NodeContext, kernel: SSAValue) -> SSAValue:
    """The kernel (in, out / groups, ...) as (out, in / groups, ...), mirrored in space."""
    b, count = ctx.b, ctx.integer("group", 1)
    shape = shape_of(kernel)
    spatial = list(range(2, len(shape)))
    mirrored = b.emit(hlo.ReverseOp, kernel, dimensions=spatial)
    taken = ctx.static(shape[0], "number of channels")
    if count < 1 or taken % count:
        ctx.invalid(f"{count} groups", f"the kernel takes {taken} channels")
    split = b.reshape(mirrored, (count, taken // count, *shape[1:]))
    swapped = b.transpose(split, (0, 2, 1, *(i + 1 for i in spatial)))
    return b.reshape(swapped, (count * shape[1], taken // count, *shape[2:]))


def _transposed_padding(
    ctx: NodeContext, spatial: Sequence[Size], strides: Sequence[int], reach: Sequence[int], extra: Sequence[int]
) -> tuple[list[int], list[int]]:
    """How much the full result is cropped at both ends."""
    n, mode = len(spatial), ctx.string("auto_pad", "NOTSET")
    shape = ctx.integers("output_shape")
    if mode not in AUTO_PADS:
        ctx.invalid(f"auto_pad is {mode!r}", f"it must be one of {', '.join(AUTO_PADS)}")
    if shape is None and mode == "NOTSET":
        pads = ctx.integers("pads") or [0] * (2 * n)
        if len(pads) != 2 * n:
            ctx.invalid(f"pads is {pads}", f"{2 * n} numbers are expected")
        return pads[:n], pads[n:]
    if shape is None and mode == "VALID":
        return [0] * n, [0] * n
    if shape is not None and (len(shape) not in (n, n + 2) or min(shape[-n:]) < 1):
        ctx.invalid(f"output_shape is {list(shape)}", f"{n} positive numbers are expected, one for each spatial dim")
    wanted: list[Size] = (
        list(shape[-n:]) if shape is not None else [s * k for s, k in zip(spatial, strides, strict=True)]
    )
    totals = [
        ctx.static(k * (size - 1) + e + r - w, "padding")
        for size, k, e, r, w in zip(spatial, strides, extra, reach, wanted, strict=True)
    ]
    if shape is None:
        totals = [max(t, 0) for t in totals]
    if mode == "SAME_UPPER":
        return [t // 2 for t in totals], [t - t // 2 for t in totals]
    return [t - t // 2 for t in totals], [t // 2 for t in totals]


@imports("Col2Im", since=18)
def col2im(ctx: NodeContext) -> Results:
    """Col2Im: blocks of columns summed back into an image."""
    b, x = ctx.b, ctx[0]
    image, block = operand_sizes(ctx, 1, "image_shape"), operand_sizes(ctx, 2, "block_shape")
    n = len(image)
    sizes = [*image, *block]
    if ctx.rank() != 3 or not n or len(block) != n or any(ctx.at_most(size, 0) for size in sizes):
        ctx.invalid(f"image_shape is {image} and block_shape {block}", "positive sizes are expected, as many of each")
    strides, dilations = (_integers(ctx, name, n, least=1) for name in ("strides", "dilations"))
    pads = _integers(ctx, "pads", 2 * n, least=0)
    batch, columns, places = ctx.shape()
    channels = _channels(ctx, columns, dims.product(block))
    reach = [dilations[i] * (block[i] - 1) + 1 for i in range(n)]
    room = [image[i] + pads[i] + pads[i + n] - reach[i] for i in range(n)]
    counts = [dims.floordiv(room[i], strides[i]) + 1 for i in range(n)]
    if any(ctx.at_most(count, 0) for count in counts) or ctx.ranges.equal(dims.product(counts), places) is False:
        ctx.invalid(f"it has {places} blocks", f"the image has {counts}, along its dims")
    for least, size in [(1, size) for size in sizes] + [(0, size) for size in room]:
        if not ctx.at_most(least, size):
            ctx.require("le", least, size)
    x = ctx.restate(x, {1: channels * dims.product(block), 2: dims.product(counts)})
    if not all(isinstance(size, int) for size in (*block, *counts)):
        padded = [image[i] + pads[i] + pads[i + n] for i in range(n)]
        x = _scatter(ctx, x, channels, block, counts, padded, strides, dilations)
        return [b.slice(x, [0, 0, *pads[:n]], [batch, channels, *(p + s for p, s in zip(pads, image, strict=False))])]
    x = b.reshape(x, (batch, channels, *block, *counts))
    for i in range(n):
        x = _place(ctx, x, 2 + i, 2 + n, strides[i], dilations[i])
    low = [0, 0, *(-p for p in pads[:n])]
    high = [0, 0, *(image[i] + pads[i] - cast(int, shape_of(x)[2 + i]) for i in range(n))]
    return [b.pad(x, ctx.b.scalar_like(x, 0), low, high)]


def _channels(ctx: NodeContext, columns: Size, block: Size) -> Size:
    """The number of channels of a Col2Im: the rows of the columns over the elements of a block."""
    if isinstance(block, int):
        return ctx.divide_size(columns, block, "rows")
    b = ctx.b
    found = b.divide(b.dim(columns), b.maximum(b.dim(block), b.constant(1, "i64")))
    return data_dependent_sizes(ctx, b.reshape(found, (1,)), "channels by block_shape")[0]


def _scatter(ctx: NodeContext, x: SSAValue, channels: Size, block: Sequence[Size], counts: Sequence[Size],
               padded: Sequence[Size], strides: Sequence[int], dilations: Sequence[int]) -> SSAValue:  # fmt: skip
    """The elements of blocks summed where they belong, for sizes that are not known here: by a scatter."""
    b, n = ctx.b, len(block)
    grid, outer = (*block, *counts), (shape_of(x)[0], channels)
    total = b.full(grid, 0, "i64")
    for i in range(n):
        within = b.multiply(b.iota(grid, i), b.constant(dilations[i], "i64"))
        start = b.multiply(b.iota(grid, n + i), b.constant(strides[i], "i64"))
        total = b.add(total, b.multiply(b.add(within, start), b.dim(dims.product(padded[i + 1 :]))))
    count = dims.product(grid)
    scalar = tensor((), element_of(x))
    flat = b.emit(
        hlo.ScatterOp,
        b.full((*outer, dims.product(padded)), 0, element_of(x)),
        b.reshape(total, (count, 1)),
        b.reshape(x, (*outer, count)),
        regions=(b.region([scalar, scalar], lambda args: [b.add(*args)]),),
        scatter_dimension_numbers=ScatterDimensions((0, 1), (2,), (), (), (2,), 1),
    )
    return b.reshape(flat, (*outer, *padded))


def _place(ctx: NodeContext, x: SSAValue, block: int, count: int, stride: int, dilation: int) -> SSAValue:
    """Col2Im along one dim: overlapping blocks, `stride` apart, are summed into the dim that replaces the block dim."""
    b, shape = ctx.b, shape_of(x)
    size, places = cast(int, shape[block]), cast(int, shape[count])
    total = (places - 1) * stride + (size - 1) * dilation + 1
    zero, rank = ctx.b.scalar_like(x, 0), len(shape)
    result: SSAValue | None = None
    for i in range(size):
        part = b.slice_axis(x, block, i, i + 1)
        moved = b.transpose(part, _swap(rank, block, count))
        part = b.reshape(moved, [s for j, s in enumerate(shape_of(moved)) if j != count])
        low, high, gaps = [0] * (rank - 1), [0] * (rank - 1), [0] * (rank - 1)
        low[block], gaps[block] = i * dilation, stride - 1
        high[block] = total - i * dilation - ((places - 1) * stride + 1)
        part = b.pad(part, zero, low, high, gaps)
        result = part if result is None else b.add(result, part)
    return cast(SSAValue, result)


def _swap(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    order[a], order[b] = b, a
    return order
