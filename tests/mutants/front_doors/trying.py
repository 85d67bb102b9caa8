"""What becomes of a mutant at its front doors."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.mutants.changes import Change
from tests.mutants.front_doors.doors import Answer, Key, Scratch
from tests.mutants.front_doors.folders import Command, Folder, doors_of

FOUND, CRASHED, HUNG, ALIVE = "found", "crashed", "hung", "alive"
_FEW = 20
"""Programs that a command with no mistake in it is seen to end."""


@dataclass(frozen=True)
class Verdict:
    """A mutant and what the doors said: `found` (a failure), `crashed` (the command ended otherwise than without the
    change), `hung` (it came to nothing in its time, and does without the change), or `alive`."""

    seed: int
    folder: str
    key: str
    module: str
    line: int
    operator: str
    before: str
    after: str
    how: str
    door: str = ""
    said: str = ""
    programs: int = 0
    seconds: float = 0.0

    @property
    def is_found(self) -> bool:
        """Whether its user has been told that something is wrong."""
        return self.how != ALIVE

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass
class Controls:
    """What commands say of the sources as they are: what fails there already is no mutant's doing."""

    clean: Scratch
    _answers: dict[tuple[Command, int], Answer] = field(default_factory=dict[tuple[Command, int], Answer])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, command: Command, seed: int, programs: int) -> Answer:
        """The answer on at least so many programs."""
        with self._lock:
            known = self._answers.get((command, seed))
            if known is None or known.tried < programs:
                # Unhurried: only what it says counts.
                known = self.clean.ask(command, 600.0, seed, programs=programs, known=None)
                self._answers[command, seed] = known
                if known.status not in (0, 1):
                    words = " ".join(command)
                    raise RuntimeError(f"gcomp {words} ends with {known.status} on sources as they are: {known.said}")
            return known

    def failures(self) -> dict[tuple[Command, int], dict[Key, str]]:
        """What fails with no change: mistakes of the sources, or of the doors."""
        return {asked: answer.failures for asked, answer in self._answers.items() if answer.failures}


def try_mutant(
    scratch: Scratch, controls: Controls, folder: Folder, change: Change, seed: int, seconds: float
) -> Verdict:
    """Ask every door of a mutant's folder, which share the time, until one finds it."""
    programs, spent = 0, 0.0
    doors = doors_of(folder, change.module)
    with scratch.changed({change.module: change.source}):
        for door in doors:
            how, answer = ask(scratch, controls, door, seed, seconds / len(doors))
            programs, spent = programs + answer.tried, spent + answer.seconds
            if how is not None:
                kind, said = how
                return _verdict(seed, folder, change, kind, " ".join(door), said, programs, spent)
    return _verdict(seed, folder, change, ALIVE, "", "", programs, spent)


def _verdict(seed: int, folder: Folder, change: Change, how: str, door: str, said: str, programs: int,
             seconds: float) -> Verdict:  # fmt: skip
    return Verdict(seed, folder.name, change.key, change.module, change.line, change.operator, change.before,
                   change.after, how, door, said[:300], programs, round(seconds, 1))  # fmt: skip


def ask(scratch: Scratch, controls: Controls, door: Command, seed: int,
         seconds: float) -> tuple[tuple[str, str] | None, Answer]:  # fmt: skip
    """How a door finds the mutant in place, or None; and its answer."""
    known: set[Key] = set()
    controls.answer(door, seed, 1)  # that there is such a door
    while True:
        answer = scratch.ask(door, seconds, seed, known=tuple(known))
        new = {key: said for key, said in answer.failures.items() if key not in known}
        if new:
            before = controls.answer(door, seed, answer.tried).failures
            if ours := {key: said for key, said in new.items() if key not in before}:
                return (FOUND, next(iter(ours.values())).strip().splitlines()[0]), answer
            known |= new.keys()
            if answer.status is not None:  # it came to its end, and this was all
                return None, answer
            continue
        if answer.is_hung:
            control = controls.answer(door, seed, _FEW)
            return ((HUNG, "") if control.status in (0, 1) and not answer.tried else None), answer
        if answer.status not in (0, None) and not answer.failures:
            control = controls.answer(door, seed, max(_FEW, answer.tried))
            if control.status != answer.status:
                return (CRASHED, _last_line(answer.said)), answer
        return None, answer


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
