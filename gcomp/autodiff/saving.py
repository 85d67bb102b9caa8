"""What of the way forward the way back finds saved, and what it computes again: a minimum cut.

Between the inputs and what the backward ops read, each value can be cut: it is saved then, at the price of its bytes.
What lies behind the cut is computed again from what is saved, just before it is read. Only what is cheap runs twice:
elementwise ops, movement, broadcasts. The cut of least bytes is found by maximum flow, as AOTAutograd's partitioner
does it (torch/_functorch/partitioners.py).

What runs again is kept apart from what ran before by optimization barriers: else cse would make them one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import inputs_of

BytesOf = Callable[[SSAValue], int]

_FREE = frozenset({Role.GENERATOR, Role.SOURCE})
"""What is at hand anyway, or made of nothing."""

_MOST = 1 << 30
"""The greatest capacity: the flow counts in 32 bits."""


Save = Literal["least", "all"]
"""What the way back finds saved: the least bytes, or all that it reads."""


def saves_least(save: str) -> bool:
    """Whether a choice is `least`. UsageError for one that there is not."""
    if save not in get_args(Save):
        raise UsageError(f"there is no way to save {save!r}", fix=f"choose one of: {', '.join(get_args(Save))}")
    return save == "least"


@dataclass(frozen=True)
class Saving:
    """What was decided: values of the way forward that are kept for the way back, and what runs again.

    `needed_bytes` is what would be kept if nothing ran again. Values that are in memory anyway (inputs, weights,
    outputs) are in none of these.
    """

    saved: tuple[SSAValue, ...]
    again: tuple[Operation, ...]
    saved_bytes: int
    needed_bytes: int

    def text(self) -> str:
        """What was decided, for people."""
        return (
            f"saved for the way back: {len(self.saved)} values of {self.saved_bytes:,} bytes, "
            f"instead of {self.needed_bytes:,}; {len(self.again)} ops run again"
        )


def save_least(program: Program, backward: Sequence[Operation], bytes_of: BytesOf) -> Saving:
    """Have the backward ops of a program's block compute again what saves memory, and say what that is."""
    problem = _Cut(program, backward, bytes_of)
    saving = problem.least_cut()
    _Again(program, saving).run(backward)
    return saving


class _Cut:
    def __init__(self, program: Program, backward: Sequence[Operation], bytes_of: BytesOf) -> None:
        self._bytes_of = bytes_of
        self._block = program.block
        self._backward = set(backward)
        self._returned = set(program.returned.operands)
        self.needed = dict.fromkeys(v for op in backward for v in inputs_of(op) if not self._is_free(v))

    def _is_free(self, value: SSAValue) -> bool:
        """Whether a value costs nothing to keep: it is in memory anyway, or needs no memory, or is of the way back."""
        op = value.owner
        if isinstance(op, Block) or op in self._backward or op.parent is not self._block:
            return True
        return value in self._returned or role_of(op) in _FREE or not is_tensor(value.type)

    def least_cut(self) -> Saving:
        """The cut of least bytes."""
        numbers: dict[SSAValue, int] = {}
        edges: dict[tuple[int, int], int] = {}
        pending = list(self.needed)
        for value in pending:
            edges[2 + 2 * numbers.setdefault(value, len(numbers)) + 1, 1] = -1
        while pending:
            value = pending.pop()
            at = 2 + 2 * numbers[value]
            edges[at, at + 1] = max(1, self._bytes_of(value))
            op = value.owner
            assert isinstance(op, Operation)
            if not _may_run_again(op):
                edges[0, at] = -1
                continue
            for operand in op.operands:
                if self._is_free(operand):
                    continue
                if operand not in numbers:
                    numbers[operand] = len(numbers)
                    pending.append(operand)
                edges[2 + 2 * numbers[operand] + 1, at] = -1
        behind = _behind_cut(edges, 2 + 2 * len(numbers))
        values = list(numbers)
        saved = tuple(v for i, v in enumerate(values) if not behind[2 + 2 * i] and behind[2 + 2 * i + 1])
        again = {v.owner: None for i, v in enumerate(values) if behind[2 + 2 * i] and isinstance(v.owner, Operation)}
        needed = sum(self._bytes_of(v) for v in self.needed)
        return Saving(saved, tuple(again), sum(map(self._bytes_of, saved)), needed)


def _may_run_again(op: Operation) -> bool:
    return role_of(op) in PER_ELEMENT and not op.regions and is_side_effect_free(op)


def _behind_cut(edges: dict[tuple[int, int], int], count: int) -> Sequence[bool]:
    """Which nodes the minimum cut separates from node 0, the source; 1 is the sink, and -1 stands for no limit.

    Of cuts that are equal, it is the one next to the sink, behind which the least runs again.
    """
    sparse: Any = import_module("scipy.sparse")
    csgraph: Any = import_module("scipy.sparse.csgraph")
    total = sum(c for c in edges.values() if c > 0)
    scale = max(1, -(-total // (_MOST // 2)))
    limits = [_MOST if c < 0 else max(1, c // scale) for c in edges.values()]
    rows, columns = zip(*edges, strict=True) if edges else ((), ())
    graph = sparse.csr_array((np.asarray(limits, np.int32), (rows, columns)), shape=(count, count))
    flow = csgraph.maximum_flow(graph, 0, 1).flow
    residual = sparse.csr_array((graph - flow).T)
    residual.eliminate_zeros()
    found = np.zeros(count, np.bool_)
    found[csgraph.breadth_first_order(residual, 1, return_predecessors=False)] = True
    return found.tolist()


class _Again:
    """Copies what runs again to the way back, each op just before the first that reads it."""

    def __init__(self, program: Program, saving: Saving) -> None:
        self._b = Builder(program, InsertPoint.before(program.returned))
        self._order = {op: i for i, op in enumerate(program.block.ops)}
        self._again = set(saving.again)
        self._values: dict[SSAValue, SSAValue] = {}
        """Value -> its copy, or what bars it, on the way back."""

    def run(self, backward: Sequence[Operation]) -> None:
        """Have backward ops read copies."""
        for op in backward:
            values = [v for v in dict.fromkeys(inputs_of(op)) if v.owner in self._again]
            if not values:
                continue
            self._b.point = InsertPoint.before(op)
            for first in sorted(self._missing(values), key=self._order.__getitem__):
                self._copy(first)
            for inner in op.walk():
                inner.operands = [self._values[v] if v in values else v for v in inner.operands]

    def _missing(self, values: Sequence[SSAValue]) -> set[Operation]:
        """The ops to copy for values, those included that they need."""
        found = set[Operation]()
        pending = [v.owner for v in values if v not in self._values]
        while pending:
            op = pending.pop()
            if op in self._again and isinstance(op, Operation) and op not in found:
                found.add(op)
                pending += [v.owner for v in op.operands if v not in self._values]
        return found

    def _copy(self, op: Operation) -> None:
        operands = [self._values[v] if v.owner in self._again else self._put_behind_barrier(v) for v in op.operands]
        copy = op.clone(dict(zip(op.operands, operands, strict=True)))
        copy.location = op.location
        self._b.insert(copy)
        self._values.update(zip(op.results, copy.results, strict=True))

    def _put_behind_barrier(self, value: SSAValue) -> SSAValue:
        """A value that is kept, so that what is computed from it again differs from what was before."""
        if isinstance(value.owner, Operation) and role_of(value.owner) is Role.GENERATOR:
            return value
        if value not in self._values:
            self._values[value] = self._b.emit(hlo.OptimizationBarrierOp, value, types=(value.type,))
        return self._values[value]
