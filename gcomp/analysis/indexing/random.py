"""Random numbers."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import scalar, whole
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of


@maps(hlo.RngOp)
def rng(op: hlo.RngOp) -> list[Maps]:
    """The parameters; the shape is in the type as well."""
    domain = shape_of(op.result)
    return [[scalar(domain), scalar(domain), whole(domain, shape_of(op.shape), exact=False)]]


@maps(hlo.RngBitGeneratorOp)
def rng_bit_generator(op: hlo.RngBitGeneratorOp) -> list[Maps]:
    """The whole state, for the bits and for the next state."""
    return [[whole(shape_of(v), shape_of(op.initial_state))] for v in (op.output_state, op.output)]
