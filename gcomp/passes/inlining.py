"""Putting a copy of a function's body in the place of an op that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.ir.copying import copy_op


def inline_function(
    op: Operation, function: FuncOp, located: Callable[[LocationAttr], LocationAttr]
) -> list[Operation]:
    """Replace an op, whose operands are a function's arguments, by a copy of the function's body; the copied ops.

    `located` says where a copy comes from, given where the original does.
    """
    mapping: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, op.operands, strict=True))
    copies: list[Operation] = []
    block = cast(Block, op.parent)
    results: Sequence[SSAValue] = ()
    for source in function.body.block.ops:
        if source is function.body.block.last_op:
            results = [mapping.get(v, v) for v in source.operands]
            break
        copy = copy_op(source, mapping)
        copy.location = located(source.location)
        block.insert_op_before(copy, op)
        copies.append(copy)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
    return copies
