"""Judges the tile level by the door that `gcomp fuzz --what tile` goes through."""

from __future__ import annotations

from functools import lru_cache

from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.doors import door_of
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS, SIZE = 800, 15


@lru_cache(1)
def known(seed: int) -> dict[int, str]:
    """What is wrong already, by number: these would kill controls."""
    found = ((n, door_of("tile").attempt(n, SIZE, Coverage())) for n in _numbers(seed))
    return {number: one.message for number, one in found if one is not None}


def failures(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    return [*known(seed).values()]


def _numbers(seed: int) -> range:
    return range(seed * PROGRAMS, (seed + 1) * PROGRAMS)


@judge_of("tiles", failures)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program one of whose kernels is wrong."""
    for tried, number in enumerate(_numbers(seed), 1):
        found = door_of("tile").attempt(number, SIZE, Coverage()) if number not in known(seed) else None
        if found is not None:
            return Kill(tried, found.message)
    return Survival(PROGRAMS)
