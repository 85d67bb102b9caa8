"""What is chosen for a kernel, and why: what the rules and the model of a processor said when they were asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from gcomp.records import record

T = TypeVar("T")


@record
class Reason:
    """Why `taken` was taken for `what`: by a rule (`why`), or since a model has it take the fewest cycles.

    `other` is the next best by the model; its cycles and those of what was taken are of one turn, of which there are
    `turns`, 0 where sizes are not known and only their ratio says something.
    """

    what: str
    taken: str
    why: str = ""
    cycles: float = 0.0
    other: str = ""
    other_cycles: float = 0.0
    turns: int = 0

    def text(self, clock: float) -> str:
        """In words, at so many cycles a second."""
        said = f"{self.what}: {self.taken}"
        if self.why:
            return f"{said} ({self.why})"
        if not self.other:
            return f"{said} (nothing else fits)"
        if not self.turns:
            return f"{said} (next best {self.other}: {self.other_cycles / self.cycles:.2f} times as long)"
        times = [1e6 * cycles * self.turns / clock for cycles in (self.cycles, self.other_cycles)]
        return f"{said}, {times[0]:,.1f} us (next best {self.other}: {times[1]:,.1f} us)"


@record
class Choice:
    """What a schedule is told (`values`), the algorithm that this makes, and why."""

    values: Mapping[str, int]
    algorithm: str = ""
    because: tuple[Reason, ...] = ()

    def also(self, values: Mapping[str, int], *because: Reason, algorithm: str = "") -> Choice:
        """The same with other values, or more, and more reasons."""
        found = {**self.values, **values}
        return replace(self, values=found, algorithm=algorithm or self.algorithm, because=(*self.because, *because))


def fewest(
    what: str, costs: Mapping[T, float], text: Callable[[T], str], order: Callable[[T], Any] | None = None,
    turns: int = 0,
) -> tuple[T, Reason]:  # fmt: skip
    """Which of several has the least cost, in cycles of a turn, and the reason; `order` decides between equal ones."""
    ranked = sorted(costs, key=lambda one: (costs[one],) if order is None else (costs[one], order(one)))
    best, *others = ranked[:2]
    reason = Reason(what, text(best), cycles=costs[best], turns=turns)
    if others:
        reason = replace(reason, other=text(others[0]), other_cycles=costs[others[0]])
    return best, reason


__all__ = ["Choice", "Reason", "fewest"]
