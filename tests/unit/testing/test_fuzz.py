"""Campaigns: a wrong pass is found and made small, a right one is not blamed, and a program that dies costs itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

import pytest
import typer
from xdsl.ir import SSAValue

from gcomp.cli.fuzzing import fuzz_command
from gcomp.errors import UsageError
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.passes import registry
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites
from gcomp.testing.fuzz import Coverage, Limits, Plan, campaign, fuzz
from gcomp.testing.fuzz.campaign import Outcome
from gcomp.testing.fuzz.cases import write_case
from gcomp.testing.fuzz.keeping import load_outcome, save_outcome
from gcomp.testing.fuzz.trial import try_passes
from gcomp.testing.generate.directed import known_rules

FORGETFUL = Rule(
    "reverse-of-reverse-forgets",
    Op(hlo.ReverseOp, Op(hlo.ReverseOp, Var("x"), dimensions=Attr("p")), dimensions=Attr("q")),
    Op(hlo.ReverseOp, Var("x"), dimensions=Attr("q")),
)


NOTHING = Rule("no-reversal", Op(hlo.ReverseOp, Var("x"), dimensions=()), Var("x"))


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


NEVER = Rule("never", Op(hlo.AddOp, Var("x"), Var("y")), Var("x"), where=Calc(lambda x: False))


@dataclass(frozen=True)
class Waits(Pass):
    """Has a right rule, and one that never applies."""

    name: ClassVar[str] = "waits"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (NOTHING, NEVER), context)


class Shallow(Pattern):
    """Takes a logarithm of a sum of exponentials for the maximum, as if the other terms were nothing."""

    name = "shallow"
    roots = (hlo.LogOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.LogOp, b: Builder) -> Sequence[SSAValue] | None:
        total = op.operand.owner
        if not isinstance(total, hlo.ReduceOp) or not isinstance(total.inputs[0].owner, hlo.ExponentialOp):
            return None
        axes = [d for d in total.value("dimensions") if isinstance(d, int)]
        return [b.reduce(hlo.MaximumOp, total.inputs[0].owner.operands[0], axes)]


@dataclass(frozen=True)
class Unseen(Pass):
    """A pattern of several ops, for which no step of the generator was written."""

    name: ClassVar[str] = "unseen"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (Shallow(),), context)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """The passes here can be named."""
    known_rules()  # kept for the whole process: programs of other tests must not depend on the rules here
    with pytest.MonkeyPatch.context() as patch:
        for cls in (Forgets, Dies, Waits, Unseen):
            patch.setitem(cast("dict[str, type[Pass]]", registry.all_passes()), cls.name, cls)
        yield


@pytest.fixture(scope="module")
def forgetful(known: None) -> Outcome:
    """A campaign that is about one wrong pass, and has enough of it soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "_ENOUGH_TIMES", 20)
        patch.setattr(campaign, "_ENOUGH_PROGRAMS", 100)
        return fuzz(Plan.of(("forgets",)), Limits(programs=20_000), seed=1)


@pytest.mark.usefixtures("known")
def test_a_wrong_pass_is_found_among_others_and_its_program_made_small(tmp_path: Path) -> None:
    plan = Plan.of(("forgets", "cse", "dce"))
    outcome = fuzz(plan, Limits(programs=110, jobs=2), seed=1)
    assert outcome.coverage.programs == 110
    assert {key[2] for key in outcome.failures} == {"reverse-of-reverse-forgets"}
    found = next(iter(outcome.failures.values()))
    text = write_case(found, plan, tmp_path, seconds=20).read_text("utf-8")
    assert text.startswith('// RUN: gcomp opt %s -p "forgets" --check-each')
    assert 2 <= text.count("stablehlo.") <= 4


@pytest.mark.usefixtures("known")
def test_a_pass_that_nobody_has_seen_is_tried_on_what_it_looks_for() -> None:
    """Also where that takes several ops: the generator has no step for this pass, and knows it by its source only."""
    outcome = fuzz(Plan.of(("unseen",)), Limits(programs=16), seed=1)
    assert outcome.coverage.applications["shallow"] >= 3
    assert {key[2] for key in outcome.failures} == {"shallow"}


