"""Numbers that change from call to call and are no size of an input: Python's ints, and what `item()` reads.

torch has a symbol for each. Where a symbol is a size of some tensor of the program, the call has to bind it: for an int
by an empty input of that size, for what is read from data by a host step. Everywhere else it is data like any other,
and the program is compiled once for all values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp import dims
from gcomp.dims import Dim, Range, Size
from gcomp.errors import UnsupportedError
from gcomp.ir import locations
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.host import HostOp, symbols_of_op
from gcomp.ir.native import DimOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, tensor

READ_FROM_DATA = frozenset(("aten::_local_scalar_dense", "aten::item"))
"""Operators whose result is a number that data hold."""


@dataclass(frozen=True)
class Given:
    """An input of the program that stands for a number: as data, or as the size of a tensor without elements."""

    symbol: str
    sign: int
    """1 for a size, -1 for a number below 0 whose negative is the size, 0 for data."""


class Numbers:
    """The numbers of one import."""

    def __init__(self, builder: Builder) -> None:
        self._b = builder
        self._read: dict[str, tuple[SSAValue, str]] = {}

    def read(self, symbol: Size, value: SSAValue, where: str) -> None:
        """Note that a symbol is what `value` (rank 0, i64) holds."""
        if not isinstance(symbol, Dim) or str(symbol) not in dims.symbols_of(symbol):
            raise UnsupportedError(f"the number {symbol} is read from data", where=where, why="it is no plain symbol")
        self._read[str(symbol)] = value, where

    def fresh(self, most: Size) -> Dim:
        """A symbol, of 0 to `most`, for a size that a host step binds and torch has no symbol for."""
        program = self._b.program
        count = 0
        while f"m{count}" in program.ranges:
            count += 1
        limit = program.ranges.bounds(most)[1] if isinstance(most, Dim) else most
        program.ranges = program.ranges.with_ranges({f"m{count}": Range(0, limit)})
        return dims.symbol(f"m{count}")

    def settle(self, ints: Iterable[str]) -> list[Given]:
        """Bind all numbers, or make data of them; the inputs that the program has for the symbols `ints`, in order."""
        program = self._b.program
        sizes = _symbols_of_sizes(program.ops())
        for symbol, (value, where) in self._read.items():
            if symbol in sizes:
                self._bind(symbol, value, where)
        given: list[Given] = []
        values = {symbol: value for symbol, (value, _) in self._read.items() if symbol not in sizes}
        mentioned = sizes | _symbols_of_values(program.ops())
        for symbol in ints:
            sign = -1 if program.ranges[symbol].lo < 0 else 1
            if symbol in sizes:
                program.add_input(f"{symbol}_size", tensor((sign * dims.symbol(symbol), 0), "i1"))
            elif symbol in mentioned:
                values[symbol] = program.add_input(f"{symbol}_value", tensor((), "i64"))
            if symbol in mentioned:
                given.append(Given(symbol, sign if symbol in sizes else 0))
        if values:
            self._compute(values)
        return given

    def _bind(self, symbol: str, value: SSAValue, where: str) -> None:
        owner, block = value.owner, self._b.program.block
        if owner is not block and (isinstance(owner, Block) or owner.parent_block() is not block):
            raise UnsupportedError(
                "a size depends on data inside of a loop or a branch",
                where=where, fix="read it outside of the loop or branch",
            )  # fmt: skip
        inner = isinstance(owner, Operation)
        b = Builder(self._b.program, InsertPoint.after(owner) if inner else InsertPoint.at_start(block))
        with b.at(owner.location if inner else locations.UNKNOWN):
            config = {"role": f"number read at {where}, which is used as a size"}
            one = b.reshape(value, (1,))
            types = (tensor((dims.symbol(symbol), 0), "i1"),)
            b.emit_all(HostOp, one, types=types, function="extents", config=config)

    def _compute(self, values: Mapping[str, SSAValue]) -> None:
        """Compute with these symbols' values instead of reading them as sizes."""
        for op in [op for op in self._b.program.ops() if isinstance(op, DimOp)]:
            if dims.symbols_of(op.formula).isdisjoint(values):
                continue
            b = Builder(self._b.program, InsertPoint.before(op))
            with b.at(op.location):
                found = b.convert(size_value(b, op.formula, values), element_of(op.result))
            op.result.replace_all_uses_with(found)
            Rewriter.erase_op(op)


def _symbols_of_sizes(ops: Iterable[Operation]) -> frozenset[str]:
    """The symbols that are sizes of tensors, or attributes of ops."""
    return frozenset(name for op in ops if not isinstance(op, DimOp) for name in symbols_of_op(op))


def symbols_of_program(program: Program) -> frozenset[str]:
    """The symbols that a program mentions."""
    inputs = frozenset(name for port in program.inputs() for size in port.shape for name in dims.symbols_of(size))
    return inputs | _symbols_of_sizes(program.ops()) | _symbols_of_values(program.ops())


def _symbols_of_values(ops: Iterable[Operation]) -> frozenset[str]:
    return frozenset(name for op in ops if isinstance(op, DimOp) for name in dims.symbols_of(op.formula))


def size_value(b: Builder, size: Size, values: Mapping[str, SSAValue]) -> SSAValue:
    """A formula of sizes in i64, computed from the values of some of its symbols (rank 0, i64)."""
    if dims.symbols_of(size).isdisjoint(values):
        return b.dim(size)
    total: SSAValue | None = None
    for monomial, coefficient in dims.terms_of(size):
        term = b.constant(coefficient, "i64")
        for atom, exponent in monomial:
            factor = _atom_value(b, atom, values)
            for _ in range(exponent):
                term = b.multiply(term, factor)
        total = term if total is None else b.add(total, term)
    return b.constant(0, "i64") if total is None else total


def _atom_value(b: Builder, atom: dims.Atom, values: Mapping[str, SSAValue]) -> SSAValue:
    if not atom.args:
        return values[atom.head] if atom.head in values else b.dim(dims.symbol(atom.head))
    found, *others = [size_value(b, part, values) for part in atom.args]
    for other in others:
        found = _FUNCTIONS[atom.head](b, found, other)
    return found


def _extreme(op: type[GraphOp]) -> Callable[[Builder, SSAValue, SSAValue], SSAValue]:
    return lambda b, x, y: b.emit(op, x, y)


def _modulo(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """What Python's floor division leaves: 0, or of the divisor's sign."""
    rest, zero = b.emit(hlo.RemainderOp, x, y), b.constant(0, "i64")
    differs = b.compare(b.compare(rest, zero, "LT"), b.compare(y, zero, "LT"), "NE")
    moved = b.emit(hlo.AndOp, b.compare(rest, zero, "NE"), differs)
    return b.select(moved, b.add(rest, y), rest)


def _floor(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.divide(b.subtract(x, _modulo(b, x, y)), y)


_FUNCTIONS: Mapping[str, Callable[[Builder, SSAValue, SSAValue], SSAValue]] = {
    "floordiv": _floor, "mod": _modulo, "max": _extreme(hlo.MaximumOp), "min": _extreme(hlo.MinimumOp),
}  # fmt: skip
