"""What `make test` leaves to `make sweep`, which runs every night: cases of tests, and examples of Hypothesis."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SWEEP = "GCOMP_SWEEP"
"""The environment variable that is set in `make sweep`."""
SHARE, FEW = 3, 8
"""In `make test`, one of three examples is tried, and at least eight."""


def swept(*cases: Any) -> list[Any]:
    """Cases that only the sweep runs. Beside them stand those that `make test` runs, at least one of each class."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def thinned(cases: Iterable[Any], keeps: Callable[[Any], bool]) -> list[Any]:
    """All cases, of which `make test` runs those that `keeps` says. Raises AssertionError where these are none."""
    all_cases = list(cases)
    kept = [keeps(case) for case in all_cases]
    assert any(kept), "make test runs none of the cases"
    return [case if quick else swept(case)[0] for case, quick in zip(all_cases, kept, strict=True)]


def examples(count: int) -> int:
    """How many of `count` examples Hypothesis tries: all in the sweep, a part in `make test`."""
    return count if os.environ.get(SWEEP) else max(count // SHARE, min(count, FEW))
