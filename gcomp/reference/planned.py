"""Runs a planned program in one real arena, with the reference's kernels, and faults where the plan is wrong.

It trusts nothing of the plan: it finds out by itself when a value dies, and then fills its bytes with a pattern.
Writing over a living value, writing or reading outside of the arena, reading bytes that are no longer what was written,
and writing over an operand that a kernel still needs are faults that name the values and where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from gcomp.errors import VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.buffer import arena, has_place, is_view, places
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import captures
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.plan import make_step
from gcomp.reference.signature import bind_sizes, check_inputs, owned
from gcomp.reference.table import Array, Value

POISON = 0xA5
"""What dead bytes hold: neither a number that programs use nor a quiet 0."""


def runner(program: Program, *, max_steps: int | None = None) -> Interpreter:
    """What runs a program of any level: in its arena, where its memory is planned."""
    kind = Interpreter if arena(program.module) is None else PlannedExecutor
    return kind(program, max_steps=max_steps)


@dataclass(eq=False)
class Region:
    """Bytes of the arena that hold a value, and how many SSA values (views) still read it."""

    start: int
    stop: int
    op: Operation
    copy: bytes
    """What was written."""
    readers: set[SSAValue]


class PlannedExecutor(Interpreter):
    """Runs a program whose results have places (`buffer.places`). Raises VerificationError where the plan is wrong."""

    def __init__(self, program: Program, *, max_steps: int | None = None) -> None:
        super().__init__(program, max_steps=max_steps)
        size = arena(program.module)
        if size is None:
            raise VerificationError("the program has no memory plan", fix="run plan-memory on it first")
        self._arena = np.full(size, POISON, np.uint8)
        self._live: dict[Region, None] = {}
        self._region: dict[SSAValue, Region] = {}
        self._env: dict[SSAValue, Value] = {}
        self.peak = 0
        """The highest byte that was written."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        ports = self._program.inputs()
        arrays = check_inputs(ports, inputs)
        self.reset(bind_sizes(self._program, ports, arrays))
        self._arena.fill(POISON)
        self._live.clear()
        self._region.clear()
        self._env = dict(zip(self._program.block.args, [self.data(a) for a in arrays], strict=True))
        results = self._block(self._program.block, frozenset(self._program.returned.operands))
        return owned([np.array(r) for r in results], arrays)

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
        self._write(op, results)

    def _view(self, op: Operation) -> None:
        (operand,), (result,) = op.operands, op.results
        self._env[result] = self._read(operand, op).reshape(self.shape(result))
        if (region := self._region.get(operand)) is not None:
            self._region[result] = region
            region.readers.add(result)

    def _while(self, op: hlo.WhileOp, dying: set[SSAValue]) -> None:
        self._write(op, [self._read(v, op) for v in op.operands])
        self._release(dying - set(captures(op)) - set(op.results))
        while True:
            self._name(op.cond.block.args, op)
            conditions = cast(Operation, op.cond.block.last_op).operands
            holds = bool(self._block(op.cond.block, frozenset(conditions))[0])
            self._release({v for v in conditions if v.owner.parent is op.cond.block})
            if not holds:
                break
            self._name(op.body.block.args, op)
            self._move(op, op.body.block)
        self._forget((*op.cond.block.args, *op.body.block.args))

    def _branch(self, op: Operation, dying: set[SSAValue]) -> None:
        selector = self._read(op.operands[0], op)
        if isinstance(op, hlo.IfOp):
            region = op.true_branch if selector else op.false_branch
        else:
            index = int(selector)
            region = op.regions[index if 0 <= index < len(op.regions) else -1]
        captured = dying & set(captures(op))
        self._release(dying - captured - set(op.results))
        self._write(op, None)
        self._move(op, region.block, frozenset(captured))

    def _move(self, op: Operation, block: Block, mortal: frozenset[SSAValue] = frozenset()) -> None:
        """Run a block and move what it returns to the places of an op's results, one after the other."""
        returned = cast(Operation, block.last_op).operands
        inside = frozenset(v for inner in block.ops for v in inner.results)
        self._block(block, frozenset(returned), mortal)
        for result, value in zip(op.results, returned, strict=True):
            array = self._read(value, cast(Operation, block.last_op))
            region = self._region.get(result)
            if region is None:
                self._env[result] = array
                continue
            data = np.ascontiguousarray(array).tobytes()
            self._arena[region.start : region.stop] = np.frombuffer(data, np.uint8)
            region.copy = data
        self._release({v for v in returned if v in inside})

    def _name(self, arguments: Sequence[SSAValue], op: Operation) -> None:
        """Let a region's arguments stand for an op's results."""
        for argument, result in zip(arguments, op.results, strict=True):
            self._env[argument] = self._env[result]
            if (region := self._region.get(result)) is not None:
                self._region[argument] = region

    def _forget(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            self._env.pop(value, None)
            self._region.pop(value, None)

    # ---- memory ----

    def _read(self, value: SSAValue, op: Operation) -> Any:
        region = self._region.get(value)
        if region is not None and self._arena[region.start : region.stop].tobytes() != region.copy:
            raise VerificationError(
                "the memory plan lets a value be overwritten", where=where(op), why=f"it reads {_named(region)}"
            )
        return self._env[value]

    def _write(self, op: Operation, results: Sequence[Value] | None) -> None:
        """Put results into their places; None leaves the places as they are, to be filled later."""
        offsets = places(op)
        if offsets is None:
            raise VerificationError("a result has no place in the memory plan", where=where(op))
        for i, (result, offset) in enumerate(zip(op.results, offsets, strict=True)):
            if not is_tensor(result.type):
                self._env[result] = None if results is None else results[i]
                continue
            shape, dtype = self.shape(result), self.dtype(result)
            count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            self._claim(op, result, offset, count)
            view = self._arena[offset : offset + count].view(dtype).reshape(shape)
            if results is not None:
                view[...] = results[i]
            region = self._region[result]
            region.copy = self._arena[offset : offset + count].tobytes()
            self._env[result] = view

    def _claim(self, op: Operation, result: SSAValue, start: int, count: int) -> None:
        stop = start + count
        if start < 0 or stop > len(self._arena):
            raise VerificationError(
                "the memory plan leaves the arena", where=where(op), why=f"bytes {start}..{stop} of {len(self._arena)}"
            )
        for other in self._live:
            if start < other.stop and other.start < stop:
                raise VerificationError(
                    "the memory plan puts two living values on the same bytes",
                    where=where(op),
                    why=f"bytes {start}..{stop} overlap {_named(other)}",
                )
        region = Region(start, stop, op, b"", {result})
        if count:
            self._live[region] = None
        self._region[result] = region
        self.peak = max(self.peak, stop)

    def _release(self, values: set[SSAValue]) -> None:
        for value in values:
            self._env.pop(value, None)
            region = self._region.pop(value, None)
            if region is None:
                continue
            region.readers.discard(value)
            if not region.readers and region in self._live:
                del self._live[region]
                self._arena[region.start : region.stop] = POISON

    def _check_overwriting(
        self, op: Operation, args: Sequence[Value], results: Sequence[Value], dying: set[SSAValue]
    ) -> None:
        """Where a result lies on a dying operand: each of its elements may need the operand's at its own place only.

        Half of the operand is replaced by what a kernel would have written there already; the other half of the result
        must not notice.
        """
        offsets = places(op) or ()
        for i, operand in enumerate(op.operands):
            region = self._region.get(operand)
            if region is None or operand not in dying:
                continue
            for result, offset, written in zip(op.results, offsets, results, strict=True):
                size = int(np.asarray(written).nbytes)
                if not (size and offset < region.stop and region.start < offset + size):
                    continue
                if (
                    offset != region.start
                    or np.shape(written) != np.shape(args[i])
                    or not _unnoticed(self, op, args, results, i, np.asarray(written))
                ):
                    raise VerificationError(
                        "the memory plan lets a kernel write over what it still reads",
                        where=where(op),
                        why=f"result {result.name_hint or offset} lies on {_named(region)}",
                    )


def _unnoticed(
    executor: PlannedExecutor, op: Operation, args: Sequence[Value], results: Sequence[Value], i: int, written: Array
) -> bool:
    half = (np.arange(written.size) % 2 == 0).reshape(written.shape)
    for mask in (half, ~half):
        mixed = np.array(args[i])
        if mixed.dtype.itemsize != written.dtype.itemsize:
            return False
        mixed[mask] = written.view(mixed.dtype)[mask] if mixed.dtype != written.dtype else written[mask]
        again = executor.computed(op, [mixed if j == i else a for j, a in enumerate(args)])
        for one, other in zip(results, again, strict=True):
            if np.asarray(one)[~mask].tobytes() != np.asarray(other)[~mask].tobytes():
                return False
    return True


def _named(region: Region) -> str:
    return f"the result of {where(region.op)} at bytes {region.start}..{region.stop}"
