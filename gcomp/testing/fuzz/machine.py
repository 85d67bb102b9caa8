"""Kernels as machine code, beside the evaluator of tile programs: the same bits.

    --what machine              code for this processor
    --what machine:aarch64      code for another one, which qemu's user mode runs

Code for wider vectors than this processor has is judged too, as far as it can be: as it is printed, and compiled for
this processor. Kernels in the target's own settings give the same bits in those of all processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from random import Random
from typing import Any, ClassVar

import numpy as np

from gcomp.errors import VerificationError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.executor import execute
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.schedules import Scheduled, Settings, schedule
from gcomp.runtime.cpu.variants import VARIANTS, Variant, describe, runs
from gcomp.testing import emulated, tiles
from gcomp.testing.fuzz.door import Seen, Wrong
from gcomp.testing.fuzz.kernels import Checker, KernelDoor
from gcomp.testing.machine import Kernels, Place, all_differences, run_here

Array = np.ndarray[Any, Any]

_OWN = 0.3
"""How many kernels are scheduled as the target does it; others in settings of any kind."""
_OTHERS = 0.25
"""How many of these are held to the settings of all other processors, too."""
_WIDE = 0.25
"""How many kernels are printed for vectors of another width than the processor's."""
_BLOCK = 16
"""Elements of a block, mostly: two of the narrowest vectors and more, in text that LLVM compiles fast."""
_LONG, _GREAT, _LARGE = 12_000, 100_000, 1 / 100
"""A kernel of so much text takes LLVM long: it is scheduled again in the smallest blocks. Some have blocks of any size,
and may have a great deal of text."""
SCHEDULES = 4
"""How many numbers stand for one program, each for other settings and inputs: what is judged are tile programs."""


@dataclass(frozen=True)
class Machine:
    """A processor whose code can be run: what LLVM compiles for, and where that is run."""

    variant: Variant
    place: Place

    def widths(self) -> Sequence[int]:
        """The widths of vectors that kernels may be printed for: LLVM cuts those up that the processor has not."""
        return sorted({variant.bits for variant in VARIANTS.values()})


@dataclass(frozen=True)
class Printed:
    """A kernel's text, and the target's settings if it is in these and others are to give the same bits."""

    kernels: Kernels
    bits: int
    own: Settings | None


