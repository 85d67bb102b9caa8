"""Cutting a program of kernels around its host steps: stretches of kernels for the device, and host steps between them.

Kernels have places in one order already, so each runs where it stands. A value that is used beyond its stage leaves it
as an output, in memory of its own. What lies nowhere (constants, weights, positions) is made anew in each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from gcomp.ir.buffer import is_view
from gcomp.ir.host import HostOp
from gcomp.ir.program import Program
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.ir.walking import inputs_of


@dataclass
class Stage:
    """Ops that run on the device one after the other; the values of the program that they take and give."""

    ops: list[Operation] = field(default_factory=list[Operation])
    inputs: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])


def whole(program: Program) -> Stage:
    """The only stage of a program without host steps: it gives every result, also those that are inputs or the same."""
    ops = [op for op in program.block.ops if op is not program.returned]
    return Stage(ops, dict.fromkeys(program.block.args), [*program.returned.operands])


def stages(program: Program) -> list[Stage | HostOp]:
    """The stages and host steps of a program, in order; stages that give nothing are left out."""
    return _Cutting(program).steps()


class _Cutting:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._cut: list[Stage | HostOp] = [Stage()]
        self._made: dict[SSAValue, Stage] = {}
        """Value -> the stage that computes it; inputs and results of host steps are in none."""
        self._given = set[SSAValue](program.block.args)
        """Values that have memory of their own: inputs, results of host steps, and what stages give."""

    def steps(self) -> list[Stage | HostOp]:
        """Cut the program."""
        block = self._program.block
        for op in block.ops:
            if op is block.last_op:
                break
            if isinstance(op, HostOp):
                self._want(op.operands)
                self._cut += [op, Stage()]
                self._given.update(op.results)
            else:
                self._place(op)
        self._want(self._program.returned.operands)
        return [step for step in self._cut if isinstance(step, HostOp) or step.outputs]

    @property
    def _stage(self) -> Stage:
        last = self._cut[-1]
        assert isinstance(last, Stage)
        return last

    def _place(self, op: Operation) -> None:
        self._stage.ops.append(op)
        if _lies_nowhere(op):
            return
        for value in inputs_of(op):
            self._use(value)
        self._made.update(dict.fromkeys(op.results, self._stage))

    def _use(self, value: SSAValue) -> None:
        """Have a value at hand in the stage that is being filled."""
        if (maker := self._made.get(value)) is self._stage:
            return
        if maker is not None:
            self._give(value, maker)
        if value in self._given:
            self._stage.inputs[value] = None
        elif maker is None and isinstance(op := value.owner, Operation):
            # It lies nowhere: the stage computes it from what it is made of.
            for operand in op.operands:
                self._use(operand)

    def _want(self, values: Sequence[SSAValue]) -> None:
        """Have values given to the host; what lies nowhere is written down by the stage before."""
        for value in values:
            if value not in self._made and value not in self._given:
                self._use(value)
            self._give(value, self._made.get(value, self._stage))

    def _give(self, value: SSAValue, maker: Stage) -> None:
        if value not in self._given:
            self._given.add(value)
            maker.outputs.append(value)


def _lies_nowhere(op: Operation) -> bool:
    """Whether an op between kernels is computed wherever its result is needed."""
    if is_view(op):
        owner = op.operands[0].owner
        return isinstance(owner, Operation) and _lies_nowhere(owner)
    return role_of(op) is Role.SOURCE or role_of(op) in PER_ELEMENT
