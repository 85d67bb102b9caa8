"""Tile programs: kernels as schedules make them, in the evaluator, beside the reference."""

from __future__ import annotations

from typing import ClassVar

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Scheduled
from gcomp.lowering.triton.printing import print_kernel
from gcomp.testing.fuzz.door import Seen
from gcomp.testing.fuzz.kernels import Checker, KernelDoor
from gcomp.testing.tiles import verify_schedule

_THOROUGH = 0.25
"""How many kernels are held to being well formed, and printed as Python that compiles."""


class TileChecker(Checker):
    """Holds tile programs to what the graph means."""

    def scheduled(self, op: LaunchOp) -> Scheduled:
        found = super().scheduled(op)
        if self._is_thorough(op):
            for step in verify_schedule(found).steps:
                compile(print_kernel(step).text, "<kernel>", "exec")
        return found

    def least(self, op: LaunchOp) -> int:
        """16 for what is printed, as GPUs ask for it; the evaluator does not."""
        return 16 if self._is_thorough(op) else 1

    def _is_thorough(self, op: LaunchOp) -> bool:
        return self.random(op).random() < _THOROUGH


class Tile(KernelDoor):
    """Kernels as tile programs."""

    name: ClassVar[str] = "tile"
    summary: ClassVar[str] = "kernels for GPUs as tile programs, in the evaluator, beside the reference"

    def checker(self, program: Program, number: int, seen: Seen) -> Checker:
        return TileChecker(program, number, seen)
