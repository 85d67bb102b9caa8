"""Operations as a program: a builder that knows what is in scope, where values come from, and what a result needs.

A trace grows; `extract` makes a program of the part of it that computes some of its values.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from gcomp.dims import Constraint, Size, symbols_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import locations
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import INLINE_BYTES, Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.types import Tensor as TensorType
from gcomp.ir.types import shape_of, tensor_of
from gcomp.ir.walking import captures, walk
from gcomp.tensors.eager import Array, Known
from gcomp.tensors.site import SITE, where_here

Value: TypeAlias = SSAValue
"""What a tensor stands for in a program."""
Argument: TypeAlias = BlockArgument
"""A value that is an input of a trace."""


class Trace(Builder):
    """Collects ops, each with the user's line. While it is open, all operations of the thread go into it."""

    kind = "trace"

    def __init__(self) -> None:
        super().__init__(Program.empty([]))
        self._blocks: list[Block] = [self.program.block]
        self._weights: dict[int, tuple[Known, str]] = {}
        self._owners: list[Operation] = []
        """For each constraint, an op that needs it."""
        self.closed = False
        """Whether the trace has ended, so that its values mean nothing any more."""

    @contextmanager
    def open(self) -> Generator[None]:
        """Trace what runs inside of the `with`."""
        if self.closed:
            raise leak_error(self.kind)
        OPEN.traces.append(self)
        try:
            yield
        finally:
            OPEN.traces.pop()

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        self._blocks.append(block)
        try:
            with super().inside(block):
                yield
        finally:
            self._blocks.pop()

    def insert(self, op: Operation) -> Operation:
        op.location = SITE.location or locations.UNKNOWN
        if isinstance(op, GraphOp):
            GraphOp.verify_(op)  # constraints and types; the form is the builder's
        super().insert(op)
        self._owners += [op] * (len(self.constraints) - len(self._owners))
        return op

    def broadcast_shape(self, *shapes: Sequence[Size]) -> tuple[Size, ...]:
        with self.at(SITE.location or locations.UNKNOWN):  # what constraints are said to come from
            return super().broadcast_shape(*shapes)

    # ---- values from outside ----

    def add_input(self, type: TensorType) -> BlockArgument:
        """One more input."""
        block = self.program.block
        return block.insert_arg(type, len(block.args))

    def admit(self, value: SSAValue) -> SSAValue:
        """A value, if it may be used here: one of this trace that is in scope, or an array from outside of it."""
        if isinstance(value, Known):
            return self.outside(value)
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        if block not in self._blocks:
            raise UsageError(
                "a value is used outside of the branch or loop body that computes it",
                where=where_here(),
                why=f"it was made at {locations.describe(location_of(value)) or 'an unknown line'}",
                fix="return it from the branch or body",
            )
        return value

    def outside(self, value: Known) -> SSAValue:
        """An array that was there before the trace: a constant of it."""
        if value.array.nbytes <= INLINE_BYTES:
            return self.constant(value.array)
        if id(value) not in self._weights:
            self._weights[id(value)] = (value, self.program.weights.add("constant", value.array))
        # Read anew for each use: the first may be inside a region that the others do not see.
        return self.read_weight(self._weights[id(value)][1])

    def refuse_reading(self, value: SSAValue, what: str) -> None:
        """Called where Python wants to know a value while this trace is open. Raises for what only a run knows."""

    def made(self, name: str, values: Sequence[Any]) -> None:
        """Called with the tensors that an operation gave, in the user's own code."""

    def refuse_regions(self) -> None:
        """Raises UnsupportedError inside of a region."""
        if len(self._blocks) > 1:
            raise UnsupportedError(
                "this belongs outside of branches and loop bodies", where=where_here(), fix="compute it around them"
            )

    # ---- programs ----

    def missing(self, outputs: Sequence[SSAValue], given: Sequence[SSAValue]) -> list[BlockArgument]:
        """The inputs of the trace that outputs depend on, other than through given values."""
        needed = _needed_values(outputs, given)
        return [arg for arg in self.program.block.args if arg in needed and arg not in given]

    def extract(
        self,
        inputs: Sequence[tuple[str, SSAValue]],
        outputs: Sequence[tuple[str, SSAValue]],
        fixed: Mapping[SSAValue, tuple[str, Array]] | None = None,
        prints: Literal["none", "needed", "all"] = "none",
    ) -> Program:
        """The program that computes `outputs` from `inputs`, which are any values of the trace's own block.

        `fixed` values become weights, with their names and elements. No input may be missing. `prints` says which of
        these come with it: those of values that are `needed` anyway, or `all`.
        """
        constant = fixed or {}
        given = [*(v for _, v in inputs), *constant]
        needed = _needed_values([v for _, v in outputs], given)
        printing = [op for op in self.program.block.ops if prints != "none" and _prints(op)]
        if prints == "all":
            needed |= _needed_values([v for op in printing for v in (*op.operands, *captures(op))], given)
        program = Program.empty([(name, tensor_of(value)) for name, value in inputs])
        mapping: dict[SSAValue, SSAValue] = {
            value: arg for (_, value), arg in zip(inputs, program.block.args, strict=True)
        }
        builder = Builder(program)
        for value, (name, array) in constant.items():
            if value in needed:
                mapping[value] = builder.weight(name, array)
        ops = {value.op for value in needed if isinstance(value, OpResult) and value not in mapping}
        ops |= {op for op in printing if needed.issuperset((*op.operands, *captures(op)))}
        for op in self.program.block.ops:
            if op in ops:
                program.block.add_op(op.clone(mapping))
        program.finish([(name, mapping[value]) for name, value in outputs])
        _bring(self.program, program)
        symbols = {s for _, value in inputs for size in shape_of(value) for s in symbols_of(size)}
        functions = {f.sym_name.data for f in program.functions()}
        program.constraints = [c for c in self._constraints(ops, functions) if c.symbols <= symbols]
        program.verify("as traced")
        return program

    def inline(self, program: Program, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """The results of a program, copied to the end of the trace's own block."""
        self.refuse_regions()
        names = {name: self._adopt(program, name) for name in program.weights}
        functions = {f.sym_name.data: f for f in program.functions() if f is not program.main}
        symbols = {name: self._symbol(name, function) for name, function in functions.items()}
        mapping: dict[SSAValue, SSAValue] = dict(zip(program.block.args, arguments, strict=True))
        copies = [op.clone(mapping) for op in program.block.ops if op is not program.returned]
        self.program.block.add_ops(copies)
        for inner in [op for copy in copies for op in walk(copy)]:
            _rename(inner, {**names, **symbols})
        for name, symbol in symbols.items():
            if self.program.function(symbol) is None:
                copy = functions[name].clone()
                copy.sym_name = StringAttr(symbol)
                for inner in walk(copy):
                    _rename(inner, {**names, **symbols})
                self.program.module.body.block.add_op(copy)
        return [mapping.get(value, value) for value in program.returned.operands]

    def _adopt(self, program: Program, name: str) -> str:
        """The name here of another program's weight."""
        array, own = program.weights[name], self.program.weights
        return name if name in own and own[name] is array else own.add(name, array)

    def _symbol(self, name: str, function: FuncOp) -> str:
        """The name here of another program's function: its own, where that is free or a function alike has it."""
        symbol, count = name, 0
        while (own := self.program.function(symbol)) is not None and not _alike(own, function):
            symbol, count = f"{name}_{count}", count + 1
        return symbol

    def _constraints(self, ops: set[Operation], functions: set[str]) -> Iterator[Constraint]:
        """The constraints that ops of the trace's own block, or those of functions, brought up."""
        for constraint, op in zip(self.constraints, self._owners, strict=False):
            outer = op
            while outer.parent is not self.program.block and not isinstance(outer, FuncOp):
                if (parent := outer.parent_op()) is None:
                    break
                outer = parent
            if outer in ops or (isinstance(outer, FuncOp) and outer.sym_name.data in functions):
                yield constraint


class Open(threading.local):
    """The traces that are open in this thread, the innermost last."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


OPEN = Open()


def _alike(a: FuncOp, b: FuncOp) -> bool:
    return str(a.body) == str(b.body) and a.function_type == b.function_type


def _rename(op: Operation, names: Mapping[str, str]) -> None:
    """Let an op name weights and functions as they are called here."""
    for key in ("weight", "decomposition", "callee"):
        if isinstance(attr := op.properties.get(key), SymbolRefAttr):
            op.properties[key] = SymbolRefAttr(names.get(attr.root_reference.data, attr.root_reference.data))


def location_of(value: SSAValue) -> Any:
    """Where a value was made."""
    return value.op.location if isinstance(value, OpResult) else locations.UNKNOWN


def _prints(op: Operation) -> bool:
    return any(isinstance(inner, PrintOp) for inner in walk(op))


def _needed_values(outputs: Sequence[SSAValue], given: Sequence[SSAValue]) -> set[SSAValue]:
    """The values that outputs depend on, themselves among them; what given values depend on is left out."""
    stops, seen = set(given), set[SSAValue]()
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if value not in stops and isinstance(value, OpResult):
                pending += [*value.op.operands, *captures(value.op)]
    return seen


def _bring(source: Program, target: Program) -> None:
    """Bring the functions and weights that a program's ops name."""
    functions = {f.sym_name.data: f for f in source.functions()}
    pending = list(target.ops())
    while pending:
        op = pending.pop()
        name = None
        if isinstance(op, WeightOp) and op.symbol not in target.weights:
            target.weights.add(op.symbol, source.weights[op.symbol])
        elif isinstance(op, hlo.CompositeOp):
            name = op.decomposition_name
        elif isinstance(op, CallOp):
            name = op.callee.root_reference.data
        if name is not None and target.function(name) is None:
            copy = functions[name].clone()
            target.module.body.block.add_op(copy)
            pending += walk(copy)


def leak_error(kind: str) -> UnsupportedError:
    """The error for a value of a trace that has ended, or of another one."""
    return UnsupportedError(
        f"a value of one {kind} is used in another place",
        where=where_here(),
        why="it stands for a result of a run, which only the operations of its own trace can use",
        fix="return it as a result, and use what a call or `Session.run` gives",
    )
