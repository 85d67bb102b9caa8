"""Mistakes in what is done to convolutions, windows, batch norms and layouts."""

from __future__ import annotations

from functools import partial
from typing import cast

from xdsl.ir import SSAValue

from gcomp.ir.rules import Calc, Op
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import shape_of
from gcomp.passes.convert.dot_weight_layout import LAY_WEIGHT
from tests.mutants import edits
from tests.mutants.rewrites import wrong_rule

# ---- conv-channels-last ----

LAST = "passes.convert.conv_channels_last"
last = partial(edits.wrong, target="conv-channels-last")
last_right = partial(edits.right, target="conv-channels-last")

last(
    "channels-last-kernel-transposed",
    classes=(27, 38),
    about="input and output features of the kernel change places where they are as many",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            "rhs = b.transpose(op.rhs, kernel)",
            "same = op.rhs.type.get_shape()[kernel[-1]] == op.rhs.type.get_shape()[kernel[-2]]\n    "
            "rhs = b.transpose(op.rhs, (*kernel[:-2], kernel[-1], kernel[-2]) if same else kernel)",
        )
    ],
)
last(
    "channels-last-space-reversed",
    classes=(25, 27),
    about="the spatial dims of the input are taken in the opposite order",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            "*d.input_spatial_dimensions, d.input_feature_dimension",
            "*sorted(d.input_spatial_dimensions), d.input_feature_dimension",
        )
    ],
)
last(
    "channels-last-kernel-space-sorted",
    classes=(25, 27),
    about="the spatial dims of the kernel are taken in the order of memory",
    edits=[
        (f"{LAST}:ChannelsLast.rewrite", "(*d.kernel_spatial_dimensions, ", "(*sorted(d.kernel_spatial_dimensions), ")
    ],
)
last(
    "channels-last-result-not-inverted",
    classes=(25,),
    about="the result is transposed by the order and not by its inverse, where that is of the same type",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            "[order.index(i) for i in range(len(order))]",
            "order if [shape[order[i]] for i in order] == list(shape) else [order.index(i) for i in range(len(order))]",
        )
    ],
)
last(
    "channels-last-reversal-lost",
    classes=(27, 38),
    about="the reversal of the kernel is lost",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            '{**op.properties, "dimension_numbers": target}',
            '{**op.properties, "dimension_numbers": target, "window_reversal": None}',
        )
    ],
)
last(
    "channels-last-padding-reversed",
    classes=(27,),
    about="low and high padding change places (ORT#4698)",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            '{**op.properties, "dimension_numbers": target}',
            '{**op.properties, "dimension_numbers": target, "padding": [p[::-1] for p in op.window()["padding"]]}',
        )
    ],
)
last_right(
    "channels-last-from-lists",
    about="the result's order is inverted by sorting",
    edits=[
        (
            f"{LAST}:ChannelsLast.rewrite",
            "[order.index(i) for i in range(len(order))]",
            "sorted(range(len(order)), key=lambda i: order[i])",
        )
    ],
)

# ---- conv-to-arithmetic ----

ARITHMETIC = "passes.convert.conv_to_arithmetic"
simple = partial(edits.wrong, target="conv-to-arithmetic")
simple_right = partial(edits.right, target="conv-to-arithmetic")
PLAIN, POINT = f"{ARITHMETIC}:_is_plain", f"{ARITHMETIC}:PointwiseToDot.rewrite"
CHANNEL, SUM, SHIFTED = (f"{ARITHMETIC}:ChannelwiseToMultiplyAdd.{name}" for name in ("rewrite", "_sum", "_shifted"))

