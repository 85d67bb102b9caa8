"""One pass on one program that was made for it, held to all that it promises.

The front door (`gcomp fuzz --pass`), the fixture `fuzz_pass`, the property tests and the mutants all take programs and
inputs from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.judging import Failure, Ran, Reference, judge, sets_for
from gcomp.passes.references import Given
from gcomp.reference.inputs import InputSet
from gcomp.testing.check import check_pass
from gcomp.testing.fuzz.guided import reached_programs
from gcomp.testing.fuzz.numbers import base_of, program_at
from gcomp.testing.generate.around import around
from gcomp.testing.generate.around import topic_of as turn_topic
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.passes import named_places, program_for
from gcomp.testing.generate.passes import topic_of as sought_topic
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.near import near_miss, touch
from gcomp.testing.near.excerpt import changed_excerpt
from gcomp.testing.reduce.record import carrier, record_values

Array = np.ndarray[Any, Any]

_RANDOM, _AROUND = 6, 3
"""Of so many families, one is made without looking at the pass, and one around each op and each step in its turn."""
FAMILY = 8
"""So many programs belong together: one that the pass changes, and near misses of it."""
_TOGETHER = 16
"""So many families share what was found for those of them that the pass changes nothing of."""
_FEW_SETS, _FEW_OPS = 2, 12
"""A pass that may reassociate is held to so many sets of inputs of a program that has more ops than these."""
STEPS = 4000
"""A run of more ops is a loop that goes round for ever, and says nothing."""


def program_of(step: Pass, number: int, size: int = 8, *, keep: bool = False) -> Program:
    """The program of a number for a pass: one made for it, or a near miss of one (`gcomp.testing.near`).

    Numbers come in families: the first of a family are made for the pass, until it applies a rewrite to one, and those
    that follow are near misses of that one.
    """
    return program_at(number, (step, size), lambda base: _of_family(step, base, size), keep=keep)


def _of_family(step: Pass, number: int, size: int) -> Program:
    place = number % FAMILY
    if place == 0:
        return _make_program(step, number, size)
    found = _first(step, number - place, size)
    if place <= found.place:
        return found.made[place].clone()
    base = _changed_program(step, number - place, size)
    if place == found.place + 1 and base.changed:
        return (base.excerpt or base).program.clone()
    of = base.excerpt if base.excerpt is not None and place % 2 else base
    missed = near_miss(of.program, of.places, Seeded(number)) if of.places else None
    return missed or _make_program(step, number, size)


@dataclass(frozen=True)
class _Family:
    """The programs that begin a family, which must not be changed, and where the pass touches the last of them."""

    made: list[Program]
    places: tuple[int, ...]
    applied: bool
    """Whether the pass applies a rewrite to the last of them."""

    @property
    def place(self) -> int:
        """Which of the family has the near misses."""
        return len(self.made) - 1


@lru_cache(maxsize=2)
def _first(step: Pass, number: int, size: int) -> _Family:
    made = [_make_program(step, number, size)]
    while not (found := touch(step, made[-1])).applied and len(made) < FAMILY // 2:
        made.append(_make_program(step, number + len(made), size))
    return _Family(made, found.places, found.applied)


@dataclass(frozen=True)
class _Base:
    """What near misses are made of: a program, which must not be changed, and the places that count there."""

    program: Program
    places: tuple[int, ...]
    changed: bool
    """Whether the pass changes it."""
    excerpt: _Base | None = None
    """Only what the pass changes of it."""


@lru_cache(maxsize=2)
def _changed_program(step: Pass, number: int, size: int) -> _Base:
    """What near misses are made of in a family: a program that the pass changes, or one that it nearly changes."""
    family = _first(step, number, size)
    program, places, applied = family.made[-1], family.places, family.applied
    if not applied and (reached := reached_programs(step, number // (FAMILY * _TOGETHER))):
        chosen = reached[-1 - number // FAMILY % len(reached)]
        program, places, applied = chosen.program, chosen.touched.places, chosen.touched.applied
    if not applied:
        return _Base(program, places or named_places(step, program), changed=False)
    cut = changed_excerpt(step, program, places)
    excerpt = None if cut is None else _Base(cut[0], cut[1].places, changed=True)
    return _Base(program, places, changed=True, excerpt=excerpt)


def topic_of(step: Pass, number: int) -> str:
    """What the family of a number is made around."""
    family = base_of(number) // FAMILY
    if family % _RANDOM == 0:
        return "random"
    return turn_topic(family // _RANDOM) if family % _RANDOM == _AROUND else sought_topic(step, family)


def _make_program(step: Pass, number: int, size: int) -> Program:
    family = number // FAMILY
    if family % _RANDOM == 0:
        return seeded_program(number, 2 * size)
    if family % _RANDOM == _AROUND:
        return around(family // _RANDOM, Seeded(number), size // 2)
    # Small ones have the more near misses that matter.
    return program_for(step, Seeded(number), size if family % 2 else max(1, size // 2), family)


def sets_of(step: Pass, program: Program, number: int) -> list[InputSet]:
    """Sets of inputs of all kinds of values; a few where a pass may reassociate, of which judging large programs takes
    longer."""
    costly = step.exactness is Exactness.E2 and program.op_count() > _FEW_OPS
    return sets_for(step, program, number, most=_FEW_SETS if costly else 6)


def inputs_of(step: Pass, program: Program, number: int) -> list[list[Array]]:
    """The arrays of those sets."""
    return [one.arrays for one in sets_of(step, program, number)]


def reference_for(step: Pass, program: Program, number: int) -> Reference:
    """What a pass is held against on a program: inputs are made when they are first needed."""
    return Reference(program, partial(sets_of, step, program, number), max_steps=STEPS)


def judge_program(step: Pass, reference: Reference, ran: Ran | None = None) -> Failure | None:
    """The promise that a pass breaks on a program. GcompError where the reference has no answer, or the pass refuses.

    `ran` is told what the pass did.
    """
    if step.level != "graph":
        try:
            step.run(reference.program.clone(), PassContext())  # a pass of a later level may refuse a program
        except GcompError:
            raise
        except Exception:  # it crashes: the judge says so
            pass
    try:
        return judge(step, reference, ran=ran)
    except GcompError:
        raise
    except Exception as error:  # what a pass left, and the reference cannot take
        message = f"what it left cannot be run: {type(error).__name__}: {error}"
        return Failure("crash", str(step.spec()), message, error=type(error).__name__)


def showing(program: Program, step: Pass, broken: Failure | None, sets: Sequence[Given]) -> dict[str, Array]:
    """The values of a run on the first set of inputs that shows a failure, or else on the first."""
    known = [_record(program, inputs) for inputs in Reference(program, sets).inputs]
    for values in known:
        with suppress(GcompError):
            failure = None if broken is None else check_pass(step, program, carrier(values))
            if broken is not None and failure is not None and failure.fingerprint() == broken.fingerprint():
                return values
    return known[0]


def _record(program: Program, inputs: list[Array]) -> dict[str, Array]:
    try:
        return record_values(program, inputs)
    except GcompError:
        return {port.name: array for port, array in zip(program.inputs(), inputs, strict=True)}


__all__ = [
    "FAMILY",
    "STEPS",
    "inputs_of",
    "judge_program",
    "program_of",
    "reference_for",
    "sets_of",
    "showing",
    "topic_of",
]
