"""What follows from the shardings that a program has is said of all its values, as Shardy propagates it.

Each use of a constant becomes one of its own first, as each may have another part of it. A program without shardings
stays as it is. `gcomp.partitioning` has the algorithm, and notes why each axis is where it is (`reasons`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Operation, OpResult, SSAValue

from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, rank_of
from gcomp.partitioning.network import Network, Node
from gcomp.partitioning.propagation import propagate
from gcomp.passes.base import Pass, PassContext
from gcomp.sharding import Sharding

_MAKERS = (hlo.ConstantOp, hlo.IotaOp, chlo.ConstantOp)
_KEEPERS = (*POINTWISE, *PLAIN, hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.SliceOp)
"""Ops that of constants make constants: each device may compute any part of what they give."""


@dataclass(frozen=True)
class PropagateShardings(Pass):
    """Say of each value how it lies, where that follows from what is said."""

    name: ClassVar[str] = "propagate-shardings"
    places_values: ClassVar[bool] = True

    def run(self, program: Program, context: PassContext) -> bool:
        if not sdy.is_sharded(program.module):
            return False
        changed = split_constants(program)
        network = Network(program)
        propagate(network)
        return _write(network) or changed


def split_constants(program: Program) -> bool:
    """Give each use of a constant, and of what is computed from constants alone, ops of its own."""
    made: set[Operation] = set()
    changed = False
    for op in [*program.main.walk()]:
        if isinstance(op, _MAKERS) or (
            isinstance(op, _KEEPERS) and op.operands and all(_is_of(v, made) for v in op.operands)
        ):
            made.add(op)
            continue
        spreads = isinstance(op, hlo.BroadcastInDimOp) and not rank_of(op.operand)
        for i, value in enumerate(op.operands):
            if _is_of(value, made) and is_tensor(value.type) and rank_of(value) and len({*value.uses}) > 1:
                op.operands[i] = _copy(cast(OpResult, value), made)
                changed = True
        if spreads:
            made.add(op)
    return changed


def _is_of(value: SSAValue, made: set[Operation]) -> bool:
    return isinstance(value, OpResult) and value.op in made


def _copy(value: OpResult, made: set[Operation]) -> SSAValue:
    """A copy of what computes a value from constants, before it; scalars are shared."""
    op = value.op
    copy = op.clone()
    made.add(copy)
    for i, operand in enumerate(op.operands):
        if _is_of(operand, made) and rank_of(operand):
            copy.operands[i] = _copy(cast(OpResult, operand), made)
    assert op.parent is not None
    op.parent.insert_op_before(copy, op)
    return copy.results[value.index]


# ---- what was found -------------------------------------------------------------------------------------------------


def _write(network: Network) -> bool:
    """Say of arguments, results of ops and results of the function what was found of them, closed."""
    main, changed = network.program.main, False
    arguments = [_found(network.nodes.get(a)) for a in main.body.block.args]
    results = [*sdy.result_shardings(main)]
    returned = iter(network.returned)
    last = main.body.block.last_op
    assert last is not None
    for i, value in enumerate(last.operands):
        if is_tensor(value.type):
            results[i] = _found(next(returned)[1])
    if arguments != sdy.argument_shardings(main) or results != sdy.result_shardings(main):
        sdy.set_argument_shardings(main, arguments)
        sdy.set_result_shardings(main, results)
        changed = True
    for op in main.walk():
        if op is not main and not op.name.startswith("sdy.") and op.results:
            changed |= _write_op(op, [network.nodes.get(v) for v in op.results])
    return changed


def _found(node: Node | None) -> Sharding | None:
    return None if node is None or node.sharding is None else node.sharding.closed()


def _write_op(op: Operation, nodes: list[Node | None]) -> bool:
    found = [_found(node) for node in nodes]
    named = next((s.mesh for s in found if s is not None), None)
    if named is None:
        return False
    said = [Sharding.open(named, _rank(v)).closed() if s is None else s for v, s in zip(op.results, found, strict=True)]
    if said == [sdy.sharding_of(v) for v in op.results]:
        return False
    sdy.set_sharding(op, said)
    return True


def _rank(value: SSAValue) -> int:
    return rank_of(value) if is_tensor(value.type) else 0
