"""The table of meanings: for each op class, a row that computes an op's results from its operands' values.

`MEANINGS` is the whole table. A row is a function of the op, the operand values and a `Scope`. Rows of ops that run
regions in their own frame (control flow, calls) are generators that yield what to run and get its results back, so
that neither a loop nor a chain of calls deepens Python's stack. Ops of pure array functions share one generic row:
the function of the op's name in `gcomp.reference.numpy`. Ops that are declared only have a reason in `UNMODELLED`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, VarOperandDef

from gcomp.errors import UnsupportedError
from gcomp.ir.locations import where
from gcomp.records import record
from gcomp.sharding import Mesh

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Value: TypeAlias = Any
"""What an SSA value holds at run time: an array, a token, or a tuple of values."""


class Token:
    """The value of a `!stablehlo.token`."""

    def __repr__(self) -> str:
        return "<token>"


TOKEN = Token()


class Entry(NamedTuple):
    """A block to run: its arguments, and the values of the enclosing blocks that it uses."""

    block: Block
    args: Sequence[Value]
    captured: Mapping[SSAValue, Value]


class Exchange(NamedTuple):
    """What a device comes to that all devices do together: an op, and the values that this device gives."""

    op: Operation
    args: Sequence[Value]


class Place(NamedTuple):
    """Which of several devices runs: one of `replicas`, and in it one of `partitions`."""

    replicas: int
    partitions: int
    replica: int
    partition: int


class Scope(Protocol):
    """What a row may ask of the interpreter that runs it."""

    @property
    def place(self) -> Place | None:
        """Which device this is; None where one program is run for all of them."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """The values of the symbolic dimensions."""
        ...

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        """The shape of a tensor value, symbols replaced by their values."""
        ...

    def dtype(self, value: SSAValue | Attribute) -> DType:
        """The dtype in which values of a tensor type are held."""
        ...

    def data(self, array: Array) -> Array:
        """A constant or weight in the dtype in which its values are held."""
        ...

    def weight(self, name: str, op: Operation) -> Array:
        """A weight of the program. InvalidModelError if there is none of that name."""
        ...

    def function(self, name: str, op: Operation) -> FuncOp:
        """A function of the module. InvalidModelError if there is none of that name."""
        ...

    def properties(self, op: Operation) -> Mapping[str, Any]:
        """The decoded properties of an op, its sizes evaluated and its structs splatted."""
        ...

    def bind(self, op: Operation, shapes: Sequence[tuple[int, ...]]) -> None:
        """Bind the symbols that the shapes of a host step's results determine, and check what they decide."""
        ...

    def write(self, line: str) -> None:
        """Give a line to whoever reads what the program prints."""
        ...

    def draw(self) -> int:
        """A number that no earlier call in this run returned: 0, 1, 2, ... (the seed of an implicit generator)."""
        ...

    def enter(self, region: Region, args: Sequence[Value] = ()) -> Entry:
        """The entry that runs a region of the op with these arguments."""
        ...

    def body(self, region: Region) -> Callable[..., list[Array]]:
        """The region as an elementwise function of arrays of one shape."""
        ...

    def meshes(self) -> Mapping[str, Mesh]:
        """The module's meshes by name."""
        ...

    def spread(self, op: Operation, region: Region, args: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """What a region gives on as many devices (partitions of one replica), each with its arguments."""
        ...


Request = Entry | Exchange
"""What a row in a frame of its own waits for."""
Row = Callable[[Any, Sequence[Value], Scope], "Sequence[Value] | Generator[Request, list[Value], Sequence[Value]]"]
R = TypeVar("R", bound=Row)


@record
class Meaning:
    """A row; `enters` tells the rows that are generators of entries from those that return results."""

    row: Row
    enters: bool = False
    elementwise: bool = False
    """Whether the op, on rank 0 tensors, may be run on arrays of one shape instead (rank 0 among them)."""


MEANINGS: dict[type[Operation], Meaning] = {}
"""Op class -> what it means."""

UNMODELLED: dict[type[Operation], str] = {}
"""Op class -> why it has no executable meaning (it parses, prints and verifies only)."""


def meaning(*ops: type[Operation], elementwise: bool = False) -> Callable[[R], R]:
    """Register a function as the row of op classes."""

    def register(row: R) -> R:
        for op in ops:
            MEANINGS[op] = Meaning(row, inspect.isgeneratorfunction(row), elementwise)
        return row

    return register


def declare_unmodelled(reason: str, *ops: type[Operation]) -> None:
    """Say why op classes have no executable meaning; running one raises UnsupportedError."""

    def refuse(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
        raise UnsupportedError(f"{op.name} has no reference meaning", where=where(op), why=reason)

    for op in ops:
        UNMODELLED[op] = reason
        MEANINGS[op] = Meaning(refuse)


# ---- the generic row ----------------------------------------------------------------------------------------------


def generic(function: Callable[..., Any]) -> Row:
    """The row that calls a function of `gcomp.reference.numpy`.

    Operands are positional (a variadic group is one sequence), properties are keywords of the same name; `shape` and
    `dtype` are the first result's, where the function takes them.
    """
    parameters = inspect.signature(function).parameters
    takes_shape, takes_dtype = "shape" in parameters, "dtype" in parameters

    def row(op: IRDLOperation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
        keywords = dict(scope.properties(op))
        keywords.pop("result_accuracy", None)  # bounds how far a backend may stray, and changes no meaning
        if takes_shape:
            keywords["shape"] = scope.shape(op.results[0])
        if takes_dtype:
            keywords["dtype"] = scope.dtype(op.results[0])
        results = function(*group_operands(op, args), **keywords)
        return cast("Sequence[Value]", results) if isinstance(results, (tuple, list)) else (results,)

    return row


def group_operands(op: IRDLOperation, args: Sequence[Value]) -> list[Value]:
    """The values of an op's operands, each variadic group as one list."""
    operands = _operands_of(type(op))
    if operands is None:
        return list(args)
    groups: list[Value] = []
    taken = 0
    for name, variadic in operands:
        if variadic:
            count = len(cast("Sequence[SSAValue]", getattr(op, name)))
            groups.append(list(args[taken : taken + count]))
            taken += count
        else:
            groups.append(args[taken])
            taken += 1
    return groups


@cache
def _operands_of(kind: type[IRDLOperation]) -> tuple[tuple[str, bool], ...] | None:
    """An op class's operands, and whether each is variadic; None where none is."""
    operands = tuple((name, isinstance(d, VarOperandDef)) for name, d in kind.get_irdl_definition().operands)
    return operands if any(variadic for _, variadic in operands) else None


def result_dtypes(region: Region, scope: Scope) -> list[DType]:
    """The dtypes of what a region returns."""
    terminator = region.block.last_op
    return [] if terminator is None else [scope.dtype(value) for value in terminator.operands]
