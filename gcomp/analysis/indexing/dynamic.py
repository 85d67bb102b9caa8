"""Ops whose result shape is a run-time operand: as their static relatives, by the sizes that the types declare."""

from __future__ import annotations

from gcomp.analysis.indexing.elementwise import spread
from gcomp.analysis.indexing.indexing import gather_maps
from gcomp.analysis.indexing.maps import scalar, whole
from gcomp.analysis.indexing.movement import reshape_map
from gcomp.analysis.indexing.table import Maps, maps, opaque
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import shape_of


@maps(hlo.DynamicBroadcastInDimOp)
def dynamic_broadcast_in_dim(op: hlo.DynamicBroadcastInDimOp) -> list[Maps]:
    """As broadcast_in_dim."""
    domain, sizes = shape_of(op.result), shape_of(op.output_dimensions)
    found = spread(domain, shape_of(op.operand), op.value("broadcast_dimensions"))
    return [[found, whole(domain, sizes, exact=False)]]


@maps(hlo.DynamicReshapeOp)
def dynamic_reshape(op: hlo.DynamicReshapeOp) -> list[Maps]:
    """As reshape."""
    domain, sizes = shape_of(op.result), shape_of(op.output_shape)
    return [[reshape_map(domain, shape_of(op.operand)), whole(domain, sizes, exact=False)]]


@maps(hlo.DynamicPadOp)
def dynamic_pad(op: hlo.DynamicPadOp) -> list[Maps]:
    """Where an element lies is data in every dimension."""
    (row,) = opaque(op)
    return [[row[0], scalar(shape_of(op.result)).loosen(), *row[2:]]]


@maps(hlo.DynamicGatherOp)
def dynamic_gather(op: hlo.DynamicGatherOp) -> list[Maps]:
    """As gather, whose slices have the sizes that the result has at `offset_dims`."""
    domain, sizes = shape_of(op.result), shape_of(op.slice_sizes)
    x, starts = gather_maps(domain, shape_of(op.operand), shape_of(op.start_indices), op.dimensions)
    return [[x, starts, whole(domain, sizes, exact=False)]]


@maps(hlo.GetDimensionSizeOp)
def get_dimension_size(op: hlo.GetDimensionSizeOp) -> list[Maps]:
    """The size is part of the type, not of the data."""
    return [[None]]


@maps(hlo.DynamicIotaOp, hlo.DynamicConvOp, hlo.RealDynamicSliceOp, hlo.SetDimensionSizeOp)
def unknown(op: GraphOp) -> list[Maps]:
    """Where an element lies is data in every dimension."""
    return opaque(op)
