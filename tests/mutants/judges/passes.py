"""Judges passes: programs made for a pass (from its rules, from steps, at random), each held to all promises.

The programs of a seed, their inputs and what the reference computes are made once and shared by all mutants of a pass.
What survives them is tried on fresh ones around each rule that the pass did not have then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import product
from zlib import crc32

from gcomp.errors import GcompError, UsageError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import Array
from gcomp.passes.judging import Failure, Reference, judge, structure
from gcomp.passes.registry import all_passes, pipeline_text
from gcomp.testing.check import check_pass, first_failure
from gcomp.testing.fuzz.campaign import OTHERS
from gcomp.testing.fuzz.directed import program_of, reference_for
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.directed import random_matching
from gcomp.testing.generate.elementwise import EVERY_ELEMENT
from gcomp.testing.generate.passes import rules_of
from gcomp.testing.reduce import constant_count, op_count, reduce_program
from gcomp.testing.reduce.predicates import keeps_failure
from gcomp.testing.reduce.record import carrier, record_values
from tests.mutants.judges import FEW_OPS, JUDGES, PREPARE, Kill, Reduced, Survival
from tests.mutants.mutant import Mutant

PER_RULE, ABOUT_RULES = 6, 300
"""How many programs are made around each rule, and around all of them at most."""
FOR_PASS = 600
"""How many more are made for the pass."""
PER_CHANGE = 36
"""How many are made around a rule that the pass did not have when those were, besides one of each element type."""
_SMALL = 4
"""What a program around a rule has besides."""
_UNTOUCHED = 1 / 3
"""The share of programs that the pass, as it is, leaves alone: a mutant may not."""
_MOST_REWRITES = 2000
"""A pass that applies more does not end."""

REDUCE_SECONDS = 50.0
"""What comes before and after stays below a minute then."""


@dataclass(frozen=True)
class Outcome:
    """What a pass made of a program: whether it says that it changed it, the result, the classes of its rewrites."""

    changed: bool
    result: Program
    shape: tuple[object, ...]
    classes: Mapping[str, Exactness]


@dataclass(frozen=True)
class Case:
    """A program to judge a pass on, by the number that makes it again."""

    number: int
    reference: Reference
    outcome: Outcome | None = None
    """What the pass as it is makes of it, which keeps all promises."""


def case_of(step: Pass, number: int, program: Program | None) -> Case | None:
    """A program with its inputs; None where the reference refuses it."""
    if program is None:
        return None
    reference = reference_for(step, program, number)
    try:
        if step.level != "graph":
            step.run(program.clone(), PassContext())  # a pass of a later level may refuse a program
        return Case(number, reference) if reference.usable() else None
    except GcompError:
        return None


@dataclass(frozen=True)
class Corpus:
    """The programs that all mutants of a pass share, in order, which the reference has run, and the pass's rules."""

    cases: list[Case]
    rules: tuple[Rule, ...]
    next: int
    """The number from which on fresh ones are made."""
    failures: list[Failure]
    """What the pass does wrong as it is, on programs that are left out: they would kill controls."""


def first_number(name: str, seed: int) -> int:
    """Where the numbers of a pass's programs start."""
    return (seed << 48) + (crc32(name.encode()) << 12)


def around(rule: Rule, number: int, of: str | None = None) -> Program | None:
    """A program with a rule's left side, of an element type if one is given, or nearly; None where none was found."""
    try:
        return random_matching(rule, Seeded(number), _SMALL, loose=of is None and number % 3 == 0, of=of)
    except UsageError:
        return None


