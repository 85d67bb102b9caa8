"""Judges padded programs: a case for each row of the table, and generated programs, with garbage in all padding."""

from __future__ import annotations

from gcomp.testing.generate.choices import Seeded
from gcomp.testing.padding import compared, outcome, subsets
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.unit.padding.cases import CASES

ROUNDS, GENERATED = 40, 600


def judge(seed: int, mutant: Mutant) -> Kill | Survival | None:
    """Kill what a case shows, or a generated program."""
    tried = 0
    for number in range(ROUNDS):
        for name in CASES:
            tried += 1
            if text := _case(name, seed * ROUNDS + number):
                return Kill(tried, text)
    for number in range(GENERATED):
        found = _generated(seed * GENERATED + number)
        tried += found is not None
        if found:
            return Kill(tried, found)
    return Survival(tried)


def _case(name: str, seed: int) -> str:
    try:
        found = compared(CASES[name](), subsets(["m", "n"])[seed % 3], Seeded(seed), "edges" if seed % 2 else "whole")
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"
    return f"{name}: {found[0]}" if found else ""


def _generated(seed: int) -> str | None:
    try:
        found = outcome(seed, "edges" if seed % 2 else "whole")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if found is None:
        return None
    return "; ".join(found[1]) if found[0] == "WRONG" else ""


def prepare(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    return [text for name in CASES if (text := _case(name, seed * ROUNDS))]


judge_of("pad-dims", prepare)(judge)
