"""What shardings go through in a program: values that may be cut, and the steps between them.

A node is a value, or several that are always cut alike: what a loop carries is one node with its results and its
regions' arguments. A step is an op with a rule, or the way from operands and returned values to what a loop or branch
carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Block, Operation, OpResult, SSAValue

from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, rank_of, shape_of
from gcomp.partitioning.rule import Factor, Kind, ShardingRule
from gcomp.partitioning.spreading import Direction
from gcomp.partitioning.table import rule_of
from gcomp.sharding import Sharding

Rules = Callable[[Operation], ShardingRule | None]


@dataclass(eq=False)
class Node:
    """A value that may be cut; `value` is one of those that are cut alike."""

    value: SSAValue
    sharding: Sharding | None = None
    steps: list[Step] = field(default_factory=list["Step"])
    """The steps that read or give it: the one that gives it first, then its users, the last one first."""


@dataclass(eq=False)
class Step:
    """An op, or a part of one, whose values share factors."""

    op: Operation
    rule: ShardingRule
    operands: tuple[Node, ...]
    results: tuple[Node, ...]
    is_edge: bool = False
    shares: bool = False
    """Whether something else uses one of its operands."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of operands, then those of results."""
        return (*self.operands, *self.results)

    @property
    def is_elementwise(self) -> bool:
        """Whether all that it touches is cut alike."""
        return not self.is_edge and isinstance(self.op, ELEMENTWISE)

    def direction(self, stage: int, factor: int) -> Direction:
        """Where a factor's axes may go in a stage: along ops that cut alike all that they touch, first those whose
        operands nothing else uses; then along what passes through; at last along all, forward through a broadcast
        only in the end."""
        if stage >= 4:
            return Direction.BOTH
        found = Direction.NONE
        if stage >= 1 or not self.shares:
            if self.is_edge or isinstance(self.op, _ALIKE):
                found = Direction.BOTH
            elif isinstance(self.op, (hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp)):
                found = Direction.FORWARD
        if stage == 3 or (stage == 2 and self.rule.factors[factor].kind is Kind.PASS_THROUGH):
            found |= Direction.BACKWARD if isinstance(self.op, hlo.BroadcastInDimOp) else Direction.BOTH
        return found


STAGES = 5
ELEMENTWISE = (*POINTWISE, *PLAIN, sdy.ShardingConstraintOp, sdy.ReshardOp)
_ALIKE = (*ELEMENTWISE, hlo.BitcastConvertOp, hlo.ReshapeOp, hlo.TransposeOp)


