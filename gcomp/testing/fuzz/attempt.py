"""One number of a campaign, of whatever the campaign is about: tried, or looked at."""

from __future__ import annotations

from functools import cache

from gcomp.testing.fuzz import target, trial
from gcomp.testing.fuzz.chosen import Look
from gcomp.testing.fuzz.coverage import Coverage, Found, Undefined
from gcomp.testing.fuzz.doors import PASSES, door_of
from gcomp.testing.fuzz.plan import Plan
from gcomp.testing.fuzz.probes import Probes
from gcomp.testing.fuzz.source_lines import SourceLines
from gcomp.testing.reduce.predicates import TargetCheck

_TARGET_TIMEOUT = 60.0


def attempt(number: int, plan: Plan, coverage: Coverage) -> Found | None:
    """Try the program of a number; what goes wrong, if anything does."""
    try:
        if plan.what != PASSES:
            return door_of(plan.what).attempt(number, plan.size, coverage)
        if plan.target is None:
            return trial.try_passes(number, plan, coverage)
        return target.try_target(number, plan, _target_check(plan), coverage)
    except Undefined:  # a variation that there is not
        coverage.programs += 1
        coverage.refused += 1
        return None


def look_at(number: int, plan: Plan, about: SourceLines) -> Look:
    """Whether a program runs lines of source when it is transformed; what cannot be made runs none."""
    probes = _probes(about)
    try:
        if plan.what != PASSES:
            run, words = door_of(plan.what).prepare(number, plan.size)
        else:
            run, words = (trial if plan.target is None else target).prepare(number, plan)
    except Exception:  # a variation that there is not; what is wrong with making it is seen in those that are judged
        return Look(number, reached=False)
    hits = probes.watch(run)
    return Look(number, bool(hits & about.wanted), bool(words & about.words), hash(hits))


def attempt_about(number: int, plan: Plan, about: SourceLines, coverage: Coverage) -> tuple[Look, Found | None]:
    """Try the program of a number, which most likely runs lines of source: whether it did, and what goes wrong."""
    probes = _probes(about)
    probes.seen()
    found = attempt(number, plan, coverage)
    hits = probes.seen()
    return Look(number, bool(hits & about.wanted), way=hash(hits)), found


@cache
def _probes(about: SourceLines) -> Probes:
    return Probes(about)


_checks: dict[Plan, TargetCheck] = {}
"""A worker's own process of the target, which lives as long as the worker."""


def _target_check(plan: Plan) -> TargetCheck:
    if plan not in _checks:
        assert plan.target is not None
        _checks[plan] = TargetCheck(plan.target, plan.fixed(), timeout=_TARGET_TIMEOUT)
    return _checks[plan]


__all__ = ["attempt", "attempt_about", "look_at"]
