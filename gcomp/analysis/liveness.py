"""Liveness and aliasing between kernels: which values share memory, and from when to when it must keep them.

Steps number the ops of a program as they run, those of regions within the ops that hold them. Values from around a loop
live to its end where another iteration may read them. Values that lie in the same memory (a view, a result written over
an operand that dies, what a loop carries from turn to turn) form one storage, whose lifetime covers all of theirs. The
memory of a donated input is a storage too, and holds outputs once the input is dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import TupleType
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.overwriting import Overwriting
from gcomp.analysis.work import element_bytes
from gcomp.dims import Ranges, Size, product
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import has_place, is_view
from gcomp.ir.locations import describe, where
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ir.walking import captures


def bytes_of(value: SSAValue) -> Size:
    """The bytes of a tensor value in memory, as a formula of the symbols."""
    return element_bytes(value.type) * product(shape_of(value))


@dataclass(eq=False)
class Storage:
    """Memory that holds one value after another: alive at the steps `lower <= t < upper`."""

    name: str
    size: Size
    lower: int
    upper: int
    block: Block
    """Where it is defined: in another iteration of a loop around this block it is a new one."""
    donor: int | None = None
    """The number of the donated input whose memory it is; None for the arena."""
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    last: dict[Block, int] = field(default_factory=dict[Block, int])
    """The position of the last op of a block that reads one of the values defined there."""


@dataclass
class Liveness:
    """The storages of a program, and which one holds each value (none for what lies outside of any plan)."""

    storages: list[Storage] = field(default_factory=list[Storage])
    storage: dict[SSAValue, Storage] = field(default_factory=dict[SSAValue, Storage])
    end: int = 0
    reused: int = 0
    """How many results are written over an operand."""

    @property
    def planned(self) -> list[Storage]:
        """Those that need a place in the arena."""
        return [s for s in self.storages if s.donor is None]


def donations(program: Program) -> dict[SSAValue, int]:
    """The arguments that were given away, each with its number."""
    ports = zip(program.inputs(), program.block.args, strict=True)
    return {arg: i for i, (port, arg) in enumerate(ports) if port.donated and is_tensor(arg.type)}


def liveness(program: Program) -> Liveness:
    """The storages of a program on the kernel level. UnsupportedError where a function is called."""
    return _walk_storages(program.block, donations(program))


def _walk_storages(block: Block, donors: Mapping[SSAValue, int]) -> Liveness:
    """The storages of a block and of those inside it; what it returns lives to its end."""
    walker = _Walker()
    walker.enter(block)
    for argument, number in donors.items():
        walker.new(argument, argument.name_hint or f"input {number}", block).donor = number
    walker.block(block)
    returned = cast(Operation, block.last_op).operands
    for value in returned:
        walker.touch(value)
    walker.outputs_into_donors(returned)
    return walker.result


class _Walker:
    def __init__(self) -> None:
        self.result = Liveness()
        self.at: dict[Operation, int] = {}
        """The position of each op in its block."""
        self.loops: list[Block] = []
        """The blocks of the loops around the current op, outermost first."""
        self.pending: list[set[Storage]] = []
        """For each of them, what it reads from around it: alive to its end."""
        self.awaited: dict[Block, list[Storage | None]] = {}
        """For the block of a branch or loop, the storages that what it returns is moved to."""
        self.returned: dict[tuple[Block, SSAValue], set[int]] = {}
        """The positions at which such a block returns a value, or a view of it."""

    @property
    def now(self) -> int:
        return self.result.end

    def tick(self) -> None:
        self.result.end += 1

    # ---- storages ----

    def new(self, value: SSAValue, name: str, block: Block) -> Storage:
        number = len(self.result.storages)
        storage = Storage(f"{name} ({number})", bytes_of(value), self.now, self.now + 1, block)
        self.result.storages.append(storage)
        self.join(value, storage, block)
        return storage

    def join(self, value: SSAValue, storage: Storage, block: Block) -> None:
        """Let a value, which is defined in a block, lie in a storage."""
        storage.values.append(value)
        storage.last[block] = max(storage.last.get(block, -1), self.last_use(value, block))
        self.result.storage[value] = storage

    def touch(self, value: SSAValue) -> None:
        """A value is read or written at the current step."""
        if (storage := self.result.storage.get(value)) is None:
            return
        storage.upper = max(storage.upper, self.now + 1)
        for block, outer in zip(self.loops, self.pending, strict=True):
            if not _is_inside(storage.block, block):
                outer.add(storage)

    def last_use(self, value: SSAValue, block: Block) -> int:
        """The position of the last op of a block that reads a value, itself or in its regions; -1 without one."""
        last = -1
        for use in value.uses:
            op: Operation | None = use.operation
            while op is not None and op.parent_block() is not block:
                op = op.parent_op()
            if op is not None:
                last = max(last, self.at[op])
        return last

    # ---- going through ----

    def enter(self, block: Block) -> None:
        self.at.update((op, i) for i, op in enumerate(block.ops))

    def block(self, block: Block) -> None:
        for op in block.ops:
            if op is not block.last_op:
                self.op(op, block)

    def op(self, op: Operation, block: Block) -> None:
        if any(isinstance(r.type, TupleType) for r in op.results):
            raise UnsupportedError("a tuple has no place in a memory plan", where=where(op), fix="use its elements")
        for value in op.operands:
            self.touch(value)
        match op:
            case hlo.WhileOp():
                self.loop(op, block)
            case hlo.IfOp() | hlo.CaseOp():
                self.branches(op, block)
            case CallOp():
                raise UnsupportedError("a function that is called has no place in a memory plan", where=where(op),
                                       fix="run the pass inline first")  # fmt: skip
            case _ if is_view(op):
                if (storage := self.result.storage.get(op.operands[0])) is not None:
                    self.join(op.results[0], storage, block)
            case _ if has_place(op):
                for value in captures(op):
                    self.touch(value)
                self.kernel(op, block)
                self.tick()
            case _:
                self.tick()

    def kernel(self, op: Operation, block: Block) -> None:
        taken: set[Storage] = set()
        for k, result in enumerate(op.results):
            if not is_tensor(result.type):
                continue
            found = next((s for s in self.places_of_the_dead(op, k, block) if s not in taken), None)
            if found is None:
                self.new(result, result.name_hint or describe(op.location) or op.name, block)
            else:
                taken.add(found)
                self.result.reused += found in map(self.result.storage.get, op.operands)
                self.join(result, found, block)
                self.touch(result)

    def places_of_the_dead(self, op: Operation, k: int, block: Block) -> Iterator[Storage]:
        """Where a kernel's result may lie: over an operand that dies here, or where the block returns it to."""
        result = op.results[k]
        lie = [self.result.storage.get(v) for v in op.operands]
        captured = {self.result.storage.get(v) for v in captures(op)}
        overwriting = Overwriting(op)
        for storage in dict.fromkeys(lie):
            if storage is None or storage in captured or not self.may_take(storage, result, op, block):
                continue
            if all(overwriting.may(i, k) for i, s in enumerate(lie) if s is storage):
                yield storage
        for position in self.returned.get((block, result), ()):
            storage = self.awaited[block][position]
            dead = storage is not None and storage.last.get(block, -1) < self.at[op]
            if storage is not None and dead and self.may_take(storage, result, op, block):
                yield storage

    def may_take(self, storage: Storage, result: SSAValue, op: Operation, block: Block) -> bool:
        """Whether an op may put a result into a storage of what dies there, or is dead.

        It must be of this block, or one that the block returns this result to, and nothing else: what it returns is
        moved to the storages one after the other.
        """
        if storage.size != bytes_of(result) or storage.last.get(block, -1) > self.at[op]:
            return False
        if storage.block is block:
            return True
        awaited = self.awaited.get(block, ())
        return storage in awaited and self.returned.get((block, result), set()) <= {awaited.index(storage)}

    def loop(self, op: hlo.WhileOp, block: Block) -> None:
        carried: list[Storage | None] = []
        around = {self.result.storage.get(v) for v in captures(op)}
        for operand, result in zip(op.operands, op.results, strict=True):
            carried.append(self.carried(op, operand, result, block, {*around, *carried}))
        self.tick()
        for region in (op.cond, op.body):
            self.enter(region.block)
            for argument, storage in zip(region.block.args, carried, strict=True):
                if storage is not None:
                    self.join(argument, storage, region.block)
        self.loops.append(op.body.block)
        self.pending.append(set())
        self.region(op.cond.block)
        self.await_returned(op.body.block, carried)
        self.region(op.body.block)
        self.loops.pop()
        for storage in (*self.pending.pop(), *carried):
            if storage is not None:
                storage.upper = max(storage.upper, self.now)

    def carried(
        self, op: Operation, operand: SSAValue, result: SSAValue, block: Block, taken: set[Storage | None]
    ) -> Storage | None:
        """Where a value that a loop carries lies: where it is at first, if that dies here; else it is moved."""
        if not is_tensor(result.type):
            return None
        storage = self.result.storage.get(operand)
        if storage is None or storage in taken or not self.may_take(storage, result, op, block):
            return self.new(result, result.name_hint or describe(op.location) or op.name, block)
        self.join(result, storage, block)
        self.touch(result)
        return storage

    def branches(self, op: Operation, block: Block) -> None:
        results = [
            self.new(r, r.name_hint or describe(op.location) or op.name, block) if is_tensor(r.type) else None
            for r in op.results
        ]
        self.tick()
        for region in op.regions:
            self.enter(region.block)
            self.await_returned(region.block, results)
            self.region(region.block)
        for storage in results:
            if storage is not None:
                storage.upper = max(storage.upper, self.now)

    def await_returned(self, block: Block, storages: list[Storage | None]) -> None:
        """Note where a block's returned values are moved to."""
        self.awaited[block] = storages
        for position, value in enumerate(cast(Operation, block.last_op).operands):
            self.returned.setdefault((block, view_source(value)), set()).add(position)

    def region(self, block: Block) -> None:
        self.block(block)
        for value in cast(Operation, block.last_op).operands:
            self.touch(value)
        self.tick()

    # ---- donated inputs ----

    def outputs_into_donors(self, returned: Sequence[SSAValue]) -> None:
        """Put outputs into donated inputs of their size that are dead while they live."""
        free: dict[Size, list[Storage]] = {}
        for storage in self.result.storages:
            if storage.donor is not None:
                free.setdefault(storage.size, []).append(storage)
        for value in returned:
            storage = self.result.storage.get(value)
            if storage is None or storage.donor is not None:
                continue
            same = free.get(storage.size, [])
            donor = next((d for d in same if d.upper <= storage.lower), None)
            if donor is not None:
                storage.donor = donor.donor
                same.remove(donor)


