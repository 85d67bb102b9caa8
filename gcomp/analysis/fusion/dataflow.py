"""The ops of one block as a graph, with what fusion asks of each: role, maps, sizes in nominal elements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing import rows as rows  # fills the table
from gcomp.analysis.indexing.maps import IndexingMap, is_pointwise
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import operand_maps
from gcomp.analysis.work import Nominal, anchor_flops, element_bytes, flops_per_element
from gcomp.ir import stablehlo as hlo
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.forms import op_form
from gcomp.ir.host import HostOp, symbols_of_op
from gcomp.ir.roles import PER_ELEMENT, Role, role_of
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ir.walking import captures

GENERATED_FLOPS = 16
"""What computes an element from its position alone, in at most so many flops, is computed again where it is read."""

_FIXED = frozenset({Role.CONTROL, Role.EFFECT, Role.SOURCE, Role.REINTERPRETATION})


class Read(NamedTuple):
    """An operand of an op. Sizes are nominal, and 0 of what is no tensor."""

    value: int
    """The value's number: reads of one value have the same."""
    producer: int
    """The op of the block that computes it, or -1."""
    elements: int
    element_bytes: int


class Dataflow:
    """The ops of a block, by their position in it. The block must not change meanwhile."""

    def __init__(self, block: Block, nominal: Nominal) -> None:
        self.ops: list[Operation] = live_ops(block)
        """In order, without the terminator and what it does not depend on."""
        self.nominal = nominal
        self.roles: list[Role] = [role_of(op) for op in self.ops]
        self.combines: list[bool] = [role not in PER_ELEMENT for role in self.roles]
        """Whether an op combines elements, and so decides of what kind its kernel is."""
        self.producer: dict[SSAValue, int] = {v: i for i, op in enumerate(self.ops) for v in op.results}
        self.reads: list[tuple[SSAValue, ...]] = [(*op.operands, *captures(op)) for op in self.ops]
        self.readers: dict[SSAValue, list[int]] = {}
        """The ops that read each value, in order."""
        self.users: list[list[int]] = [[] for _ in self.ops]
        for i, values in enumerate(self.reads):
            for v in dict.fromkeys(values):
                self.readers.setdefault(v, []).append(i)
            for p in dict.fromkeys(self.producer[v] for v in values if v in self.producer):
                self.users[p].append(i)
        last = block.last_op
        returned: Sequence[SSAValue] = () if last is None else last.operands
        self.returned: set[int] = {self.producer[v] for v in returned if v in self.producer}
        effects = [i for i, op in enumerate(self.ops) if not is_side_effect_free(op)]
        self.after: dict[int, set[int]] = {later: {sooner} for sooner, later in pairwise(effects)}
        """Op -> what it must come after without reading it: an effect the one before it, what is of sizes that the host
        says what says them."""
        binders = {s: i for i, op in reversed([*enumerate(self.ops)]) if isinstance(op, HostOp) for s in op.symbols}
        for i, op in enumerate(self.ops) if binders else ():
            named = {name for inner in op.walk() for name in symbols_of_op(inner)}
            if sooner := {n for name in named if (n := binders.get(name, i)) < i}:
                self.after.setdefault(i, set()).update(sooner)
        self.fixed: list[bool] = [self._is_fixed(i) for i in range(len(self.ops))]
        self.calls: list[bool] = [role in (Role.LIBRARY, Role.HOST) for role in self.roles]
        """Calls take what they read from memory, and share a kernel with nothing."""
        self.free: list[bool] = []
        """Whether an op costs nothing where it is read: what follows from positions alone, and views."""
        self.generated: dict[int, int] = {}
        """Ops that compute their elements from positions alone, and the flops of one."""
        for i in range(len(self.ops)):
            self.free.append(self._is_free(i))
        numbers: dict[SSAValue, int] = {}
        self.operands: list[list[Read]] = [
            [self._read(v, numbers.setdefault(v, len(numbers))) for v in op.operands] for op in self.ops
        ]
        self.elements: list[int] = [self._elements_of(op.results[0]) if op.results else 0 for op in self.ops]
        """The elements of each op's first result."""
        self.written: list[int] = [sum([nominal.bytes(v) for v in op.results]) for op in self.ops]
        """The bytes of each op's results."""
        self.choices: list[int] = [_choices(op) for op in self.ops]
        """Comparisons and selects that find which operand an element comes from: work, though not of a flop."""
        self.repeats: list[bool] = [isinstance(op, hlo.BroadcastInDimOp) for op in self.ops]
        """Whether an op repeats what it reads."""
        self._results: list[list[int]] = [[numbers.setdefault(v, len(numbers)) for v in op.results] for op in self.ops]
        self._reads: list[list[int]] = [[read.value for read in reads] for reads in self.operands]
        forms: dict[Hashable, int] = {}
        self.forms: list[int] = [
            forms.setdefault((free, op_form(op)), len(forms)) for free, op in zip(self.free, self.ops, strict=True)
        ]
        """A number for each op, the same for ops that are equal apart from what they read."""
        self._free_reads: list[list[int]] = [
            [] if self.calls[i] else [p for v in values if (p := self.producer.get(v)) is not None and self.free[p]]
            for i, values in enumerate(self.reads)
        ]
        self._flops: dict[int, int] = {}
        self._maps: dict[int, Sequence[Sequence[IndexingMap | None]]] = {}
        self._pointwise: dict[tuple[int, int], bool] = {}

    def _read(self, value: SSAValue, number: int) -> Read:
        width = element_bytes(value.type) if is_tensor(value.type) else 0
        return Read(number, self.producer.get(value, -1), self._elements_of(value), width)

    def _elements_of(self, value: SSAValue) -> int:
        return self.nominal.elements(value) if is_tensor(value.type) else 0

    def _is_fixed(self, i: int) -> bool:
        op = self.ops[i]
        if self.roles[i] in _FIXED or not op.results or not all(is_tensor(r.type) for r in op.results):
            return True
        if not is_side_effect_free(op):
            return True
        # Data in a constant lie in memory before the first kernel runs, like a weight's.
        data = isinstance(op, hlo.ConstantOp) and not op.elements_attr.is_splat
        return data or len(self.reads[i]) > len(op.operands)

    def _is_free(self, i: int) -> bool:
        if self.fixed[i]:
            return False
        return self._note_generated(i) or self.roles[i] in (Role.VIEW, Role.GENERATOR)

    def _note_generated(self, i: int) -> bool:
        """Whether an op computes its elements from positions alone, cheaply; keeps what they cost."""
        if self.roles[i] not in PER_ELEMENT or self.roles[i] is Role.INDIRECT:
            return False
        flops = flops_per_element(self.ops[i])
        for v in self.reads[i]:
            p = self.producer.get(v)
            if p is None or p not in self.generated:
                return False
            flops += self.generated[p]
        if flops <= GENERATED_FLOPS:
            self.generated[i] = flops
        return flops <= GENERATED_FLOPS

    # ---- what fusion asks ----

    def maps(self, i: int) -> Sequence[Sequence[IndexingMap | None]]:
        """What each result of an op reads of each operand, in simplest form."""
        if i not in self._maps:
            self._maps[i] = [
                [None if m is None else simplify(m, self.nominal.ranges) for m in row]
                for row in operand_maps(self.ops[i])
            ]
        return self._maps[i]

    def pointwise(self, i: int, operand: int) -> bool:
        """Whether each element of an op's results reads the operand's element at its own place, and no other."""
        key = (i, operand)
        if key not in self._pointwise:
            if self.roles[i] is Role.ELEMENTWISE and self.ops[i].operands[operand].type == self.ops[i].results[0].type:
                self._pointwise[key] = True
            else:
                found = [row[operand] for row in self.maps(i)]
                self._pointwise[key] = all(m is not None and is_pointwise(m) for m in found)
        return self._pointwise[key]

    def flops(self, i: int) -> int:
        """Arithmetic of an op: of all of it where it combines elements, else for one element of its result."""
        if i not in self._flops:
            op = self.ops[i]
            self._flops[i] = anchor_flops(op, self.nominal) if self.combines[i] else flops_per_element(op)
        return self._flops[i]

    def form(self, members: Sequence[int], outputs: Sequence[int]) -> Hashable:
        """Ops of the block, of which `outputs` are needed elsewhere, apart from where they stand in it: equal forms
        are equal kernels."""
        # Values by their order: first those that are computed, then what is read from outside.
        values: dict[int, int] = {}
        for i in members:
            for value in self._results[i]:
                values[value] = len(values)
        ops: list[int] = []
        for i in members:
            ops.append(self.forms[i])  # which says how many it reads
            for value in self._reads[i]:
                ops.append(values.setdefault(value, len(values)))
        return tuple(ops), tuple([values[self._results[i][0]] for i in outputs])

    def closure(self, i: int) -> list[int]:
        """An op, after the free ops that it reads, directly or through each other."""
        found = {i}
        pending = [i]
        while pending:
            for n in self._free_reads[pending.pop()]:
                if n not in found:
                    found.add(n)
                    pending.append(n)
        return sorted(found)