class MachineChecker(Checker):
    """Holds the machine code of kernels to their tile programs."""

    def __init__(self, program: Program, number: int, seen: Seen, machine: Machine) -> None:
        super().__init__(program, number, seen)
        self.machine = machine
        self._printed: dict[LaunchOp, Printed] = {}

    def judged(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        fresh, printed = op not in self._printed, self._print(op)
        try:
            evaluated = execute(op, printed.kernels.scheduled, args, sizes)
        except VerificationError:
            if not self.shares_places(op, args, sizes, expected):
                raise
            return
        if fresh:
            printed.kernels.compile(self.machine.variant)
            if printed.bits != self.machine.variant.bits:
                self.seen.components[f"vectors of {printed.bits} bits"] += 1
        found = all_differences(evaluated, printed.kernels.run(op, args, sizes, self.machine.place))
        if printed.own is not None and not found:
            found = self._differ(op, printed.own, args, sizes, evaluated)
        if found:
            text = f"{self.machine.variant.name}: {'; '.join(found)}"
            self.wrong = Wrong("meaning", self.of(op, text), op.kind_name)
            return
        # Functions are expanded in both, and equally wrong then: the reference knows what they are.
        self._report(op, tiles.differences(op, self.ranges, args, sizes, expected, evaluated))

    def scheduled(self, op: LaunchOp) -> Scheduled:
        return self._print(op).kernels.scheduled

    def transform(self, op: LaunchOp) -> object:
        return self._print(op)

    def _print(self, op: LaunchOp) -> Printed:
        """Schedule and print a kernel, in settings that come from its number."""
        if op in self._printed:
            return self._printed[op]
        random, machine = self.random(op), self.machine
        is_large = random.random() < _LARGE
        is_own, bits = random.random() < (_OWN if op.kind_name != "attention" or is_large else 0), machine.variant.bits
        if random.random() < _WIDE:
            bits = random.choice(machine.widths())
        if is_own:
            settings = settings_for(op, self.ranges, bits)
        else:
            settings = self._settings_for(op, random, None if is_large else _BLOCK)
        kernels = self._of(op, settings, bits)
        if sum(len(module.text) for module in kernels.modules) > (_GREAT if is_large else _LONG):
            kernels, is_own = self._of(op, self._settings_for(op, random, 2), bits), False
        found = Printed(kernels, bits, settings if is_own and random.random() < _OTHERS else None)
        self._printed[op] = found
        return found

    def _settings_for(self, op: LaunchOp, random: Random, most: int | None) -> Settings:
        """Settings in which every sum has an order that is known, and programs may be one thread's."""
        found = tiles.settings_for(op, random, 1, most).values
        threads = {name: random.choice(values) for name, values in _OF_THREADS.get(op.kind_name, {}).items()}
        return Settings({**found, **threads, "exact": 1})

    def _of(self, op: LaunchOp, settings: Settings, bits: int) -> Kernels:
        variant = self.machine.variant
        words = variant.words if bits == variant.bits else ""
        return Kernels(schedule(op, "kernel", self.ranges, settings), bits, words)

    def _differ(
        self, op: LaunchOp, own: Settings, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]
    ) -> list[str]:
        """Where tile programs in the settings of other processors compute other bits."""
        for bits in self.machine.widths():
            settings = settings_for(op, self.ranges, bits)
            if settings == own:
                continue
            scheduled = schedule(op, "kernel", self.ranges, settings)
            for step in scheduled.steps:
                expand(step.kernel)
            if found := all_differences(expected, execute(op, scheduled, args, sizes)):
                return [f"in the settings for vectors of {bits} bits: {why}" for why in found]
        self.seen.components["settings of all processors"] += 1
        return []


_OF_THREADS: Mapping[str, Mapping[str, Sequence[int]]] = {"sort": {"merge": (0, 2, 16), "select": (0, 3, 512)}}
"""Kind of kernel -> what its schedule may choose where a program is one thread of a processor, and choices."""


class MachineDoor(KernelDoor):
    """Kernels as machine code."""

    name: ClassVar[str] = "machine"
    summary: ClassVar[str] = "the machine code of kernels, beside their tile programs: the same bits"

    def __init__(self, machine: str = "") -> None:
        self._machine = machine
        self._last: tuple[tuple[int, int], Program] | None = None

    def missing(self) -> str:
        if not find_spec("llvmlite"):
            return "llvmlite, which makes machine code, is not installed"
        if self._machine:
            return emulated.missing(self._machine)
        return "" if _here() else f"gcomp compiles for no processor of this kind: {describe()}"

    def checker(self, program: Program, number: int, seen: Seen) -> Checker:
        return MachineChecker(program, number, seen, _machine(self._machine))

    def program(self, number: int, size: int) -> Program:
        return super().program(number // SCHEDULES, size)

    def topic(self, number: int) -> str:
        return super().topic(number // SCHEDULES)

    def must_take(self, number: int) -> bool:
        return super().must_take(number // SCHEDULES)

    def cut(self, number: int, size: int) -> tuple[Program, list[Array]]:
        """The program is not made and cut again for a number that stands for the same one."""
        key = number // SCHEDULES, size
        if self._last is None or self._last[0] != key:
            self._last = key, self.in_kernels(self.made(number, size))
        program = self._last[1]
        return program, self.inputs(number, program)


def _here() -> Sequence[Variant]:
    """The kinds of processors that this machine is."""
    return [variant for variant in VARIANTS.values() if runs(variant)]


@cache
def _machine(name: str) -> Machine:
    """What runs code for a kind of processor: of this one where none is named."""
    if not name:
        return Machine(_here()[-1], run_here)
    return Machine(VARIANTS[name], emulated.Emulator(VARIANTS[name].machine))
