"""Contractions: dot_general, and products of ragged groups."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from gcomp.frontends.jaxpr.avals import element_text
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.jax_api import algorithm_types, is_algorithm, scaled_dot_definition
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, RaggedDotDimensions
from gcomp.ir.types import dtype_text, tensor


@imports("dot_general")
def dot_general(ctx: EqnContext) -> Results:
    """Sums of products over contracting dimensions, for each place of the batching ones."""
    (contract_x, contract_y), (batch_x, batch_y) = ctx.params["dimension_numbers"]
    dimensions = DotDimensions(tuple(batch_x), tuple(batch_y), tuple(contract_x), tuple(contract_y))
    x, y, computed = _operands(ctx)
    found = ctx.b.emit(
        hlo.DotGeneralOp, x, y, types=(tensor(ctx.out_shape(), computed),), dot_dimension_numbers=dimensions,
        precision_config=precision_of(ctx),
    )  # fmt: skip
    return ctx.b.convert(found, ctx.out_dtype())


@imports("ragged_dot_general")
def ragged_dot_general(ctx: EqnContext) -> Results:
    """Products of matrices in groups: consecutive runs of a dimension, of sizes that are data."""
    if ctx.params.get("group_offset") is not None:
        ctx.unsupported("it has a group_offset, which JAX itself does not run")
    d = ctx.params["ragged_dot_dimension_numbers"]
    (contract_x, contract_y), (batch_x, batch_y) = d.dot_dimension_numbers
    dimensions = RaggedDotDimensions(
        tuple(batch_x), tuple(batch_y), tuple(contract_x), tuple(contract_y),
        tuple(d.lhs_ragged_dimensions), tuple(d.rhs_group_dimensions),
    )  # fmt: skip
    x, y, computed = _operands(ctx)
    found = ctx.b.emit(
        chlo.RaggedDotOp, x, y, ctx[2], types=(tensor(ctx.out_shape(), computed),),
        ragged_dot_dimension_numbers=dimensions, precision_config=precision_of(ctx),
    )  # fmt: skip
    return ctx.b.convert(found, ctx.out_dtype())


@imports("scaled_dot")
def scaled_dot(ctx: EqnContext) -> Results:
    """A product of matrices in blocks, each of which has a scale: JAX's definition."""
    return ctx.trace(scaled_dot_definition, **ctx.params)


def _operands(ctx: EqnContext) -> tuple[SSAValue, SSAValue, str]:
    """The operands in the type that is multiplied, and the type that sums are kept in.

    An algorithm names those. Operands of two types become the result's; 8-bit floats f32, which holds them all.
    """
    b, (x, y), summed = ctx.b, ctx.operands[:2], ctx.out_dtype()
    if is_algorithm(precision := ctx.params["precision"]):
        types = algorithm_types(precision, ctx.aval(0).dtype, ctx.aval(1).dtype, ctx.out_aval().dtype)
        left, right, own = (None if t is None else element_text(t) for t in types)
        x, y, summed = b.convert(x, left or ctx.dtype(0)), b.convert(y, right or ctx.dtype(1)), own or summed
    if dtype_text(x.type) != dtype_text(y.type):
        summed = "f32" if summed.startswith("f8") else summed
        x, y = b.convert(x, summed), b.convert(y, summed)
    return x, y, summed


def precision_of(ctx: EqnContext) -> list[str] | None:
    """The precision of both operands; None where JAX leaves it open, or names an algorithm: that is the least that it
    asks for, and the types of the operands are more."""
    wanted: Any = ctx.params["precision"]
    return None if wanted is None or is_algorithm(wanted) else [str(p).rpartition(".")[2] for p in wanted]