_POSITIONAL = frozenset({hlo.ConstantOp, hlo.BroadcastInDimOp, hlo.IotaOp})


def is_positional(value: SSAValue) -> bool:
    """Whether a value is one number everywhere, an iota, or such a one repeated: it follows from positions alone."""
    op = value.owner
    if type(op) not in _POSITIONAL:
        return False
    if isinstance(op, hlo.ConstantOp):
        return op.elements_attr.is_splat
    if isinstance(op, hlo.BroadcastInDimOp):
        return is_positional(op.operand)
    return isinstance(op, hlo.IotaOp)


def _choices(op: Operation) -> int:
    if isinstance(op, hlo.PadOp):
        shape = shape_of(op.operands[0])
        return 2 * sum(have != size for have, size in zip(shape, shape_of(op.results[0]), strict=True))
    return 2 * (len(op.operands) - 1) if isinstance(op, hlo.ConcatenateOp) else 0


def live_ops(block: Block) -> list[Operation]:
    """The ops of a block whose results or effects matter, in order, without the terminator."""
    last = block.last_op
    wanted: set[SSAValue] = set() if last is None else set(last.operands)
    found: list[Operation] = []
    for op in reversed(block.ops):
        if op is not last and (not is_side_effect_free(op) or not wanted.isdisjoint(op.results)):
            found.append(op)
            wanted.update(op.operands, captures(op))
    return found[::-1]
