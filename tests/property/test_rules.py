"""Every rule, on programs made from its own left side: it applies, and keeps the meaning within its own class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import pytest

from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.rewriting import apply_rewrites
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.directed import random_matching
from gcomp.testing.generate.inputs import inputs_for
from tools.rules_table import own_passes, rewrites_of

RULES = {rule.name: rule for cls in own_passes().values() for rule in rewrites_of(cls)[0]}
PROGRAMS, OF_A_FAMILY, OF_A_SWEEP = 8, 2, 40
"""How many programs a rule gets; one of a table of many, fewer."""


def only(rule: Rule) -> Pass:
    """The pass that applies one rule."""

    @dataclass(frozen=True)
    class Only(Pass):
        name = rule.name
        exactness = rule.exactness

        def run(self, program: Program, context: PassContext) -> bool:
            return apply_rewrites(program, (rule,), context)

    return Only()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_applies_and_keeps_the_meaning(rule: Rule) -> None:
    _hold(rule, range(OF_A_FAMILY if rule.family else PROGRAMS))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_keeps_the_meaning_of_many(rule: Rule) -> None:
    _hold(rule, range(PROGRAMS, OF_A_SWEEP))


def _hold(rule: Rule, seeds: Iterable[int]) -> None:
    for seed in seeds:
        program, context = random_matching(rule, Seeded(seed), 6), PassContext()
        check = MeaningCheck(inputs=partial(inputs_for, source=seed))
        instruments = [CheckUnchanged(), VerifyEach(), CheckEach(check)]
        PassManager([only(rule)], instruments).run(program, context)
        assert context.counts[rule.name], "the rule did not apply to its own left side"
