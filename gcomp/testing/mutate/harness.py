"""Running readers on hostile inputs: each case ends in a result or in one whole GcompError, soon and in little memory.

A failure is any other exception, an InternalError (only a bug raises one), an error that does not say where or why,
a case that takes longer than `SECONDS`, or one that grows the process by more than `MEBIBYTES`.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from gcomp.errors import GcompError, InternalError

SECONDS = 20
"""A case that takes longer hangs. Far above what any case needs, so that a busy machine does not matter."""

MEBIBYTES = 512
"""A case that grows the process by more has believed a size that it read."""

T = TypeVar("T")


class Hang(BaseException):
    """A case took too long. No handler of ordinary exceptions may swallow it."""


class Case(NamedTuple, Generic[T]):
    """One input: a name from which it can be made again, the mutators that made it, and the input."""

    name: str
    mutator: str
    value: T


@dataclass(frozen=True)
class Failure:
    """A case that broke the promise, and how."""

    case: str
    mutator: str
    problem: str

    def __str__(self) -> str:
        return f"{self.case} ({self.mutator}): {self.problem}"


@dataclass
class Tally:
    """What came of a run: how many cases ended how, for each mutator, and the failures."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def cases(self) -> int:
        """How many cases ran."""
        return sum(self.outcomes.values())

    def by_outcome(self) -> Counter[str]:
        """How many cases ended how."""
        total: Counter[str] = Counter()
        for (_, outcome), count in self.outcomes.items():
            total[outcome] += count
        return total

    def table(self) -> str:
        """The counts as text: one line for each mutator, and their sum."""
        rows: dict[str, Counter[str]] = {}
        for (mutator, outcome), count in self.outcomes.items():
            rows.setdefault(mutator, Counter())[outcome] += count
        lines = [f"  {name}: {_counts(rows[name])}" for name in sorted(rows)]
        return "\n".join([*lines, f"{self.cases} cases: {_counts(self.by_outcome())}"])

    def __str__(self) -> str:
        shown = [str(failure) for failure in self.failures[:20]]
        return "\n\n".join([self.table(), *shown])


def run(cases: Iterable[Case[T]], use: Callable[[T], str]) -> Tally:
    """Give each case to `use`, which names the outcome or raises, and tally what happens."""
    tally = Tally()
    for case in cases:
        outcome = "failure"
        before = _peak_mebibytes()
        try:
            with limited(SECONDS):
                outcome = use(case.value)
        except GcompError as error:
            outcome = type(error).__name__
            if problem := problem_of(error):
                tally.failures.append(Failure(case.name, case.mutator, problem))
        except (Exception, Hang) as error:
            tally.failures.append(Failure(case.name, case.mutator, trace_of(error)))
        grown = _peak_mebibytes() - before
        if grown > MEBIBYTES:
            tally.failures.append(Failure(case.name, case.mutator, f"it took {grown} MiB of memory"))
        tally.outcomes[case.mutator, outcome] += 1
    return tally


def problem_of(error: GcompError) -> str | None:
    """What is wrong with an error, as an answer to a hostile input; None if nothing is."""
    if isinstance(error, InternalError):
        return trace_of(error)
    if not (error.what and (error.where or error.why)):
        return f"{type(error).__name__} says neither where nor why: {error}"
    return None


def trace_of(error: BaseException) -> str:
    """The error, and where what caused it was raised."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    frames = "".join(traceback.format_tb(cause.__traceback__)[-5:])
    return f"{frames}{type(cause).__name__}: {str(cause)[:1000]}"


@contextlib.contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raise Hang in the block when it takes longer, where the system has timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(number: int, frame: object) -> None:
        raise Hang(f"it took more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _peak_mebibytes() -> int:
    """The most memory that this process has had so far; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))
