"""Judges: a property suite for each kind of target, which knows nothing of a mutant but its target.

A judge is given a seed and a mutant that is applied in this process already; it returns how the mutant was caught, or
that it was not. `@judge_of(target)` registers one. What the mutants of a target can share for a seed (programs, results
of the reference), `prepare` makes and keeps: once, before processes fork, when nothing is patched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from gcomp.passes.judging import Failure
from tests.mutants.mutant import Mutant

FEW_OPS = 5
"""To how many ops a failing program should be reduced."""


@dataclass(frozen=True)
class Reduced:
    """A failing program made small: how many ops and constants it has, and the pass that a search over all blames.

    `crash` is what the reducer raised, if it did: then the program is as it was. Where more than a few ops are left,
    `needed` is how many of them the rewrite at fault needs to apply at all (0 where none is named).
    """

    ops: int
    constants: int
    blamed: str
    text: str
    seconds: float
    crash: str = ""
    needed: int = 0


@dataclass(frozen=True)
class Kill:
    """A mutant was caught: by which of the programs (or cases) tried, counted from 1, and what was wrong.

    Of a pass, `failure` is what its judge said, and `reduced` the program made small, if that was asked for.
    """

    tried: int
    message: str
    failure: Failure | None = None
    reduced: Reduced | None = None


@dataclass(frozen=True)
class Survival:
    """A mutant was not caught; how many programs (or cases) were tried."""

    tried: int


Judge = Callable[[int, Mutant], Kill | Survival | None]
"""None says that it was not caught, and not after how many programs."""
Prepare = Callable[[int], object]
"""A list of texts says what is wrong already, with nothing patched."""

JUDGES: dict[str, Judge] = {}
PREPARE: dict[str, Prepare] = {}


def judge_of(target: str, prepare: Prepare | None = None) -> Callable[[Judge], Judge]:
    """Register the function below as the judge of a target."""

    def add(judge: Judge) -> Judge:
        JUDGES[target] = judge
        if prepare is not None:
            PREPARE[target] = prepare
        return judge

    return add


@cache
def load_judges() -> None:
    """Register all judges."""
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        import_module(f"tests.mutants.judges.{path.stem}")


__all__ = ["FEW_OPS", "JUDGES", "PREPARE", "Judge", "Kill", "Prepare", "Reduced", "Survival", "judge_of", "load_judges"]