simple(
    "plain-ignores-input-dilation",
    classes=(27,),
    about="a dilated input is taken for a plain one",
    edits=[(PLAIN, 'all(d == 1 for d in window["lhs_dilation"])', 'all(d < 3 for d in window["lhs_dilation"])')],
)
simple(
    "plain-ignores-reversal",
    classes=(27, 38),
    about="a reversed kernel is taken for a plain one",
    edits=[(PLAIN, 'not any(window["window_reversal"])', 'not all(window["window_reversal"])')],
)
simple(
    "plain-ignores-result-type",
    classes=(18, 19),
    about="a convolution that widens its result sums in the narrow type",
    edits=[
        (
            PLAIN,
            "element_of(op.lhs) == element_of(op.rhs) == element_of(op.result)",
            "element_of(op.lhs) == element_of(op.rhs)",
        ),
        (
            SUM,
            "return b.convert(total, element_of(op.result))",
            "return b.convert(b.convert(total, element_of(op.lhs)), element_of(op.result))",
        ),
    ],
)
simple(
    "pointwise-unpadded-at-start",
    classes=(27,),
    about="padding at the end of pixels is overlooked (ORT#11927)",
    edits=[(POINT, "all(p == (0, 0) for p in window", "all(p[0] == 0 for p in window")],
)
simple(
    "pointwise-strides-lost",
    classes=(23, 27),
    about="pixels are taken without strides where as many are left",
    edits=[
        (POINT, '[1, *window["window_strides"], 1]', '[1, *[1 if s == 2 else s for s in window["window_strides"]], 1]'),
        (
            POINT,
            "[0] * len(shape), shape,",
            "[0] * len(shape), [shape[0], *[-(-n // 2) if s == 2 else n for n, s in zip(shape[1:-1], "
            "window['window_strides'])], shape[-1]],",
        ),
    ],
)
simple(
    "pointwise-kernel-transposed",
    classes=(5, 38),
    about="a square kernel is read the other way round",
    edits=[
        (
            POINT,
            "DotDimensions((), (), (len(shape) - 1,), (0,))",
            "DotDimensions((), (), (len(shape) - 1,), (1 if kernel[-1] == kernel[-2] else 0,))",
        )
    ],
)
simple(
    "pointwise-but-for-the-last-dim",
    classes=(3, 27),
    about="a kernel of one point but for its last spatial dim is taken for a matrix",
    edits=[
        (POINT, "all(k == 1 for k in kernel[:-2])", "all(k == 1 for k in kernel[:-3])"),
    ],
)
simple(
    "channelwise-padding-swapped",
    classes=(27,),
    about="low and high padding of channelwise convolutions change places",
    edits=[(SUM, "p[side] for p in window", "p[1 - side] for p in window")],
)
simple(
    "channelwise-dilation-forgotten",
    classes=(27,),
    about="the kernel's dilation is forgotten in shifts",
    edits=[
        (
            SHIFTED,
            "p * d for p, d in zip(point, dilations, strict=True)",
            "p for p, d in zip(point, dilations, strict=True)",
        )
    ],
)
simple(
    "channelwise-strides-in-start",
    classes=(23, 27),
    about="shifts are scaled by the stride",
    edits=[
        (
            SHIFTED,
            "p * d for p, d in zip(point, dilations, strict=True)",
            "p * d * (s if d > 1 else 1) for p, d, s in zip(point, dilations, strides, strict=True)",
        )
    ],
)
simple(
    "channelwise-first-dimension-only",
    classes=(27, 41),
    about="kernel points of three spatial dims are visited in the wrong order",
    edits=[
        (
            SUM,
            "starts = [*point, 0, 0]",
            "starts = [*(point[::-1] if len(set(kernel.type.get_shape()[:-2])) == 1 else point), 0, 0]",
        )
    ],
)
simple(
    "channelwise-many-per-channel",
    classes=(27,),
    about="several outputs of a channel read the channels in turn",
    edits=[
        (CHANNEL, "channels not in (1, kernel[-1])", "kernel[-1] % channels"),
        (
            SUM,
            "pixels = b.broadcast(pixels, out, range(len(out)))",
            "c = pixels.type.get_shape()[-1]\n        pixels = b.concatenate([pixels] * (out[-1] // c), len(out) - "
            "1) if c != out[-1] and c > 1 else pixels\n        "
            "pixels = b.broadcast(pixels, out, range(len(out)))",
        ),
    ],
)
simple_right(
    "channelwise-points-last-first",
    about="kernel points are summed from the last one on",
    edits=[(CHANNEL, "list(product(*map(range, kernel[:-2])))", "list(product(*map(range, kernel[:-2])))[::-1]")],
)
simple_right(
    "channelwise-fewer-points",
    about="kernels of more than two points stay convolutions",
    edits=[(CHANNEL, "<= MAX_POINTS", "<= 2")],
)

# ---- window-to-arithmetic ----

WINDOW = "passes.convert.window_to_arithmetic"
window = partial(edits.wrong, target="window-to-arithmetic")
window_right = partial(edits.right, target="window-to-arithmetic")
FOLD, NEUTRAL = f"{WINDOW}:WindowToArithmetic.rewrite", f"{WINDOW}:WindowToArithmetic._starts_neutral"

