"""Contractions: batches and free dimensions pass through, and parts of sums are added."""

from __future__ import annotations

from gcomp.dims import floordiv
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(hlo.DotGeneralOp, hlo.DotOp)
def dot(op: hlo.DotGeneralOp | hlo.DotOp, draft: Draft) -> None:
    """Products of parts are added."""
    draft.reducer = "add"


@rules(chlo.RaggedDotOp)
def ragged_dot(op: chlo.RaggedDotOp, draft: Draft) -> None:
    """Which group a row is in depends on its place among all rows; the rest is a dot product."""
    n = op.dimensions
    (ragged,) = n.lhs_ragged_dimensions
    draft.bar((0, ragged))
    if ragged not in n.lhs_contracting_dimensions:
        rows = [k for k in range(len(draft.shapes[0])) if k not in n.lhs_contracting_dimensions]
        draft.tie([(0, ragged), draft.result(rows.index(ragged))], Kind.NEED_REPLICATION)
    for k, j in zip(n.lhs_contracting_dimensions, n.rhs_contracting_dimensions, strict=True):
        if k != ragged:
            draft.tie([(0, k), (1, j)], Kind.REDUCTION, combine="add")


@rules(hlo.ConvolutionOp)
def convolution(op: hlo.ConvolutionOp, draft: Draft) -> None:
    """Channels are summed over; a part of space needs the edges of its neighbours."""
    n = op.dimensions
    batch, feature = draft.result(n.output_batch_dimension), draft.result(n.output_feature_dimension)
    images, channels = (0, n.input_batch_dimension), (0, n.input_feature_dimension)
    summed, filters = (1, n.kernel_input_feature_dimension), (1, n.kernel_output_feature_dimension)
    features, batches = op.value("feature_group_count"), op.value("batch_group_count")
    for groups, cut in ((features, channels), (batches, images)):
        if groups > 1:
            draft.tie([cut, filters, feature], size=groups)
    draft.tie([images, batch])
    draft.tie([channels, summed], Kind.REDUCTION, combine="add")
    draft.tie([filters, feature], size=floordiv(draft.size(feature), features * batches))
    draft.bar(*[(1, k) for k in n.kernel_spatial_dimensions])
    for source, target in zip(n.input_spatial_dimensions, n.output_spatial_dimensions, strict=True):
        draft.otherwise([(0, source), draft.result(target)], Kind.PERMUTATION)
