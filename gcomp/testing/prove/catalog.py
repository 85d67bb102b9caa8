"""All rewrites, and what was proved of them: the committed results of `python -m tools.prove_table`.

A result counts only for the rule as it was when it was proved: it carries the rule's fingerprint.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from gcomp.ir.rules import Rule
from gcomp.passes.base import Pass
from gcomp.passes.registry import all_passes
from gcomp.passes.rewriting import Pattern, Rewrite
from gcomp.testing.prove.proof import fingerprint, names_in

RESULTS = Path(__file__).with_name("proofs.json")

UNKNOWN = "unproved"
"""The status of a rule that changed since it was proved, or never was."""


def own_passes() -> dict[str, type[Pass]]:
    """gcomp's own passes by name, those of other packages left out."""
    return {name: cls for name, cls in all_passes().items() if cls.__module__.startswith("gcomp.")}


def rewrites_of(cls: type[Pass]) -> tuple[list[Rule], list[type[Pattern]]]:
    """The rules and imperative patterns of a pass, in order: those that stand in its file, each once.

    Of a file with several passes, those that the pass's own code names, itself or in what it calls.
    """
    module = sys.modules[cls.__module__]
    rules = list({rule.name: rule for rule in _rules(vars(module).values())}.values())
    patterns = list(_patterns(module))
    if len(list(_passes(module))) < 2:
        return rules, patterns
    named = _named_values(cls, module)
    held = list(_rules(named))
    made = {value if isinstance(value, type) else type(value) for value in named}
    return [rule for rule in rules if any(rule is one for one in held)], [p for p in patterns if p in made]


def _passes(module: ModuleType) -> Iterator[type[Pass]]:
    for value in dict.fromkeys(v for v in vars(module).values() if isinstance(v, type)):
        if value.__module__ == module.__name__ and issubclass(value, Pass) and not inspect.isabstract(value):
            yield value


def _named_values(cls: type[Pass], module: ModuleType) -> list[Any]:
    """The values of a module that a class's code names, with what the functions and classes among them name."""
    own, found, pending = vars(module), dict[str, Any](), list[Any]([cls])
    held: list[Any] = []
    while pending:
        value = pending.pop()
        if isinstance(value, type):
            members = list(vars(value).values())
            held += [member for member in members if isinstance(member, Rule | tuple | list)]
            pending += [m for m in members if isinstance(m, FunctionType | staticmethod | classmethod | property)]
        elif isinstance(value, staticmethod | classmethod):
            pending.append(cast(Any, value).__func__)
        elif isinstance(value, property):
            pending += [f for f in (value.fget,) if f is not None]
        elif isinstance(value, FunctionType):
            for name in names_in(value.__code__):
                if name in own and name not in found:
                    found[name] = own[name]
                    pending.append(own[name])
        elif isinstance(value, tuple | list):
            pending += [one if isinstance(one, type) else type(one) for one in cast("Sequence[Any]", value)
                        if isinstance(one, Pattern | type)]  # fmt: skip
    return [*held, *found.values(), *(type(p) for v in found.values() for p in _instances(v))]


def _instances(value: Any) -> list[Pattern]:
    items = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else [value]
    return [one for one in items if isinstance(one, Pattern)]


def _rules(values: Iterable[Any]) -> Iterator[Rule]:
    for value in values:
        if isinstance(value, Rule):
            yield value
        elif isinstance(value, tuple | list):
            items = cast("Sequence[Any]", value)
            if items and isinstance(items[0], Rewrite):
                yield from _rules(items)


def _patterns(module: ModuleType) -> Iterator[type[Pattern]]:
    for value in vars(module).values():
        is_own = isinstance(value, type) and value.__module__ == module.__name__
        if is_own and issubclass(value, Pattern) and not inspect.isabstract(value):
            yield value


def own_rules() -> list[Rule]:
    """All rules of gcomp's own passes."""
    return [rule for cls in own_passes().values() for rule in rewrites_of(cls)[0]]


def own_patterns() -> list[type[Pattern]]:
    """All imperative patterns of gcomp's own passes: no proof covers them."""
    return [pattern for cls in own_passes().values() for pattern in rewrites_of(cls)[1]]


@cache
def _stored_proofs() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {"rules": {}, "patterns": {}}


def results() -> Mapping[str, Mapping[str, Any]]:
    """The committed results by rule: fingerprint, status, how, cases, and how many wrong twins were refuted."""
    return _stored_proofs()["rules"]


def status_of(rule: Rule) -> str:
    """The committed status of a rule, or that there is none."""
    return _status(results().get(rule.name), fingerprint(rule))


def pattern_fingerprint(pattern: type[Pattern]) -> str:
    """A text that changes when the file of an imperative pattern does."""
    return hashlib.sha256(inspect.getsource(sys.modules[pattern.__module__]).encode()).hexdigest()[:16]


def pattern_status(pattern: type[Pattern]) -> str:
    """The committed status of an imperative pattern: `checked` on some left sides at best."""
    return _status(_stored_proofs()["patterns"].get(pattern.name), pattern_fingerprint(pattern))


def _status(known: Mapping[str, Any] | None, current: str) -> str:
    return str(known["status"]) if known is not None and known["fingerprint"] == current else UNKNOWN
