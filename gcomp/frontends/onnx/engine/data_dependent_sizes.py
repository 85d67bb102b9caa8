"""Data-dependent sizes: symbols that only data determine, bound by host steps while the program runs.

What depends on shapes alone folds away at import (`folding`). Here is the rest: a size that an op computes is read by
the host step `extents`, and operators whose results' sizes are data (NonZero) are host steps themselves. From there on
the program is specialized on the size found. A host step stands in the entry function only: a loop that repeated it
would need types that change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.evaluation import evaluate
from gcomp.frontends.onnx.model.values import size_list
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp
from gcomp.ir.native import DimOp
from gcomp.ir.types import Tensor, rank_of, shape_of, static_shape, tensor


def data_dependent_symbol(ctx: NodeContext, most: Size | None = None) -> Dim:
    """A symbol for a size of this node that data determine, at most `most`."""
    ctx.need_constants("data")
    bound = ctx.ranges.bounds(most)[1] if isinstance(most, Dim) else most
    symbol = ctx.importer.data_dependent.fresh(ctx.op_type, None if bound is None else int(bound))
    ctx.importer.ranges = ctx.importer.ranges.with_ranges(
        {str(symbol): ctx.importer.data_dependent.ranges[str(symbol)]}
    )
    return symbol


def host(
    ctx: NodeContext, function: str, operands: Sequence[SSAValue], types: Sequence[Tensor], config: Mapping[str, Any]
) -> Sequence[SSAValue]:
    """The results of a host step. Raises UnsupportedError inside loops and branches."""
    if ctx.b.point.block is not ctx.b.program.block:
        ctx.unsupported(
            "its result's size depends on data, inside a loop or a branch",
            fix="move it out, or make the trip count or the condition a constant",
        )
    return ctx.b.emit_all(HostOp, *operands, types=types, function=function, config=dict(config))


def data_dependent_sizes(
    ctx: NodeContext, x: SSAValue, role: str, most: Sequence[Size | None] | None = None
) -> list[Size]:
    """The integers of `x` (rank 0 or 1) as sizes: known ones as such, the others as symbols that a host step binds."""
    if rank_of(x) > 1 or (shape := static_shape(x.type)) is None:
        ctx.unsupported(f"the {role} depends on the data, and how many numbers it has is not known")
    limits = list(most or [None] * (shape[0] if shape else 1))
    found = known_sizes(ctx, x)
    if None in found:
        ctx.need_constants(role)
    sizes = [
        data_dependent_symbol(ctx, limit) if size is None else size for size, limit in zip(found, limits, strict=True)
    ]
    if all(size is not None for size in found):
        return sizes
    flat = ctx.b.reshape(x, (len(sizes),))
    text = f"{role} of {ctx.where.rsplit(': ', 1)[-1]}"
    host(ctx, "extents", [ctx.b.convert(flat, "i64")], [tensor((*sizes, 0), "i1")], {"role": text})
    return sizes


def operand_sizes(ctx: NodeContext, index: int, role: str) -> list[Size]:
    """An operand's integers as sizes; those that depend on data become symbols that a host step binds."""
    known = ctx.known_value(index)
    if ctx.rank(index) > 1:
        ctx.invalid(f"the {role} has rank {ctx.rank(index)}", "a list of numbers is expected")
    return data_dependent_sizes(ctx, ctx[index], role) if known is None else size_list(known)


def operand_size(ctx: NodeContext, index: int, role: str) -> Size:
    """An operand's one integer as a size. Raises InvalidModelError when it has several, or none."""
    sizes = operand_sizes(ctx, index, role)
    if len(sizes) != 1:
        ctx.invalid(f"the {role} has {len(sizes)} elements", "it must be one number")
    return sizes[0]


def known_sizes(ctx: NodeContext, x: SSAValue) -> list[Size | None]:
    """Those of a short vector's integers that do not depend on data: parts of a concatenation may be known."""
    count = cast(int, dims.product(shape_of(x)))
    owner = x.owner if isinstance(x, OpResult) else None
    if isinstance(owner, hlo.ConcatenateOp) and rank_of(x) == 1:
        return [size for operand in owner.operands for size in known_sizes(ctx, operand)]
    if isinstance(owner, hlo.ReshapeOp | hlo.ConvertOp) and dims.product(shape_of(owner.operands[0])) == count:
        return known_sizes(ctx, owner.operands[0])
    if isinstance(owner, DimOp):
        return [owner.formula]
    known = evaluate(ctx.b.program, x)
    return [None] * count if known is None else list(size_list(known))
