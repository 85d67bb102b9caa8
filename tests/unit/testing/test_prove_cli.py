"""`gcomp opt --list-rules`: every rewrite with its class and what is proved of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

import pytest
from typer.testing import CliRunner

from gcomp.cli import listing
from gcomp.cli.app import app
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Op, Rule, Var
from gcomp.passes import registry
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import all_passes
from gcomp.testing.prove.catalog import own_patterns, own_rules, rewrites_of

x = Var("x")
MINE = (
    Rule("twice-not", Op(hlo.NotOp, Op(hlo.NotOp, x)), x),
    Rule("reverse-is-nothing", Op(hlo.ReverseOp, x, dimensions=Attr("d")), x),
)


@dataclass(frozen=True)
class Mine(Pass):
    """A pass of a user."""

    name: ClassVar[str] = "mine"

    def run(self, program: Program, context: PassContext) -> bool:
        return False


def listed(*options: str) -> str:
    result = CliRunner().invoke(app, ["opt", "--list-rules", *options], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_every_rewrite_is_listed_with_its_status() -> None:
    lines = listed().splitlines()
    for rule in own_rules():
        assert any(rule.name in line and "proved" in line and rule.exactness.name in line for line in lines), rule.name
    for pattern in own_patterns():
        assert any(pattern.name in line and "imperative" in line for line in lines), pattern.name


def test_rules_of_other_passes_are_unproved_until_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "all_passes", lambda: {"mine": Mine})
    assert listed().count("unproved") == 2
    proved = listed("--prove")
    assert "unproved" not in proved
    assert "reverse-is-nothing: refuted" in proved
    assert "bits at [0]: before" in proved


def test_a_pipeline_names_the_passes_whose_rules_are_proved() -> None:
    text = listed("--prove", "-p", "dot-weight-layout,dce")
    assert "canonicalize" not in text
    own, _ = rewrites_of(all_passes()["dot-weight-layout"])
    assert own and all(f"{rule.name}: proved" in text for rule in own)
    patterns = "fold-batch-norm"
    assert patterns in listed("-p", patterns) and "raise-" not in listed("-p", patterns)
    assert "vjp" not in listed("-p", "vjp"), "a transformation has no rewrites"


def test_prove_alone_is_wrong_usage() -> None:
    result = CliRunner().invoke(app, ["opt", "--prove"])
    assert isinstance(result.exception, UsageError)


TWO_PASSES = """
from dataclasses import dataclass
from typing import ClassVar, cast
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
TWICE = Rule("negate-twice", Op(hlo.NegateOp, Op(hlo.NegateOp, x)), x)
OTHERS = (Rule("not-twice", Op(hlo.NotOp, Op(hlo.NotOp, x)), x),)
BROKEN = Rule("broken", Op(hlo.AbsOp, x), x, where=Calc(lambda x: 1 // 0))

def helper():
    return OTHERS

@dataclass(frozen=True)
class First(Pass):
    name: ClassVar[str] = "first-of-two"
    def run(self, program, context):
        return apply_rewrites(program, (TWICE,), context)

@dataclass(frozen=True)
class Second(Pass):
    name: ClassVar[str] = "second-of-two"
    def run(self, program, context):
        return apply_rewrites(program, helper(), context)

@dataclass(frozen=True)
class Third(Pass):
    name: ClassVar[str] = "third-of-two"
    def run(self, program, context):
        return apply_rewrites(program, [BROKEN], context)
"""


def test_each_rule_is_listed_once_under_its_own_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "two_passes.py"
    file.write_text(TWO_PASSES, "utf-8")
    names = registry.load_passes(file)
    loaded = {name: all_passes()[name] for name in names}
    for name in names:
        del cast("dict[str, type[Pass]]", all_passes())[name]
    rules = {name: [rule.name for rule in rewrites_of(cls)[0]] for name, cls in loaded.items()}
    assert rules == {"first-of-two": ["negate-twice"], "second-of-two": ["not-twice"], "third-of-two": ["broken"]}
    monkeypatch.setattr(listing, "all_passes", lambda: loaded)
    lines = [line for line in listed().splitlines() if "-twice" in line]
    assert len(lines) == 2 and "first-of-two" in lines[0] and "second-of-two" in lines[1]
    result = CliRunner().invoke(app, ["opt", "--list-rules", "--prove"])
    assert isinstance(result.exception, UsageError)
    assert "the rule broken of the pass third-of-two" in result.exception.what
    assert result.exception.where == f"{file}:12"
