"""Is a pass correct? Proofs of its rules, programs aimed at it, the counterexample made small, and how it behaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.passes.base import Pass, PassContext
from gcomp.testing import workers
from gcomp.testing.fuzz import Limits, Outcome, Plan, fuzz
from gcomp.testing.fuzz.campaign import upper_bound
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.prove import Proof, Status, prove
from gcomp.testing.prove.catalog import UNKNOWN, rewrites_of, status_of
from gcomp.testing.reduce import op_count

_FEW = 30
"""Fewer applications of a rewrite say little."""
_MEMORY = 4 << 30
_AFTER = 4.0
"""So many seconds after the first failure others are looked for: one of them may become smaller."""
_EACH = 6.0
"""Seconds of processor time for one proof."""
_BLOCK = 8
"""So many programs are tried before the screen says how they fared, and whether that is enough."""
_LATE = 1.3
"""So many times as long as it has a stage may take to end what it has begun."""


@dataclass(frozen=True)
class RuleStatus:
    """A rewrite: what is proved of it, how often it was applied to programs, and the bound on its rate of failure."""

    name: str
    status: str
    how: str = ""
    counterexample: str = ""
    applied: int = 0
    programs: int = 0
    failed: int = 0

    @property
    def bound(self) -> float | None:
        """Below this is the rate at which it fails, with 95 % confidence; None where it was never applied."""
        return upper_bound(self.failed, self.programs) if self.programs else None


@dataclass(frozen=True)
class Counterexample:
    """A small program that shows a failure: what it does, its text, the file, and how many ops it has."""

    kind: str
    message: str
    ops: int
    text: str
    path: str
    command: str


@dataclass
class Correctness:
    """What is known of whether passes are correct."""

    rules: list[RuleStatus] = field(default_factory=list[RuleStatus])
    programs: int = 0
    judged: int = 0
    failing: int = 0
    seconds: float = 0.0
    counterexamples: list[Counterexample] = field(default_factory=list[Counterexample])
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    """What programs failed by -> in how many."""
    idle: list[str] = field(default_factory=list[str])
    """Passes that changed no program."""
    faults: dict[str, str] = field(default_factory=dict[str, str])
    """How they misbehave besides (`gcomp.trying.conduct`)."""
    values: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def bound(self) -> float:
        """Below this is the rate at which aimed programs fail, with 95 % confidence."""
        return upper_bound(self.failing, self.judged)

    @property
    def wrong(self) -> bool:
        """Whether something was found to be wrong."""
        refuted = any(rule.status == Status.REFUTED.value and rule.counterexample for rule in self.rules)
        return bool(self.failing or refuted or {"hangs", "dies"} & self.faults.keys())

    @property
    def seldom(self) -> list[str]:
        """Rewrites of which too little is known: hardly tried, and not proved."""
        return [r.name for r in self.rules if r.status != Status.PROVED.value and r.applied < _FEW]


def prove_rules(steps: Sequence[Pass], jobs: int, seconds: float) -> Iterator[RuleStatus]:
    """What is proved of each rewrite: as committed, or now. Imperative patterns have no proof."""
    asked: list[Rule] = []
    for step in steps:
        rules, patterns = rewrites_of(type(step))
        for pattern in patterns:
            yield RuleStatus(pattern.name, "tested only", "imperative: no proof covers it")
        for rule in {rule.name: rule for rule in (*rules, *_given(step))}.values():
            if (known := status_of(rule)) != UNKNOWN:
                yield RuleStatus(rule.name, known, "as committed")
            else:
                asked.append(rule)
    each = max(1.0, min(_EACH, seconds * jobs / max(1, len(asked))))
    by_number = dict(enumerate(asked))
    late = set(by_number)
    limits = workers.Limits(each * 3 + 5, _MEMORY, time.monotonic() + _LATE * seconds)
    for number, result in workers.run_tasks(partial(_prove, asked, each), by_number, jobs, limits):
        if isinstance(result, Proof):
            yield RuleStatus(result.rule, result.status.value, result.how, result.counterexample or "")
        else:
            why = result if isinstance(result, str) else "the prover did not end"
            yield RuleStatus(by_number[number].name, "unproved", why)
        late.discard(number)
    for number in sorted(late):
        yield RuleStatus(by_number[number].name, "unproved", "there was no time left")


def _given(step: Pass) -> list[Rule]:
    """The rules that a pass gives to the pattern driver, wherever it has them from."""
    program, context = Program.empty([]), PassContext()
    program.finish([])
    with suppress(Exception):  # what it raises is for the judge of programs to say
        step.run(program, context)
    return [rule for rule in context.known.values() if isinstance(rule, Rule)]


def _prove(rules: Sequence[Rule], seconds: float, number: int) -> Proof | str:
    try:
        return prove(rules[number], seconds)
    except GcompError as error:
        return str(error.what)
    except Exception as error:  # in the user's own code, which the judge of programs will meet, too
        return f"{type(error).__name__}: {error}"


class _Enough(Exception):
    """There is nothing more to look for."""


def try_programs(
    steps: Sequence[Pass], found: Correctness, *, seconds: float, jobs: int, seed: int,
    report: Callable[[str], object],
) -> tuple[Plan, Outcome]:  # fmt: skip
    """The front door (`gcomp fuzz --pass`) for so many seconds; the counts go to `found`."""
    plan = Plan.of(passes=tuple(str(step.spec()) for step in steps))
    outcome, first, start = Outcome(), 0.0, time.monotonic()

    def told(now: Outcome) -> None:
        nonlocal outcome, first
        outcome = now
        report(f"{now.coverage.programs} programs, {now.failing} failures")
        if now.failures and not first:
            first = time.monotonic()
        if now.failures and time.monotonic() - first > _AFTER:
            raise _Enough

    try:
        limits = Limits(minutes=seconds / 60, jobs=jobs, seconds=min(10.0, seconds / 2), until=start + _LATE * seconds,
                        block=_BLOCK)  # fmt: skip
        outcome = fuzz(plan, limits, seed=seed, report=told)
    except _Enough:
        pass
    note(found, outcome, steps)
    return plan, outcome


def note(found: Correctness, outcome: Outcome, steps: Sequence[Pass]) -> None:
    """Put the counts of a campaign into what is known."""
    seen = outcome.coverage
    found.programs, found.judged, found.failing = seen.programs, seen.judged, outcome.failing
    found.seconds = outcome.seconds
    found.idle = [step.name for step in steps if not seen.changed[step.name]]
    for key, count in outcome.times.items():
        kind = key[0].partition(":")[0]
        found.kinds[kind] = found.kinds.get(kind, 0) + count
    known = {rule.name: rule for rule in found.rules}
    for name in dict.fromkeys((*known, *seen.known)):
        rule = known.get(name) or RuleStatus(name, "tested only")
        counts = (seen.applications[name], seen.rules[name], outcome.failed_in(name))
        known[name] = RuleStatus(name, rule.status, rule.how, rule.counterexample, *counts)
    found.rules = list(known.values())


def reduce_failures(
    plan: Plan, outcome: Outcome, folder: Path, seconds: float, most: int = 2
) -> Iterator[Counterexample]:
    """The most frequent failures, each as a small program in a file."""
    order = sorted(outcome.failures.values(), key=lambda f: -outcome.times[f.key])[:most]
    for one in order:
        path = write_case(one, plan, folder, seconds=seconds / len(order))
        text = path.read_text("utf-8")
        run, _, rest = text.partition("\n")
        body = "\n".join(line for line in rest.splitlines() if not line.startswith("//"))
        ops = op_count(Program.parse(body, str(path)))
        command = run.removeprefix("// RUN: ").partition(" | ")[0].replace("%s", str(path)).replace("%S", str(folder))
        yield Counterexample(one.key[0].partition(":")[0], one.message, ops, body.strip(), str(path), command)


__all__ = ["Correctness", "Counterexample", "RuleStatus", "note", "prove_rules", "reduce_failures", "try_programs"]
