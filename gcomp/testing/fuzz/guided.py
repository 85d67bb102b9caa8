"""Programs that a pass nearly changes, led by the pass's own code to ones that it changes.

A pattern does not say what it matches, but its code asks one thing after the other. What of the code runs on a program
says how far it gets: those that get further than all before are kept, and near misses of them are tried next.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType
from typing import Any

from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.passes import named_places, program_for, sources_of
from gcomp.testing.near import near_miss, touch
from gcomp.testing.near.sites import Touched

_TRIES, _ENOUGH = 400, 12
"""So many programs are looked at, until so many of them are changed."""
_NEW, _LATEST = 0.75, 0.5
"""How often one is new; of the others, how often it is a near miss of the one that got further last."""
_SIZE = 1
_RULE_TRIES = 12
"""A left side that is hard to build is met in another program; to insist takes seconds."""

Steps = frozenset[tuple[str, int, int]]
"""Instructions, each by the name and first line of its function and its place there."""


@dataclass(frozen=True)
class Reached:
    """A program, and what a pass did to it."""

    program: Program
    touched: Touched


@lru_cache(maxsize=8)
def reached_programs(step: Pass, seed: int) -> tuple[Reached, ...]:
    """Programs that a pass changes; or, where none was found, those on which it got furthest, the last one furthest."""
    pool, changed, known = list[Reached](), list[Reached](), set[tuple[str, int, int]]()
    for attempt in range(_TRIES):
        choices = Seeded((seed << 12) + attempt)
        program = _next_program(step, pool, choices, (seed << 12) + attempt)
        if program is None:
            continue
        touched, steps = _watch(step, lambda program=program: touch(step, program))
        reached = Reached(program, touched)
        if not steps <= known:
            known |= steps
            pool.append(reached)
        if touched.applied:
            changed.append(reached)
            if len(changed) >= _ENOUGH:
                break
    return tuple(changed or pool[-_ENOUGH:])


def _next_program(step: Pass, pool: list[Reached], choices: Choices, turn: int) -> Program | None:
    if not pool or choices.flag(_NEW):
        return program_for(step, choices, _SIZE, turn, tries=_RULE_TRIES)
    parent = pool[-1] if choices.flag(_LATEST) else choices.chosen(pool)
    places = parent.touched.places if parent.touched.applied else named_places(step, parent.program)
    return near_miss(parent.program, places, choices) if places else None


def _watch(step: Pass, run: Callable[[], Touched]) -> tuple[Touched, Steps]:
    """What a call gives, and the instructions of the pass's own files that it ran."""
    files, found, before = sources_of(step), set[tuple[str, int, int]](), sys.gettrace()

    def note(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            found.add((frame.f_code.co_qualname, frame.f_code.co_firstlineno, frame.f_lasti))
        return note

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return note

    sys.settrace(enter)
    try:
        return run(), frozenset(found)
    finally:
        sys.settrace(before)


__all__ = ["Reached", "reached_programs"]
