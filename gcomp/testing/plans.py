"""A plan of kernels, for GPUs or processors, without its machine code: launches in the evaluator, on a real arena.

This is the plan that an artifact holds, buffers and order and all; only the kernels are evaluated instead of run. Bytes
that nothing wrote, or that were written as something else and not in full, are found when a kernel reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import evaluate, parse
from gcomp.dtypes import dtype_of
from gcomp.errors import InternalError
from gcomp.ir.host import HostOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.lower import tile_programs
from gcomp.lowering.signatures import host_step, signature_of
from gcomp.lowering.tiles.evaluate import Memory, run
from gcomp.lowering.tiles.segments import Lowering
from gcomp.lowering.tiles.tile import element
from gcomp.lowering.triton.lower import drafts
from gcomp.reference.signature import bind_sizes, check_inputs
from gcomp.runtime.cpu.variants import VARIANTS, runs
from gcomp.runtime.hosting import Type, call_function, run_host
from gcomp.runtime.steps import Buffer, Case, Copy, Fill, HostCall, Launch, Located, Loop, Step, While
from gcomp.targets.base import target_named
from gcomp.targets.cpu import Cpu

Array = np.ndarray[Any, Any]


def keeps_bits(target: str) -> bool:
    """Whether the bits of a target's results are part of the meaning of its tile programs."""
    return isinstance(target_named(target), Cpu)


def evaluated(program: Program, target: str, inputs: Sequence[Array]) -> list[Array]:
    """What the kernels of a program that was planned for processors are to compute, bit for bit."""
    variants = [VARIANTS[name] for name in target_named(target).variants]
    variant = next(filter(runs, variants), variants[0])
    return PlanRunner(program, tile_programs(program, variant)).run(inputs)


