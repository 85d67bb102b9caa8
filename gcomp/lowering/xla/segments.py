"""Cutting a program around its host steps: device parts, each a program of its own, and host steps between them.

Every op runs as early as its operands and the symbols in its types allow, so that what does not depend on a size that
data decides is compiled once. What costs nothing (constants, weights, sizes, how two compare, splats) is made anew in
each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.host import HostOp, symbols_in, symbols_of_op
from gcomp.ir.locations import where
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import Tensor, rank_of
from gcomp.ir.walking import inputs_of
from gcomp.lowering.xla.survey import callees


@dataclass(frozen=True)
class Part:
    """A device part: the values of the whole program that it takes and gives, and its ops as a program."""

    program: Program
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]


def cut(program: Program) -> list[Part | HostOp]:
    """The parts and host steps of a program, in order. Without host steps the program itself is the only part."""
    block = program.block
    if not any(isinstance(op, HostOp) for op in block.ops):
        return [Part(program, block.args, program.returned.operands)]
    stages = _Stages(program)
    steps: list[Part | HostOp] = []
    for stage in range(len(stages.ops)):
        if stages.exports[stage]:
            steps.append(_part(program, stages, stage))
        steps += stages.hosts[stage]
    return steps


@dataclass
class _Stages:
    """Which op runs in which stage: the device part `i`, then the host steps `i`, then the device part `i + 1`, ..."""

    program: Program
    ops: list[list[Operation]] = field(default_factory=list[list[Operation]])
    hosts: list[list[HostOp]] = field(default_factory=list[list[HostOp]])
    exports: list[dict[SSAValue, None]] = field(default_factory=list[dict[SSAValue, None]])
    """What each device part gives to others, in order."""
    of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Value -> the first stage that may use it; values that are made anew are in `free` instead."""
    made_in: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Value -> the device part that computes it."""
    free: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def __post_init__(self) -> None:
        block = self.program.block
        self.of.update(dict.fromkeys(block.args, 0))
        symbols = dict.fromkeys(symbols_in([arg.type for arg in block.args]), 0)
        self._grow(0)
        for op in block.ops:
            if op is not block.last_op:
                self._place(op, symbols)
        last = len(self.ops) - 1
        for value in self.program.returned.operands:
            self._want(value, last)

    def _grow(self, stage: int) -> None:
        while len(self.ops) <= stage:
            self.ops.append([])
            self.hosts.append([])
            self.exports.append({})

    def _place(self, op: Operation, symbols: dict[str, int]) -> None:
        reads = list(dict.fromkeys(inputs_of(op)))
        new = op.symbols - symbols.keys() if isinstance(op, HostOp) else frozenset[str]()
        if unknown := _mentioned_symbols(op) - new - symbols.keys():
            raise UnsupportedError(
                f"The size {', '.join(sorted(unknown))} is not a dimension of any input.",
                where=where(op),
                why="No host step before this op determines it.",
                fix="Fix the size when compiling, or rewrite the op that makes it.",
            )
        known = [symbols[name] for name in _mentioned_symbols(op) - new]
        stage = max([0, *known, *(self.of.get(v, self.free.get(v, 0)) for v in reads)])
        self._grow(stage)
        if not isinstance(op, HostOp) and _costs_nothing(op, self.free):
            self.free.update(dict.fromkeys(op.results, stage))
            return
        for value in reads:
            if isinstance(op, HostOp) or self.made_in.get(value, stage) != stage:
                self._want(value, stage)
        if isinstance(op, HostOp):
            self.hosts[stage].append(op)
            self._grow(stage + 1)
            self.of.update(dict.fromkeys(op.results, stage + 1))
            symbols.update(dict.fromkeys(new, stage + 1))
        else:
            self.ops[stage].append(op)
            self.of.update(dict.fromkeys(op.results, stage))
            self.made_in.update(dict.fromkeys(op.results, stage))

    def _want(self, value: SSAValue, stage: int) -> None:
        """Have `value` given by the part that computes it, or made anew in `stage`; host results need neither."""
        if value in self.free:
            self.exports[stage][value] = None
        elif value in self.made_in:
            self.exports[self.made_in[value]][value] = None


def _costs_nothing(op: Operation, free: dict[SSAValue, int]) -> bool:
    if isinstance(op, hlo.ConstantOp | WeightOp | DimOp | hlo.IotaOp):
        return True
    if isinstance(op, hlo.CompareOp):
        # A comparison of sizes: the branch that it decides has to see it (`deciding`).
        return not rank_of(op.result) and all(v in free for v in op.operands)
    return isinstance(op, hlo.BroadcastInDimOp | hlo.ReshapeOp | hlo.ConvertOp) and op.operands[0] in free


def _mentioned_symbols(op: Operation) -> frozenset[str]:
    """The symbols in the types and sizes of an op and its regions."""
    return frozenset(name for inner in op.walk() for name in symbols_of_op(inner))


def _part(program: Program, stages: _Stages, stage: int) -> Part:
    """The ops of a stage as a program that shares the weights."""
    ops, outputs = stages.ops[stage], list(stages.exports[stage])
    needed = dict.fromkeys(v for op in ops for v in inputs_of(op))
    inputs = [v for v in needed if v not in stages.free and stages.made_in.get(v) != stage]
    part = Program.empty([(f"v{i}", cast(Tensor, v.type)) for i, v in enumerate(inputs)])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, part.block.args, strict=True))
    for op in ops:
        for value in inputs_of(op):
            _remake(value, mapping, part.block)
        part.block.add_op(op.clone(mapping))
    for value in outputs:
        _remake(value, mapping, part.block)
    part.finish([(f"r{i}", mapping[v]) for i, v in enumerate(outputs)])
    part.module.body.block.add_ops(function.clone() for function in _called_functions(program, part.module))
    return Part(Program(part.module, program.weights), inputs, outputs)


def _remake(value: SSAValue, mapping: dict[SSAValue, SSAValue], block: Block) -> None:
    """Make a value that costs nothing in this part, unless it is there."""
    if value in mapping:
        return
    op = cast(OpResult, value).op
    for operand in op.operands:
        _remake(operand, mapping, block)
    block.add_op(op.clone(mapping))


def _called_functions(program: Program, module: ModuleOp) -> Iterable[FuncOp]:
    """The functions that the ops of a part reach."""
    functions = {f.sym_name.data: f for f in program.functions()}
    found: dict[str, FuncOp] = {}
    pending = [name for op in module.walk() for name in callees(op)]
    while pending:
        name = pending.pop()
        if name in functions and name not in found:
            found[name] = functions[name]
            pending += [inner for op in functions[name].walk() for inner in callees(op)]
    return found.values()
