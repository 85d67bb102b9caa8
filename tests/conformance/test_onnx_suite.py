"""ONNX's own suite: what gcomp does with each case is what the committed list says, and it is right or a refusal.

A part of the suite runs each time, another one each week, and with it every case that ever failed; the whole is
`make conformance`. GCOMP_ONNX_PART chooses a part (0 to 63).
"""

from __future__ import annotations

import datetime
import hashlib
import os

import pytest

from tests.conformance import lists
from tests.conformance.outcomes import Rule, run_case
from tests.conformance.suite import Case, cases

PARTS, CHUNKS = 64, 4
WEEK = datetime.datetime.now(tz=datetime.UTC).isocalendar().week
PART = int(os.environ.get("GCOMP_ONNX_PART", WEEK)) % PARTS


def part_of(name: str) -> int:
    """The part that a case is in: always the same, whatever other cases there are."""
    return hashlib.sha256(name.encode()).digest()[0] % PARTS


@pytest.mark.parametrize("chunk", [pytest.param(i, id=f"part{PART}-{i}") for i in range(CHUNKS)])
def test_a_part_of_the_suite(chunk: int) -> None:
    failed = set(lists.ever_failed())
    chosen = [case for name, case in sorted(cases().items()) if part_of(name) == PART or name in failed]
    print(f"part {PART} of ONNX's suite: repeat with GCOMP_ONNX_PART={PART}")  # noqa: T201
    check(chosen[chunk::CHUNKS], "gcomp", "both")


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_reference_interpreter_agrees(chunk: int) -> None:
    node_cases = [case for case in sorted(cases().values(), key=lambda case: case.name) if case.kind == "node"]
    check(node_cases[chunk::CHUNKS], "reference", "roundings")


def check(chosen: list[Case], engine: str, rule: Rule) -> None:
    """Each case passes, or ends as the list says."""
    listed = lists.not_passed()
    problems: list[str] = []
    for case in chosen:
        outcome = run_case(case, engine, rule)
        known = listed.get(case.name, "passed").partition(":")[0]
        if outcome.kind == "passed" and known == "unsupported":
            problems.append(f"{case.name} passes now: renew the list with make conformance")
        elif outcome.kind not in ("passed", known):
            problems.append(f"{case.name}: {outcome.kind}: {outcome.detail}")
    assert not problems, "\n".join(problems)


def test_what_does_not_pass_is_refused() -> None:
    right = ("unsupported:", "rounding:")
    other = [f"{name}: {reason}" for name, reason in lists.not_passed().items() if not reason.startswith(right)]
    assert not other, "\n".join(other)


def test_the_lists_are_about_cases_that_exist() -> None:
    assert lists.not_passed().keys() <= set(lists.ever_failed()) <= cases().keys()


def test_every_case_is_on_disk() -> None:
    assert not [case.name for case in cases().values() if case.model is None]
