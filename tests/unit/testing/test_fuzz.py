"""Campaigns: a wrong pass is found and made small, a right one is not blamed, and a program that dies costs itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Op, Rule, Var
from gcomp.passes import registry
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites
from gcomp.testing.fuzz import Coverage, Limits, Plan, fuzz
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.keeping import load_outcome, save_outcome
from gcomp.testing.fuzz.trial import try_passes
from gcomp.testing.generate.directed import known_rules

FORGETFUL = Rule(
    "reverse-of-reverse-forgets",
    Op(hlo.ReverseOp, Op(hlo.ReverseOp, Var("x"), dimensions=Attr("p")), dimensions=Attr("q")),
    Op(hlo.ReverseOp, Var("x"), dimensions=Attr("q")),
)


@dataclass(frozen=True)
class Forgets(Pass):
    """Takes two reversals for the second."""

    name: ClassVar[str] = "forgets"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (FORGETFUL,), context)


@dataclass(frozen=True)
class Dies(Pass):
    """Ends the process on programs that reverse."""

    name: ClassVar[str] = "dies"

    def run(self, program: Program, context: PassContext) -> bool:
        if any(isinstance(op, hlo.ReverseOp) for op in program.ops()):
            os._exit(3)
        return False


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The passes here can be named."""
    known_rules()  # kept for the whole process: programs of other tests must not depend on the rules here
    passes = {**registry.all_passes(), "forgets": Forgets, "dies": Dies}
    monkeypatch.setattr(registry, "all_passes", lambda: passes)
    yield


@pytest.mark.usefixtures("known")
def test_a_wrong_pass_is_found_among_others_and_its_program_made_small(tmp_path: Path) -> None:
    plan = Plan.of(("forgets", "cse", "dce"))
    outcome = fuzz(plan, Limits(programs=600, jobs=2), seed=1)
    assert outcome.coverage.programs == 600
    assert {key[2] for key in outcome.failures} == {"reverse-of-reverse-forgets"}
    found = next(iter(outcome.failures.values()))
    text = write_case(found, plan, tmp_path, seconds=20).read_text("utf-8")
    assert text.startswith('// RUN: gcomp opt %s -p "forgets" --check-each')
    assert 2 <= text.count("stablehlo.") <= 4


def test_right_passes_are_not_blamed() -> None:
    outcome = fuzz(Plan.of(("canonicalize", "cse", "dce", "fold-constants")), Limits(programs=200), seed=2)
    assert not outcome.failures, "\n".join(found.message for found in outcome.failures.values())
    assert outcome.coverage.changed["canonicalize"] and outcome.coverage.rules
    assert outcome.bound == pytest.approx(3 / (200 - outcome.coverage.refused))


@pytest.mark.usefixtures("known")
def test_a_program_that_ends_the_process_is_told_from_those_that_do_not() -> None:
    outcome = fuzz(Plan.of(("dies",)), Limits(programs=100), seed=3)
    assert [key[0] for key in outcome.failures] == ["died"]
    assert 0 < sum(outcome.times.values()) < 100
    assert outcome.coverage.programs + sum(outcome.times.values()) == 100


def test_a_number_stands_for_one_program_its_passes_and_its_inputs() -> None:
    plan = Plan.of()
    runs = [[Coverage() for _ in range(20)] for _ in range(2)]
    for run in runs:
        for number, coverage in enumerate(run):
            try_passes(number, plan, coverage)
    assert runs[0] == runs[1]


def test_plans_are_checked_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="no-such"):
        Plan.of(("no-such",))
    with pytest.raises(UsageError, match="exclude"):
        Plan.of(("cse",), pipeline="dce")
    with pytest.raises(UsageError, match="target"):
        Plan.of(target="tpu")


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Two halves make the whole, and another campaign's file is refused."""
    plan, path = Plan.of(("canonicalize", "cse")), tmp_path / "campaign.json"
    whole = fuzz(plan, Limits(programs=240, jobs=2), seed=3)
    half = fuzz(plan, Limits(programs=150), seed=3)
    save_outcome(path, half, plan, 3)
    both = fuzz(plan, Limits(programs=240, jobs=2), seed=3, known=load_outcome(path, plan, 3))
    assert (both.tried, both.coverage) == (whole.tried, whole.coverage) == (240, both.coverage)
    assert both.seconds > half.seconds
    with pytest.raises(UsageError, match="another campaign"):
        load_outcome(path, plan, 4)
    path.write_text(path.read_text().replace('"sources": "', '"sources": "0'))
    with pytest.raises(UsageError, match="other sources"):
        load_outcome(path, plan, 3)
    path.write_text("{")
    with pytest.raises(UsageError, match="no campaign"):
        load_outcome(path, plan, 3)
    assert load_outcome(tmp_path / "none.json", plan, 3) is None


def test_failures_are_kept(known: None, tmp_path: Path) -> None:
    plan, path = Plan.of(("forgets",)), tmp_path / "campaign.json"
    found = fuzz(plan, Limits(programs=400), seed=0)
    assert found.failures
    save_outcome(path, found, plan, 0)
    again = load_outcome(path, plan, 0)
    assert again is not None and (again.failures, again.times) == (found.failures, found.times)
