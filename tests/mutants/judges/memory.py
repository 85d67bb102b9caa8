"""Judges `gcomp.memory`: the laws of offsets, orders and rematerialization in `tests/property`, by examples of a seed.

What they compare with shares nothing with what is judged: all packings, all orders, a simulation by the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, cast

import hypothesis
import pytest

from tests.mutants.judges import JUDGES, PREPARE, Kill, Survival
from tests.mutants.mutant import Mutant

LAWS = {
    "offsets": "test_memory_assignment",
    "orders": "test_memory_ordering",
    "rematerialization": "test_rematerialize",
}


@cache
def laws(target: str) -> dict[str, Callable[[], object]]:
    """The tests of a target, by name; what fails in them here is not kept for other runs."""
    module = import_module(f"tests.property.{LAWS[target]}")
    return {key: value for key, value in vars(module).items() if key.startswith("test_")}


def failures(target: str, seed: int) -> list[str]:
    """What fails with nothing patched: nothing, or the tests would."""
    return [] if laws(target) else [f"there are no laws of {target}"]


def judge_memory(target: str, seed: int, mutant: Mutant) -> Kill | Survival:
    """The first law that does not hold."""
    for tried, (name, law) in enumerate(laws(target).items(), 1):
        run = cast(Any, law)
        if hasattr(run, "hypothesis"):
            known = run._hypothesis_internal_use_settings
            # What fails need not be made small, and is not kept.
            quick = hypothesis.settings(known, database=None, phases=[hypothesis.Phase.generate])
            run._hypothesis_internal_use_settings = quick
            run = hypothesis.seed(seed)(run)
        try:
            run()
        except (Exception, pytest.fail.Exception) as error:  # the latter is no Exception
            return Kill(tried, f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return Survival(len(laws(target)))


for _target in LAWS:
    JUDGES[_target] = partial(judge_memory, _target)
    PREPARE[_target] = partial(failures, _target)
