"""Programs for several devices: what each device runs of them, in lockstep and by XLA, beside the whole program.

A random program with shardings is partitioned by gcomp, some after their shardings were propagated, and interpreted on
virtual devices. XLA compiles others for eight virtual devices: in turn as its own partitioner cuts them, and as gcomp
does, with collectives stated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gcomp.errors import GcompError, UnsupportedError
from gcomp.exactness import Exactness
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.references import Reference
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.testing.fuzz.door import MAX_STEPS, ProgramDoor, Seen, Wrong, wrong_step
from gcomp.testing.fuzz.trial import inputs_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.sharded import sharded_program
from gcomp.testing.targets import TargetCheck

Array = np.ndarray[Any, Any]

DEVICES = 8
_FLAG = "--xla_force_host_platform_device_count"
_LOCKSTEP = ("partition", "propagate-shardings,partition") * 3
_WAYS = (*_LOCKSTEP, "xla", *_LOCKSTEP, "partition; xla")
"""What programs go through, in turn: passes, and XLA, which takes ten times as long."""
_BY_XLA = "XLA does not support"
"""What gcomp's error says where XLA, and not gcomp, does not take a program: it was to be written otherwise."""
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")


class OnMesh(ProgramDoor):
    """Programs for several devices."""

    name: ClassVar[str] = "mesh"
    summary: ClassVar[str] = "programs with shardings, on virtual devices in lockstep and by XLA"
    components: ClassVar[str] = "ops that each device runs"

    def expected(self) -> Sequence[str]:
        return [f"stablehlo.{name}" for name in COLLECTIVES]

    def program(self, number: int, size: int) -> Program:
        return sharded_program(Seeded(number), size)

    def inputs(self, number: int, program: Program) -> list[Array]:
        return inputs_of(number, program, Exactness.E2)

    def topic(self, number: int) -> str:
        return _WAYS[number % len(_WAYS)]

    def transform(self, program: Program, number: int) -> object:
        for step in _steps(number):
            step.run(program, PassContext())
        return program

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        reference = Reference(program, [list(inputs)], max_steps=MAX_STEPS)
        expected = reference.expected(0)
        if isinstance(expected, GcompError):
            raise expected
        steps, current = _steps(number), program.clone()
        for step in steps:
            if wrong := wrong_step(step, current):
                return wrong
        wrong = self._by_xla(program, steps, inputs) if "xla" in self.topic(number) else None
        if wrong is None and steps:
            wrong = _in_lockstep(reference, current)
        if wrong is None:
            seen.components.update(_run_by_devices(current))
        return wrong

    @cached_property
    def _devices(self) -> dict[bool, TargetCheck]:
        """Workers with eight devices: for programs as they are, and for those that are partitioned before."""
        flags = re.sub(rf"{_FLAG}=\d+", "", os.environ.get("XLA_FLAGS", ""))
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}={DEVICES}".strip()
        return {
            stated: TargetCheck("xla:cpu", parse_pipeline("partition") if stated else ()) for stated in (False, True)
        }

    def _by_xla(self, program: Program, steps: Sequence[Pass], inputs: Sequence[Array]) -> Wrong | None:
        if any(isinstance(op, hlo.RngOp) for op in program.ops()):
            raise UnsupportedError("XLA draws random numbers of its own")
        failure = self._devices[bool(steps)].failure(program, inputs)
        if failure is not None and failure.kind == "unsupported" and _BY_XLA not in failure.message:
            raise UnsupportedError(failure.message.partition("\n")[0].removeprefix("UnsupportedError: "))
        if failure is None or failure.kind == "deviation":
            return None
        return Wrong(f"xla {failure.kind}", str(failure), failure.fingerprint()[1])


def _steps(number: int) -> list[Pass]:
    passes = _WAYS[number % len(_WAYS)].partition(";")[0]
    return [] if passes == "xla" else parse_pipeline(passes)


def _in_lockstep(reference: Reference, partitioned: Program) -> Wrong | None:
    found = reference.difference(
        Exactness.E2, 0, lambda arrays: interpret(partitioned, arrays, max_steps=DEVICES * 4 * MAX_STEPS)
    )
    return None if found is None else Wrong("meaning", f"{found.where}: {found.why}")


def _run_by_devices(program: Program) -> set[str]:
    """The ops that devices run on their parts; those that send, where XLA puts them in, are not seen."""
    computations = [op for op in program.block.ops if isinstance(op, sdy.ManualComputationOp)]
    return {op.name for each in computations for op in each.walk() if op is not each}


__all__ = ["OnMesh"]
