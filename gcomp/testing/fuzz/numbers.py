"""Numbers of programs: each makes one, and may ask for variations of it.

The low bits are the number of a program; above them stand up to three variations, each of the one before it: other
inputs, or a near miss of the program (`gcomp.testing.near`). So a number alone says what was judged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from gcomp.ir.program import Program
from gcomp.testing.fuzz.coverage import Undefined
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.near import near_miss

_BASE, _DIGIT, MOST = 96, 16, 3
_OTHER_INPUTS = 4
"""Every so many-th variation is the same program: inputs, and other choices, come from the number."""


def base_of(number: int) -> int:
    """The number without its variations."""
    return number & ((1 << _BASE) - 1)


def variations_of(number: int) -> list[int]:
    """The variations of a number, the first one first."""
    rest, found = number >> _BASE, list[int]()
    while rest:
        rest, digit = divmod(rest, 1 << _DIGIT)
        found.append(digit)
    return found


def vary_number(number: int, variation: int) -> int:
    """A number with a variation more, from 1 on; in place of the last one where there are as many as may be."""
    found = variations_of(number)[: MOST - 1]
    for i, digit in enumerate((*found, 1 + variation % ((1 << _DIGIT) - 1))):
        number = number & ((1 << (_BASE + i * _DIGIT)) - 1) | digit << (_BASE + i * _DIGIT)
    return number


def program_at(number: int, maker: Hashable, make: Callable[[int], Program], *, keep: bool = False) -> Program:
    """The program of a number, of which `make` gives those without variations. Undefined where one has no near miss.

    Where it is looked at first and judged then, one is to `keep` it, and it is not made again for the same `maker`.
    """
    made = _kept.pop((number, maker), None) or _make_program(number, make)
    _kept.clear()
    if keep:
        _kept[number, maker] = made.clone()
    return made


_kept: dict[tuple[int, Hashable], Program] = {}


def _make_program(number: int, make: Callable[[int], Program]) -> Program:
    program = make(base_of(number))
    for i, digit in enumerate(variations_of(number)):
        if digit % _OTHER_INPUTS == 0:
            continue
        places = range(sum(1 for _ in program.ops()))
        missed = near_miss(program, places, Seeded(number & ((1 << (_BASE + (i + 1) * _DIGIT)) - 1)))
        if missed is None:
            raise Undefined("nothing valid is near")
        program = missed
    return program


__all__ = ["base_of", "program_at", "vary_number"]
