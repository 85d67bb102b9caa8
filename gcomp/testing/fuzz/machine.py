"""Kernels as machine code: tile programs on this processor, beside the evaluator, for every width of vectors it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.schedules import Scheduled, schedule
from gcomp.runtime.cpu.variants import VARIANTS, Variant, describe, runs
from gcomp.testing.fuzz.door import Seen, Wrong
from gcomp.testing.fuzz.kernels import Checker, KernelDoor
from gcomp.testing.machine import Kernels, cross_check, printed

Array = np.ndarray[Any, Any]

_OWN = 0.5
"""How many kernels are scheduled as the target does it; others in settings of any kind."""


@cache
def variants() -> Sequence[Variant]:
    """The kinds of processors that this machine is."""
    return [variant for variant in VARIANTS.values() if runs(variant)]


class MachineChecker(Checker):
    """Holds the machine code of kernels to their tile programs."""

    def __init__(self, program: Program, number: int, seen: Seen) -> None:
        super().__init__(program, number, seen)
        self._kernels: dict[LaunchOp, list[tuple[Variant, Kernels]]] = {}

    def scheduled(self, op: LaunchOp) -> Scheduled:
        if self.random(op).random() < _OWN:
            return schedule(op, "kernel", self.ranges, settings_for(op, self.ranges, variants()[-1].bits))
        return super().scheduled(op)

    def transform(self, op: LaunchOp) -> object:
        return [printed(step.kernel, "kernel", variants()[-1]) for step in self.scheduled(op).steps]

    def judged(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        if op not in self._kernels:
            scheduled = self._scheduled[op] = self.scheduled(op)
            self._kernels[op] = [(variant, Kernels(scheduled, variant)) for variant in variants()]
        for variant, kernels in self._kernels[op]:
            if found := cross_check(op, kernels, args, sizes):
                self.wrong = Wrong("meaning", self.of(op, f"{variant.name}: {'; '.join(found)}"), op.kind_name)
                return


class Machine(KernelDoor):
    """Kernels as machine code."""

    name: ClassVar[str] = "machine"
    summary: ClassVar[str] = "the machine code of kernels, beside their tile programs: the same bits"

    def missing(self) -> str:
        if not find_spec("llvmlite"):
            return "llvmlite, which makes machine code, is not installed"
        return "" if variants() else f"gcomp compiles for no processor of this kind: {describe()}"

    def checker(self, program: Program, number: int, seen: Seen) -> Checker:
        return MachineChecker(program, number, seen)
