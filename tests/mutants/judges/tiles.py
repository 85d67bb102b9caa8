"""Judges the tile level: kernels of generated programs as tile programs, in the evaluator, against the reference."""

from __future__ import annotations

from functools import lru_cache

from gcomp.errors import GcompError
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.kernels import Cut, cut, run_kernels
from gcomp.testing.fuzz.plan import TILE, Plan
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS = 400
"""Generated programs, each of some four kernels."""


@lru_cache(1)
def prepared(seed: int) -> tuple[list[Cut], list[str]]:
    """The programs of a seed, and what is wrong with others with nothing patched: these would kill controls."""
    plan, good, wrong = Plan(target=TILE), list[Cut](), list[str]()
    for number in range(seed << 32, (seed << 32) + PROGRAMS):
        try:
            made = cut(number, plan)
            found = run_kernels(made, Coverage()).found
        except GcompError:
            continue  # the passes or the reference refuse it
        if found is None:
            good.append(made)
        else:
            wrong.append(found.message)
    return good, wrong


def failures(seed: int) -> list[str]:
    """Prepare: texts of what is wrong already."""
    return prepared(seed)[1]


@judge_of("tiles", failures)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program one of whose kernels is wrong."""
    good = prepared(seed)[0]
    for tried, made in enumerate(good, 1):
        try:
            found = run_kernels(made, Coverage()).found
        except GcompError:
            continue  # the reference's own
        if found is not None:
            return Kill(tried, found.message)
    return Survival(len(good))
