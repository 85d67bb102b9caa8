"""A program as a problem: nodes that choose how they are cut, and edges along which layouts may have to change.

A node is an argument, a weight, or an op that is cut in some way (`strategies`). Elementwise ops choose nothing: they
follow an operand, whose layout, by dimension, is theirs; the other operands have to come in that layout. Constants, and
what is computed from constants alone, are made where they are needed, in any layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, OpResult, SSAValue

from gcomp.analysis.work import Nominal
from gcomp.ir import chlo, sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import POINTWISE
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, rank_of, shape_of
from gcomp.ir.walking import inputs_of
from gcomp.partitioning.search.layouts import WHOLE, Layout, Network, Sent, Steps, cut_of_layout, layouts_of, pieces
from gcomp.partitioning.search.strategies import Strategy, strategies_of

FOLLOWING = (*POINTWISE, hlo.TransposeOp, hlo.OptimizationBarrierOp, sdy.ShardingConstraintOp, sdy.ReshardOp)
MAKERS = (hlo.ConstantOp, hlo.IotaOp, chlo.ConstantOp)
KEEPERS = (*POINTWISE, hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.TransposeOp, hlo.SliceOp)
"""Ops that make constants, and those that make constants of constants: each device may compute any part."""


@dataclass(eq=False)
class Node:
    """What is cut in one of several ways. `followers` are seconds of ops that follow it, on one device, uncut."""

    value: SSAValue
    op: Operation | None
    choices: list[Strategy]
    following: float = 0.0
    """Seconds, on one device and uncut, of the ops that follow its first result."""

    def seconds(self, choice: Strategy, network: Network) -> float:
        """How long it takes, with all that follows it."""
        return choice.seconds + self.following / pieces(choice.results[0], network.mesh)

    @property
    def is_input(self) -> bool:
        """Whether it is an argument or a weight."""
        return self.op is None or isinstance(self.op, WeightOp)

    @property
    def signature(self) -> str:
        """What nodes have in common that are cut alike: the op with its properties, and all types."""
        if self.op is None:
            return f"input {self.value.type}"
        properties = " ".join(f"{k}={v}" for k, v in sorted(self.op.properties.items()) if k != "weight")
        types = [v.type for v in (*self.op.operands, *self.op.results)]
        return f"{self.op.name} {properties} {' '.join(map(str, types))}"


@dataclass(frozen=True)
class Place:
    """Where a value's layout comes from: a node's result, and for each dimension of the value that of the result."""

    node: Node
    result: int
    dims: tuple[int, ...]

    def layout(self, choice: Strategy) -> Layout:
        """The layout of the value where the node chooses so."""
        return tuple([self.dims.index(d) if d in self.dims else WHOLE for d in choice.results[self.result]])


@dataclass(frozen=True, eq=False)
class Edge:
    """A value that a node takes: as an operand of its op, or in the layout of one of its own results."""

    value: SSAValue
    source: Place
    target: Node
    operand: int | Place
    user: Operation
    """The op that takes it, as an operand or in its regions: the target's own, or one that follows it."""

    def wanted(self, choice: Strategy) -> Layout:
        """The layout that is needed where the target chooses so."""
        return choice.operands[self.operand] if isinstance(self.operand, int) else self.operand.layout(choice)

    @property
    def label(self) -> str:
        """What alike edges have in common."""
        at = (
            f"operand {self.operand}" if isinstance(self.operand, int) else f"{self.operand.result} {self.operand.dims}"
        )
        return f"{self.value.type} {self.source.result} {self.source.dims} {at}"


