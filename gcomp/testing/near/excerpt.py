"""A few ops of a program as a program of their own, so that values of every kind reach them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.dims import symbol
from gcomp.errors import GcompError
from gcomp.ir.host import symbols_of_op
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.ir.walking import inputs_of as read_by
from gcomp.passes.base import Pass
from gcomp.testing.near.sites import Touched, computing, touch
from gcomp.testing.reduce.signature import add_input, fresh_name, set_outputs, tidy

_DEPTH = 3


def changed_excerpt(step: Pass, program: Program, places: Sequence[int]) -> tuple[Program, Touched] | None:
    """The fewest ops around those at some places that a pass still changes, and where it does; None for none.

    What they read is computed no more, but given: a rewrite's operands in a large program are hardly ever infinite.
    """
    for depth, inside in product(range(_DEPTH + 1), (True, False)):
        with suppress(GcompError, VerifyException, ValueError):
            cut = excerpt(program, places, depth, inside=inside)
            if cut is not None and (found := touch(step, cut)).applied:
                return cut, found
    return None


def excerpt(program: Program, places: Iterable[int], depth: int = 0, *, inside: bool = False) -> Program | None:
    """The ops at some places (in the order of all ops) and those that lead to them within `depth`; None for none.

    What else they read becomes an input, but constants stay; what others read of them, or nobody does, is returned.
    Ops in regions come with the op of main that holds them, or alone if `inside`.
    """
    cut = program.clone()
    ops = list(cut.ops())
    wanted = computing(ops[i] for i in places)
    block = (wanted[0].parent if wanted else None) if inside else cut.block
    held = _with_makers([op for one in wanted if (op := _ancestor(one, block)) is not None], depth)
    if block is None or not held:
        return None
    kept = [op for op in block.ops if op in held]
    values = dict[SSAValue, SSAValue]()
    end, copies = cut.returned, list[Operation]()
    for op in kept:
        for value in read_by(op):
            if value not in values:
                values[value] = _given(cut, value, end)
        copy = op.clone(values)
        copy.location = op.location
        cut.block.insert_op_before(copy, end)
        copies.append(copy)
        values.update(zip(op.results, copy.results, strict=True))
    returned = [values[r] for op in kept for r in op.results if not r.first_use or _read_outside(r, held)]
    set_outputs(cut, [(f"r{i}", value) for i, value in enumerate(returned)])
    tidy(cut)
    _name_sizes(cut)
    cut.verify("excerpt")
    return cut


def _ancestor(op: Operation, block: Block | None) -> Operation | None:
    """The op of a block that is an op, or holds it."""
    at: Operation | None = op
    while at is not None and at.parent is not block:
        at = at.parent_op()
    return at


def _with_makers(ops: Sequence[Operation], depth: int) -> set[Operation]:
    """Ops, and those of the same block that compute what they read."""
    found, ring = set(ops), list(ops)
    for _ in range(depth):
        makers = [v.op for op in ring for v in read_by(op) if isinstance(v, OpResult)]
        ring = [m for m in makers if m not in found and m.parent is ops[0].parent]
        found.update(ring)
    return found


def _given(cut: Program, value: SSAValue, end: Operation) -> SSAValue:
    """An input in place of a value; a constant stays one."""
    if isinstance(value, OpResult) and not value.op.operands and not value.op.regions:
        copy = value.op.clone()
        cut.block.insert_op_before(copy, end)
        return copy.results[value.index]
    return add_input(cut, value.type, fresh_name(cut, "x"))


def _read_outside(value: SSAValue, held: set[Operation]) -> bool:
    return any(_holder(use.operation, held) is None for use in value.uses)


def _holder(op: Operation, held: set[Operation]) -> Operation | None:
    at: Operation | None = op
    while at is not None and at not in held:
        at = at.parent_op()
    return at


def _name_sizes(cut: Program) -> None:
    """An input for each symbol that no input has as a size by itself."""
    known = {size for port in cut.inputs() for size in port.shape}
    for name in sorted({name for op in cut.ops() for name in symbols_of_op(op)}):
        if symbol(name) not in known:
            add_input(cut, tensor((symbol(name),), "i1"), fresh_name(cut, f"size_{name}"))


__all__ = ["changed_excerpt", "excerpt"]
