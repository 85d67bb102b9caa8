"""Where a kernel's results lie over its operands, or in donated inputs' memory, no bit of them changes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.steps import Launch
from gcomp.targets.base import target_named
from gcomp.testing.fuzz.trial import inputs_of
from gcomp.testing.plans import PlanRunner

Array = np.ndarray[Any, Any]


class Apart(PlanRunner):
    """Gives each kernel memory of its own for what it writes, and puts that in place when all is done."""

    shared = 0
    """Buffers that a kernel both read and wrote."""

    _copies: list[tuple[int, Array, Array]] | None = None

    def _bytes(self, number: int) -> tuple[Array, Array]:
        found = super()._bytes(number)
        if self._copies is None:
            return found
        self._copies.append((number, found[0].copy(), found[1].copy()))
        return self._copies[-1][1:]

    def launch(self, step: Launch) -> None:
        self._copies = []
        super().launch(step)
        copies, self._copies = self._copies, None
        arguments = self.lowering.draft.kernels[step.kernel].arguments
        roles = [argument.role for argument in arguments if argument.role != "size"]
        read = [number for role, (number, *_) in zip(roles, copies, strict=True) if role == "in"]
        for role, (number, *parts) in zip(roles, copies, strict=True):
            if role != "in":
                Apart.shared += number in read
                for target, source in zip(self._bytes(number), parts, strict=True):
                    target[:] = source


class Brought(PlanRunner):
    """Has donated inputs brought to the GPU: outputs have memory of their own."""

    donated = False


_OPS = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp)


def _chain(number: int, count: int = 200, *, donated: bool = True) -> Program:
    """Elementwise ops on values that were computed lately, too many for one kernel: they pass on many values.

    Some have steps on the host between, and inputs that are donated.
    """
    random = Random(number)
    cuts = (count // 3, count // 2) if random.random() < 0.2 else ()
    shape = (4, 4) if cuts else (random.choice((3, 6, 70)), random.choice((1, 5)))
    program = Program.empty([("x", tensor(shape, "f32")), ("y", tensor(shape, "f32"))])
    b, values = Builder(program), list(program.block.args)
    for i in range(count):
        if i in cuts:
            values.append(b.emit(hlo.CholeskyOp, b.maximum(values[-1], b.constant(np.eye(4, dtype=np.float32), "f32"))))
        near = values[-random.choice((3, 8, 30)) :]
        x, y = random.choice(near), random.choice(near)
        values.append(b.emit(hlo.TanhOp, x) if random.random() < 0.2 else b.emit(random.choice(_OPS), x, y))
    program.finish([(f"r{k}", value) for k, value in enumerate(values[-4:])])
    program.donate({name for name in ("x", "y") if donated and random.random() < 0.5})
    return program


def _planned(program: Program) -> Program:
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(program)
    return program


def _differs(number: int) -> bool:
    """Whether sharing memory changes the results of a program."""
    program = _chain(number)
    inputs = inputs_of(number, program, Exactness.E0)
    donates = any(port.donated for port in program.inputs())
    planned = _planned(program)
    runners = [kind(planned) for kind in (PlanRunner, Apart)]
    if donates:
        runners += [Brought(planned), PlanRunner(_planned(_chain(number, donated=False)))]
    results, *others = [runner.run(inputs) for runner in runners]
    return any(a.tobytes() != b.tobytes() for other in others for a, b in zip(results, other, strict=True))


def test_sharing_memory_changes_no_bit() -> None:
    Apart.shared = 0
    assert [number for number in range(8) if _differs(number)] == []
    assert Apart.shared > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_sharing_memory_changes_no_bit_of_many(first: int) -> None:
    assert [number for number in range(first, first + 500) if _differs(number)] == []
