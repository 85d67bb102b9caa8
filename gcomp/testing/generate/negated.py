"""What a rule must not match: its left side with each thing that it asks for denied, one at a time.

A rule says what it looks at, so that all near misses of it can be listed: its condition does not hold; two attributes,
or two values, that must be the same are not; a property or a constant has not the value that is named. A mistake that
drops or weakens one of these makes the rule match there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var


@lru_cache(maxsize=512)
def negations(rule: Rule) -> Sequence[Rule]:
    """The near misses of a rule, as rules whose left sides they are. They are for building programs, not to apply."""
    found: list[Rule] = []
    if rule.where is not None:
        found.append(_rename_rule(rule, len(found), where=_deny(rule.where)))
    for change in _changes(rule.lhs):
        lhs = change(rule.lhs)
        # What is renamed may be asked for by the condition under the old name, which still stands elsewhere.
        found += [_rename_rule(rule, len(found), lhs=lhs), _rename_rule(rule, len(found) + 1, lhs=lhs, where=None)]
    return found


def _rename_rule(rule: Rule, number: int, **changes: Any) -> Rule:
    return replace(rule, name=f"{rule.name}-not-{number}", **changes)


def _deny(condition: Calc) -> Calc:
    function = condition.function
    return Calc(lambda *captured: not function(*captured), of=condition.needs)


Change = Callable[[Op], Op]


def _changes(lhs: Op) -> Iterator[Change]:
    """Each way to deny one thing that a left side asks for."""
    for name, count in _counts(lhs).items():
        for which in range(1, count):
            yield lambda term, name=name, which=which: _Renamer(name, which).renamed(term)
    for path, term in _ops(lhs, ()):
        for key, value in term.properties.items():
            if not isinstance(value, Attr):
                yield lambda term, path=path, key=key: _at(term, path, lambda op: _free(op, key))
        for i, operand in enumerate(term.operands):
            if isinstance(operand, Const) and operand.value is not None:
                yield lambda term, path=path, i=i: _at(term, path, lambda op: _with_operand(op, i, Const("_any")))
                yield lambda term, path=path, i=i: _at(term, path, lambda op: _with_operand(op, i, Var("_any")))


def _counts(term: Term) -> dict[str, int]:
    """How often each variable and each captured attribute stands in a term."""
    counts: dict[str, int] = {}
    for name in _names(term):
        counts[name] = counts.get(name, 0) + 1
    return counts


def _names(term: Term) -> Iterator[str]:
    match term:
        case Var():
            yield term.name
        case Op():
            yield from (value.name for value in term.properties.values() if isinstance(value, Attr))
            for operand in term.operands:
                yield from _names(operand)
        case Const():
            return


def _ops(term: Term, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Op]]:
    if isinstance(term, Op):
        yield path, term
        for i, operand in enumerate(term.operands):
            yield from _ops(operand, (*path, i))


class _Renamer:
    """Gives one occurrence of a name another name, counted in the order of `_names`."""

    def __init__(self, name: str, which: int) -> None:
        self.name, self.left = name, which

    def renamed(self, term: Op) -> Op:
        properties = {k: Attr(self._next(v.name)) if isinstance(v, Attr) else v for k, v in term.properties.items()}
        operands = [self._operand(operand) for operand in term.operands]
        return Op(term.op, *operands, type=term.type, commutes=term.commutes, like=term.like, **properties)

    def _operand(self, term: Term) -> Term:
        match term:
            case Var():
                return Var(self._next(term.name))
            case Op():
                return self.renamed(term)
            case Const():
                return term

    def _next(self, name: str) -> str:
        if name != self.name:
            return name
        self.left -= 1
        return f"{name}_other" if self.left == -1 else name


def _at(term: Op, path: tuple[int, ...], change: Change) -> Op:
    if not path:
        return change(term)
    inner = term.operands[path[0]]
    assert isinstance(inner, Op)
    return _with_operand(term, path[0], _at(inner, path[1:], change))


def _with_operand(term: Op, i: int, operand: Term) -> Op:
    operands = [*term.operands[:i], operand, *term.operands[i + 1 :]]
    return Op(term.op, *operands, type=term.type, commutes=term.commutes, like=term.like, **term.properties)


def _free(term: Op, key: str) -> Op:
    properties = {**term.properties, key: Attr(f"_{key}")}
    return Op(term.op, *term.operands, type=term.type, commutes=term.commutes, like=term.like, **properties)


__all__ = ["negations"]
