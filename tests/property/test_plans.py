"""Where a kernel's results lie over its operands, no bit of them changes."""

from __future__ import annotations

from random import Random
from typing import cast

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.lowering.triton.evaluate import Memory, run
from gcomp.lowering.triton.tile import element
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import pipeline_for
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cuda.plan import Launch
from gcomp.testing.fuzz.trial import inputs_of
from gcomp.testing.gpu import PlanRunner


class Apart(PlanRunner):
    """Gives each kernel memory of its own for what it writes, and puts that in place when all is done."""

    shared = 0
    """Buffers that a kernel both read and wrote."""

    def launch(self, step: Launch) -> None:
        source = self.lowering.draft.sources[step.kernel]
        kernel = self.lowering.programs[source]
        arguments: list[Memory | int] = []
        back: list[tuple[Memory, int]] = []
        given = list(zip(source.arguments, kernel.block.args, step.arguments, strict=True))
        read = [number for argument, _, number in given if argument.role == "in"]
        for argument, value, number in given:
            if argument.role == "size":
                arguments.append(self._value(number))
                continue
            data, written = self._bytes(cast(int, number))
            dtype = dtype_of(element(value))
            memory = Memory(data.copy().view(dtype), np.asarray(written.reshape(-1, dtype.itemsize).all(axis=1)))
            if argument.role != "in":
                back.append((memory, cast(int, number)))
                Apart.shared += number in read
            arguments.append(memory)
        run(kernel, [self._value(size) for size in step.grid], arguments)
        for memory, number in back:
            data, written = self._bytes(number)
            data[:] = memory.data.view(np.uint8)
            written |= np.repeat(memory.written, memory.data.itemsize)


_OPS = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp)


def _chain(number: int, count: int = 200) -> Program:
    """Elementwise ops on values that were computed lately, too many for one kernel: they pass on many values."""
    random = Random(number)
    shape = (random.choice((3, 6, 70)), random.choice((1, 5)))
    program = Program.empty([("x", tensor(shape, "f32")), ("y", tensor(shape, "f32"))])
    b, values = Builder(program), list(program.block.args)
    for _ in range(count):
        near = values[-random.choice((3, 8, 30)) :]
        x, y = random.choice(near), random.choice(near)
        values.append(b.emit(hlo.TanhOp, x) if random.random() < 0.2 else b.emit(random.choice(_OPS), x, y))
    program.finish([(f"r{k}", value) for k, value in enumerate(values[-4:])])
    return program


def _differs(number: int) -> bool:
    """Whether sharing memory changes the results of a program."""
    program = _chain(number)
    inputs = inputs_of(number, program, Exactness.E0)
    PassManager(parse_pipeline(pipeline_for("triton:sm_90"))).run(program)
    results = [kind(program).run(inputs) for kind in (PlanRunner, Apart)]
    return any(a.tobytes() != b.tobytes() for a, b in zip(*results, strict=True))


def test_sharing_memory_changes_no_bit() -> None:
    Apart.shared = 0
    assert [number for number in range(40) if _differs(number)] == []
    assert Apart.shared > 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_sharing_memory_changes_no_bit_of_many(first: int) -> None:
    assert [number for number in range(first, first + 500) if _differs(number)] == []
