"""Indexing: which elements ops read, as the maps of the analysis say it, beside what changes when elements do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation

from gcomp.analysis.indexing import MAPS
from gcomp.ir.program import Program
from gcomp.reference.inputs import KINDS, InputSet
from gcomp.reference.sizes import size_choices
from gcomp.testing.fuzz.door import Seen, Undefined, Wrong
from gcomp.testing.fuzz.laws import Law, LawDoor
from gcomp.testing.generate.around import around, topic_of
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.relations import (
    Flaw,
    Ran,
    check_chains,
    check_contraction,
    check_paths,
    check_reads,
    check_simplification,
    ran,
)

Array = np.ndarray[Any, Any]

_LAW, _RANDOM = 8, 4
"""Every so many-th number is a law; every so many-th program is any, one is around any op, the others are around those
that read more, or elsewhere, than one element of each operand."""
STEPS_THAT_MOVE = (
    "reduce", "reduce-window", "select-and-scatter", "pad", "slice", "sort", "concatenate", "broadcast", "reshape",
    "transpose", "reverse", "dynamic-slice", "dynamic-update-slice", "cumulative", "batch-norm", "fft", "dot", "matmul",
    "triangular-solve", "gather", "scatter", "convolution", "scan", "argmax", "top-k", "dynamic-pad", "dynamic-gather",
    "real-dynamic-slice", "dynamic-reshape", "dynamic-broadcast", "bitcast", "map", "network",
)  # fmt: skip
_ELEMENTS = 4
"""So many elements of each operand are changed."""


def _simplify(choices: Choices) -> str:
    try:
        check_simplification(choices)
    except Flaw as flaw:
        return str(flaw)
    return ""


class Indexing(LawDoor):
    """What ops read."""

    name: ClassVar[str] = "indexing"
    summary: ClassVar[str] = "which elements each op reads, composed and simplified, beside what changes when they do"
    components: ClassVar[str] = "ops with maps"

    looks: ClassVar[bool] = False

    def expected(self) -> Sequence[str]:
        return [op.name for op in MAPS]

    def laws(self) -> Mapping[str, Law]:
        return {"simplified_maps_read_the_same": Law("simplify", _simplify)}

    def law_of(self, number: int) -> str:
        return next(iter(self.laws())) if number % _LAW == 0 else ""

    def program(self, number: int, size: int) -> Program:
        turn, kind = divmod(number, _RANDOM)
        if kind == 0:
            return seeded_program(number, size)
        return around(turn, Seeded(number), 4, steps=() if kind == 1 else STEPS_THAT_MOVE)

    def topic(self, number: int) -> str:
        turn, kind = divmod(number, _RANDOM)
        if name := self.law_of(number):
            return name
        return "random" if kind == 0 else topic_of(turn, () if kind == 1 else STEPS_THAT_MOVE)

    def inputs(self, number: int, program: Program) -> list[Array]:
        sizes = Seeded(number).chosen(size_choices(program))
        return InputSet(KINDS[number % len(KINDS)], sizes, tuple(program.inputs()), number).arrays

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        with np.errstate(all="ignore"):
            case = ran(program, inputs)
            if case is None:
                raise Undefined("it has no meaning for these inputs")
            choices = Seeded(number)
            for op in case.ops():
                if type(op) not in MAPS:
                    continue
                if wrong := _check_held(partial(_check, case, op, choices), op.name):
                    return wrong
                seen.components[op.name] += 1
            return _check_held(partial(check_paths, case, choices), "")

    def component(self, op: Operation) -> str:
        return op.name if type(op) in MAPS else ""


def _check(case: Ran, op: Operation, choices: Choices) -> None:
    check_reads(case, op, choices, _ELEMENTS)
    check_contraction(case.interpreter, op, choices)
    check_chains(case, op)


def _check_held(check: Callable[[], None], blamed: str) -> Wrong | None:
    try:
        check()
    except Flaw as flaw:
        return Wrong("reads", str(flaw), blamed=blamed)
    except Exception as error:  # whatever the analysis makes of an op
        return Wrong("crash", f"{type(error).__name__}: {error}", type(error).__name__, blamed)
    return None


__all__ = ["Indexing"]