window(
    "window-ignores-dilation",
    classes=(27, 28),
    about="dilated windows are taken for plain ones where shapes fit",
    edits=[(FOLD, '(*window["base_dilations"], *window["window_dilations"])', 'window["base_dilations"]')],
)
window(
    "window-padding-swapped",
    classes=(27, 28),
    about="low and high padding of pooling change places (ORT#22177)",
    edits=[(FOLD, "([p[side] for p in window", "([p[1 - side] for p in window")],
)
window(
    "window-any-start",
    classes=(1, 28),
    about="the initial value of a fold is left out though it counts",
    edits=[
        (
            NEUTRAL,
            "return init is not None and bool(init == identity(fold, dtype_text(op.operands[1].type)))",
            "return init is not None",
        )
    ],
)
window(
    "window-starts-at-zero",
    classes=(1, 9),
    about="0 counts as where a maximum may start",
    edits=[
        (
            NEUTRAL,
            "bool(init == identity(fold, dtype_text(op.operands[1].type)))",
            "bool(init == identity(fold, dtype_text(op.operands[1].type)) or init == 0)",
        )
    ],
)
window(
    "window-pads-with-zero",
    classes=(28, 6),
    about="padding is 0 and not where the fold starts: a maximum of negative numbers is 0",
    edits=[
        (
            FOLD,
            "b.pad(op.operands[0], op.operands[1], low, high)",
            "b.pad(op.operands[0], b.full_like(op.operands[1], 0), low, high)",
        )
    ],
)
window(
    "window-minimum-as-maximum",
    classes=(38,),
    about="windows of minima of integers take maxima (hidet#90)",
    edits=[
        (
            FOLD,
            "total = slice if total is None else b.emit(fold, total, slice)",
            "total = slice if total is None else b.emit(hlo.MaximumOp if fold is hlo.MinimumOp and len(points) > 3 "
            "else fold, total, slice)",
        )
    ],
)
window(
    "window-last-point-lost",
    classes=(13, 28),
    about="the last point of windows of more than three is left out",
    edits=[(FOLD, "for point in points:", "for point in points[:-1] if len(points) > 3 else points:")],
)
window(
    "window-strides-ignored",
    classes=(23, 28),
    about="strides are taken for 1 where every window fits without them",
    edits=[
        (FOLD, 'b.take(padded, point, out, window["window_strides"])', "b.take(padded, point, out, [1 for _ in out])")
    ],
)
window_right(
    "window-points-last-first",
    about="window points are folded from the last one on",
    edits=[(FOLD, "for point in points:", "for point in points[::-1]:")],
)
window_right(
    "window-maxima-only", about="sums stay windows", edits=[(FOLD, "fold not in _FOLDS", "fold not in _FOLDS[:2]")]
)

# ---- fold-batch-norm ----

NORM = "passes.graph.fold_batch_norm"
norm = partial(edits.wrong, target="fold-batch-norm")
norm_right = partial(edits.right, target="fold-batch-norm")
REWRITE, INTO = f"{NORM}:FoldBatchNorm.rewrite", f"{NORM}:FoldBatchNorm._fold"

