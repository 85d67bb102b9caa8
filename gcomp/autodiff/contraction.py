"""Derivatives of products: dot_general, convolution, and what is written with them."""

from __future__ import annotations

from typing import Any

from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.autodiff.movement import restate
from gcomp.autodiff.table import expands, linear
from gcomp.decompositions.legacy import modern
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.stablehlo.contraction import dilated_size
from gcomp.ir.structures import ConvDimensions
from gcomp.ir.types import element_of, rank_of, shape_of

# ---- dot_general ----


def _dot(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """The cotangent times the other operand, contracted over that one's free dims."""
    d: DotDimensions = op.dimensions
    ranks = rank_of(op.lhs), rank_of(op.rhs)
    places, other = d.places(*ranks), op.operands[1 - operand]
    batching = (d.lhs_batching_dimensions, d.rhs_batching_dimensions)
    contracting = (d.lhs_contracting_dimensions, d.rhs_contracting_dimensions)
    free = (d.lhs_free(ranks[0]), d.rhs_free(ranks[1]))
    batch = tuple(range(len(batching[0])))
    # The result's dims that the other operand brought in are contracted with that operand's own.
    theirs = tuple(places[1 - operand][i] for i in free[1 - operand])
    numbers = DotDimensions(batch, batching[1 - operand], theirs, tuple(free[1 - operand]))
    same = b.convert(other, element_of(g))
    product = b.dot(g, same, numbers)
    if op.precision_config is not None and isinstance(product, OpResult):
        product.op.properties["precision_config"] = op.precision_config
    # The product has the batch dims, the operand's free dims, and the other's contracting dims in their order.
    kept = sorted(range(len(contracting[0])), key=lambda i: contracting[1 - operand][i])
    now = [*batching[operand], *free[operand], *(contracting[operand][i] for i in kept)]
    moved = b.transpose(product, [now.index(i) for i in range(ranks[operand])])
    return b.convert(moved, element_of(op.operands[operand]))


linear(hlo.DotGeneralOp, _dot, 0, 1, each=True)


expands(hlo.DotOp)(modern)


# ---- convolution ----


def _out_of(b: Builder, x: SSAValue, source: int, target: int, groups: int) -> SSAValue:
    """Dimension `source` cut into groups, whose number goes into dimension `target` in front of what is there."""
    shape = list(shape_of(x))
    inner = dims.floordiv(shape[source], groups)
    cut = b.reshape(x, [*shape[:source], groups, inner, *shape[source + 1 :]])
    rank = len(shape) + 1
    place = target if target < source else target + 1
    rest = [i for i in range(rank) if i != source]
    rest.insert(rest.index(place), source)
    moved = b.transpose(cut, rest)
    at = rest.index(source)
    sizes = list(shape_of(moved))
    return b.reshape(moved, [*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :]])


def _static(op: Any, *values: Size) -> list[int]:
    found = [v for v in values if isinstance(v, int)]
    if len(found) < len(values):
        raise UnsupportedError(
            f"{op.name} cannot be differentiated backward", where=where(op),
            why="the padding of the transposed convolution would depend on a symbolic size",
            fix="give the image's dims sizes",
        )  # fmt: skip
    return found


