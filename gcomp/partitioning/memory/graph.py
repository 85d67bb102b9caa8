"""What XLA makes of a block on a processor, as far as memory is concerned: results, what reads them, copies between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from xdsl.ir import Attribute, Block, Operation, SSAValue

from gcomp.analysis.work import Nominal
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import APPROXIMATED, POINTWISE
from gcomp.ir.types import is_tensor, rank_of
from gcomp.ir.walking import captures

LINE = 64
"""Bytes: all that XLA puts into memory begins at a multiple of it."""
POINTER = 8
"""Bytes of a place in the table of several results."""

_MOVING = (hlo.BroadcastInDimOp, hlo.IotaOp, hlo.SliceOp, hlo.DynamicSliceOp, hlo.ConcatenateOp, hlo.PadOp,
           hlo.ReverseOp, hlo.TransposeOp)  # fmt: skip
_COSTLY = (*APPROXIMATED, hlo.DivideOp, hlo.RemainderOp)
_BRANCHING = (hlo.WhileOp, hlo.IfOp, hlo.CaseOp)


class Form(Enum):
    """What XLA does with a node: nothing, computes it element by element where it is read, computes it element by
    element and puts it into memory, or runs it by itself."""

    VIEW = auto()
    LOOP = auto()
    STORED = auto()
    ALONE = auto()


@dataclass(eq=False)
class Value:
    """Bytes that a node gives; an input has no node, and a constant no bytes."""

    bytes: int
    type: Attribute | None = None
    node: Node | None = None
    users: list[Node] = field(default_factory=list["Node"])

    @property
    def rank(self) -> int:
        return 0 if self.type is None or not is_tensor(self.type) else rank_of(self.type)


@dataclass(eq=False)
class Node:
    """An op as XLA has it, or a copy of `reads[0]` in another order of elements."""

    form: Form
    reads: Sequence[Value]
    results: Sequence[Value]
    costly: bool = False
    """Not computed twice."""
    spreads: bool = False
    """Reads an element several times."""
    pointwise: bool = False
    rewrites: bool = False
    """May write over what it reads first."""
    is_made: bool = False
    """Without operands of its own size: constants spread out, and numbers of places."""
    joins: bool = False
    """Puts several values side by side."""
    order: str = ""
    """A copy from the plain order of elements into another, which has this name."""
    back: bool = False
    """A copy from that order into the plain one."""
    blocks: Sequence[tuple[Block, bool]] = ()
    """What it runs inside, and whether that gives the next values of its arguments, in their places."""
    table: int = 0
    """Bytes of the table of its results, which nothing else uses."""

    def __post_init__(self) -> None:
        for value in self.results:
            value.node = self
        for value in self.reads:
            value.users.append(self)


class Graph:
    """The nodes of a block, in order; `rows` has what writes ops that are not nodes as they are."""

    def __init__(self, block: Block, nominal: Nominal, rows: Rows) -> None:
        self.nominal, self._rows = nominal, rows
        self.nodes: list[Node] = []
        self._values: dict[SSAValue, Value] = {}
        self.arguments = [self.value(v) for v in block.args]
        *ops, last = block.ops
        for op in ops:
            self._write(op)
        self.returned = [self.value(v) for v in last.operands]

    def value(self, v: SSAValue) -> Value:
        """What stands for a value; what no node gives is an input, or of the block around."""
        if v not in self._values:
            self._values[v] = Value(self._bytes(v), v.type)
        return self._values[v]

    def _bytes(self, v: SSAValue) -> int:
        return self.nominal.bytes(v) if is_tensor(v.type) else 0

    def _write(self, op: Operation) -> None:
        given = [Value(0 if isinstance(op, hlo.ConstantOp) else self._bytes(v), v.type) for v in op.results]
        if isinstance(op, hlo.ConstantOp):
            made = given
        elif (row := self._rows.get(type(op))) is not None:
            made = row(self, op, [self.value(v) for v in op.operands], given)
        else:
            made = self.add(_plain(op, [self.value(v) for v in (*op.operands, *captures(op))], given))
        self._values.update(zip(op.results, made, strict=True))

    def add(self, node: Node) -> Sequence[Value]:
        """The results of a node, which comes last."""
        self.nodes.append(node)
        return node.results

    def alone(self, reads: Sequence[Value], results: Sequence[Value], table: int = 0) -> Sequence[Value]:
        """The results of what XLA runs by itself."""
        return self.add(Node(Form.ALONE, reads, results, table=table))

    def viewed(self, value: Value) -> Value:
        """A value under another shape."""
        return self.add(Node(Form.VIEW, [value], [Value(value.bytes, value.type)]))[0]

    def copied(self, value: Value, order: str = "other", *, back: bool = False) -> Value:
        """A value in another order of elements; `back` from that order."""
        return self.add(Node(Form.LOOP, [value], [Value(value.bytes, value.type)], order=order, back=back))[0]


Rows = Mapping[type[Operation], Callable[[Graph, Any, Sequence[Value], Sequence[Value]], Sequence[Value]]]
"""Op class -> what writes it, of the graph, the op, its operands and its results, and gives the results."""


def _plain(op: Operation, reads: list[Value], results: list[Value]) -> Node:
    """The node of an op that XLA takes as it is."""
    if isinstance(op, hlo.ReshapeOp):
        return Node(Form.VIEW, reads, results)
    if isinstance(op, hlo.ReduceOp):
        # Sums along other dimensions than the last have code of their own.
        is_loop = len(results) == 1 and rank_of(op.operands[0]) - 1 in op.value("dimensions")
        return Node(Form.LOOP if is_loop else Form.ALONE, reads[: len(results)], results, costly=True)
    if isinstance(op, POINTWISE):
        return Node(Form.LOOP, reads, results, costly=isinstance(op, _COSTLY), pointwise=True)
    if isinstance(op, _MOVING):
        spread = isinstance(op, hlo.BroadcastInDimOp)
        return Node(
            Form.LOOP, reads, results, spreads=spread and results[0].bytes > reads[0].bytes,
            is_made=spread or isinstance(op, hlo.IotaOp), joins=isinstance(op, hlo.ConcatenateOp),
        )  # fmt: skip
    table = POINTER * len(results) if len(results) > 1 else 0
    if isinstance(op, _BRANCHING):
        loops = isinstance(op, hlo.WhileOp)
        blocks = [(b, loops and region is op.regions[-1]) for region in op.regions for b in region.blocks]
        return Node(Form.ALONE, reads, results, blocks=blocks, table=POINTER * len(reads) if loops else table)
    return Node(Form.ALONE, reads, results, table=table)


def origin(value: Value) -> Value:
    """What a value is a view of."""
    while value.node is not None and value.node.form is Form.VIEW:
        value = value.node.reads[0]
    return value


def readers(value: Value) -> Iterator[Node]:
    """The nodes that read a value, also through views; one may come twice."""
    for user in value.users:
        if user.form is Form.VIEW:
            yield from readers(user.results[0])
        else:
            yield user


__all__ = ["LINE", "POINTER", "Form", "Graph", "Node", "Rows", "Value", "origin", "readers"]
