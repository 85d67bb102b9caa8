"""Judges the tile level: kernels of generated programs as tile programs, in the evaluator, against the reference."""

from __future__ import annotations

from functools import lru_cache

from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.kernels import try_kernels
from gcomp.testing.fuzz.plan import TILE, Plan
from gcomp.testing.fuzz.trial import Found
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS = 400
"""Generated programs, each of some four kernels."""


def tried(number: int) -> Found | None:
    """What is wrong with a program's kernels, if anything is."""
    return try_kernels(number, Plan(target=TILE), Coverage())


@lru_cache(1)
def already(seed: int) -> dict[int, str]:
    """What is wrong with nothing patched: these programs are left out, since they would kill controls."""
    numbers = range(seed << 32, (seed << 32) + PROGRAMS)
    return {number: found.message for number in numbers if (found := tried(number)) is not None}


def failures(seed: int) -> list[str]:
    """Prepare: texts of what is wrong already."""
    return [*already(seed).values()]


@judge_of("tiles", failures)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program one of whose kernels is wrong."""
    for i in range(PROGRAMS):
        number = (seed << 32) + i
        if number not in already(seed) and (found := tried(number)) is not None:
            return Kill(i + 1, found.message)
    return Survival(PROGRAMS)
