"""What becomes of a mutant at its front doors."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.mutants.changes import Change
from tests.mutants.front_doors.doors import Answer, Key, Scratch
from tests.mutants.front_doors.folders import Command, Folder, doors_of

FOUND, CRASHED, HUNG, ALIVE, KILLED = "found", "crashed", "hung", "alive", "killed"
_FEW = 20
"""Programs that a command with no mistake in it is seen to end."""


@dataclass(frozen=True)
class Verdict:
    """A mutant and what the doors said: `found` (a failure), `crashed` (the command ended otherwise than without the
    change), `hung` (it came to nothing in its time, and does without the change), or `alive`. `killed` is no verdict:
    somebody else ended the command, twice."""

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
        return self.how in (FOUND, CRASHED, HUNG)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass
class Controls:
    """What commands say of the sources as they are: what fails there already is no mutant's doing."""

    clean: Scratch
    _answers: dict[tuple[Command, int], Answer] = field(default_factory=dict[tuple[Command, int], Answer])
    _alone: dict[tuple[Command, int], dict[Key, str]] = field(default_factory=dict[tuple[Command, int], dict[Key, str]])
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

    def fails(self, command: Command, seed: int, number: int, key: Key) -> bool:
        """Whether the program of a number fails in this way with no change: that program alone is tried."""
        alone = self.clean.ask((*command, "--number", str(number)), 600.0, seed, programs=1, known=None)
        with self._lock:
            self._alone.setdefault((command, seed), {}).update(alone.failures)
        return key in alone.failures

    def known(self, command: Command, seed: int) -> set[Key]:
        """What is known to fail with no change."""
        return {*self.answer(command, seed, 1).failures, *self._alone.get((command, seed), ())}

    def failures(self) -> dict[tuple[Command, int], dict[Key, str]]:
        """What fails with no change: mistakes of the sources, or of the doors."""
        found = {asked: dict(answer.failures) for asked, answer in self._answers.items()}
        for asked, failures in self._alone.items():
            found.setdefault(asked, {}).update(failures)
        return {asked: failures for asked, failures in found.items() if failures}


def try_mutant(
    scratch: Scratch, controls: Controls, folder: Folder, change: Change, seed: int, seconds: float
) -> Verdict:
    """Ask every door of a mutant's folder, which share the time, until one finds it."""
    programs, spent = 0, 0.0
    doors = doors_of(folder, change.module)
    with scratch.changed({change.module: change.source}):
        for door in doors:
            how, answer = ask(scratch, controls, door, seed, seconds / len(doors), change.place)
            if answer.is_killed:
                how, answer = ask(scratch, controls, door, seed, seconds / len(doors), change.place)
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
         seconds: float, place: str = "") -> tuple[tuple[str, str] | None, Answer]:  # fmt: skip
    """How a door finds the mutant in place, or None; and its answer. The door is told which line is another."""
    known, row, spent = controls.known(door, seed), None, 0.0
    words = (*door, "--about", place) if place else door
    while True:
        answer = scratch.ask(words, seconds - spent, seed, known=tuple(known), row=row)
        spent += answer.seconds
        answer = replace(answer, seconds=spent)
        new = {key: said for key, said in answer.failures.items() if key not in known}
        if new:
            ours = [key for key in new if not controls.fails(door, seed, answer.number_of(key), key)]
            if ours:
                return (FOUND, new[ours[0]].strip().splitlines()[0]), answer
            known |= new.keys()
            row = answer.row
            if spent >= seconds:
                return None, answer
            continue
        if answer.is_killed:
            return (KILLED, ""), answer
        if answer.is_hung or (place and not answer.tried and spent >= seconds):
            control = controls.answer(words, seed, _FEW)
            return ((HUNG, "") if control.status in (0, 1) and not answer.tried else None), answer
        if answer.status not in (0, 1 if place else 0, None) and not answer.failures:  # 1: no program runs the line
            control = controls.answer(words, seed, max(_FEW, answer.tried))
            if control.status != answer.status:
                return (CRASHED, _last_line(answer.said)), answer
        return None, answer


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
