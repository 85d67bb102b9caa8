"""Carrying values through a program in the order in which it runs: through branches, and from iteration to iteration of
loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor

State = Sequence[SSAValue]
Visit = Callable[[Operation, State, "SSAValue | None"], State]
"""What is done at an op, with the state before it and the number of the loop's iteration: the state after it.

The same object means that nothing changed. Ops may be inserted, and regions that are not control flow are the op's own.
"""

ITERATION = tensor((), "i32")


def carry(program: Program, block: Block, state: State, visit: Visit, iteration: SSAValue | None = None) -> State:
    """The state after a block's ops. Control flow that changes the state is rebuilt to take and return it."""
    for op in list(block.ops)[:-1]:
        if isinstance(op, hlo.IfOp | hlo.CaseOp):
            state = _through_branches(program, op, state, visit, iteration)
        elif isinstance(op, hlo.WhileOp):
            state = _through_loop(program, op, state, visit)
        else:
            state = visit(op, state, iteration)
    return state


def _through_branches(
    program: Program, op: hlo.IfOp | hlo.CaseOp, state: State, visit: Visit, iteration: SSAValue | None
) -> State:
    after = [carry(program, region.block, state, visit, iteration) for region in op.regions]
    if all(found is state for found in after):
        return state
    for region, found in zip(op.regions, after, strict=True):
        _return_also(region.block, found)
    return _rebuilt(op, op.operands, state)


def _through_loop(program: Program, op: hlo.WhileOp, state: State, visit: Visit) -> State:
    body, types = op.body.block, [*(value.type for value in state), ITERATION]
    *own, iteration = [body.insert_arg(type, len(body.args)) for type in types]
    after = carry(program, body, own, visit, iteration)
    if after is own:
        for argument in (*own, iteration):
            body.erase_arg(argument)
        return state
    for type in types:
        op.cond.block.insert_arg(type, len(op.cond.block.args))
    last = body.last_op
    assert last is not None
    b = Builder(program, InsertPoint.before(last))
    with b.at(op.location):
        _return_also(body, [*after, b.add(iteration, b.constant(1, "i32"))])
        b.point = InsertPoint.before(op)
        start = b.constant(0, "i32")
    return _rebuilt(op, [*op.operands, *state, start], [*state, start])[:-1]


def _return_also(block: Block, values: State) -> None:
    last = block.last_op
    assert last is not None
    last.operands = [*last.operands, *values]


def _rebuilt(op: Operation, operands: Sequence[SSAValue], more: State) -> State:
    """Put an op with more results in the place of one; those results."""
    count = len(op.results)
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = type(op).create(
        operands=operands,
        result_types=[*op.result_types, *(value.type for value in more)],
        properties=op.properties,
        attributes=op.attributes,
        regions=regions,
        location=op.location,
    )
    Rewriter.insert_op(new, InsertPoint.before(op))
    for old, made in zip(op.results, new.results[:count], strict=True):
        made.name_hint = old.name_hint
        old.replace_all_uses_with(made)
    Rewriter.erase_op(op)
    return list(new.results[count:])


__all__ = ["State", "Visit", "carry"]
