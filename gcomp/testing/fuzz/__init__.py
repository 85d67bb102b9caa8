"""Fuzzing: random programs through passes or a target, in worker processes, until time or a count is up.

    outcome = fuzz(Plan(passes=("canonicalize", "cse")), Limits(minutes=1, jobs=2))

Each program comes from a number, so that what fails can be made again. Failures that have the same fingerprint are one;
each is reduced and written as a case (`gcomp.testing.fuzz.cases`).
"""

from __future__ import annotations

from gcomp.testing.fuzz.campaign import Limits, Outcome, fuzz
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.plan import Plan

__all__ = ["Coverage", "Found", "Limits", "Outcome", "Plan", "fuzz"]
