"""Judges `gcomp.memory`: the laws of offsets, orders and rematerialization in `tests/property`, by examples of a seed.

What they compare with shares nothing with what is judged: all packings, all orders, a simulation by the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

import hypothesis

from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

MODULES = ("test_memory_assignment", "test_memory_ordering", "test_rematerialize")


@cache
def laws() -> dict[str, Callable[[], object]]:
    """The tests, by name; what fails in them here is not kept for other runs."""
    found: dict[str, Callable[[], object]] = {}
    for name in MODULES:
        for key, value in vars(import_module(f"tests.property.{name}")).items():
            if key.startswith("test_"):
                found[f"{name}.{key}"] = value
    return found


def failures(seed: int) -> list[str]:
    """What fails with nothing patched: nothing, or the tests would."""
    return [] if laws() else ["there are no laws"]


@judge_of("memory", failures)
def judge_memory(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first law that does not hold."""
    for tried, (name, law) in enumerate(laws().items(), 1):
        run = cast(Any, law)
        if hasattr(run, "hypothesis"):
            known = run._hypothesis_internal_use_settings
            # What fails need not be made small, and is not kept.
            quick = hypothesis.settings(known, database=None, phases=[hypothesis.Phase.generate])
            run._hypothesis_internal_use_settings = quick
            run = hypothesis.seed(seed)(run)
        try:
            run()
        except Exception as error:
            return Kill(tried, f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return Survival(len(laws()))
