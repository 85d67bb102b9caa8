"""Cases of a parametrized test that `make test` leaves to `make sweep`, which runs every night."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def swept(*cases: Any) -> list[Any]:
    """Cases that only the sweep runs. Beside them stand those that `make test` runs, at least one of each class."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def thinned(cases: Iterable[Any], keeps: Callable[[Any], bool]) -> list[Any]:
    """All cases, of which `make test` runs those that `keeps` says. Raises AssertionError where these are none."""
    all_cases = list(cases)
    kept = [keeps(case) for case in all_cases]
    assert any(kept), "make test runs none of the cases"
    return [case if quick else swept(case)[0] for case, quick in zip(all_cases, kept, strict=True)]
