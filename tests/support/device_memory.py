"""How much memory XLA takes on each device for a partitioned program, predicted from its ops.

Arguments and results are what they are. Of the rest, what XLA fuses into what reads it lies nowhere; other results lie
from the op that makes them to the last kernel that reads them, in multiples of 64 bytes. Collectives along a dimension
that is not the first work on copies in which it is, an exchange on its parts apart, and convolutions on kernels and
(mostly fused into what comes before) images with channels last. What is written over what it reads is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.work import Nominal
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import POINTWISE
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor

_LINE = 64
_POINTER = 8
"""Bytes of a place in the table of several results."""
_SPREAD = (*POINTWISE, hlo.BroadcastInDimOp, hlo.IotaOp, hlo.ConstantOp, hlo.SliceOp, hlo.DynamicSliceOp,
           hlo.ConcatenateOp, hlo.PadOp, hlo.ReverseOp, hlo.TransposeOp, hlo.GatherOp)  # fmt: skip
"""Ops that are computed again where they are read, if what reads them takes elements."""
_TAKING = (*_SPREAD, hlo.ReduceOp, hlo.ReshapeOp)
_NOWHERE = (hlo.ConstantOp, hlo.IotaOp, hlo.ReshapeOp)
_BRANCHING = (hlo.WhileOp, hlo.IfOp, hlo.CaseOp)

_COPIES: dict[type[Operation], Callable[[Any, Callable[[SSAValue], int]], int]] = {
    hlo.AllToAllOp: lambda op, size: size(op.operands[0]),
    hlo.AllGatherOp: lambda op, size: size(op.results[0]) if op.value("all_gather_dim") else 0,
    hlo.ReduceScatterOp: lambda op, size: size(op.operands[0]) if op.value("scatter_dimension") else 0,
    hlo.ConvolutionOp: lambda op, size: size(op.operands[1]) + size(op.operands[0]) // 2,
}
"""Op class -> bytes of the copies that it works on."""


def predicted_memory(program: Program) -> int:
    """Bytes on each device, at most at once, of a program that is one manual computation (pass `partition`)."""
    nominal = Nominal(program.ranges)
    (made,) = [op for op in program.block.ops if isinstance(op, sdy.ManualComputationOp)]
    last = made.block.last_op
    assert last is not None
    results = sum(map(nominal.bytes, last.operands))
    table = _POINTER * len(last.operands) if len(last.operands) > 1 else 0
    return sum(map(nominal.bytes, made.block.args)) + results + table + _Temporaries(made.block, nominal).peak()


class _Temporaries:
    """What lies in memory while a block runs, besides its arguments and results."""

    def __init__(self, block: Block, nominal: Nominal) -> None:
        self.block, self.nominal = block, nominal
        self.ops = [*block.ops]
        self.order = {op: i for i, op in enumerate(self.ops)}
        self.fused = {op for op in self.ops[:-1] if self._is_fused(op)}

    def peak(self) -> int:
        """The most bytes at once."""
        live = [self._inside(op) for op in self.ops]
        given = {_origin(value) for value in self.ops[-1].operands}
        for op in self.ops[:-1]:
            if op in self.fused or isinstance(op, _NOWHERE):
                continue
            for value in op.results:
                if is_tensor(value.type) and value not in given:
                    for i in range(self.order[op], self._end(value) + 1):
                        live[i] += max(1, -(-self.nominal.bytes(value) // _LINE)) * _LINE
        return max(live, default=0)

    def _inside(self, op: Operation) -> int:
        """What an op takes besides its operands and results: copies, and its regions."""
        if isinstance(op, _BRANCHING):
            return max(_Temporaries(block, self.nominal).peak() for region in op.regions for block in region.blocks)
        copies = _COPIES.get(type(op))
        return 0 if copies is None else copies(op, self.nominal.bytes)

    def _users(self, value: SSAValue) -> set[Operation]:
        """The ops of the block that read a value, through views of it."""
        found: set[Operation] = set()
        for use in value.uses:
            op = use.operation
            while op.parent is not self.block:
                around = op.parent_op()
                assert around is not None
                op = around
            found |= self._users(op.results[0]) if isinstance(op, hlo.ReshapeOp) else {op}
        return found

    def _is_fused(self, op: Operation) -> bool:
        users = {user for value in op.results for user in self._users(value)}
        return isinstance(op, _SPREAD) and bool(users) and all(isinstance(user, _TAKING) for user in users)

    def _end(self, value: SSAValue) -> int:
        """The place of the last kernel that reads a value, also through what is fused into it."""
        pending, seen, last = [value], set[Operation](), 0
        while pending:
            for user in self._users(pending.pop()):
                last = max(last, self.order[user])
                if user in self.fused and user not in seen:
                    seen.add(user)
                    pending += user.results
        return max(last, self.order[value.owner] if isinstance(value.owner, Operation) else 0)


def _origin(value: SSAValue) -> SSAValue:
    """What a value is a view of."""
    while isinstance(op := value.owner, hlo.ReshapeOp):
        value = op.operand
    return value


__all__ = ["predicted_memory"]
