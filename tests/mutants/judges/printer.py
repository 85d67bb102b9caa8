"""Judges the printer of LLVM IR by the door that `gcomp fuzz --what machine` goes through: one machine's kernels."""

from __future__ import annotations

from contextlib import suppress

from gcomp.errors import GcompError
from gcomp.testing.fuzz.door import Seen, Undefined, Wrong
from gcomp.testing.fuzz.doors import door_of
from gcomp.testing.fuzz.kernels import KernelDoor
from gcomp.testing.fuzz.machine import SCHEDULES
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS, SIZE = 400, 15


def judge(seed: int, mutant: Mutant) -> Kill | Survival | None:
    """Kill what the kernels of a program show."""
    for tried in range(1, PROGRAMS + 1):
        if found := _wrong(seed * PROGRAMS + tried):
            return Kill(tried, found.message)
    return Survival(PROGRAMS)


def prepare(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    found = (_wrong(seed * PROGRAMS + tried) for tried in range(1, 20))
    return [one.message for one in found if one]


def _wrong(turn: int) -> Wrong | None:
    """What is wrong with the kernels of a program, each program in one of its schedules."""
    door = door_of("machine")
    assert isinstance(door, KernelDoor)
    with suppress(GcompError, Undefined):
        return door.run(turn * SCHEDULES + turn % SCHEDULES, SIZE, Seen()).wrong
    return None


judge_of("printer", prepare)(judge)
