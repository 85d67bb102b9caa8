"""Proofs of rules: every case of a rule's left side is decided, and the weakest finding is the rule's.

For each case, in this order: the abstract theory, which settles data movement and whatever moves through elementwise
ops; every combination of values where the inputs have at most 16 bits, run by the reference; the exact theory. What
none of them decides is run on samples.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from gcomp.errors import InternalError, UnsupportedError
from gcomp.ir.rules import Rule
from gcomp.ir.types import ELEMENT_TYPES
from gcomp.testing.prove.cases import MAX_RANK, Case, Imperative, Subject, cases, nodes, plan_text, scopes
from gcomp.testing.prove.movement import FOLDS
from gcomp.testing.prove.obligation import UNKNOWN, Answer, Finding, Instance, Solver
from gcomp.testing.prove.proof import Proof, Status
from gcomp.testing.prove.replay import (
    EXHAUSTIBLE,
    NotApplied,
    difference,
    exhaust,
    is_scalar,
    replay,
    sample,
    sample_inputs,
    small_sizes,
    width,
)
from gcomp.testing.prove.translation import Abstract, Exact, Theory

SECONDS = 20.0
"""The time that one rule gets."""

MAIN = "f32"
"""The element type with which all ranks are enumerated, if the rule takes it; the others get ranks 0 and 1."""

MAINS = (MAIN, "i32", "i1", "complex<f32>")
"""Where a rule does not apply at ranks 0 and 1, the element types of which one is looked for at all ranks."""

FEW_RANKS = 1
FEW_CASES = 24
"""How many left sides each of the other element types gets: its rules differ in scalars and conditions only."""


class Wrong(Exception):
    """A counterexample ends the search."""

    def __init__(self, text: str, confirmed: bool) -> None:
        super().__init__(text)
        self.text, self.confirmed = text, confirmed


def prove(rule: Subject, seconds: float = SECONDS, max_rank: int = MAX_RANK) -> Proof:
    """What can be said of a rule within `seconds` of processor time."""
    if isinstance(rule, Rule):
        rule = replace(rule, profit=None)  # it must be right where it does not pay too
    # Processor time, so that what is proved does not depend on what else the machine does.
    start = time.process_time()
    search = _Search(rule, start + seconds)
    try:
        for case in _all_cases(rule, max_rank):
            if time.process_time() > search.solver.deadline:
                search.found(Status.CHECKED, f"the first {search.count} cases, then time ran out")
                break
            search.decide(case)
    except Wrong as wrong:
        status, how, text, confirmed = Status.REFUTED, "counterexample", wrong.text, wrong.confirmed
    else:
        (status, how), text, confirmed = search.conclusion(), None, False
    return Proof(rule.name, status, how, time.process_time() - start, search.count, text, confirmed)


def _all_cases(rule: Subject, max_rank: int) -> Iterator[Case]:
    elements = MAINS if isinstance(rule, Imperative) else sorted(ELEMENT_TYPES, key=lambda e: e != MAIN)
    first = _first(rule, elements, FEW_RANKS) or _first(rule, MAINS, max_rank)
    if first is None:
        return
    main = next(iter(first.leaves.values())).element if first.leaves else MAIN
    few = max(FEW_RANKS, *(len(type.shape) for type in first.leaves.values()), len(first.plan.type.shape))
    yield from _cases(rule, main, max_rank)
    for element in elements:
        if element != main:
            yield from islice(_cases(rule, element, few), FEW_CASES)


def _first(rule: Subject, elements: Iterable[str], max_rank: int) -> Case | None:
    return next((case for element in elements for case in _cases(rule, element, max_rank)), None)


def _cases(rule: Subject, element: str, max_rank: int) -> Iterator[Case]:
    for scope in scopes(rule, element, max_rank):
        yield from cases(rule, scope)


class _Search:
    def __init__(self, rule: Subject, deadline: float) -> None:
        self.rule = rule
        self.solver = Solver(deadline)
        self.count = 0
        self.ways: Counter[str] = Counter()
        self.weaker: dict[Status, Counter[str]] = {s: Counter() for s in Status}
        self.bounds: Counter[str] = Counter()
        self.is_general = False
        self.ran: set[str] = set()

    def found(self, status: Status, how: str) -> None:
        """Note what one case came to."""
        (self.ways if status is Status.PROVED else self.weaker[status])[how] += 1

    def conclusion(self) -> tuple[Status, str]:
        """The weakest finding, and how it was found."""
        if not self.is_general:
            self.weaker[Status.CHECKED] += self.bounds
        for status in (Status.TESTED, Status.CHECKED):
            if self.weaker[status]:
                return status, "; ".join(islice(self.weaker[status], 3))
        if not self.count:
            return Status.TESTED, "no left side could be generated"
        if isinstance(self.rule, Imperative):
            return Status.CHECKED, f"{', '.join(self.ways)}; left sides of one form"
        return Status.PROVED, ", ".join(self.ways)

    def decide(self, case: Case) -> None:
        """Settle one case. Raises Wrong for a counterexample."""
        self.count += 1
        if case.after is None and case.is_unknown:
            self.found(Status.CHECKED, case.bound)
            return
        if case.after is None:
            raise Wrong(f"{case}\n{case.failure}", confirmed=True)
        abstract = self._abstractly(case)
        if abstract.answer is Answer.NEVER:
            self._proved(case, "index functions")
            return
        whole = not case.is_unknown and self._exhaustively(case)
        answer, why = self._exactly(case, whole)
        if whole or answer is Answer.NEVER:
            self._proved(case, "exact arithmetic" if answer is Answer.NEVER else "all values run")
            return
        if time.process_time() > self.solver.deadline:
            self.count -= 1
            return
        if case.is_unknown:
            self.found(Status.CHECKED, f"{case.bound}, beyond which {why}")
            return
        if abstract.instance is not None and (shown := replay(case, abstract.instance)) is not None:
            raise Wrong(f"{case}\n{shown}", confirmed=True)
        self._on_samples(case)
        self.found(Status.TESTED, f"samples: {why}")

    def _proved(self, case: Case, how: str) -> None:
        self.found(Status.PROVED, how)
        if case.is_general:
            self.is_general = True
        elif case.bound:
            self.bounds[f"{how}; {case.bound}"] += 1

    def _abstractly(self, case: Case) -> Finding:
        try:
            return self.solver.decide(case, Abstract())
        except UnsupportedError:
            return UNKNOWN

    def _exhaustively(self, case: Case) -> bool:
        """Whether all values were run."""
        bits = sum(width(type.element) for type in case.leaves.values())
        if bits > EXHAUSTIBLE or not is_scalar(case.plan):
            return False
        # Rank and sizes make no difference to one element.
        key = f"{plan_text(case.plan)} {[t.element for t in case.leaves.values()]} {case.plan.type.element}"
        if key not in self.ran:
            try:
                text = exhaust(self.rule, case)
            except NotApplied:
                return False
            if text is not None:
                raise Wrong(f"{case}\n{text}", confirmed=True)
            self.ran.add(key)
        return True

    def _exactly(self, case: Case, whole: bool) -> tuple[Answer, str]:
        theory: Theory = Exact()
        try:
            finding = self.solver.decide(case, theory)
        except UnsupportedError as error:
            return Answer.UNKNOWN, error.what
        if finding.answer is Answer.DIFFER and finding.instance is not None and not case.is_unknown:
            if whole:
                raise InternalError(
                    "the prover and the reference interpreter disagree", where=str(case), why=str(finding.instance)
                )
            wrong = self._wrong(case, finding.instance)
            if wrong.confirmed or not any(node.op in FOLDS for node in nodes(case.plan)):
                raise wrong
            return Answer.UNKNOWN, "the solver knows nothing of what a fold does"
        return finding.answer, "the solver ran out of time"

    def _wrong(self, case: Case, instance: Instance) -> Wrong:
        shown = replay(case, instance)
        if shown is not None:
            return Wrong(f"{case}\n{shown}", confirmed=True)
        return Wrong(
            f"{case}\n{instance.what}: {instance.sizes} {instance.bits} (the reference does not show it)", False
        )

    def _on_samples(self, case: Case) -> None:
        text = None
        if is_scalar(case.plan):
            with suppress(NotApplied):
                text = sample(self.rule, case)
        if text is not None:
            raise Wrong(f"{case}\n{text}", confirmed=True)
        for sizes in small_sizes(case):
            inputs = sample_inputs(case, sizes)
            if inputs is not None and (text := difference(case, inputs, sizes)) is not None:
                raise Wrong(f"{case}\n{text}", confirmed=True)
