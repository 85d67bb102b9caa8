"""Contractions: dot products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates
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
    return [list(contracted(shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs), op.dimensions))]


@maps(hlo.DotOp)
def dot(op: hlo.DotOp) -> list[Maps]:
    """The last dimension of the left operand with the first of the right one."""
    numbers = DotDimensions((), (), (rank_of(op.lhs) - 1,), (0,))
    return [list(contracted(shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs), numbers))]


def contracted(domain: Shape, lhs: Shape, rhs: Shape, numbers: DotDimensions) -> tuple[IndexingMap, IndexingMap]:
    """The maps of both operands. Their range variables are the same: the contracting dimensions, in order."""
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
    domain, lhs, rhs, sizes = shape_of(op.result), shape_of(op.lhs), shape_of(op.rhs), shape_of(op.group_sizes)
    numbers = DotDimensions(*n[:4])
    (ragged,) = n.lhs_ragged_dimensions
    first = 1 if ragged in n.lhs_contracting_dimensions else 0
    group = n.rhs_group_dimensions
    kept = [k for k in range(len(rhs)) if k not in group]
    shifted = [
        tuple([kept.index(k) for k in dims]) for dims in (n.rhs_batching_dimensions, n.rhs_contracting_dimensions)
    ]
    inner = DotDimensions(numbers[0], shifted[0], numbers[2], shifted[1])
    left, right = inner.places(len(lhs), len(kept))
    places = ({k: p + first for k, p in left.items()}, {kept[k]: p + first for k, p in right.items()})
    own, ranging = coordinates(domain), Ranging()
    summed = {k: ranging(lhs[k]) for k in n.lhs_contracting_dimensions}
    x = IndexingMap(
        domain,
        lhs,
        tuple([summed[k] if k in summed else own[places[0][k]] for k in range(len(lhs))]),
        tuple(ranging.sizes),
    )
    partner = dict(zip(n.rhs_contracting_dimensions, n.lhs_contracting_dimensions, strict=True))
    indices = [
        ranging(rhs[k]) if k in group else summed[partner[k]] if k in partner else own[places[1][k]]
        for k in range(len(rhs))
    ]
    y = IndexingMap(domain, rhs, tuple(indices), tuple(ranging.sizes))
    ranging = Ranging()
    z = IndexingMap(domain, sizes, tuple([ranging(size) for size in sizes]), tuple(ranging.sizes))
    if ragged in n.lhs_batching_dimensions:
        return [[x, y, z.loosened()]]
    contracted_ = [ragged] if first else []
    right_dependent = [k for k, partner_ in partner.items() if partner_ in contracted_]
    return [[x.loosened(*contracted_), y.loosened(*group, *right_dependent), z.loosened()]]


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
    x = IndexingMap(domain, lhs, _ordered(left), ranges, tuple(conditions))
    y = IndexingMap(domain, rhs, _ordered(right), ranges)
    return [[simplify(x), simplify(y)]]


def _ordered(indices: dict[int, Size]) -> tuple[Size, ...]:
    return tuple([indices[k] for k in range(len(indices))])
