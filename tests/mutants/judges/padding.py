"""Judges padded programs by the door that `gcomp fuzz --what padding` goes through."""

from __future__ import annotations

from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.doors import door_of
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS, SIZE = 1500, 15


def judge(seed: int, mutant: Mutant) -> Kill | Survival | None:
    """Kill what the program of a number shows."""
    for tried in range(1, PROGRAMS + 1):
        if found := door_of("padding").attempt(seed * PROGRAMS + tried, SIZE, Coverage()):
            return Kill(tried, found.message)
    return Survival(PROGRAMS)


def prepare(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    found = (door_of("padding").attempt(seed * PROGRAMS + tried, SIZE, Coverage()) for tried in range(1, 60))
    return [one.message for one in found if one]


judge_of("pad-dims", prepare)(judge)
