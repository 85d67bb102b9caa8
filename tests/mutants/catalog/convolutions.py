"""Mistakes in what is done to convolutions, windows, batch norms and layouts."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

# ---- conv-channels-last ----

LAST = "passes.convert.conv_channels_last"
last = partial(edits.wrong, target="conv-channels-last")
last_right = partial(edits.right, target="conv-channels-last")

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
CHANNEL, SUM = (f"{ARITHMETIC}:ChannelwiseToMultiplyAdd.{name}" for name in ("rewrite", "_sum"))

simple(
    "plain-ignores-result-type",
    classes=(18, 19),
    about="a convolution that widens its result sums in the narrow type",
    edits=[
        (
            f"{ARITHMETIC}:_is_of_one_type",
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
    "pointwise-but-for-the-last-dim",
    classes=(3, 27),
    about="a kernel of one point but for its last spatial dim is taken for a matrix",
    edits=[
        (POINT, "all(k == 1 for k in kernel[:-2])", "all(k == 1 for k in kernel[:-3])"),
    ],
)
simple_right(
    "channelwise-fewer-points",
    about="kernels of more than two points stay convolutions",
    edits=[(CHANNEL, "<= self.max_points", "<= 2")],
)

# ---- window-to-arithmetic ----

WINDOW = "passes.convert.window_to_arithmetic"
window = partial(edits.wrong, target="window-to-arithmetic")
FOLD = f"{WINDOW}:WindowToArithmetic.rewrite"

window(
    "window-padding-swapped",
    classes=(27, 28),
    about="low and high padding of pooling change places (ORT#22177)",
    edits=[(FOLD, "([p[side] for p in window", "([p[1 - side] for p in window")],
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

# ---- fold-batch-norm ----

NORM = "passes.graph.fold_batch_norm"
norm = partial(edits.wrong, target="fold-batch-norm")
norm_right = partial(edits.right, target="fold-batch-norm")

norm(
    "norm-shared-convolution",
    classes=(32, 37),
    about="the convolution is scaled for all of its users",
    edits=[
        (f"{NORM}:_convolution", " and value.has_one_use()", ""),
        (
            f"{NORM}:_scale_convolution",
            "properties: dict[str, Any] = dict(conv.properties)",
            "conv.operands = [conv.lhs, kernel]\n    return conv.result\n    properties: dict[str, Any] = "
            "dict(conv.properties)",
        ),
    ],
)
norm_right(
    "norm-known-by-itself",
    about="normalizations are not folded into convolutions",
    edits=[(f"{NORM}:_convolution", "return value.op if is_stored(value.op.rhs) and", "return None if True and")],
)

# ---- dot-weight-layout ----

LAYOUT = "passes.convert.dot_weight_layout"


layout = partial(edits.wrong, target="dot-weight-layout")
layout_right = partial(edits.right, target="dot-weight-layout")

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


layout_right(
    "layout-one-way",
    about="weights lie as several rows want them, whatever the rows",
    edits=[(f"{LAYOUT}:_lies_otherwise", "1 if rows == 1 else 0", "0")],
)

# ---- sink-transposes ----

SINK = "passes.convert.sink_transposes"
sink = partial(edits.wrong, target="sink-transposes")

sink(
    "sink-concatenates-some",
    classes=(24, 37),
    about="a concatenation of one view twice sinks as the view (TVM#11895)",
    edits=[
        (
            f"{SINK}:SinkConcatenate.rewrite",
            "return _raise_result(b.concatenate(sources, axis), b)",
            "return _raise_result(b.concatenate(sources if len(sources) < 3 else [sources[0], sources[2], sources[1]], "
            "axis), b)",
        )
    ],
)
sink(
    "sink-broadcast-sizes",
    classes=(4, 25),
    about="a broadcast of a view that also permutes counts as in place",
    edits=[(f"{SINK}:_in_place", "d == tuple(range(len(p)))", "sorted(d) == list(range(len(p)))")],
)
