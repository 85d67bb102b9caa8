"""Checks of a compiled model: the table of them, and the error when one fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.errors import ArtifactError, CheckError, IndexCheckError
from gcomp.records import record
from gcomp.runtime.executor import Executor

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

EXTRA = 2
"""How many results a checked plan has after its outputs: the number of the first check that failed, and the
iteration."""

MAX_CHECKS = 1 << 20
_MAX_TEXT = 4096


@record
class Check:
    """What is checked (`nan`, `inf` or `index`), of which op, of which node of the model, made by which line."""

    kind: str
    op: str
    node: str
    place: str

    def failed(self, iteration: int) -> CheckError:
        """The error when it fails, in an iteration of a loop (-1: in none)."""
        name = _NAMES.get(self.kind, "")
        if self.op in _SOURCES:
            what = f"the {_SOURCES[self.op]} {self.node!r} holds {name}" if self.node else f"a weight holds {name}"
            return CheckError(what, where=self.place or None, fix="look at where its values come from")
        parts = [f"node {self.node!r}" if self.node else "", self.place]
        parts.append(f"iteration {iteration} (from 0) of the loop around it" if iteration >= 0 else "")
        seen = f": `--fetch {self.node!r}` shows the result" if self.node and iteration < 0 else ""
        where = ", ".join(part for part in parts if part)
        if self.kind == "index":
            why = "without the check, the nearest index that fits is taken, or the element is left out"
            return IndexCheckError(
                f"{self.op} gets an index out of range", where=where or None, why=why, fix=_LOOK + seen
            )
        why = f"no operand has {name}, and it is the first op to make it"
        return CheckError(f"{self.op} makes {name}", where=where or None, why=why, fix=_LOOK + seen)


_NAMES = {"nan": "a NaN", "inf": "an infinity"}
_KINDS = frozenset((*_NAMES, "index"))
_SOURCES = {"input": "input", "gcomp.weight": "weight"}
_LOOK = "look at its operands"


def check_problems(checks: Sequence[Check]) -> Iterator[str]:
    """Why a table of checks is not valid."""
    if len(checks) > MAX_CHECKS:
        yield f"it has {len(checks)} checks"
    for check in checks:
        if check.kind not in _KINDS:
            yield f"it checks an unknown kind of thing, {check.kind[:80]!r}"
        if max(len(text) for text in (check.op, check.node, check.place)) > _MAX_TEXT:
            yield "a check's place is too long"


def check_results(results: list[Any], checks: Sequence[Check]) -> list[Any]:
    """The outputs alone, of results that end in what a plan's checks found. Raises CheckError when one failed."""
    number, iteration = (int(np.asarray(value)) for value in results[-EXTRA:])
    if number == -1:
        return results[:-EXTRA]
    if not 0 <= number < len(checks):
        raise ArtifactError("The program names a check that there is not.", why=f"It is number {number}.")
    raise checks[number].failed(iteration)


class CheckedExecutor:
    """An executor whose calls end in a CheckError when a check fails, and give the outputs alone when none does."""

    def __init__(self, executor: Executor, checks: Sequence[Check]) -> None:
        self._executor, self._checks = executor, checks

    def __call__(self, values: list[Any]) -> list[Any]:
        return check_results(self._executor(values), self._checks)

    def again(self, values: list[Any]) -> list[Any]:
        return check_results(self._executor.again(values), self._checks)

    # ---- as the executor says ----

    @property
    def source(self) -> str:
        return self._executor.source

    @property
    def bare(self) -> None:
        """None: its results would be given unchecked."""

    @property
    def seconds(self) -> float:
        return self._executor.seconds

    def prepare(self, env: Mapping[str, int]) -> object:
        return self._executor.prepare(env)

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        return self._executor.memory(env)

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        return self._executor.cost(env)

    def profile(self, values: list[Any], recording: Recording) -> None:
        self._executor.profile(values, recording)

    def keep(self, count: int) -> None:
        self._executor.keep(count)

    def set_threads(self, count: int) -> None:
        self._executor.set_threads(count)

    def instance(self) -> CheckedExecutor:
        return CheckedExecutor(self._executor.instance(), self._checks)


__all__ = ["EXTRA", "Check", "CheckedExecutor", "check_problems", "check_results"]
