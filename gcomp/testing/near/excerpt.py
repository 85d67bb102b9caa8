"""A few ops of a program as a program of their own, so that values of every kind reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import product

from xdsl.ir import Operation, OpResult, SSAValue
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

_DEPTH, _ROOTS = 3, 3
"""What leads to an op is taken up to so far; so many ops are tried."""


def changed_excerpt(step: Pass, program: Program, places: Sequence[int]) -> tuple[Program, Touched] | None:
    """The fewest ops around those at some places that a pass still changes, and where it does; None for none.

    What they read is computed no more, but given: a rewrite's operands in a large program are hardly ever infinite.
    """
    # What leads to a changed op is often touched, too, since nothing reads it any more.
    roots = [(place,) for place in places[: -_ROOTS - 1 : -1]]
    for of, depth in (*product(roots, range(_DEPTH + 1)), (places, 0)):
        wanted = _with_makers(program, of, depth)
        found = _changed(step, program, wanted)
        for place in sorted(wanted - set(of)) if found is not None else ():
            fewer = _changed(step, program, wanted - {place})
            if fewer is not None:
                wanted, found = wanted - {place}, fewer
        if found is not None:
            return found
    return None


def _changed(step: Pass, program: Program, places: Iterable[int]) -> tuple[Program, Touched] | None:
    with suppress(GcompError, VerifyException, ValueError):
        cut = excerpt(program, places)
        if cut is not None and (found := touch(step, cut)).applied:
            return cut, found
    return None


def _with_makers(program: Program, places: Iterable[int], depth: int) -> set[int]:
    """Places of ops, and of those of the same block that compute what they read."""
    ops = list(program.ops())
    at, found = {op: i for i, op in enumerate(ops)}, set(places)
    ring = set(found)
    for _ in range(depth):
        makers = {v.op for i in ring for v in read_by(ops[i]) if isinstance(v, OpResult) and _computes(v.op)}
        ring = {at[m] for m in makers if any(m.parent is ops[i].parent for i in ring)} - found
        found |= ring
    return found


def _computes(op: Operation) -> bool:
    return bool(op.operands or op.regions)


def excerpt(program: Program, places: Iterable[int]) -> Program | None:
    """The ops at some places (in the order of all ops), of the outermost block of theirs; None for none.

    What they read of others becomes an input, but constants stay; what others read of them, or nobody does, is
    returned. Of other blocks, the op of this one that holds an op comes in its place.
    """
    cut = program.clone()
    ops = list(cut.ops())
    wanted = computing(ops[i] for i in sorted(places))
    block = min(wanted, key=_depth).parent if wanted else None
    if block is None:
        return None
    held = {op for one in wanted if (op := _holder(one, lambda at: at.parent is block)) is not None}
    kept = [op for op in block.ops if op in held]
    values = dict[SSAValue, SSAValue]()
    end = cut.returned
    for op in kept:
        for value in read_by(op):
            if value not in values:
                values[value] = _given(cut, value, end)
        copy = op.clone(values)
        copy.location = op.location
        cut.block.insert_op_before(copy, end)
        values.update(zip(op.results, copy.results, strict=True))
    returned = [values[r] for op in kept for r in op.results if not r.first_use or _read_outside(r, held)]
    set_outputs(cut, [(f"r{i}", value) for i, value in enumerate(returned)])
    tidy(cut)
    _name_sizes(cut)
    cut.verify("excerpt")
    return cut


def _given(cut: Program, value: SSAValue, end: Operation) -> SSAValue:
    """An input in place of a value; a constant stays one."""
    if isinstance(value, OpResult) and not _computes(value.op):
        copy = value.op.clone()
        cut.block.insert_op_before(copy, end)
        return copy.results[value.index]
    return add_input(cut, value.type, fresh_name(cut, "x"))


def _depth(op: Operation) -> int:
    parent = op.parent_op()
    return 0 if parent is None else 1 + _depth(parent)


def _read_outside(value: SSAValue, held: set[Operation]) -> bool:
    return any(_holder(use.operation, held.__contains__) is None for use in value.uses)


def _holder(op: Operation, suits: Callable[[Operation], bool]) -> Operation | None:
    """The op itself, or the nearest around it, that suits."""
    at: Operation | None = op
    while at is not None and not suits(at):
        at = at.parent_op()
    return at


def _name_sizes(cut: Program) -> None:
    """An input for each symbol that no input has as a size by itself."""
    known = {size for port in cut.inputs() for size in port.shape}
    for name in sorted({name for op in cut.ops() for name in symbols_of_op(op)}):
        if symbol(name) not in known:
            add_input(cut, tensor((symbol(name),), "i1"), fresh_name(cut, f"size_{name}"))


__all__ = ["changed_excerpt", "excerpt"]