@dataclass
class Problem:
    """The nodes and edges of a program, and where each value's layout comes from."""

    program: Program
    network: Network
    nominal: Nominal
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])

    @staticmethod
    def of(program: Program, network: Network) -> Problem:
        """The problem of a program's main function."""
        found = Problem(program, network, Nominal(program.ranges))
        for argument in program.block.args:
            found._input(argument, None)
        for op in program.block.ops:
            found._op(op)
        return found

    def _input(self, value: SSAValue, op: Operation | None) -> None:
        if not is_tensor(value.type):
            return
        shape = shape_of(value)
        sizes = [s for s in shape if isinstance(s, int)]
        layouts = layouts_of(sizes, self.network.mesh) if len(sizes) == len(shape) else [self._whole]
        self._add(Node(value, op, [Strategy((), (layout,), 0.0) for layout in layouts]), [value])

    @property
    def _whole(self) -> Layout:
        return (WHOLE,) * len(self.network.mesh.axes)

    def _add(self, node: Node, results: Sequence[SSAValue]) -> None:
        self.nodes.append(node)
        for k, value in enumerate(results):
            if is_tensor(value.type):
                self.places[value] = Place(node, k, tuple(range(rank_of(value))))

    def _op(self, op: Operation) -> None:
        if not op.results or self._is_made(op):
            return
        if isinstance(op, WeightOp):
            self._input(op.result, op)
            return
        if isinstance(op, FOLLOWING) and (leader := self._leader(op)) is not None:
            self._follow(op, leader)
            return
        node = Node(op.results[0], op, strategies_of(op, self.network, self.nominal))
        self._add(node, op.results)
        for k, value in enumerate(inputs_of(op)):
            self._edge(value, node, k, op)

    def _is_made(self, op: Operation) -> bool:
        """Whether it is computed from constants alone, which have no place."""
        return isinstance(op, MAKERS) or (isinstance(op, KEEPERS) and not any(v in self.places for v in op.operands))

    def _leader(self, op: Operation) -> SSAValue | None:
        """The operand that a result follows: the latest of its rank that an op gives, or an input."""
        found = [v for v in op.operands if v in self.places and rank_of(v) == rank_of(op.results[0])]
        given = [v for v in found if self.places[v].node.op is not None]
        return (given or found or [None])[-1]

    def _follow(self, op: Operation, leader: SSAValue) -> None:
        place = self.places[leader]
        dims: Sequence[int] = place.dims
        if isinstance(op, hlo.TransposeOp):
            order: tuple[int, ...] = op.value("permutation")
            dims = [place.dims[k] for k in order]
        own = Place(place.node, place.result, tuple(dims))
        if isinstance(op, hlo.OptimizationBarrierOp):
            pairs = zip(op.operands, op.results, strict=True)
            self.places.update((result, self.places[v]) for v, result in pairs if v in self.places)
            return
        self.places[op.results[0]] = own
        place.node.following += self.nominal.bytes(op.results[0]) / self.network.devices.bandwidth
        for value in op.operands:
            if value is not leader and value in self.places and rank_of(value):
                self._edge(value, place.node, own, op)

    def _edge(self, value: SSAValue, node: Node, operand: int | Place, user: Operation) -> None:
        source = self.places.get(value)
        if source is not None and rank_of(value):
            self.edges.append(Edge(value, source, node, operand, user))

    def sending(self, value: SSAValue, given: Layout, wanted: Layout) -> tuple[Sent, ...]:
        """What brings a value from one layout into another."""
        return self.network.reshards(given, wanted, shape_of(value), self.nominal.bytes(value))

    def moves(self, value: SSAValue, given: Layout, wanted: Layout) -> Iterator[tuple[Steps, Sent]]:
        """What brings a value from one layout into another, each message with all steps up to it."""
        shape, mesh = shape_of(value), self.network.mesh
        old, new = (cut_of_layout(layout, len(shape), mesh) for layout in (given, wanted))
        return self.network.moves(old, new, shape, self.nominal.bytes(value))

    # ---- memory ----

    def lifetimes(self) -> Iterator[tuple[SSAValue, int, int]]:
        """(value, when it is made, when it is last used) of all that lie in memory, counted in ops; inputs stay."""
        order = {op: i for i, op in enumerate(self.program.block.ops)}
        end = len(order)
        for value, place in self.places.items():
            if place.node.is_input and value is place.node.value:
                yield value, 0, end
            elif isinstance(value, OpResult) and not self._is_fused(value):
                uses = [order[use.operation] for use in value.uses if use.operation in order]
                yield value, order[value.op], max(uses, default=order[value.op])

    def _is_fused(self, value: OpResult) -> bool:
        """Whether a value never lies in memory: an elementwise op gives it to another one alone."""
        users = {use.operation for use in value.uses}
        cheap = (*FOLLOWING, hlo.BroadcastInDimOp, hlo.ReshapeOp)
        return isinstance(value.op, cheap) and len(users) == 1 and isinstance(next(iter(users)), (*cheap, hlo.ReduceOp))
