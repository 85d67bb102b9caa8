"""The kernels of a block as a problem of order: what `gcomp.memory` takes, and putting its answers into the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.liveness import block_peak, bytes_of
from gcomp.analysis.overwriting import Overwriting
from gcomp.dims import Ranges
from gcomp.ir.buffer import has_place, is_view
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.host import HostOp, symbols_in, symbols_of_op
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import captures
from gcomp.memory.graph import Graph, Node


@dataclass
class Flow:
    """The ops of a block as nodes. Sources and views are none: they cost nothing, and move with what they belong to."""

    block: Block
    ranges: Ranges
    donors: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Inputs that were given away: the results that replace them may lie in their memory."""
    ops: list[Operation] = field(init=False)
    binders: dict[str, int] = field(default_factory=dict[str, int])
    """The host steps that say what a symbol is: what is of such sizes comes after them."""
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """What lies in the arena, and is made in this block: views have their operand's number."""

    def __post_init__(self) -> None:
        last = self.block.last_op
        self.ops = [op for op in self.block.ops if op is not last and not _is_free(op)]
        known = symbols_in([argument.type for argument in self.block.args])
        for i, op in enumerate(self.ops):
            for name in op.symbols - known if isinstance(op, HostOp) else ():
                self.binders.setdefault(name, i)

    def graph(self) -> Graph:
        """The problem of order, at the largest sizes. Values without a bound weigh nothing: planning refuses them."""
        sizes: dict[int, int] = {}
        nodes: list[Node] = []
        for argument in self.donors:
            self.values[argument] = len(sizes)
            sizes[len(sizes)] = self._size(argument)
        given = frozenset(sizes)
        for op in self.block.ops:
            if is_view(op) and op.operands[0] in self.values:
                self.values[op.results[0]] = self.values[op.operands[0]]
            elif op is not self.block.last_op and not _is_free(op):
                nodes.append(self._node(op, sizes))
        returned = cast(Operation, self.block.last_op).operands
        outputs = frozenset(self.values[v] for v in returned if v in self.values)
        effects = [i for i, op in enumerate(self.ops) if not is_side_effect_free(op)]
        bound = [(n, i) for i, op in enumerate(self.ops) for n in sorted(self._bound_by(op)) if n != i]
        follow = (*pairwise(effects), *bound)
        return Graph(tuple(nodes), sizes, donated=given, outputs=outputs, must_follow=follow)

    def _bound_by(self, op: Operation) -> set[int]:
        """The host steps that bind symbols of an op."""
        if not self.binders:
            return set()
        return {self.binders[name] for inner in op.walk() for name in symbols_of_op(inner) if name in self.binders}

    def _size(self, value: SSAValue) -> int:
        return self.ranges.bounds(bytes_of(value))[1] or 0

    def _node(self, op: Operation, sizes: dict[int, int]) -> Node:
        reads = [self.values[v] for v in (*op.operands, *captures(op)) if v in self.values]
        made: list[int] = []
        for result in op.results:
            number = self.values[result] = len(sizes)
            placed = has_place(op) and is_tensor(result.type)
            sizes[number] = self._size(result) if placed else 0
            made.append(number)
        inner = [b for region in op.regions for b in region.blocks] if role_of(op) is Role.CONTROL else []
        workspace = max((block_peak(b, self.ranges) for b in inner), default=0)
        return Node(op.name, tuple(dict.fromkeys(reads)), tuple(made), workspace, self._reuses(op, sizes))

    def _reuses(self, op: Operation, sizes: dict[int, int]) -> tuple[tuple[int, int], ...]:
        pairs: list[tuple[int, int]] = []
        overwriting = Overwriting(op)
        for i, operand in enumerate(op.operands):
            number = self.values.get(operand)
            if number is not None:
                same = ((k, self.values[r]) for k, r in enumerate(op.results) if sizes[self.values[r]] == sizes[number])
                pairs += [(made, number) for k, made in same if overwriting.may(i, k)]
        return tuple(pairs)

    def lowers(self, sequence: Sequence[int]) -> bool:
        """Whether an order lowers the most bytes alive: what the problem of order says of donated inputs is near it."""
        before, given = block_peak(self.block, self.ranges, self.donors), list(self.block.ops)[:-1]
        self.reorder(sequence)
        after = block_peak(self.block, self.ranges, self.donors)
        self._put(given)
        return after < before

    def reorder(self, sequence: Sequence[int]) -> None:
        """Put the ops in an order, sources before all, each view after what it shows and what binds its symbols."""
        last = cast(Operation, self.block.last_op)
        free = [op for op in self.block.ops if op is not last and _is_free(op)]
        views: dict[SSAValue, list[Operation]] = {}
        early: list[tuple[Operation, set[Operation]]] = []
        ordered: dict[Operation, None] = {}

        def put(op: Operation) -> None:
            ordered[op] = None
            for view in [view for result in op.results for view in views.get(result, ())]:
                binders = {self.ops[n] for n in self._bound_by(view)}
                if binders <= ordered.keys():
                    put(view)
                else:
                    early.append((view, binders))
            for pair in [pair for pair in early if op in pair[1] and pair[1] <= ordered.keys()]:
                early.remove(pair)
                put(pair[0])

        inside = {r for op in (*free, *self.ops) for r in op.results}
        for op in free:
            if is_view(op) and op.operands[0] in inside:
                views.setdefault(op.operands[0], []).append(op)
        for op in (*[f for f in free if not is_view(f) or f.operands[0] not in inside],
                   *[self.ops[i] for i in sequence]):  # fmt: skip
            put(op)
        self._put([*ordered])

    def _put(self, ordered: Sequence[Operation]) -> None:
        last = cast(Operation, self.block.last_op)
        for op in ordered:
            op.detach()
            self.block.insert_op_before(op, last)


def _is_free(op: Operation) -> bool:
    return is_view(op) or (role_of(op) in (Role.SOURCE, Role.GENERATOR) and not op.operands)
