"""What patterns look for in windows: pooling, convolutions, batch normalization after them; with variations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Block, Region, SSAValue

from gcomp.dims import Dim
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.structures import ConvDimensions
from gcomp.ir.types import dtype_text, tensor
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.operands import ordinary, pooling_window, sizes_of, varying
from gcomp.testing.generate.passes import seeks

_FOLDS = (hlo.MaximumOp, hlo.MinimumOp, hlo.AddOp)

# ---- windows --------------------------------------------------------------------------------------------------------


def whole_window(g: Growth, sizes: Sequence[int]) -> dict[str, list[Any]]:
    """One window over some dimensions and what pads them; or nearly: an element too small, or moved by one."""
    choices = g.choices
    window: dict[str, list[Any]] = {"window_dimensions": [], "window_strides": [], "padding": []}
    for size in sizes:
        low, high = (choices.chosen((0, 0, 1, 3)) for _ in range(2))
        n = size + low + high
        if choices.flag(0.3):
            n, low, high = 1, 0, 0
        elif n > 1 and choices.flag(0.1):
            n -= 1
        elif choices.flag(0.1):
            low, high = low - 1, high + 1
        window["window_dimensions"].append(n)
        window["window_strides"].append(1 if n == 1 else choices.chosen((1, 2, n)))
        window["padding"].append([low, high])
    return window


@seeks("window-to-arithmetic", weight=8)
def pooling(g: Growth) -> None:
    """A maximum, minimum or sum over small windows from the identity; or nearly: dilated, another fold or start."""
    choices = g.choices
    sizes = list(choices.chosen(((1, 2, 5, 4), (5, 5), (7,), (2, 6), (1, 4, 3, 2), (2, 2, 3, 3))))
    x = varying(g, sizes)
    text, fold = dtype_text(x.type), choices.chosen(_FOLDS)
    w = whole_window(g, sizes) if choices.flag(0.25) else pooling_window(g, sizes, channels=len(sizes) < 4)
    near = choices.integer(0, 7)
    base = [2 if near == 0 and i == len(sizes) - 1 else 1 for i in range(len(sizes))]
    dilations = [
        2 if near == 1 and n > 1 and s > 2 * n else 1 for n, s in zip(w["window_dimensions"], sizes, strict=True)
    ]
    result = [window_size(s, n, t, p, b, d) for s, n, t, p, b, d in zip(
        sizes, w["window_dimensions"], w["window_strides"], w["padding"], base, dilations, strict=True)]  # fmt: skip
    if not g.fits(result):
        return
    if near == 2:
        init = g.scalar(text)
    else:
        init = g.splat(tensor((), text), 0 if near == 4 else identity(fold, text))
    if near == 3:
        fold = choices.chosen((hlo.AddOp, hlo.MaximumOp, hlo.MultiplyOp))
    block = Block(arg_types=[tensor((), text)] * 2)
    with g.b.inside(block):
        pair = block.args if choices.flag(0.8) else block.args[::-1]
        g.b.emit_all(hlo.ReturnOp, g.b.emit(fold, *pair, types=(pair[0].type,)), types=())
    g.emit(hlo.ReduceWindowOp, x, init, types=(tensor(result, text),), regions=(Region(block),), base_dilations=base,
           window_dilations=dilations, **w)  # fmt: skip


# ---- convolutions ---------------------------------------------------------------------------------------------------

_WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64", "i8": "i32"}


def _window(g: Growth, sizes: Sequence[int], kernel: Sequence[int], padded: bool) -> dict[str, list[Any]]:
    choices = g.choices
    return {
        "window_strides": [choices.chosen((1, 2, 1, 3)) for _ in sizes],
        "padding": [[choices.chosen((0, 1, 2, -1)) if padded else 0 for _ in range(2)] for _ in sizes],
        "lhs_dilation": [1 for _ in sizes],
        "rhs_dilation": [choices.chosen((1, 2, 1)) if k > 1 else 1 for k in kernel],
        "window_reversal": [False for _ in sizes],
    }


def _window_sizes(sizes: Sequence[int], kernel: Sequence[int], w: dict[str, list[Any]]) -> list[int | Dim]:
    """How many windows of a convolution there are along each dimension."""
    steps = w["window_strides"], w["padding"], w["lhs_dilation"], w["rhs_dilation"]
    return [window_size(*row) for row in zip(sizes, kernel, *steps, strict=True)]


def _convolve(
    g: Growth, sizes: Sequence[int], kernel: Sequence[int], channels: int, features: int, w: dict[str, list[Any]],
    weight: Callable[[Sequence[int], str], SSAValue], groups: int = 1,
) -> None:  # fmt: skip
    """One image with channels last, by a `weight` of a shape and element type, if that is not too large."""
    result = (1, *_window_sizes(sizes, kernel, w), features)
    if not g.fits((1, *sizes, channels)) or not g.fits([n for n in result if isinstance(n, int)]):
        return
    x = varying(g, (1, *sizes, channels))
    text = dtype_text(x.type)
    g.emit(hlo.ConvolutionOp, x, weight((*kernel, channels // groups, features), text), types=(tensor(result, text),),
           dimension_numbers=ConvDimensions.channels_last(len(sizes)), feature_group_count=groups, batch_group_count=1,
           window_reversal=[False for _ in sizes], **w)  # fmt: skip


@seeks("conv-channels-last", weight=6)
def convolution_of_cube(g: Growth) -> None:
    """A convolution whose operands and result have one size everywhere, so that no type tells dimensions apart."""
    choices, spatial = g.choices, g.choices.chosen((2, 1))
    rank = spatial + 2
    orders = [choices.permutation(rank) for _ in range(3)]
    (b, f, *space), (i, o, *kernel), (ob, of, *out) = orders
    numbers = ConvDimensions(b, f, tuple(space), i, o, tuple(kernel), ob, of, tuple(out))
    groups, wide = choices.chosen((1, 1, 2)), choices.flag()
    sizes = [2] * rank
    for place in kernel:
        sizes[place] = 3 if wide else 2
    sizes[i] = 2 // groups
    low, high = ((1, 1), choices.chosen(((1, 0), (0, 1))))[not wide]
    x = varying(g, [2] * rank)
    text = dtype_text(x.type)
    g.emit(hlo.ConvolutionOp, x, g.fresh(tensor(sizes, text)), types=(x.type,), dimension_numbers=numbers,
           padding=[[low, high]] * spatial, window_reversal=[choices.flag(0.3) for _ in range(spatial)],
           feature_group_count=groups, batch_group_count=1)  # fmt: skip


@seeks("conv-to-arithmetic", "conv-padding-apart", weight=10)
def simple_convolution(g: Growth) -> None:
    """A convolution with channels last, by a kernel of one point, of one channel, or depthwise; or nearly."""
    choices = g.choices
    kind = choices.chosen(("pointwise", "depthwise", "one channel", "grouped"))
    sizes = list(choices.chosen(((4, 3), (5,), (3, 4), (2, 3, 2), (6,), ())))
    channels = 1 if kind == "one channel" else choices.chosen((2, 3, 4, 1))
    groups = channels if kind == "depthwise" else 2 if kind == "grouped" and channels % 2 == 0 else 1
    out = groups * choices.chosen((1, 1, 2)) if kind != "pointwise" else choices.chosen((2, 1, 3))
    kernel = [1 if kind == "pointwise" and choices.flag(0.85) else choices.chosen((2, 3, 1)) for _ in sizes]
    w = _window(g, sizes, kernel, padded=kind != "pointwise" or choices.flag(0.25))
    near = choices.integer(0, 9)
    spatial = len(sizes)
    if near == 0 and spatial:
        w["lhs_dilation"][0] = 2
    elif near == 1 and spatial:
        kernel[-1] = max(kernel[-1], 2)
        w["window_reversal"][-1] = True
    numbers = ConvDimensions.channels_last(spatial)
    if near == 2 and spatial > 1:
        swapped = (*numbers.kernel_spatial_dimensions[1::-1], *numbers.kernel_spatial_dimensions[2:])
        numbers = numbers._replace(kernel_spatial_dimensions=swapped)
        kernel_shape = [kernel[1], kernel[0], *kernel[2:]]
    else:
        kernel_shape = kernel
    batch = choices.chosen((1, 2))
    result = [batch, *_window_sizes(sizes, kernel, w), out]
    if not g.fits((batch, *sizes, channels)) or not g.fits([s for s in result if isinstance(s, int)]):
        return
    x = varying(g, (batch, *sizes, channels))
    text = dtype_text(x.type)
    given = text if choices.flag(0.75) else _WIDER.get(text, text)
    rhs = tensor((*kernel_shape, channels // groups, out), text)
    kernel_value = ordinary(g, (*kernel_shape, channels // groups, out), text) if choices.flag(0.3) else g.fresh(rhs)
    g.emit(hlo.ConvolutionOp, x, kernel_value, types=(tensor(result, given),), dimension_numbers=numbers,
           feature_group_count=groups, batch_group_count=1, **w)  # fmt: skip


@seeks("conv-to-arithmetic", weight=8)
def convolution_beyond_its_image(g: Growth) -> None:
    """A convolution with channels last, mostly by a constant, whose points are as far apart as the image is large."""
    choices = g.choices
    sizes = list(choices.chosen(((4,), (5, 4), (6,), (3, 4), (4, 4))))
    kernel = [choices.chosen((3, 3, 2)) for _ in sizes]
    dilations = [n + choices.chosen((0, -1, -2, 1)) if choices.flag(0.85) else 1 for n in sizes]
    padding = [[d * (k // 2) + choices.chosen((0, 0, 0, 1, -1, 2)) for _ in range(2)]
               for d, k in zip(dilations, kernel, strict=True)]  # fmt: skip
    strides = [choices.chosen((1, 1, 2, 3)) for _ in sizes]
    groups = choices.chosen((1, 1, 1, 2))
    channels, features = groups * choices.chosen((2, 1, 3)), groups * choices.chosen((2, 1, 3))
    w = {"window_strides": strides, "padding": padding, "lhs_dilation": [1] * len(sizes), "rhs_dilation": dilations}

    def weight(shape: Sequence[int], text: str) -> SSAValue:
        kind = choices.integer(0, 9)
        if kind == 0:
            return g.fresh(tensor(shape, text))
        if kind == 1 and text in ("f32", "f64", "f16", "bf16"):
            return g.splat(tensor(shape, text), float("inf"))
        return ordinary(g, shape, text)

    _convolve(g, sizes, kernel, channels, features, w, weight, groups)


@seeks("conv-dilation-apart", weight=4)
def transposed_convolution(g: Growth) -> None:
    """A convolution of a dilated input with channels last, mostly by a constant."""
    choices = g.choices
    sizes = list(choices.chosen(((3,), (2, 3), (3, 2))))
    steps = [choices.chosen((2, 1, 3)) for _ in sizes]
    kernel = [step + choices.chosen((0, 1, 0, 2)) for step in steps]
    padding = [[step - 1 + choices.chosen((0, 1, -1, 0)) for _ in range(2)] for step in steps]
    strides = [choices.chosen((1, 1, 1, 1, 2)) for _ in sizes]
    channels, features = choices.chosen((2, 1, 3)), choices.chosen((2, 1, 3))
    w = {"window_strides": strides, "padding": padding, "lhs_dilation": steps, "rhs_dilation": [1] * len(sizes)}

    def weight(shape: Sequence[int], text: str) -> SSAValue:
        return ordinary(g, shape, text) if choices.flag(0.8) else g.fresh(tensor(shape, text))

    _convolve(g, sizes, kernel, channels, features, w, weight)


@seeks("fold-batch-norm", weight=8)
def normalized_convolution(g: Growth) -> None:
    """Batch normalization of known statistics, after a convolution by a known kernel, with a bias or not; or nearly."""
    choices = g.choices
    text = choices.chosen(("f32", "f32", "f64", "f16"))
    n, c, h = choices.chosen((1, 2)), choices.chosen((2, 3, 1)), choices.chosen((3, 2))
    near = choices.integer(0, 7)
    if near in (1, 2):
        n = c = h = 2
    order = choices.permutation(3) if choices.flag(0.5) else [0, 1, 2]
    sizes = {0: n, 1: c, 2: h}
    feature = order.index(1)
    if choices.flag(0.8):
        kernel_order = choices.permutation(3) if choices.flag() else [0, 1, 2]
        groups = c if choices.flag(0.3) else 1
        kernel_sizes = (c, c // groups, 1)
        kernel_shape = [kernel_sizes[k] for k in kernel_order]
        x = g.fresh(tensor((n, c, h), text))
        kernel = (
            g.fresh(tensor(kernel_shape, text)) if near == 0 else ordinary(g, kernel_shape, text, weight=choices.flag())
        )
        o, i, s = (kernel_order.index(k) for k in range(3))
        numbers = ConvDimensions(0, 1, (2,), i, o, (s,), order.index(0), feature, (order.index(2),))
        y = g.emit(hlo.ConvolutionOp, x, kernel, types=(tensor([sizes[k] for k in order], text),),
                   dimension_numbers=numbers, feature_group_count=groups, batch_group_count=1)  # fmt: skip
    else:
        y = g.keep(g.fresh(tensor([sizes[k] for k in order], text)))
    shape = sizes_of(y)
    if choices.flag(0.5):
        axis = choices.integer(0, 2) if near == 1 else feature
        bias = g.b.broadcast(ordinary(g, (shape[axis],), text), shape, (axis,))
        y = g.keep(g.b.add(y, bias) if choices.flag() else g.b.add(bias, y))
    if near == 2:
        feature = choices.integer(0, 2)
    count = shape[feature]
    vectors = [ordinary(g, (count,), text, weight=choices.flag(0.3)) for _ in range(4)]
    if near == 3:
        vectors[choices.integer(0, 3)] = g.fresh(tensor((count,), text))
    used = y
    g.emit(hlo.BatchNormInferenceOp, y, *vectors, types=(y.type,), epsilon=choices.chosen((1e-3, 1.0, 0.0)),
           feature_index=feature)  # fmt: skip
    if near in (4, 5):
        g.emit(hlo.NegateOp, used, types=(used.type,))


@seeks("merge-convolutions", weight=8)
def parallel_convolutions(g: Growth) -> None:
    """A sum of convolutions of one input by known kernels, of biases and of the scaled input; or nearly: windows that
    do not lie within each other, other strides or groups, another input, results that are used elsewhere."""
    choices, b = g.choices, g.b
    text = choices.chosen(("f32", "f32", "f64", "f16", "i32"))
    rank = choices.integer(1, 2)
    size, channels = choices.chosen((4, 5, 1)), choices.chosen((2, 4, 1))
    order = [0, 1, *range(2, rank + 2)] if choices.flag() else [0, *range(2, rank + 2), 1]
    feature, space = order.index(1), tuple(order.index(k) for k in range(2, rank + 2))
    numbers = ConvDimensions(0, feature, space, 1, 0, tuple(range(2, rank + 2)), 0, feature, space)
    shape = [(choices.chosen((1, 2)), channels, *[size] * rank)[k] for k in order]
    inputs = [g.fresh(tensor(shape, text)) for _ in range(2)]
    stride, groups = choices.chosen((1, 1, 2)), choices.chosen((1, channels))
    near = choices.integer(0, 9)
    terms: list[SSAValue] = []
    for k in range(choices.integer(2, 4)):
        points = [choices.chosen((1, 3, 2)) if choices.flag(0.3) else choices.chosen((3, 1)) for _ in range(rank)]
        gaps = [choices.chosen((1, 1, 2)) for _ in range(rank)]
        reach = [gap * (n - 1) for gap, n in zip(gaps, points, strict=True)]
        low = [r // 2 + (choices.chosen((1, -1)) if near == 0 and k == 0 else 0) for r in reach]
        own_stride, own_groups = (1 if near == 1 and k == 0 else stride), (1 if near == 2 and k == 0 else groups)
        kernel_shape = (channels, channels // own_groups, *points)
        kernel = g.fresh(tensor(kernel_shape, text)) if near == 3 and k == 0 else ordinary(
            g, kernel_shape, text, weight=choices.flag(0.3))  # fmt: skip
        w: dict[str, Any] = {
            "window_strides": [own_stride] * rank,
            "padding": [[a, r - a] for a, r in zip(low, reach, strict=True)],
            "lhs_dilation": [1] * rank,
            "rhs_dilation": gaps,
        }
        sizes = {0: shape[0], 1: channels, **dict(enumerate(_window_sizes([size] * rank, points, w), 2))}
        x = inputs[near == 4 and k == 0]
        result = tensor([sizes[i] for i in order], text)
        terms.append(
            g.emit(hlo.ConvolutionOp, x, kernel, types=(result,), dimension_numbers=numbers,
                   feature_group_count=own_groups, batch_group_count=1, **w)
        )  # fmt: skip
    if choices.flag(0.4):
        scale = ordinary(g, (channels,), text) if choices.flag(0.8) else ordinary(g, (), text)
        axis = space[0] if near == 5 and channels == size else feature
        x = inputs[near == 6]
        terms.append(g.keep(b.multiply(x, b.broadcast(scale, sizes_of(x), (axis,)[: len(sizes_of(scale))]))))
    for _ in range(choices.integer(0, 2)):
        terms.append(b.broadcast(ordinary(g, (channels,), text), sizes_of(terms[0]), (feature,)))
    alike = [term for term in terms if term.type == terms[0].type]
    if choices.flag(0.2):
        alike.append(g.fresh(tensor(sizes_of(terms[0]), text)))
    while len(alike) > 1:
        left = alike.pop(choices.integer(0, len(alike) - 1))
        right = alike.pop(choices.integer(0, len(alike) - 1))
        alike.append(g.keep(b.add(left, right)))
    if near == 7:
        used = choices.chosen(terms)
        g.emit(hlo.NegateOp, used, types=(used.type,))