@pytest.mark.usefixtures("known")
def test_a_rewrite_that_was_never_applied_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name is said, and the exit status is not that of a pass that was tried; nor is one that hardly applied
    passed over."""
    with pytest.raises(typer.Exit) as ended:
        fuzz_command(Plan.of(("waits",)), Limits(programs=24), 0, tmp_path, 1.0)
    assert ended.value.exit_code == 1
    shown = capsys.readouterr()
    assert "never applied, so nothing is known of: never" in shown.err
    assert re.search(r"never +│ +0 │ +0 │ +0 │ +unknown", shown.out)
    assert re.search(r"fewer than 30 applications say little of: no-reversal \(\d+\)", shown.err)


def test_what_fails_again_and_again_ends_a_campaign(forgetful: Outcome) -> None:
    assert forgetful.systematic and forgetful.tried < 600


def test_only_rewrites_count_as_changes() -> None:
    """The pattern driver drops what is dead, too: that is no sign that a rewrite was tried."""
    coverage = Coverage()
    for context in (PassContext(known={"a": None}), PassContext(known={"a": None}, applications=1)):
        coverage.ran("a-pass", True, context)
    coverage.ran("counts-nothing", True, PassContext())
    assert coverage.changed == {"a-pass": 1, "counts-nothing": 1}


def test_right_passes_are_not_blamed() -> None:
    outcome = fuzz(Plan.of(("canonicalize", "cse", "dce", "fold-constants")), Limits(programs=100), seed=2)
    assert not outcome.failures, "\n".join(found.message for found in outcome.failures.values())
    assert outcome.coverage.changed["canonicalize"] and outcome.coverage.rules
    assert outcome.bound == pytest.approx(3 / (100 - outcome.coverage.refused))


@pytest.mark.usefixtures("known")
def test_a_program_that_ends_the_process_is_told_from_those_that_do_not() -> None:
    outcome = fuzz(Plan.of(("dies",)), Limits(programs=6), seed=3)
    assert [key[0] for key in outcome.failures] == ["died"]
    assert 0 < sum(outcome.times.values()) < 6
    assert outcome.coverage.programs + sum(outcome.times.values()) == 6


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


def test_passes_before_a_target_are_followed_by_its_own_where_it_needs_them() -> None:
    own = [step.name for step in Plan.of(target="cpu").fixed()]
    for given in (Plan.of(("cse",), target="cpu"), Plan.of(pipeline="cse", target="cpu")):
        assert [step.name for step in given.fixed()] == ["cse", *own]
        assert given.pipeline is not None and not given.passes
    assert [step.name for step in Plan.of(pipeline="cse", target="xla:cpu").fixed()] == ["cse"]
    assert len(Plan.of(pipeline="order-for-memory,plan-memory", target="cpu").fixed()) == 2


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two halves make the whole, and another campaign's file is refused."""
    monkeypatch.setattr(campaign, "_PASS_BLOCK", 10)
    plan, path = Plan.of(("canonicalize", "cse")), tmp_path / "campaign.json"
    whole = fuzz(plan, Limits(programs=33, jobs=2), seed=3)
    half = fuzz(plan, Limits(programs=21), seed=3)
    save_outcome(path, half, plan, 3)
    both = fuzz(plan, Limits(programs=33, jobs=2), seed=3, known=load_outcome(path, plan, 3))
    assert (both.tried, both.coverage) == (whole.tried, whole.coverage) == (33, both.coverage)
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


def test_failures_are_kept(forgetful: Outcome, tmp_path: Path) -> None:
    plan, path = Plan.of(("forgets",)), tmp_path / "campaign.json"
    assert forgetful.failures
    save_outcome(path, forgetful, plan, 1)
    again = load_outcome(path, plan, 1)
    assert again is not None and (again.failures, again.times) == (forgetful.failures, forgetful.times)
