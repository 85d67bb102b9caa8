"""Contractions: dot_general and convolutions."""

from __future__ import annotations

from gcomp.frontends.jaxpr.avals import element_text
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import dtype_text


@imports("dot_general")
def dot_general(ctx: EqnContext) -> Results:
    """Sums of products over contracting dimensions, for each place of the batching ones.

    Operands of different types are converted to the type that they are accumulated in.
    """
    b, (x, y) = ctx.b, ctx.operands
    (contract_x, contract_y), (batch_x, batch_y) = ctx.params["dimension_numbers"]
    result = ctx.out_dtype()
    if dtype_text(x.type) != dtype_text(y.type):
        wanted = ctx.params.get("preferred_element_type")
        common = element_text(wanted) if wanted is not None else result
        x, y = b.convert(x, common), b.convert(y, common)
    dimensions = DotDimensions(tuple(batch_x), tuple(batch_y), tuple(contract_x), tuple(contract_y))
    return b.emit(
        hlo.DotGeneralOp, x, y, types=(ctx.out_type(),), dot_dimension_numbers=dimensions,
        precision_config=_precision(ctx),
    )  # fmt: skip


def _precision(ctx: EqnContext) -> list[str] | None:
    """The precision of both operands; None where JAX leaves it open. An algorithm bounds a backend's error only."""
    wanted = ctx.params.get("precision")
    if not isinstance(wanted, tuple):
        return None
    return [str(p).rpartition(".")[2] for p in wanted]  # pyright: ignore
