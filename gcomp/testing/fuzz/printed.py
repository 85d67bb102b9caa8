"""Printed kernels: the text of tile programs, run in Triton's own interpreter, beside the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.testing.fuzz.door import Seen, Wrong
from gcomp.testing.fuzz.kernels import Checker, KernelDoor
from gcomp.testing.printed import cross_check

Array = np.ndarray[Any, Any]

SECONDS = 60.0
"""For one kernel."""


@cache
def interpreter() -> Interpreter:
    """Triton's, in a process that lives as long as this one."""
    return Interpreter(SECONDS)


class PrintedChecker(Checker):
    """Holds the printed text of kernels to their tile programs."""

    def judged(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        if op not in self._scheduled:
            self._scheduled[op] = self.scheduled(op)
        if found := cross_check(op, self._scheduled[op], args, sizes, interpreter()):
            self.wrong = Wrong("meaning", self.of(op, "; ".join(found)), op.kind_name)


class Printed(KernelDoor):
    """Kernels as printed."""

    name: ClassVar[str] = "printed"
    summary: ClassVar[str] = "the text of kernels in Triton's interpreter, beside their tile programs"

    def missing(self) -> str:
        return "" if find_spec("triton") else "Triton, which interprets what is printed, is not installed"

    def checker(self, program: Program, number: int, seen: Seen) -> Checker:
        return PrintedChecker(program, number, seen)
