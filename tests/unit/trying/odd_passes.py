"""Passes that misbehave, each in its own way: `gcomp try` tells them apart."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
TWICE = (Rule("odd-not-twice", Op(hlo.NotOp, Op(hlo.NotOp, x)), x),)
THRICE = (Rule("odd-not-thrice", Op(hlo.NotOp, Op(hlo.NotOp, Op(hlo.NotOp, x))), Op(hlo.NotOp, x)),)
SEEN: list[int] = []


@dataclass(frozen=True)
class Fine(Pass):
    """Does what it says."""

    name: ClassVar[str] = "odd-fine"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Raises(Pass):
    """Divides by zero where there is a complement."""

    name: ClassVar[str] = "odd-raises"

    def run(self, program: Program, context: PassContext) -> bool:
        if any(isinstance(op, hlo.NotOp) for op in program.ops()):
            raise ZeroDivisionError("complement")
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Loops(Pass):
    """Goes round for ever."""

    name: ClassVar[str] = "odd-loops"

    def run(self, program: Program, context: PassContext) -> bool:
        while any(isinstance(op, hlo.NotOp) for op in program.ops()):
            time.sleep(0.01)
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Breaks(Pass):
    """Leaves a use of a value that is defined later."""

    name: ClassVar[str] = "odd-breaks"

    def run(self, program: Program, context: PassContext) -> bool:
        for op in program.ops():
            if isinstance(op, hlo.NotOp) and op.next_op is not None and op.next_op.results:
                later = op.next_op
                later.detach()
                op.parent.insert_op_before(later, op)
                return True
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Writes(Pass):
    """Writes a file for each program."""

    name: ClassVar[str] = "odd-writes"

    def run(self, program: Program, context: PassContext) -> bool:
        Path(os.environ["TMPDIR"], "odd.txt").write_text("seen", "utf-8")
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Remembers(Pass):
    """Keeps what it has seen, in a list of its module, and changes the environment."""

    name: ClassVar[str] = "odd-remembers"

    def run(self, program: Program, context: PassContext) -> bool:
        SEEN.append(program.op_count())
        os.environ["ODD"] = str(len(SEEN))
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Random(Pass):
    """Throws a coin."""

    name: ClassVar[str] = "odd-random"

    def run(self, program: Program, context: PassContext) -> bool:
        return random.random() < 0.5 and apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Thrice(Pass):
    """Matches more than there often is."""

    name: ClassVar[str] = "odd-thrice"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, THRICE, context)


@dataclass(frozen=True)
class Spins(Pass):
    """Goes round for ever where there are two complements, using the processor."""

    name: ClassVar[str] = "odd-spins"

    def run(self, program: Program, context: PassContext) -> bool:
        while sum(isinstance(op, hlo.NotOp) for op in program.ops()) > 1:
            pass
        return apply_rewrites(program, TWICE, context)


@dataclass(frozen=True)
class Slow(Pass):
    """Takes a quarter of a second for nothing."""

    name: ClassVar[str] = "odd-slow"

    def run(self, program: Program, context: PassContext) -> bool:
        end = time.process_time() + 0.25
        while time.process_time() < end:
            pass
        return apply_rewrites(program, TWICE, context)