class PlanRunner:
    """Runs a program of planned kernels as its target would: `PlanRunner(program).run(inputs)`."""

    donated = True
    """Whether donated inputs are on the GPU, so that outputs lie in their memory; else they are brought there."""

    def __init__(self, program: Program, steps: Sequence[Lowering[Any] | HostOp] | None = None) -> None:
        """`steps` are the program's, by default those for GPUs. Raises UnsupportedError for what has no kernel."""
        self._program = program
        self.steps: Sequence[Lowering[Any] | HostOp] = drafts(program) if steps is None else steps
        self.lowering: Lowering[Any]
        self._buffers: tuple[Buffer, ...] = ()
        self._sizes: dict[str, int] = {}
        self._spaces: dict[tuple[str, int], tuple[Array, Array]] = {}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, in order."""
        program = self._program
        ports = program.inputs()
        arrays = check_inputs(ports, inputs)
        self._sizes = dict(bind_sizes(program, ports, arrays))
        if len(self.steps) == 1 and isinstance(step := self.steps[0], Lowering):
            return self._segment(step, arrays)
        values: dict[SSAValue, Array] = dict(zip(program.block.args, arrays, strict=True))
        for step in self.steps:
            if isinstance(step, HostOp):
                inputs = [values[v] for v in step.operands]
                found = run_host(host_step(step, ()), inputs, signature_of(program), self._sizes)
            else:
                found = self._segment(step, [values[v] for v in step.stage.inputs])
            values.update(zip(step.results if isinstance(step, HostOp) else step.stage.outputs, found, strict=True))
        return [values[value] for value in program.returned.operands]

    def _segment(self, lowering: Lowering[Any], inputs: Sequence[Array]) -> list[Array]:
        """The outputs of a device segment."""
        self.lowering, plan = lowering, lowering.draft
        self._buffers = plan.buffers
        self._spaces = {("arena", 0): _empty(self._value(plan.arena))}
        for k, size in enumerate(plan.slots):
            self._spaces["slot", k] = _empty(self._value(size))
        for i, array in enumerate(inputs):
            self._spaces["input", i] = _filled(array)
        for i, name in enumerate(lowering.weights):
            self._spaces["weight", i] = _filled(np.asarray(self._program.weights[name]))
        shapes = [tuple([self._value(n) for n in shape_of(value)]) for value in lowering.stage.outputs]
        dtypes = [dtype_of(dtype_text(value.type)) for value in lowering.stage.outputs]
        for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            self._spaces["output", k] = _empty(int(np.prod(shape)) * dtype.itemsize)
        for i, k in lowering.aliases if self.donated else ():
            self._spaces["output", k] = self._spaces["input", i]
        self._block(plan.steps)
        return [
            self._spaces["output", k][0].view(dtype).reshape(shape)
            for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        ]

    def _value(self, size: Any) -> int:
        return evaluate(parse(size) if isinstance(size, str) else size, self._sizes)

    def _bytes(self, number: int) -> tuple[Array, Array]:
        """The bytes of a buffer, and which of them are written."""
        buffer = self._buffers[number]
        start, key = (buffer.at, ("arena", 0)) if buffer.place == "arena" else (0, (buffer.place, buffer.at))
        data, written = self._spaces[key]
        stop = start + self._value(buffer.bytes)
        if stop > data.size:
            raise InternalError(f"buffer {number} ends at byte {stop} of {data.size} of the {buffer.place}")
        return data[start:stop], written[start:stop]

    def _block(self, steps: Sequence[Step]) -> None:
        for step in steps:
            getattr(self, _STEPS[type(step)])(step)

    def launch(self, step: Launch) -> None:
        """Evaluate a kernel on the buffers of a launch."""
        source = self.lowering.draft.kernels[step.kernel]
        kernel = self.lowering.programs[source]
        arguments: list[Memory | int] = []
        back: list[tuple[Memory, Array]] = []
        for argument, value, given in zip(source.arguments, kernel.block.args, step.arguments, strict=True):
            if argument.role == "size":
                arguments.append(self._value(given))
                continue
            data, written = self._bytes(cast(int, given))
            dtype = dtype_of(element(value))
            if value.first_use is None:  # launches whose kernels have equal code share one, whatever it does not read
                arguments.append(Memory(np.empty(0, dtype), np.empty(0, np.bool_)))
                continue
            whole = np.asarray(written.reshape(-1, dtype.itemsize).all(axis=1))
            memory = Memory(data.view(dtype), whole)
            if argument.role != "in":
                back.append((memory, written))
            arguments.append(memory)
        run(kernel, [self._value(size) for size in step.grid], arguments)
        for memory, written in back:
            written |= np.repeat(memory.written, memory.data.itemsize)

    def fill(self, step: Fill) -> None:
        """Set all bytes of a buffer."""
        data, written = self._bytes(step.buffer)
        data[:], written[:] = step.byte, True

    def copy(self, step: Copy) -> None:
        """Copy a buffer."""
        for target, source in zip(self._bytes(step.target), self._bytes(step.source), strict=True):
            target[:] = source

    def host(self, step: HostCall) -> None:
        """Call a host function on buffers."""
        types = [self._type(value) for value in step.outputs]
        inputs = [self._read(value) for value in step.inputs]
        results = call_function(step.function, inputs, step.attributes, lambda: types)
        for value, result in zip(step.outputs, results, strict=True):
            data, written = self._bytes(value.buffer)
            data[:], written[:] = np.frombuffer(result.tobytes(), np.uint8), True

    def _read(self, value: Located) -> Array:
        shape, dtype = self._type(value)
        data, written = self._bytes(value.buffer)
        if not written.all():
            raise InternalError(f"the host reads buffer {value.buffer}, of which something is not written")
        return data.view(dtype).reshape(shape).copy()

    def _type(self, value: Located) -> Type:
        return tuple([self._value(n) for n in value.dims]), dtype_of(value.dtype)

    def loop(self, step: Loop) -> None:
        """Run a block several times."""
        for _ in range(self._value(step.count)):
            self._block(step.body)

    def while_(self, step: While) -> None:
        """Run a block while a byte is not 0."""
        self._block(step.before)
        while self._bytes(step.condition)[0][0]:
            self._block(step.body)
            self._block(step.before)

    def case(self, step: Case) -> None:
        """Run one of several blocks."""
        data, _ = self._bytes(step.selector)
        last = len(step.branches) - 1
        if data.size == 1:
            number = 0 if data[0] else 1
        else:
            number = int(data.view(np.int32)[0])
        self._block(step.branches[number if 0 <= number <= last else last])


_STEPS: dict[type[Any], str] = {
    Launch: "launch", Fill: "fill", Copy: "copy", Loop: "loop", While: "while_", Case: "case", HostCall: "host",
}  # fmt: skip
"""Kind of step -> the runner's method."""


def _empty(count: int) -> tuple[Array, Array]:
    return np.full(count, 0xA5, np.uint8), np.zeros(count, np.bool_)


def _filled(array: Array) -> tuple[Array, Array]:
    data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).copy()
    return data, np.ones(data.size, np.bool_)


__all__ = ["PlanRunner", "evaluated", "keeps_bits"]
