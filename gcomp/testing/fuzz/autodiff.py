"""Derivatives: reverse mode beside forward mode beside finite differences, on programs around every row of the table.

`gcomp.testing.derivatives` compares. What is wrong is blamed on the op whose derivative is wrong by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation

from gcomp.autodiff.rows import ROWS
from gcomp.autodiff.sweeps import differentiable
from gcomp.autodiff.table import Nothing, Refused
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.derivatives import check, derivatives, inputs_of, weights_differ
from gcomp.testing.fuzz.door import MAX_STEPS, ProgramDoor, Seen, Undefined, Wrong
from gcomp.testing.fuzz.numbers import base_of
from gcomp.testing.generate.around import around, plain, topic_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import finish, start_growth

Array = np.ndarray[Any, Any]

PALETTES = (("f64",), ("f64", "i32"), ("f64", "complex<f64>"), ("f64", "i1", "i64"))
_RANDOM = 4
"""Every so many-th program is random; the others are around a row."""
_VERIFIED = 4
"""Of so many programs, the derivatives of one are verified, which takes a third of all the time."""
_PLAIN = 16
"""Every so many-th program holds one op and nothing else."""
_MAY_BE_REFUSED = (
    "chlo.broadcast_polygamma", "chlo.broadcast_zeta", "chlo.polygamma", "chlo.zeta", "dynamic-pad", "dynamic-gather",
    "real-dynamic-slice", "dynamic-conv", "dynamic-iota", "dynamic-broadcast", "dynamic-reshape",
)  # fmt: skip
"""What has no derivative by some operand, or none where sizes are data."""
_EFFECT = "a branch or loop body with an effect"
"""So begins what is said where ops inside of an op are the reason."""
_WEIGHTED = 4
"""Of so many programs, one is differentiated for weights in place of inputs, too."""
_HELD = ("agrees", "not smooth")
"""Outcomes in which both modes agree; where the program is smooth, the finite difference too."""


def random_f64(number: int, size: int = 12) -> Program:
    """A random program of a number, in f64."""
    choices = Seeded(number)
    growth = start_growth(choices, size, PALETTES[number % len(PALETTES)])
    while growth.b.made < size and choices.span(lambda: choices.more() and growth.take(nested=True)):
        pass
    finish(growth)
    return growth.program


class Autodiff(ProgramDoor):
    """Gradients and tangents."""

    name: ClassVar[str] = "autodiff"
    summary: ClassVar[str] = "vjp and jvp beside each other and finite differences"
    components: ClassVar[str] = "rows of the table of derivatives"

    def expected(self) -> Sequence[str]:
        return [op.name for op, row in ROWS.items() if not isinstance(row, Nothing | Refused)]

    def program(self, number: int, size: int) -> Program:
        if number % _RANDOM == 0:
            return random_f64(number, size)
        if number % _PLAIN == 1:
            return plain(_turn(number), Seeded(number), "f64")
        return around(_turn(number), Seeded(number), 4, PALETTES[Seeded(number).weighted(_PALETTE_TOTALS)])

    def topic(self, number: int) -> str:
        return "random" if number % _RANDOM == 0 else topic_of(_turn(number))

    def must_take(self, number: int) -> bool:
        """Whether it is wrong to refuse the program of a number: it holds one op, and that has derivatives."""
        return number == base_of(number) and number % _PLAIN == 1 and self.topic(number) not in _MAY_BE_REFUSED

    def inputs(self, number: int, program: Program) -> list[Array]:
        return inputs_of(program, number)

    def transform(self, program: Program, number: int) -> object:
        return derivatives(program)

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        try:
            found = check(program, number, inputs, verify=number % _VERIFIED == 0)
        except VerificationError as error:
            return Wrong("invalid", str(error))
        except Exception as error:  # whatever a rule makes of it
            interpret(program, inputs, max_steps=MAX_STEPS)  # sizes that operands do not have are the program's fault
            return Wrong("crash", f"{type(error).__name__}: {error}", type(error).__name__)
        if found.outcome == "refused":
            if self.must_take(number) and not found.why.startswith(_EFFECT):
                return Wrong("refused", found.why, found.why.partition(":")[0])
            raise UnsupportedError("it has no derivative", why=found.why.partition(":")[0])
        if found.outcome == "wrong":
            return Wrong("meaning", found.why, found.why.split()[0])
        if found.outcome not in _HELD:
            raise Undefined(found.outcome)
        seen.components.update({self.component(op) for op in program.ops()} - {""})
        if found.outcome == "agrees" and number % _WEIGHTED == 1 and (why := weights_differ(program, inputs, number)):
            return Wrong("meaning", why, "weights", "weights")
        return None

    def component(self, op: Operation) -> str:
        row = ROWS.get(type(op))
        if row is None or isinstance(row, Nothing | Refused):
            return ""
        return op.name if any(map(differentiable, op.results)) else ""


def _turn(number: int) -> int:
    if number % _PLAIN == 1:
        return number // _PLAIN
    return number // _RANDOM * (_RANDOM - 1) + number % _RANDOM - 1


_PALETTE_TOTALS = (6, 8, 11, 12)


__all__ = ["Autodiff", "random_f64"]