@lru_cache(maxsize=64)
def corpus(name: str, seed: int) -> Corpus:
    """What mutants of a pass share for a seed."""
    step = step_of(name)
    rules, number = rules_of(step), first_number(name, seed)
    made = Corpus([], rules, number, [])
    for rule in rules * max(1, min(PER_RULE, ABOUT_RULES // max(len(rules), 1))):
        number += 1
        _add(made, step, case_of(step, number, around(rule, number)))
    most, untouched = len(made.cases) + FOR_PASS, 0
    for _ in range(20 * FOR_PASS):
        number += 1
        if len(made.cases) == most:
            break
        case = case_of(step, number, program_of(step, number))
        if case is not None and not step.run(case.reference.program.clone(), PassContext()):
            untouched += 1
            if untouched > _UNTOUCHED * FOR_PASS:
                continue
        _add(made, step, case)
    return replace(made, next=number + 1)


def outcome_of(step: Pass, program: Program) -> Outcome:
    """What the pass makes of a copy of a program."""
    result, context = program.clone(), PassContext(bisect_limit=_MOST_REWRITES)
    changed = step.run(result, context)
    return Outcome(changed, result, structure(result), dict(context.classes))


def as_before(step: Pass, case: Case) -> bool:
    """Whether the pass does to a program what it did when nothing was patched, and then nothing more."""
    before = case.outcome
    if before is None:
        return False
    try:
        now = outcome_of(step, case.reference.program)
        if (now.changed, now.shape, now.classes) != (before.changed, before.shape, before.classes):
            return False
        again = outcome_of(step, now.result) if now.changed else None
    except Exception:  # whatever it is, the judge says it
        return False
    return again is None or (not again.changed and again.shape == now.shape)


def _add(made: Corpus, step: Pass, case: Case | None) -> None:
    """Add a case on which the pass keeps its promises."""
    if case is None:
        return
    try:
        failure = judge(step, case.reference)
    except GcompError:
        return
    if failure is not None:
        made.failures.append(failure)
        return
    for sample in case.reference.usable():
        if step.exactness is Exactness.E2:
            case.reference.wider(sample)
    made.cases.append(replace(case, outcome=outcome_of(step, case.reference.program)))


@cache
def step_of(name: str) -> Pass:
    """The pass of a name, with its default options."""
    return all_passes()[name]()


def cases(name: str, seed: int) -> Iterator[Case]:
    """The shared programs, and some around each rule that is not as it was then."""
    known, step = corpus(name, seed), step_of(name)
    yield from known.cases
    number = known.next
    changed = [rule for rule in rules_of(step) if not any(rule is one for one in known.rules)]  # 0.0 equals -0.0
    for of, rule in product([None] * PER_CHANGE + [*EVERY_ELEMENT], changed):
        number += 1
        if (case := case_of(step, number, around(rule, number, of))) is not None:
            yield case


def judge_pass(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program on which a pass breaks a promise."""
    step, tried = step_of(mutant.target), 0
    for case in cases(mutant.target, seed):
        tried += 1
        if as_before(step, case):
            continue
        try:
            failure = judge(step, case.reference)
        except GcompError:
            continue
        except Exception as error:  # what a pass left, and the reference cannot take
            return Kill(tried, f"{type(error).__name__}: {error}")
        if failure is not None:
            reduced = _smallest(step, case, failure, mutant, seed) if reducing else None
            return Kill(tried, str(failure), failure, reduced)
    return Survival(tried)


reducing = False
"""Whether kills are reduced; set before processes fork."""


def _smallest(step: Pass, case: Case, failure: Failure, mutant: Mutant, seed: int) -> Reduced:
    """What is left of the failing program, or of another that fails alike where that is more than a few ops: as
    `gcomp fuzz` does it."""
    best = reduced_of(step, case, failure, REDUCE_SECONDS)
    spent, others = best.seconds, 0
    for other in cases(mutant.target, seed):
        if best.ops <= max(FEW_OPS, best.needed) or others == OTHERS or spent >= REDUCE_SECONDS:
            break
        if other.number == case.number or as_before(step, other):
            continue
        with suppress(Exception):  # what a pass left, and the reference cannot take
            found = judge(step, other.reference)
            if found is None or found.fingerprint() != failure.fingerprint():
                continue
            others += 1
            reduced = reduced_of(step, other, found, REDUCE_SECONDS - spent)
            spent += reduced.seconds
            best = min(best, reduced, key=lambda r: (r.crash != "", r.ops))
    return replace(best, seconds=spent)


def reduced_of(step: Pass, case: Case, failure: Failure, budget: float) -> Reduced:
    """The failing program made small, as `gcomp fuzz` does it, and the pass that is blamed among all."""
    start, program = time.monotonic(), case.reference.program.clone()
    # What fails may need one of the sets of inputs; most fail on those that are made for any program too.
    known = next(filter(None, (_recorded(program, case, step, failure, i) for i in case.reference.usable())), None)
    interesting = keeps_failure(step, failure, carrier(known), seeds=(0, 1))
    small, crash = program, ""
    try:
        if interesting(program):
            small = reduce_program(program, interesting, seconds=budget, step=step)
    except Exception as error:  # it counts as not reduced
        crash = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - start
    blamed = _blamed(step, small, known)
    ops = op_count(small)
    needed = _needed(step, small, failure.rule) if ops > FEW_OPS else 0
    return Reduced(ops, constant_count(small), blamed, small.text(), seconds, crash, needed)


def _needed(step: Pass, small: Program, rule: str) -> int:
    """How many of a program's ops a rewrite needs to apply at all."""

    def applies(program: Program) -> bool:
        context = PassContext(bisect_limit=_MOST_REWRITES)
        with suppress(Exception):  # what goes wrong is not asked here
            step.run(program.clone(), context)
        return context.counts[rule] > 0

    if not rule or not applies(small):
        return 0
    return op_count(reduce_program(small.clone(), applies, seconds=REDUCE_SECONDS))


def _recorded(program: Program, case: Case, step: Pass, failure: Failure, sample: int) -> dict[str, Array] | None:
    """What every value is in a run on a set of inputs that shows the failure."""
    known = record_values(program, case.reference.inputs[sample])
    found = check_pass(step, program, carrier(known))
    return known if found is not None and found.fingerprint() == failure.fingerprint() else None


def _blamed(step: Pass, small: Program, known: Mapping[str, Array] | None) -> str:
    """Whom a search over all passes of the level blames: those that would change the program before come after."""
    steps = [one for one in map(step_of, all_passes()) if one.level == step.level]
    before = [one for one in steps if one != step and _leaves_alone(one, small)]
    after = [one for one in steps if one not in before and one != step]
    pipeline = pipeline_text([*before, step, *after])
    for inputs, seed in ((None, 0), (None, 1), (carrier(known), 0)):
        try:
            found = first_failure(pipeline, small, inputs, seed=seed)
        except Exception:  # the reference refuses it, or what was patched serves the search too
            continue
        if found is not None:
            return found[0].step
    return ""


def _leaves_alone(step: Pass, program: Program) -> bool:
    try:
        result = program.clone()
        step.run(result, PassContext())  # whether it says the truth about what it did may be what is patched
        return structure(result) == structure(program)
    except Exception:  # what was patched may serve other passes too
        return False


def failures(name: str, seed: int) -> list[str]:
    """Prepare for a pass: what it does wrong as it is."""
    return [str(failure) for failure in corpus(name, seed).failures]


for _name in all_passes():
    JUDGES[_name] = judge_pass
    PREPARE[_name] = partial(failures, _name)
