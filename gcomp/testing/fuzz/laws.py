"""Laws: what must hold of a problem that is no program, drawn by choices, such as offsets for buffers.

A law makes its problem of choices and says what is wrong with what was computed of it. Hypothesis draws the choices in
the property tests, numbers give them in a campaign, and a failing record of them is made shorter and lower.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.door import Prepared, ProgramDoor, Report, Undefined
from gcomp.testing.fuzz.numbers import base_of
from gcomp.testing.generate.choices import Choices, Recorded, Replayed, shrink


@dataclass(frozen=True)
class Law:
    """A law, by what it is about: `holds` says what is wrong (nothing: an empty text), and raises Undefined where the
    choices make nothing to judge."""

    about: str
    holds: Callable[[Choices], str]

    def wrong(self, choices: Choices) -> str:
        """What is wrong; an error is."""
        try:
            return self.holds(choices)
        except Undefined:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"


class LawDoor(ProgramDoor):
    """A door of programs and of laws, which take turns."""

    @abstractmethod
    def laws(self) -> Mapping[str, Law]:
        """The laws by name."""

    @abstractmethod
    def law_of(self, number: int) -> str:
        """The law that has its turn at a number; empty where a program has."""

    def prepare(self, number: int, size: int) -> Prepared:
        name = self.law_of(base_of(number))
        if not name:
            return super().prepare(number, size)
        return partial(self.laws()[name].wrong, Recorded(number)), frozenset()

    def attempt(self, number: int, size: int, coverage: Coverage) -> Found | None:
        name = self.law_of(base_of(number))
        if not name:
            return super().attempt(number, size, coverage)
        coverage.programs += 1
        law, choices = self.laws()[name], Recorded(number)
        if not (wrong := law.wrong(choices)):
            coverage.rules[law.about] += 1
            return None
        return Found(number, (self.name, "law", name, law.about), _describe(name, law, wrong))

    def write(self, found: Found, size: int, path: Path, seconds: float, report: Report | None = None) -> Path:
        name = self.law_of(base_of(found.number))
        if not name:
            return super().write(found, size, path, seconds, report)
        law, recorded = self.laws()[name], Recorded(found.number)
        wrong = law.wrong(recorded)
        record = shrink(recorded.record, lambda choices: bool(law.wrong(choices))) if wrong else recorded.record
        said = law.wrong(Replayed(record)) or wrong
        row = {"run": f"gcomp fuzz --what {self.name} --case FILE", "law": name, "choices": record, "said": said}
        path = path.with_suffix(".json")
        path.write_text(json.dumps(row, indent=1) + "\n", "utf-8")
        return path

    def again(self, path: Path, number: int) -> str:
        if path.suffix != ".json":
            return super().again(path, number)
        try:
            row = json.loads(path.read_text("utf-8"))
            name, law = row["law"], self.laws()[row["law"]]
            wrong = law.wrong(Replayed([int(answer) for answer in row["choices"]]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is no case", why=f"{type(error).__name__}: {error}") from None
        return _describe(name, law, wrong) if wrong else ""


def _describe(name: str, law: Law, wrong: str) -> str:
    return f"{re.sub('_', ' ', name)}: {wrong}\n  at fault: {law.about}"


__all__ = ["Law", "LawDoor"]
