"""Runs a planned program in one real arena, with the reference's kernels, and faults where the plan is wrong.

It trusts nothing of the plan: it finds out by itself when a value dies, and then fills its bytes with a pattern.
Writing over a living value, writing or reading outside of the arena, reading bytes that are no longer what was written,
writing over an operand that a kernel still needs, and writing into an input that was not given away are faults that
name the values and where they come from. Donated inputs are copied first: their memory is the executor's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from gcomp.dims import Size, evaluate, symbols_of
from gcomp.errors import VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import arena, donors, has_place, is_view, places, slots
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import captures
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.plan import make_step
from gcomp.reference.signature import bind_sizes, check_inputs, own_outputs
from gcomp.reference.table import Array, Value

ARENA = -1
"""The number of the arena among memories; the others are those of donated inputs."""

POISON = 0xA5
"""What dead bytes hold: neither a number that programs use nor a quiet 0."""


def runner(program: Program, *, max_steps: int | None = None) -> Interpreter:
    """What runs a program of any level: in its arena, where its memory is planned."""
    kind = Interpreter if arena(program.module) is None else PlannedExecutor
    return kind(program, max_steps=max_steps)


@dataclass(eq=False)
class Region:
    """Bytes of a memory that hold a value, and the SSA values (views) that still read it."""

    memory: int
    start: int
    stop: int
    name: str
    copy: bytes
    """What was written."""
    readers: set[SSAValue]

    def overlaps(self, memory: int, start: int, stop: int) -> bool:
        """Whether bytes are among those of the region."""
        return self.memory == memory and start < self.stop and self.start < stop

    def __str__(self) -> str:
        return f"{self.name} at bytes {self.start}..{self.stop}"


class PlannedExecutor(Interpreter):
    """Runs a program whose results have places (`buffer.places`). Raises VerificationError where the plan is wrong."""

    def __init__(self, program: Program, *, max_steps: int | None = None) -> None:
        super().__init__(program, max_steps=max_steps)
        size = arena(program.module)
        if size is None:
            raise VerificationError("the program has no memory plan", fix="run plan-memory on it first")
        self._arena_size = size
        self._memories: dict[int, Array] = {}
        self._slots: dict[int, Size] = {}
        """Memory of sizes without a bound -> how large it is; some sizes are bound only where they are computed."""
        self._live: dict[Region, None] = {}
        self._region: dict[SSAValue, Region] = {}
        self._env: dict[SSAValue, Value] = {}
        self.peak = 0
        """The highest byte that was written."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        ports = self._program.inputs()
        arrays = check_inputs(ports, inputs)
        self.reset(bind_sizes(self._program, ports, arrays))
        self._memories = {ARENA: np.full(self._arena_size, POISON, np.uint8)}
        self._slots = {-2 - k: size for k, size in enumerate(slots(self._program.module))}
        self._live.clear()
        self._region.clear()
        block = self._program.block
        self._env = dict(zip(block.args, [self.data(a) for a in arrays], strict=True))
        given = {arg: i for i, arg in enumerate(block.args) if ports[i].donated and is_tensor(arg.type)}
        for arg, number in given.items():
            self._give(arg, number, ports[number].name)
        results = self._block(block, frozenset(self._program.returned.operands), frozenset(given))
        return own_outputs([np.array(r) for r in results], arrays)

    def _give(self, arg: SSAValue, number: int, name: str) -> None:
        """Make a donated input's memory one that results may lie in."""
        data = np.array(self._env[arg], order="C")
        memory = self._memories[number] = np.frombuffer(data.tobytes(), np.uint8).copy()
        region = Region(number, 0, memory.size, f"the input {name!r}", memory.tobytes(), {arg})
        self._hold(region, arg, data.dtype, data.shape)

    # ---- blocks ----

    def _block(self, block: Block, kept: frozenset[SSAValue], mortal: frozenset[SSAValue] = frozenset()) -> list[Value]:
        """Run a block; the values that it returns. `kept` live on after it; outer values that are `mortal` do not."""
        ops = list(block.ops)
        last_use: dict[SSAValue, int] = {}
        for i, op in enumerate(ops):
            last_use.update(dict.fromkeys((*op.operands, *captures(op), *op.results), i))
        ending = (mortal | {v for op in ops for v in op.results}) - kept
        self._release({v for v in mortal if v not in last_use})
        for i, op in enumerate(ops[:-1]):
            dying = {v for v in (*op.operands, *captures(op), *op.results) if last_use[v] == i and v in ending}
            self._run_op(op, dying)
        returned = ops[-1].operands
        return [self._read(v, ops[-1]) for v in returned]

    def _run_op(self, op: Operation, dying: set[SSAValue]) -> None:
        match op:
            case hlo.WhileOp():
                self._while(op, dying)
            case hlo.IfOp() | hlo.CaseOp():
                self._branch(op, dying)
            case _ if is_view(op):
                self._view(op)
            case _ if has_place(op):
                self._kernel(op, dying)
            case _:
                self._env.update(
                    zip(op.results, self.run_op(op, [self._read(v, op) for v in op.operands]), strict=True)
                )
        self._release(dying)

    def computed(self, op: Operation, args: Sequence[Value]) -> list[Value]:
        """The results of one op, whose regions may use values from around it."""
        captured = {v: self._read(v, op) for v in captures(op)}
        return self._drive(
            self._step(make_step(op, self._meanings), list(args), captured, batched=False), batched=False
        )

    def _kernel(self, op: Operation, dying: set[SSAValue]) -> None:
        args = [self._read(v, op) for v in op.operands]
        # The reference may return views of its operands, whose bytes are about to die.
        results = [
            np.array(r) if is_tensor(v.type) else r for r, v in zip(self.computed(op, args), op.results, strict=True)
        ]
        self._check_overwriting(op, args, results, dying)
        self._release(dying - set(op.results))
        for i, (result, value) in enumerate(zip(op.results, results, strict=True)):
            self._write(op, i, result, value)

    def _view(self, op: Operation) -> None:
        (operand,), (result,) = op.operands, op.results
        flat = self._read(operand, op).reshape(-1)
        self._env[result] = flat.view(self.dtype(result)).reshape(self.shape(result))
        if (region := self._region.get(operand)) is not None:
            self._region[result] = region
            region.readers.add(result)

    def _while(self, op: hlo.WhileOp, dying: set[SSAValue]) -> None:
        conditions = cast(Operation, op.cond.block.last_op).operands
        returned = cast(Operation, op.body.block.last_op).operands
        inside: set[SSAValue] = {v for inner in op.body.block.ops for v in inner.results}
        inside.update(op.body.block.args)
        dying = dying - set(captures(op)) - set(op.results)
        self._move(op, op.operands, op, dying)
        self._release(dying)
        while True:
            self._count(op)
            self._name(op.cond.block.args, op)
            holds = bool(self._block(op.cond.block, frozenset(conditions))[0])
            self._release({v for v in conditions if v.owner.parent is op.cond.block})
            if not holds:
                break
            self._hand_over(op.body.block.args, op)
            self._block(op.body.block, frozenset(returned), frozenset(op.body.block.args))
            self._move(op, returned, cast(Operation, op.body.block.last_op), inside)
            self._release({v for v in returned if v in inside})
        for value in op.cond.block.args:
            self._env.pop(value, None)
            self._region.pop(value, None)

    def _branch(self, op: Operation, dying: set[SSAValue]) -> None:
        selector = self._read(op.operands[0], op)
        if isinstance(op, hlo.IfOp):
            block = (op.true_branch if selector else op.false_branch).block
        else:
            index = int(selector)
            block = op.regions[index if 0 <= index < len(op.regions) else -1].block
        captured = dying & set(captures(op))
        returned = cast(Operation, block.last_op).operands
        mortal = captured | {v for inner in block.ops for v in inner.results}
        self._release(dying - captured - set(op.results))
        self._block(block, frozenset(returned), frozenset(captured))
        self._move(op, returned, cast(Operation, block.last_op), mortal)
        self._release({v for v in returned if v in mortal})

    def _move(self, op: Operation, values: Sequence[SSAValue], reader: Operation, mortal: set[SSAValue]) -> None:
        """Move values to the places of an op's results, one after the other; what dies there already stays."""
        for i, (result, value) in enumerate(zip(op.results, values, strict=True)):
            array = self._read(value, reader)
            region = self._region.get(value)
            if region is not None and region.readers <= mortal and self._lies(region, op, i):
                region.readers.add(result)
                self._region[result], self._env[result] = region, array
            else:
                self._write(op, i, result, array)

    def _lies(self, region: Region, op: Operation, i: int) -> bool:
        """Whether bytes are where a plan puts an op's result."""
        offsets = places(op)
        return offsets is not None and (donors(op)[i], offsets[i]) == (region.memory, region.start)

    def _name(self, arguments: Sequence[SSAValue], op: Operation) -> None:
        """Let a region's arguments stand for an op's results."""
        for argument, result in zip(arguments, op.results, strict=True):
            self._env[argument] = self._env[result]
            if (region := self._region.get(result)) is not None:
                self._region[argument] = region

    def _hand_over(self, arguments: Sequence[SSAValue], op: Operation) -> None:
        """Let a region's arguments take over an op's results, until it returns the next ones."""
        self._name(arguments, op)
        for argument, result in zip(arguments, op.results, strict=True):
            if (region := self._region.pop(result, None)) is not None:
                region.readers = {argument}

    # ---- memory ----

    def _read(self, value: SSAValue, op: Operation) -> Any:
        region = self._region.get(value)
        if region is not None and self._bytes(region).tobytes() != region.copy:
            raise VerificationError(
                "the memory plan lets a value be overwritten", where=where(op), why=f"it reads {region}"
            )
        return self._env[value]

    def _bytes(self, region: Region) -> Array:
        return self._memories[region.memory][region.start : region.stop]

    def _write(self, op: Operation, i: int, result: SSAValue, value: Value) -> None:
        """Put a result into its place."""
        offsets = places(op)
        if offsets is None or len(offsets) != len(op.results):
            raise VerificationError("a result has no place in the memory plan", where=where(op))
        if not is_tensor(result.type):
            self._env[result] = value
            return
        shape, dtype = self.shape(result), self.dtype(result)
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        # What moves may lie in memory that is claimed now.
        data = np.array(value)
        region = self._claim(op, donors(op)[i], offsets[i], count)
        region.readers = {result}
        self._hold(region, result, dtype, shape)[...] = data
        region.copy = self._bytes(region).tobytes()

    def _widen(self, slot: int, stop: int) -> None:
        """Make a slot as large as its formula says; up to `stop` where sizes that it names are not bound yet."""
        formula, before = self._slots[slot], self._memories.get(slot, np.zeros(0, np.uint8))
        size = evaluate(formula, self._sizes) if symbols_of(formula) <= self._sizes.keys() else stop
        if size > before.size or slot not in self._memories:
            self._memories[slot] = np.full(size, POISON, np.uint8)
            self._memories[slot][: before.size] = before

    def _claim(self, op: Operation, memory: int, start: int, count: int) -> Region:
        stop = start + count
        if memory in self._slots:
            self._widen(memory, stop)
        if memory not in self._memories:
            raise VerificationError(
                "the memory plan writes into an input that was not donated", where=where(op), why=f"input {memory}"
            )
        if start < 0 or stop > self._memories[memory].size:
            raise VerificationError(
                "the memory plan leaves the arena", where=where(op),
                why=f"bytes {start}..{stop} of {self._memories[memory].size}",
            )  # fmt: skip
        for other in self._live:
            if other.overlaps(memory, start, stop):
                raise VerificationError(
                    "the memory plan puts two living values on the same bytes",
                    where=where(op),
                    why=f"bytes {start}..{stop} overlap {other}",
                )
        return Region(memory, start, stop, f"the result of {where(op)}", b"", set())

    def _hold(self, region: Region, value: SSAValue, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Let a value lie in a region; the bytes as an array."""
        if region.stop > region.start:
            self._live[region] = None
        self._region[value] = region
        view = self._env[value] = self._bytes(region).view(dtype).reshape(shape)
        if region.memory == ARENA:
            self.peak = max(self.peak, region.stop)
        return view

    def _release(self, values: set[SSAValue]) -> None:
        for value in values:
            self._env.pop(value, None)
            region = self._region.pop(value, None)
            if region is None:
                continue
            region.readers.discard(value)
            if not region.readers and region in self._live:
                del self._live[region]
                self._bytes(region)[...] = POISON

    def _check_overwriting(
        self, op: Operation, args: Sequence[Value], results: Sequence[Value], dying: set[SSAValue]
    ) -> None:
        """Where a result lies on a dying operand: each of its elements may need the operand's at its own place only.

        A part of the operand is replaced by what a kernel would have written there already; the rest of the result must
        not notice. For any two places there is a part that has the one and not the other.
        """
        targets = list(zip(op.results, donors(op), places(op) or (), results, strict=False))
        for value in dict.fromkeys(captures(op)):
            region = self._region.get(value)
            if region is not None and any(region.overlaps(m, o, o + np.asarray(w).nbytes) for _, m, o, w in targets):
                raise _fault(op, region, "a result")
        for i, operand in enumerate(op.operands):
            region = self._region.get(operand)
            if region is None or operand not in dying:
                continue
            for result, memory, offset, written in targets:
                array = np.asarray(written)
                if not (array.size and region.overlaps(memory, offset, offset + array.nbytes)):
                    continue
                own_place = offset == region.start and array.nbytes == region.stop - region.start
                if not own_place or not _is_unnoticed(self, op, args, results, i, array):
                    raise _fault(op, region, f"result {result.name_hint or offset}")


def _is_unnoticed(
    executor: PlannedExecutor, op: Operation, args: Sequence[Value], results: Sequence[Value], i: int, written: Array
) -> bool:
    for mask in _parts(written.size):
        mixed = np.array(args[i], order="C")
        if (mixed.dtype.itemsize, mixed.size) != (written.dtype.itemsize, written.size):
            return False
        mixed.reshape(-1)[mask] = written.reshape(-1).view(mixed.dtype)[mask]
        again = executor.computed(op, [mixed if j == i else a for j, a in enumerate(args)])
        for one, other in zip(results, again, strict=True):
            old, new = np.asarray(one).reshape(-1), np.asarray(other).reshape(-1)
            kept = ~mask if old.size == mask.size else slice(None)
            if old[kept].tobytes() != new[kept].tobytes():
                return False
    return True


def _parts(size: int) -> Iterator[Array]:
    """Parts of so many places, as masks: those whose number has a bit, and those whose number has not, for each bit."""
    numbers = np.arange(size)
    for bit in range(max(1, (size - 1).bit_length())):
        has = (numbers >> bit) % 2 == 1
        yield from (~has, has)


def _fault(op: Operation, region: Region, result: str) -> VerificationError:
    return VerificationError(
        "the memory plan lets a kernel write over what it still reads",
        where=where(op),
        why=f"{result} lies on {region}",
    )
