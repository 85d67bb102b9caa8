"""Regions on scalars as functions of tensors: the bodies of folds, scatters and maps, for all elements at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import CallOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Operation, SSAValue

from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.families import POINTWISE
from gcomp.ir.locations import where
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.types import rank_of, with_shape

_SCALARS = (hlo.ConstantOp, DimOp, WeightOp)
_IDENTITIES = (hlo.ReshapeOp, hlo.BroadcastInDimOp, hlo.TransposeOp, hlo.ReverseOp)
"""Ops that between scalars do nothing."""
_POINTWISE = (*POINTWISE, hlo.OptimizationBarrierOp)
"""A barrier orders whole tensors as it orders scalars."""


def inline_block(b: Builder, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """A copy of a block's ops on these arguments; what it returns."""
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if op is block.last_op and isinstance(op, hlo.ReturnOp | FuncReturnOp):
            break
        b.insert(op.clone(mapping))
    last = block.last_op
    return [] if last is None else [mapping.get(v, v) for v in last.operands]


def vectorize_block(b: Builder, block: Block, arguments: Sequence[SSAValue], shape: Sequence[Size]) -> list[SSAValue]:
    """What a block on scalars returns for tensors of a shape, element by element."""
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))

    def wide(value: SSAValue) -> SSAValue:
        if value not in mapping:
            mapping[value] = b.broadcast(value, shape, ())  # from around the block
        return mapping[value]

    for op in block.ops:
        if op is block.last_op:
            return [wide(v) for v in op.operands]
        if isinstance(op, _SCALARS):
            for old, new in zip(op.results, b.insert(op.clone()).results, strict=True):
                mapping[old] = b.broadcast(new, shape, ())
        elif isinstance(op, _IDENTITIES) and rank_of(op.operands[0]) == rank_of(op.results[0]) == 0:
            mapping[op.results[0]] = wide(op.operands[0])
        elif isinstance(op, _POINTWISE):
            operands = [wide(v) for v in op.operands]
            types = [with_shape(v.type, shape) for v in op.results]
            copy = type(op).create(operands=operands, result_types=types, properties=dict(op.properties))
            mapping.update(zip(op.results, b.insert(copy).results, strict=True))
        elif isinstance(op, CallOp) and (function := b.program.function(op.callee.root_reference.data)) is not None:
            mapping.update(
                zip(
                    op.results,
                    vectorize_block(b, function.body.block, [wide(v) for v in op.operands], shape),
                    strict=True,
                )
            )
        else:
            refuse(op)
    return []


def refuse(op: Operation) -> None:
    """Say that a body has an op that is not elementwise."""
    raise UnsupportedError(
        "this body cannot be taken for all elements at once", where=where(op),
        why=f"{op.name} is not elementwise", fix="write the body with elementwise ops",
    )  # fmt: skip