class Network:
    """The nodes and steps of a program's main function, in the order of the program."""

    def __init__(self, program: Program, rules: Rules = rule_of) -> None:
        self.program = program
        self.rules = rules
        self.nodes: dict[SSAValue, Node] = {}
        self.steps: list[Step] = []
        self.returned: list[tuple[Node, Node]] = []
        """What is returned, and what the function says of its result."""
        self._groups: dict[int, Node] = {}
        self._placed = dict(_constraints_of_carried(program))
        self._block(program.block)
        self._read()
        for step in self.steps:
            for node in dict.fromkeys(step.results):
                node.steps.append(step)
        for step in reversed(self.steps):
            for node in dict.fromkeys(step.operands):
                if step not in node.steps:
                    node.steps.append(step)

    def node(self, value: SSAValue) -> Node:
        """The node of a value."""
        return self.nodes.setdefault(value, Node(value))

    def all_nodes(self) -> Iterator[Node]:
        """Every node once, those of the function's results last."""
        yield from dict.fromkeys([*self.nodes.values(), *(said for _, said in self.returned)])

    # ---- building ----

    def _block(self, block: Block) -> None:
        for op in block.ops:
            EDGES.get(type(op), Network._op)(self, op)

    def _op(self, op: Operation) -> None:
        rule = self.rules(op)
        if isinstance(op, sdy.PlacingOp) and is_tensor(op.input.type):
            rule = identity_rule(op.result, 1)
        if rule is None or not rule.factors:
            return
        shares = any(rank_of(v) and len({*v.uses}) > 1 for v in op.operands)
        operands = tuple([self.used(v, op) for v in op.operands])
        self.steps.append(Step(op, rule, operands, tuple(map(self.node, op.results)), shares=shares))

    def used(self, value: SSAValue, op: Operation | None = None) -> Node:
        """The node that an op reads: of what is carried, and has a constraint, that of the constraint's result."""
        placed = self._placed.get(value)
        return self.node(value if placed is None or placed is op else placed.results[0])

    def _loop(self, op: Operation) -> None:
        """What a loop carries: operands and what the body returns, to results and arguments of both regions."""
        blocks = [region.block for region in op.regions]
        for k, result in enumerate(op.results):
            self.nodes.update((block.args[k], self.node(result)) for block in blocks)
        for block in blocks:
            self._block(block)
        for k, result in enumerate(op.results):
            self._edge(op, result, [op.operands[k], *_returned(blocks[-1:], k)])

    def _branches(self, op: Operation) -> None:
        """What branches return, to results."""
        blocks = [region.block for region in op.regions]
        for block in blocks:
            self._block(block)
        for k, result in enumerate(op.results):
            self._edge(op, result, _returned(blocks, k))

    def _barrier(self, op: Operation) -> None:
        for k, result in enumerate(op.results):
            self._edge(op, result, [op.operands[k]])

    def _group(self, op: Operation) -> None:
        """Members of a group are one node."""
        assert isinstance(op, sdy.ShardingGroupOp)
        first = self._groups.setdefault(op.group_id.value.data, self.node(op.input))
        self.nodes[op.input] = first

    def _edge(self, op: Operation, target: SSAValue, sources: Sequence[SSAValue]) -> None:
        if is_tensor(target.type):
            rule = identity_rule(target, len(sources))
            self.steps.append(Step(op, rule, tuple(map(self.used, sources)), (self.node(target),), is_edge=True))

    # ---- what the program says ----

    def _read(self) -> None:
        main = self.program.main
        for arg, said in zip(main.body.block.args, sdy.argument_shardings(main), strict=True):
            self.node(arg).sharding = said
        for value, node in self.nodes.items():
            if isinstance(value, OpResult) and (said := sdy.sharding_of(value)) is not None:
                node.sharding = said
        self._apply_constraints()
        last = main.body.block.last_op
        assert last is not None
        for value, said in zip(last.operands, sdy.result_shardings(main), strict=True):
            if is_tensor(value.type):
                self.returned.append((self.used(value), Node(value, said)))

    def _apply_constraints(self) -> None:
        """A constraint that leaves nothing open speaks of its operand too, if no other says something else of it."""
        carried = {node for step in self.steps if step.is_edge for node in step.results}
        for value, found in _constraints(self.program).items():
            node, sharding = self.node(value), _agreed(found)
            if sharding is not None and node.sharding is None and node not in carried:
                node.sharding = sharding


EDGES: dict[type[Operation], Callable[[Network, Any], None]] = {
    hlo.WhileOp: Network._loop,  # pyright: ignore[reportPrivateUsage]
    hlo.IfOp: Network._branches,  # pyright: ignore[reportPrivateUsage]
    hlo.CaseOp: Network._branches,  # pyright: ignore[reportPrivateUsage]
    hlo.OptimizationBarrierOp: Network._barrier,  # pyright: ignore[reportPrivateUsage]
    sdy.ShardingGroupOp: Network._group,  # pyright: ignore[reportPrivateUsage]
}
"""Ops that hand values on: what they make of a network."""


def _constraints(program: Program) -> dict[SSAValue, list[tuple[Operation, Sharding]]]:
    """Value -> the ops that say how it is to lie, and what they say."""
    found: dict[SSAValue, list[tuple[Operation, Sharding]]] = {}
    for op in program.main.walk():
        said = (op.layout,) if isinstance(op, sdy.ShardingConstraintOp) else ()
        said = op.inner if isinstance(op, sdy.ManualComputationOp) else said
        for value, sharding in zip(op.operands, said, strict=False):
            found.setdefault(value, []).append((op, sharding))
    return found


def _agreed(found: Sequence[tuple[Operation, Sharding]]) -> Sharding | None:
    """What all say, if it leaves nothing open."""
    first = found[0][1]
    closed = all(d.is_closed for d in first.dimensions)
    return first if closed and all(said == first for _, said in found) else None


def _constraints_of_carried(program: Program) -> Iterator[tuple[SSAValue, Operation]]:
    """What loops and branches carry is not bound by a constraint; all others that read the value read the constraint's
    result instead."""
    for value, found in _constraints(program).items():
        around = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        op = found[0][0]
        if type(around) in EDGES and isinstance(op, sdy.ShardingConstraintOp) and _agreed(found) is not None:
            yield value, op


def _returned(blocks: Sequence[Block], k: int) -> list[SSAValue]:
    return [block.last_op.operands[k] for block in blocks if block.last_op is not None]


def identity_rule(value: SSAValue, operands: int) -> ShardingRule:
    """The rule of what hands a value on: any number of operands, and a result, cut alike."""
    factors = tuple([Factor(size) for size in shape_of(value)])
    dims = tuple([(i,) for i in range(len(factors))])
    return ShardingRule(factors, (dims,) * operands, (dims,))
