"""The engine of the reducer: proposes smaller programs, keeps one that is valid and still interesting, and goes on.

What can be proposed is in the other files of this package, as edits of a copy. A program is only ever replaced by one
that the verifier accepts, that is smaller or simpler, and that is interesting. Nothing is random: the same program and
the same predicate give the same result, unless the time ends first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from gcomp.dims import DimError
from gcomp.errors import GcompError
from gcomp.ir.composites import CANONICAL, is_canonical
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo import CompositeOp, ReduceOp
from gcomp.passes.structure import structure
from gcomp.testing.reduce.signature import tidy

Predicate = Callable[[Program], bool]
"""Whether a program still shows what is looked for. It must not change the program."""

Edit = Callable[[Program], bool]
"""Makes a program smaller or simpler, in place; False where there is nothing to do."""

_REFUSALS = (
    GcompError, VerifyException, DimError, ArithmeticError, LookupError, ValueError, TypeError, AttributeError,
    AssertionError,
)  # fmt: skip
"""What an edit raises where it does not suit a program: the candidate is given up."""


_NO_STEPS = ("builtin.module", "func.func", "stablehlo.constant", "gcomp.weight", "kernel.launch")
"""What holds steps, or is a value."""


def op_count(program: Program) -> int:
    """How many ops a program has: steps.

    What holds others or ends functions and regions is none, nor are constants and weights. A composite is one step, if
    its decomposition is the one that its name stands for, and so is a reduction that applies one op, as it is written.
    A kernel is the steps in it, and one where there are none: it runs all the same.
    """
    inside = _in_canonical(program)
    inside |= {op for r in program.ops() if isinstance(r, ReduceOp) and r.applied() for op in r.body.walk()}

    def is_step(op: Operation) -> bool:
        return op.name not in _NO_STEPS and op not in inside and not op.has_trait(IsTerminator)

    def is_empty(op: Operation) -> bool:
        return isinstance(op, LaunchOp) and not any(map(is_step, op.body.walk()))

    return sum(1 for op in program.ops() if is_step(op) or is_empty(op))


def _in_canonical(program: Program) -> set[Operation]:
    """What is in the decompositions that composites stand for by their names."""
    named = {op.decomposition_name for op in program.ops() if isinstance(op, CompositeOp) and is_canonical(program, op)}
    functions = [function for name in named if (function := program.function(name)) is not None]
    return {op for function in functions for op in function.walk()}


def misnamed(program: Program) -> int:
    """How many composites hold something else than what their name stands for, of names that stand for something."""
    known = (op for op in program.ops() if isinstance(op, CompositeOp) and op.composite_name in CANONICAL)
    return sum(not is_canonical(program, op) for op in known)


def constant_count(program: Program) -> int:
    """How many constants and weights a program has, which are values and not steps; not inside such composites."""
    inside = _in_canonical(program)
    return sum(1 for op in program.ops() if op.name in ("stablehlo.constant", "gcomp.weight") and op not in inside)


@dataclass
class Progress:
    """Where a reduction stands."""

    stage: str = ""
    ops: int = 0
    tried: int = 0
    kept: int = 0
    seconds: float = 0.0


@dataclass
class Reducer:
    """Holds the smallest interesting program found so far."""

    program: Program
    interesting: Predicate
    seconds: float = 60.0
    report: Callable[[Progress], object] | None = None
    started: float = field(default_factory=time.monotonic)
    progress: Progress = field(default_factory=Progress)
    tidying: bool = True
    """Whether what is dead is dropped with what it came from; not so where the failure needs dead code."""
    seen: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    _misnamed: int = 0

    def __post_init__(self) -> None:
        self._misnamed = misnamed(self.program)
        self.progress.ops = op_count(self.program)

    @property
    def out_of_time(self) -> bool:
        """Whether the time is spent."""
        return time.monotonic() - self.started > self.seconds

    def stage(self, name: str) -> None:
        """Say what is tried now."""
        self.progress.stage = name
        self._tell()

    def attempt(self, edit: Edit) -> bool:
        """Edit a copy; keep it if it is another valid program that is interesting."""
        if self.out_of_time:
            return False
        candidate = self.program.clone()
        try:
            if not edit(candidate):
                return False
            if self.tidying:
                tidy(candidate)
            key = structure(candidate)
            if key in self.seen:
                return False
            self.seen.add(key)
            candidate.verify()
            if misnamed(candidate) > self._misnamed:
                return False  # what a pass does there says nothing of programs that people have
        except _REFUSALS:
            return False
        return self.offer(candidate)

    def offer(self, candidate: Program) -> bool:
        """Keep a valid program if it is interesting."""
        self.progress.tried += 1
        kept = self.interesting(candidate)
        if kept:
            self.program = candidate
            self.progress.kept += 1
            self.progress.ops = op_count(candidate)
        self._tell()
        return kept

    def first_of(self, edits: Iterable[Edit]) -> bool:
        """Keep the first edit that can be kept."""
        return any(self.attempt(edit) for edit in edits)

    def remove(self, count: Callable[[Program], int], edit: Callable[[Program, range], bool]) -> bool:
        """Delta debugging: remove all of `count` things, halves, quarters, ... down to one by one, from the end."""
        changed = False
        size = count(self.program)
        while size >= 1 and not self.out_of_time:
            stop = count(self.program)
            while stop > 0 and not self.out_of_time:
                chunk = range(max(0, stop - size), stop)
                if self.attempt(lambda p, chunk=chunk: edit(p, chunk)):
                    changed = True
                stop = min(chunk.start, count(self.program))
            size //= 2
        return changed

    def each(self, count: Callable[[Program], int], edits: Callable[[Program, int], Sequence[Edit]]) -> bool:
        """For each of `count` things, from the last one, keep the first of its edits that can be kept."""
        changed = False
        for i in reversed(range(count(self.program))):
            if i < count(self.program) and not self.out_of_time:
                changed |= self.first_of(edits(self.program, i))
        return changed

    def _tell(self) -> None:
        self.progress.seconds = time.monotonic() - self.started
        if self.report is not None:
            self.report(self.progress)
