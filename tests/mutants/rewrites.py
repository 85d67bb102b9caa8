"""Mistakes in rules: a pass is given another rule, or one more, or one fewer, than its file says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from gcomp.ir.program import Program
from gcomp.ir.rules import Rule
from gcomp.passes.base import PassContext
from gcomp.passes.registry import all_passes
from gcomp.passes.rewriting import Rewrite
from gcomp.testing.generate.directed import known_rules
from gcomp.testing.generate.passes import rules_of
from tests.mutants.mutant import mutant

Change = Callable[[Sequence[Rewrite]], Sequence[Rewrite]]


def changing(target: str, change: Change) -> None:
    """Give a pass other rewrites, wherever it applies any. Programs are directed by its rules as they are then."""
    module: Any = sys.modules[all_passes()[target].__module__]
    original, known = module.apply_rewrites, dict[tuple[Rewrite, ...], Sequence[Rewrite]]()

    def apply(program: Program, rewrites: Iterable[Rewrite], context: PassContext) -> bool:
        given = tuple(rewrites)
        if given not in known:
            known[given] = change(given)
        return original(program, known[given], context)

    module.apply_rewrites = apply
    module.changed = tuple(change(rules_of(all_passes()[target]())))
    known_rules.cache_clear()
    rules_of.cache_clear()


def with_rule(target: str, rule: str, **changes: Any) -> None:
    """Change one rule of a pass. KeyError where there is none of the name."""
    changed = replace(known_rules()[rule], **changes)
    changing(target, lambda given: [changed if r.name == rule else r for r in given])


def wrong_rule(name: str, target: str, rule: str, *, about: str, classes: Sequence[int], **changes: Any) -> None:
    """Register a change of a rule as a mutant."""
    mutant(name, target, classes=classes, about=about)(lambda: with_rule(target, rule, **changes))


def wrong_addition(name: str, target: str, rule: Rule, *, about: str, classes: Sequence[int]) -> None:
    """Register a wrong rule that comes before a pass's own as a mutant."""
    mutant(name, target, classes=classes, about=about)(lambda: changing(target, lambda given: [rule, *given]))
