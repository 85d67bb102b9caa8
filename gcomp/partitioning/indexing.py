"""Indexing by data: dimensions that slices take whole pass through; where single elements are chosen, each device looks
up those that it has."""

from __future__ import annotations

from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import BOOL, element_of
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.reduction import combiner
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp)
def sliced(op: hlo.DynamicSliceOp | hlo.DynamicUpdateSliceOp, draft: Draft) -> None:
    """As the maps show; where a slice begins anywhere, it may lie in any part."""
    if isinstance(op, hlo.DynamicUpdateSliceOp):
        for dim in range(len(draft.shapes[0])):
            if draft.size((0, dim)) != draft.size((1, dim)):
                draft.tie([(0, dim), draft.result(dim)], Kind.NEED_REPLICATION)


@rules(hlo.GatherOp)
def gather(op: hlo.GatherOp, draft: Draft) -> None:
    """Along a collapsed dimension one device has the element that an index names: the others give 0, and all are added.

    What a slice takes whole passes through, and so do batches of indices.
    """
    n = op.dimensions
    for dim in n.collapsed_slice_dims:
        if dim in n.start_index_map and draft.size((0, dim)) != 1:
            draft.tie([(0, dim)], Kind.REDUCTION, combine="or" if element_of(op.operand) == BOOL else "add")


@rules(hlo.ScatterOp)
def scatter(op: hlo.ScatterOp, draft: Draft) -> None:
    """Along an inserted dimension each device takes the updates of the elements that it has, as those outside of an
    operand are left out; updates along scatter dimensions are parts of a sum, if the body is a sum."""
    n, count = op.dimensions, len(op.inputs)
    inputs, updates = range(count), range(count + 1, 2 * count + 1)
    # An inserted dimension that no index is of has its updates at its first element: on one device alone.
    for dim in {*n.scatter_dims_to_operand_dims, *n.inserted_window_dims}:
        slots = [*[(t, dim) for t in inputs], *[draft.result(dim, i) for i in inputs]]
        looked_up = dim in n.inserted_window_dims and dim in n.scatter_dims_to_operand_dims
        draft.tie(slots, Kind.PASS_THROUGH if looked_up else Kind.NEED_REPLICATION)
    window = {k for k in range(len(draft.shapes[updates[0]])) if k in n.update_window_dims}
    scattered = [k for k in range(len(draft.shapes[updates[0]])) if k not in window]
    axes = [j for j in range(len(draft.shapes[count])) if j != n.index_vector_dim]
    combine = combiner(applied_op(op.update_computation), op.inputs[0])
    for axis, dim in zip(axes, scattered, strict=True):
        if axis not in n.scatter_indices_batching_dims and combine is not None and count == 1:
            draft.tie([(count, axis), *[(t, dim) for t in updates]], Kind.REDUCTION, combine=combine)