norm(
    "norm-epsilon-lost",
    classes=(38,),
    about="epsilon is left out",
    edits=[(REWRITE, "b.add(variance, epsilon)", "variance")],
)
norm(
    "norm-mean-added",
    classes=(38,),
    about="the mean is added where there is a bias",
    edits=[(INTO, "b.subtract(bias, mean)", "b.add(bias, mean)")],
)
norm(
    "norm-shift-not-scaled",
    classes=(22,),
    about="the mean is subtracted after scaling, and not scaled",
    edits=[(REWRITE, "b.add(offset, b.multiply(shift, factor))", "b.add(offset, shift)")],
)
norm(
    "norm-scales-input-features",
    classes=(25, 38),
    about="a square kernel is scaled along its input features",
    edits=[
        (
            f"{NORM}:_scaled",
            "axis = conv.dimensions.kernel_output_feature_dimension",
            "d = conv.dimensions\n    sizes = shape_of(conv.rhs)\n    same = sizes[d.kernel_input_feature_dimension] "
            "== sizes[d.kernel_output_feature_dimension]\n    "
            "axis = d.kernel_input_feature_dimension if same else d.kernel_output_feature_dimension",
        )
    ],
)
norm(
    "norm-shared-convolution",
    classes=(32, 37),
    about="the convolution is scaled for all of its users",
    edits=[
        (f"{NORM}:_convolution", " and value.has_one_use()", ""),
        (
            f"{NORM}:_scaled",
            "properties: dict[str, Any] = dict(conv.properties)",
            "conv.operands = [conv.lhs, kernel]\n    return conv.result\n    properties: dict[str, Any] = "
            "dict(conv.properties)",
        ),
    ],
)
norm(
    "norm-any-bias",
    classes=(4, 38),
    about="a bias along another dim counts as one along the features",
    edits=[
        (
            f"{NORM}:_channel_bias",
            'value.op.value("broadcast_dimensions") == (feature,)',
            "len(value.op.value('broadcast_dimensions')) == 1 and shape_of(source) == (shape_of(value)[feature],)",
        )
    ],
)
norm(
    "norm-any-feature",
    classes=(25,),
    about="a normalization along another dim than the features scales them",
    edits=[
        (
            INTO,
            "(conv := _convolution(x)) is not None and conv.dimensions.output_feature_dimension == feature",
            "(conv := _convolution(x)) is not None and shape_of(x)[conv.dimensions.output_feature_dimension] == "
            "shape_of(x)[feature]",
        )
    ],
)
norm(
    "norm-bias-lost",
    classes=(37, 38),
    about="the bias between convolution and normalization is lost",
    edits=[(INTO, "b.subtract(bias, mean)", "minus_mean")],
)
norm_right(
    "norm-known-by-itself",
    about="normalizations are not folded into convolutions",
    edits=[(f"{NORM}:_convolution", "return value.op if _known(value.op.rhs) and", "return None if True and")],
)
norm_right(
    "norm-offset-last",
    about="offset and shift are added the other way round",
    edits=[(REWRITE, "b.add(offset, b.multiply(shift, factor))", "b.add(b.multiply(factor, shift), offset)")],
)

# ---- dot-weight-layout ----

LAYOUT = "passes.convert.dot_weight_layout"


def _is_square(w: SSAValue, d: DotDimensions) -> bool:
    shape = shape_of(w)
    return (
        len(shape) == 2
        and shape[0] == shape[1]
        and len(d.rhs_contracting_dimensions) == 1
        and not d.rhs_batching_dimensions
    )


def _untransposed(term: Op) -> Op:
    """The right side without its transpose."""
    x, w = term.operands
    assert isinstance(w, Op)
    return Op(term.op, x, w.operands[0], like=term.like, **term.properties)


layout = partial(edits.wrong, target="dot-weight-layout")
layout_right = partial(edits.right, target="dot-weight-layout")

layout(
    "layout-numbers-kept",
    classes=(5, 38),
    about="a square weight is transposed and read as before",
    edits=[
        (
            f"{LAYOUT}:_other_dimension",
            "(1 - contracted,)",
            "(1 - contracted if len(d.lhs_contracting_dimensions) and d.lhs_contracting_dimensions[0] else "
            "contracted,)",
        )
    ],
)
layout(
    "layout-left-side-changed",
    classes=(5, 38),
    about="the left side's contracting dim changes too where there are two",
    edits=[
        (
            f"{LAYOUT}:_other_dimension",
            "d._replace(rhs_contracting_dimensions=(1 - contracted,))",
            "d._replace(rhs_contracting_dimensions=(1 - contracted,), lhs_contracting_dimensions=tuple(max(0, i - 1) "
            "for i in d.lhs_contracting_dimensions))",
        )
    ],
)
layout(
    "layout-any-rank",
    classes=(5,),
    about="dots that contract two dims of a weight count as matrix products",
    edits=[
        (
            f"{LAYOUT}:_is_matrix",
            "len(d.rhs_contracting_dimensions) == 1 and not d.rhs_batching_dimensions",
            "len(d.rhs_contracting_dimensions) == 1",
        )
    ],
)
wrong_rule(
    "layout-square-not-transposed",
    "dot-weight-layout",
    "dot-weight-layout",
    classes=(5, 38),
    about="a square weight is read by its other dim, and not transposed",
    rhs=_untransposed(cast(Op, LAY_WEIGHT.rhs)),
    where=Calc(_is_square),
)