def _for_image(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """A convolution of the dilated cotangent with the kernel, reversed and with its features exchanged."""
    d: ConvDimensions = op.dimensions
    w = op.window()
    groups, batches = op.value("feature_group_count"), op.value("batch_group_count")
    kernel, count = op.rhs, max(groups, batches)
    if count > 1:
        kernel = _out_of(b, kernel, d.kernel_output_feature_dimension, d.kernel_input_feature_dimension, count)
    # The windows of the kernel go the other way. That is not left to the convolution: XLA's CPU is slower at it.
    turned = [p for p, r in zip(d.kernel_spatial_dimensions, w["window_reversal"], strict=True) if not r]
    kernel = b.emit(hlo.ReverseOp, kernel, dimensions=turned) if turned else kernel
    numbers = ConvDimensions(
        d.output_batch_dimension, d.output_feature_dimension, d.output_spatial_dimensions,
        d.kernel_output_feature_dimension, d.kernel_input_feature_dimension, d.kernel_spatial_dimensions,
        d.input_batch_dimension, d.input_feature_dimension, d.input_spatial_dimensions,
    )  # fmt: skip
    before: list[int] = []
    after: list[int] = []
    more: list[Size] = [0] * rank_of(g)
    for i, place in enumerate(d.output_spatial_dimensions):
        size = shape_of(op.lhs)[d.input_spatial_dimensions[i]]
        (reach,) = _static(op, dilated_size(shape_of(op.rhs)[d.kernel_spatial_dimensions[i]], w["rhs_dilation"][i]))
        low, _ = w["padding"][i]
        before.append(reach - 1 - low)
        out = dilated_size(shape_of(g)[place], w["window_strides"][i])
        last = dilated_size(size, w["lhs_dilation"][i]) + reach - 1 - out - before[-1]
        # What depends on a symbolic size is padded beforehand.
        after.append(last if isinstance(last, int) else 0)
        more[place] = 0 if isinstance(last, int) else last
    strides: list[int] = list(w["window_strides"])
    if any(size != 0 for size in more):
        gaps = [0] * rank_of(g)
        for i, place in enumerate(d.output_spatial_dimensions):
            gaps[place], strides[i] = strides[i] - 1, 1
        g = b.pad(g, b.scalar_like(g, 0), [0] * rank_of(g), more, gaps)
    image = b.convolution(
        g, b.convert(kernel, element_of(g)), dimension_numbers=numbers, window_strides=w["lhs_dilation"],
        padding=list(zip(before, after, strict=True)), lhs_dilation=strides, rhs_dilation=w["rhs_dilation"],
        feature_group_count=count,
        precision_config=op.value("precision_config"),
    )  # fmt: skip
    if batches > 1:
        image = _out_of(b, image, d.input_feature_dimension, d.input_batch_dimension, batches)
    return restate(b, b.convert(image, element_of(op.lhs)), shape_of(op.lhs))


def _for_kernel(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """A convolution of the image with the cotangent, batch and features exchanged."""
    d: ConvDimensions = op.dimensions
    w = op.window()
    groups, batches = op.value("feature_group_count"), op.value("batch_group_count")
    numbers = ConvDimensions(
        d.input_feature_dimension, d.input_batch_dimension, d.input_spatial_dimensions,
        d.output_batch_dimension, d.output_feature_dimension, d.output_spatial_dimensions,
        d.kernel_input_feature_dimension, d.kernel_output_feature_dimension, d.kernel_spatial_dimensions,
    )  # fmt: skip
    padding: list[tuple[int, int]] = []
    image: SSAValue = op.lhs
    more: list[Size] = [0] * rank_of(image)
    inner: list[int] = list(w["lhs_dilation"])
    for i, place in enumerate(d.input_spatial_dimensions):
        (reach,) = _static(op, dilated_size(shape_of(op.rhs)[d.kernel_spatial_dimensions[i]], w["rhs_dilation"][i]))
        out = dilated_size(shape_of(g)[d.output_spatial_dimensions[i]], w["window_strides"][i])
        low, _ = w["padding"][i]
        last = out + reach - dilated_size(shape_of(image)[place], w["lhs_dilation"][i]) - low - 1
        padding.append((low, last if isinstance(last, int) else 0))
        more[place] = 0 if isinstance(last, int) else last
    if any(size != 0 for size in more):
        gaps = [0] * rank_of(image)
        for i, place in enumerate(d.input_spatial_dimensions):
            gaps[place], inner[i] = inner[i] - 1, 1
        image = b.pad(image, b.scalar_like(image, 0), [0] * rank_of(image), more, gaps)
    kernel = b.convolution(
        b.convert(image, element_of(g)), g, dimension_numbers=numbers, window_strides=w["rhs_dilation"],
        padding=padding, lhs_dilation=inner, rhs_dilation=w["window_strides"], feature_group_count=batches,
        batch_group_count=groups, precision_config=op.value("precision_config"),
    )  # fmt: skip
    turned = [p for p, r in zip(d.kernel_spatial_dimensions, w["window_reversal"], strict=True) if r]
    kernel = restate(b, b.convert(kernel, element_of(op.rhs)), shape_of(op.rhs))
    return b.emit(hlo.ReverseOp, kernel, dimensions=turned) if turned else kernel


def _convolution(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    if 0 in (*shape_of(op.operands[operand]), *shape_of(g)):
        return b.full_like(op.operands[operand], 0)
    return (_for_image, _for_kernel)[operand](b, op, g)


linear(hlo.ConvolutionOp, _convolution, 0, 1, each=True)
