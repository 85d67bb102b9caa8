"""Contractions: dot products and convolutions. Both operands' maps have the same range variables: those summed over."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates, whole
from gcomp.analysis.indexing.movement import inside
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size, floordiv
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import rank_of, shape_of

Shape = tuple[Size, ...]


@maps(hlo.DotGeneralOp)
def dot_general(op: hlo.DotGeneralOp) -> list[Maps]:
    """Batching and free dimensions of the result; both operands along the contracting ones."""
    return [list(contraction_maps(shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs), op.dimensions))]


@maps(hlo.DotOp)
def dot(op: hlo.DotOp) -> list[Maps]:
    """The last dimension of the left operand with the first of the right one."""
    numbers = DotDimensions((), (), (rank_of(op.lhs) - 1,), (0,))
    return [list(contraction_maps(shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs), numbers))]


def contraction_maps(domain: Shape, lhs: Shape, rhs: Shape, numbers: DotDimensions) -> tuple[IndexingMap, IndexingMap]:
    """The maps of both operands; their range variables are the contracting dimensions, in order."""
    left, right = numbers.places(len(lhs), len(rhs))
    pairs = zip((lhs, rhs), (left, right), numbers[2:], strict=True)
    first, second = [_operand(domain, shape, places, summed) for shape, places, summed in pairs]
    return first, second


def _operand(domain: Shape, shape: Shape, places: dict[int, int], contracting: Sequence[int]) -> IndexingMap:
    own, ranging = coordinates(domain), Ranging()
    summed = {k: ranging(shape[k]) for k in contracting}
    indices = tuple([summed[k] if k in summed else own[places[k]] for k in range(len(shape))])
    return IndexingMap(domain, shape, indices, tuple(ranging.sizes))


@maps(chlo.RaggedDotOp)
def ragged_dot(op: chlo.RaggedDotOp) -> list[Maps]:
    """As dot_general; which group an index belongs to is data, and so is which part of a contraction a group has."""
    n = op.dimensions
    domain, lhs, rhs = shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs)
    (ragged,), groups = n.lhs_ragged_dimensions, n.rhs_group_dimensions
    pairs = dict(zip(n.lhs_contracting_dimensions, n.rhs_contracting_dimensions, strict=True))
    # Where the ragged dimension is contracted, the result has a first dimension of groups.
    own, ranging = iter(coordinates(domain)[1 if ragged in pairs else 0 :]), Ranging()
    left: dict[int, Size] = {k: next(own) for k in n.lhs_batching_dimensions}
    right = dict(zip(n.rhs_batching_dimensions, left.values(), strict=True))
    for k, j in pairs.items():
        left[k] = right[j] = ranging(lhs[k])
    left |= {k: next(own) for k in range(len(lhs)) if k not in left}
    x = IndexingMap(domain, lhs, _in_order(left), tuple(ranging.sizes))
    right |= {k: ranging(rhs[k]) for k in groups}
    right |= {k: next(own) for k in range(len(rhs)) if k not in right}
    y = IndexingMap(domain, rhs, _in_order(right), tuple(ranging.sizes))
    z = whole(domain, shape_of(op.group_sizes), exact=False)
    if ragged in n.lhs_batching_dimensions:
        return [[x, y, z]]
    runs = {k: j for k, j in pairs.items() if k == ragged}
    return [[x.loosen(*runs), y.loosen(*groups, *runs.values()), z]]


@maps(hlo.ConvolutionOp)
def convolution(op: hlo.ConvolutionOp) -> list[Maps]:
    """A window of the left operand, where it is not padding, and the whole kernel (NaN times padding is NaN)."""
    n, w = op.dimensions, op.window()
    domain, lhs, rhs = shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs)
    own, ranging = coordinates(domain), Ranging()
    batch, feature = own[n.output_batch_dimension], own[n.output_feature_dimension]
    channel = ranging(rhs[n.kernel_input_feature_dimension])
    left: dict[int, Size] = {n.input_batch_dimension: batch, n.input_feature_dimension: channel}
    right: dict[int, Size] = {n.kernel_input_feature_dimension: channel, n.kernel_output_feature_dimension: feature}
    groups, batches = op.value("feature_group_count"), op.value("batch_group_count")
    if groups > 1:
        group = floordiv(feature, floordiv(domain[n.output_feature_dimension], groups))
        left[n.input_feature_dimension] = group * rhs[n.kernel_input_feature_dimension] + channel
    if batches > 1:
        group = floordiv(feature, floordiv(domain[n.output_feature_dimension], batches))
        left[n.input_batch_dimension] = group * domain[n.output_batch_dimension] + batch
    conditions: list[Condition] = []
    for i, (source, kernel, target) in enumerate(
        zip(n.input_spatial_dimensions, n.kernel_spatial_dimensions, n.output_spatial_dimensions, strict=True)
    ):
        offset = ranging(rhs[kernel])
        position = own[target] * w["window_strides"][i] + offset * w["rhs_dilation"][i] - w["padding"][i][0]
        left[source] = inside(position, lhs[source], w["lhs_dilation"][i], conditions)
        right[kernel] = rhs[kernel] - 1 - offset if w["window_reversal"][i] else offset
    ranges = tuple(ranging.sizes)
    x = IndexingMap(domain, lhs, _in_order(left), ranges, tuple(conditions))
    y = IndexingMap(domain, rhs, _in_order(right), ranges)
    return [[simplify(x, keep_ranges=True), simplify(y, keep_ranges=True)]]


def _in_order(indices: dict[int, Size]) -> tuple[Size, ...]:
    return tuple([indices[k] for k in range(len(indices))])