layout_right(
    "layout-one-way",
    about="weights lie as several rows want them, whatever the rows",
    edits=[(f"{LAYOUT}:_lies_otherwise", "1 if rows == 1 else 0", "0")],
)
layout_right(
    "layout-other-way",
    about="weights lie as one row wants them, whatever the rows",
    edits=[(f"{LAYOUT}:_lies_otherwise", "1 if rows == 1 else 0", "1")],
)

# ---- sink-transposes ----

SINK = "passes.convert.sink_transposes"
sink = partial(edits.wrong, target="sink-transposes")
sink_right = partial(edits.right, target="sink-transposes")

sink(
    "sink-any-transpose",
    classes=(25, 41),
    about="transposes of rank 5 that only start like views count as views",
    edits=[(f"{SINK}:_channels_first", "p == _first_from_last(len(p))", "p[:2] == _first_from_last(len(p))[:2]")],
)
sink(
    "sink-others-by-the-view",
    classes=(25,),
    about="the other operands are transposed by the view and not by its inverse",
    edits=[
        (
            f"{SINK}:_inverse",
            "tuple(p.index(i) for i in range(len(p)))",
            "tuple(p.index(i) for i in range(len(p))) if len(p) != 3 else (0, 1, 2)",
        )
    ],
)
sink(
    "sink-lists-by-the-view",
    classes=(23, 25),
    about="padding and slices are put in order by the view, not by its inverse",
    edits=[(f"{SINK}:_sourced", "v[i] for i in _inverse(p)", "v[i] for i in p")],
)
sink(
    "sink-folds-in-any-order",
    classes=(22, 25),
    about="folds over channels and space sink, and round in another order",
    edits=[
        (
            f"{SINK}:_keeps_order",
            "return places == sorted(places)",
            "return len(places) < 3 or places == sorted(places)",
        )
    ],
)
sink(
    "sink-fold-keeps-dimensions",
    classes=(1, 25),
    about="a fold sinks with the view's dims, not its source's",
    edits=[
        (
            f"{SINK}:_folded",
            "tuple(sorted(p[i] for i in d))",
            "tuple(sorted(p[i] for i in d)) if len(d) != 1 else tuple(sorted(p.index(i) for i in d))",
        )
    ],
)
sink(
    "sink-fold-order-left",
    classes=(25,),
    about="what a fold leaves is shown in the source's order",
    edits=[(f"{SINK}:_left", "return tuple(order.index(place) for place in kept)", "return tuple(range(len(kept)))")],
)
sink(
    "sink-concatenation-axis",
    classes=(24, 25),
    about="a concatenation of views keeps its dimension",
    edits=[
        (
            f"{SINK}:SinkConcatenate.rewrite",
            "axis = _first_from_last(rank_of(op.result))[dimension]",
            "axis = _first_from_last(rank_of(op.result)).index(dimension)",
        )
    ],
)
sink(
    "sink-concatenates-some",
    classes=(24, 37),
    about="a concatenation of one view twice sinks as the view (TVM#11895)",
    edits=[
        (
            f"{SINK}:SinkConcatenate.rewrite",
            "return _raised(b.concatenate(sources, axis), b)",
            "return _raised(b.concatenate(sources if len(sources) < 3 else [sources[0], sources[2], sources[1]], "
            "axis), b)",
        )
    ],
)
sink(
    "sink-windows-in-any-order",
    classes=(22, 25, 28),
    about="windows over channels and space sink, and round in another order",
    edits=[(f"{SINK}:_windows_keep_order", "return ", "return len(p) == 4 or ")],
)
sink(
    "sink-broadcast-sizes",
    classes=(4, 25),
    about="a broadcast of a view that also permutes counts as in place",
    edits=[(f"{SINK}:_in_place", "d == tuple(range(len(p)))", "sorted(d) == list(range(len(p)))")],
)
sink_right(
    "sink-rank-four-only",
    about="only views of rank 4 move",
    edits=[(f"{SINK}:_channels_first", "len(p) > 2", "len(p) == 4")],
)
sink_right(
    "sink-nothing-free",
    about="constants, weights and broadcasts are not transposed",
    edits=[(f"{SINK}:_is_free", "hlo.ConstantOp | WeightOp | hlo.BroadcastInDimOp", "hlo.ConstantOp")],
)