def view_source(value: SSAValue) -> SSAValue:
    """What a value is a view of, or itself."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    return value


def _is_inside(block: Block, around: Block) -> bool:
    """Whether a block is a loop's body, its condition, or inside of them."""
    loop = around.parent_op()
    current: Block | None = block
    while current is not None:
        parent = current.parent_op()
        if parent is loop:
            return True
        current = None if parent is None else parent.parent_block()
    return False


# ---- peaks --------------------------------------------------------------------------------------------------------


def block_peak(block: Block, ranges: Ranges, donors: Mapping[SSAValue, int] | None = None) -> int:
    """The most bytes of results that are alive at a time while a block runs, at the largest sizes of the ranges."""
    return most_alive(_walk_storages(block, donors or {}), ranges)


def most_alive(found: Liveness, ranges: Ranges) -> int:
    """The most bytes alive at a time: no plan for this order needs less. Sizes without a bound count as nothing."""
    change: dict[int, int] = {}
    for storage in found.planned:
        size = ranges.bounds(storage.size)[1] or 0
        change[storage.lower] = change.get(storage.lower, 0) + size
        change[storage.upper] = change.get(storage.upper, 0) - size
    alive = peak = 0
    for step in sorted(change):
        alive += change[step]
        peak = max(peak, alive)
    return peak
