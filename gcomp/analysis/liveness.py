"""Liveness and aliasing between kernels: which values share memory, and from when to when it must keep them.

Steps number the ops of a program as they run, those of regions within the ops that hold them. Values from around a loop
live to its end where another turn may read them. Values that lie in the same memory (a view, a result written over an
operand that dies, what a loop carries) form one storage, whose lifetime covers all of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import TupleType
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing import rows as rows  # fills the table
from gcomp.analysis.indexing.maps import is_pointwise
from gcomp.analysis.indexing.table import operand_maps
from gcomp.analysis.work import element_bytes
from gcomp.dims import Ranges, Size, product
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import has_place, is_view
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import describe, where
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
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
    """Where it is defined: in another turn of a loop around this block it is a new one."""
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    carried: bool = False
    """Whether control flow writes it, at the end of a branch or of a turn."""


@dataclass
class Liveness:
    """The storages of a program, and which one holds each value (none for what lies outside of the arena)."""

    storages: list[Storage] = field(default_factory=list[Storage])
    storage: dict[SSAValue, Storage] = field(default_factory=dict[SSAValue, Storage])
    end: int = 0
    reused: int = 0
    """How many results are written over an operand."""


def liveness(program: Program) -> Liveness:
    """The storages of a program on the kernel level. UnsupportedError where a function is called."""
    return _walked(program.block)


def _walked(block: Block) -> Liveness:
    """The storages of a block and of those inside it; what it returns lives to its end."""
    walker = _Walker()
    walker.block(block)
    for value in cast(Operation, block.last_op).operands:
        walker.touch(value)
    return walker.result


class _Walker:
    def __init__(self) -> None:
        self.result = Liveness()
        self.loops: list[Block] = []
        """The blocks of the loops around the current op, outermost first."""
        self.pending: list[set[Storage]] = []
        """For each of them, what it reads from around it: alive to its end."""

    @property
    def now(self) -> int:
        return self.result.end

    def tick(self) -> None:
        self.result.end += 1

    # ---- storages ----

    def new(self, value: SSAValue, op: Operation, block: Block, carried: bool = False) -> Storage:
        name = value.name_hint or describe(op.location) or op.name
        storage = Storage(f"{name} ({len(self.result.storages)})", bytes_of(value), self.now, self.now + 1, block)
        storage.carried = carried
        self.result.storages.append(storage)
        self.join(value, storage)
        return storage

    def join(self, value: SSAValue, storage: Storage) -> None:
        storage.values.append(value)
        self.result.storage[value] = storage

    def touch(self, value: SSAValue) -> None:
        """A value is read or written at the current step."""
        if (storage := self.result.storage.get(value)) is None:
            return
        storage.upper = max(storage.upper, self.now + 1)
        for block, outer in zip(self.loops, self.pending, strict=True):
            if not _is_inside(storage.block, block):
                outer.add(storage)

    # ---- going through ----

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
                                       fix="inline it first")  # fmt: skip
            case _ if is_view(op):
                if (storage := self.result.storage.get(op.operands[0])) is not None:
                    self.join(op.results[0], storage)
            case _ if has_place(op):
                for value in captures(op):
                    self.touch(value)
                self.kernel(op, block)
                self.tick()
            case _:
                self.tick()

    def kernel(self, op: Operation, block: Block) -> None:
        taken: set[Storage] = set()
        for result in op.results:
            if not is_tensor(result.type):
                continue
            found = next((s for s in self.reusable(op, result, block) if s not in taken), None)
            if found is None:
                self.new(result, op, block)
            else:
                taken.add(found)
                self.result.reused += 1
                self.join(result, found)
                self.touch(result)

    def reusable(self, op: Operation, result: SSAValue, block: Block) -> Sequence[Storage]:
        """The storages of operands that die at this op, over which its result may be written element by element."""
        found: list[Storage] = []
        for i, operand in enumerate(op.operands):
            storage = self.result.storage.get(operand)
            if storage is None or storage.carried or storage.block is not block or storage.size != bytes_of(result):
                continue
            dies = all(_last_use(v, block) in (op, None) for v in storage.values)
            if dies and not any(o is operand for o in op.operands[i + 1 :]) and overwrites(op, i):
                found.append(storage)
        return found

    def loop(self, op: hlo.WhileOp, block: Block) -> None:
        carried = [self.new(r, op, block, carried=True) if is_tensor(r.type) else None for r in op.results]
        self.tick()
        for region in (op.cond, op.body):
            inner = region.block
            for argument, storage in zip(inner.args, carried, strict=True):
                if storage is not None:
                    self.join(argument, storage)
        self.loops.append(op.body.block)
        self.pending.append(set())
        for region in (op.cond, op.body):
            self.block(region.block)
            for value in cast(Operation, region.block.last_op).operands:
                self.touch(value)
            self.tick()
        self.loops.pop()
        for storage in (*self.pending.pop(), *carried):
            if storage is not None:
                storage.upper = max(storage.upper, self.now)

    def branches(self, op: Operation, block: Block) -> None:
        results = [self.new(r, op, block, carried=True) for r in op.results if is_tensor(r.type)]
        self.tick()
        for region in op.regions:
            self.block(region.block)
            for value in cast(Operation, region.block.last_op).operands:
                self.touch(value)
            self.tick()
        for storage in results:
            storage.upper = max(storage.upper, self.now)


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


def _last_use(value: SSAValue, block: Block) -> Operation | None:
    """The op of a block that reads a value last, itself or in its regions; None where nothing does."""
    last: Operation | None = None
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent_block() is not block:
            op = op.parent_op()
        if op is not None and (last is None or last.is_before_in_block(op)):
            last = op
    return last


# ---- writing over an operand --------------------------------------------------------------------------------------


def overwrites(op: Operation, operand: int) -> bool:
    """Whether each element of every result is computed from the operand's element at its own place, and no other.

    Then the results may be written over the operand, in whatever order. `op` is a kernel, or an op by itself.
    """
    argument: SSAValue = op.operands[operand]
    body: list[Operation] = [op]
    if isinstance(op, LaunchOp):
        argument, body = op.block.args[operand], [inner for inner in op.block.ops if inner is not op.block.last_op]
        if op.kind_name != "loop":
            return False
    if any(not is_tensor(v.type) or shape_of(v) != shape_of(argument) for v in (argument, *op.results)):
        return False
    reached: set[SSAValue] = {argument}
    for inner in body:
        if not any(v in reached for v in inner.operands):
            continue
        if role_of(inner) is not Role.ELEMENTWISE or shape_of(inner.results[0]) != shape_of(argument):
            return False
        for maps in operand_maps(inner):
            for value, m in zip(inner.operands, maps, strict=True):
                if value in reached and (m is None or not is_pointwise(m)):
                    return False
        reached.update(inner.results)
    return True


# ---- peaks --------------------------------------------------------------------------------------------------------


def block_peak(block: Block, ranges: Ranges) -> int:
    """The most bytes of results that are alive at a time while a block runs, at the largest sizes of the ranges."""
    return most_alive(_walked(block), ranges)


def most_alive(found: Liveness, ranges: Ranges) -> int:
    """The most bytes alive at a time: no plan for this order needs less. Sizes without a bound count as nothing."""
    change: dict[int, int] = {}
    for storage in found.storages:
        size = ranges.bounds(storage.size)[1] or 0
        change[storage.lower] = change.get(storage.lower, 0) + size
        change[storage.upper] = change.get(storage.upper, 0) - size
    alive = peak = 0
    for step in sorted(change):
        alive += change[step]
        peak = max(peak, alive)
    return peak
