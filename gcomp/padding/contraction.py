"""Sums of products: padding along what is summed over is zero in both operands, since 0 times NaN is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcomp.dtypes import has_zero
from gcomp.ir import stablehlo as hlo
from gcomp.ir.structures import ConvDimensions, DotDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of
from gcomp.padding.layouts import extent
from gcomp.padding.sweep import Padded, Sweep, refuse
from gcomp.padding.table import pads


@pads("neutral", hlo.DotGeneralOp, hlo.DotOp)
def dot_general(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Zeros along the contracting dimensions; batching and free ones are the result's."""
    n = op.dimensions if isinstance(op, hlo.DotGeneralOp) else DotDimensions((), (), (rank_of(op.lhs) - 1,), (0,))
    left, right = operands
    pairs = [*zip(n.lhs_batching_dimensions, n.rhs_batching_dimensions, strict=True),
             *zip(n.lhs_contracting_dimensions, n.rhs_contracting_dimensions, strict=True)]  # fmt: skip
    if any(left.layout[i] != right.layout[j] for i, j in pairs):
        left = sweep.compact(left, n.lhs_batching_dimensions + n.lhs_contracting_dimensions)
        right = sweep.compact(right, n.rhs_batching_dimensions + n.rhs_contracting_dimensions)
    # What is compacted moves along all dimensions, so that layouts of others may be plain now too.
    left_zeros = _zeros(sweep, op, left, n.lhs_contracting_dimensions)
    right_zeros = _zeros(sweep, op, right, n.rhs_contracting_dimensions)
    value = sweep.around(op, [left_zeros.value, right_zeros.value])[0]
    places = n.places(len(left.layout), len(right.layout))
    layout = list(sweep.plain(value))
    for x, at in zip((left, right), places, strict=True):
        for i, place in at.items():
            layout[place] = x.layout[i]
    return [Padded(value, tuple(layout))]


@pads("neutral", hlo.ConvolutionOp)
def convolution(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Zeros behind the true elements of a spatial dimension, as in the padding of the convolution, and in features."""
    n: ConvDimensions = op.dimensions
    w, sizes = op.window(), sweep.sizes
    x, kernel = operands
    if any(sizes.is_padded(kernel.layout[i]) for i in n.kernel_spatial_dimensions):
        refuse(sweep, op, "the size of its kernel is padded")
    grouped = op.value("feature_group_count") > 1 or op.value("batch_group_count") > 1
    divided = [x.layout[n.input_feature_dimension], kernel.layout[n.kernel_output_feature_dimension]]
    if op.value("batch_group_count") > 1:
        divided.append(x.layout[n.input_batch_dimension])
    if grouped and any(map(sizes.is_padded, divided)):
        refuse(sweep, op, "its groups divide a padded dimension")
    features = n.input_feature_dimension, n.kernel_input_feature_dimension
    x = sweep.compact(x, n.input_spatial_dimensions)
    if x.layout[features[0]] != kernel.layout[features[1]] and not grouped:
        x, kernel = sweep.compact(x), sweep.compact(kernel)
    reaching = [d for d, (_, high) in zip(n.input_spatial_dimensions, w["padding"], strict=True) if high > 0]
    zeros = _zeros(sweep, op, x, [*reaching, features[0]])
    kernel_zeros = _zeros(sweep, op, kernel, [features[1]])
    value = sweep.around(op, [zeros.value, kernel_zeros.value])[0]
    layout = list(sizes.plain(shape_of(value)))
    if extent(x.layout[n.input_batch_dimension]) == extent(layout[n.output_batch_dimension]):
        layout[n.output_batch_dimension] = x.layout[n.input_batch_dimension]
    layout[n.output_feature_dimension] = kernel.layout[n.kernel_output_feature_dimension]
    return [Padded(value, tuple(layout))]


def _zeros(sweep: Sweep, op: Any, x: Padded, dimensions: Sequence[int]) -> Padded:
    """The operand with zeros in its padding along these dimensions."""
    text = dtype_text(x.value.type)
    if not has_zero(text) and any(sweep.sizes.is_padded(x.layout[i]) for i in dimensions):
        refuse(sweep, op, f"{text} has no zero to pad with")
    return sweep.neutral(x, dimensions, 0)
