"""What is known about a rule, and how it came to be known."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, cast

from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var


class Status(Enum):
    """How far a rule is known to be right."""

    PROVED = "proved"
    """For every value, and for every size and attribute at the ranks enumerated."""
    CHECKED = "checked"
    """Only within a bound, which the proof names."""
    TESTED = "tested"
    """Only on samples: the prover cannot say it."""
    REFUTED = "refuted"
    """Wrong, with a counterexample."""

    @property
    def rank(self) -> int:
        """Of several findings about one rule, the one of the highest rank counts."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Proof:
    """A finding about a rule: `how` it was found, in `cases` cases; a counterexample where it is refuted.

    `confirmed` says that the reference interpreter shows the counterexample too.
    """

    rule: str
    status: Status
    how: str
    seconds: float = 0.0
    cases: int = 0
    counterexample: str | None = None
    confirmed: bool = False

    def __str__(self) -> str:
        text = f"{self.rule}: {self.status.value}, {self.how} ({self.cases} cases, {self.seconds:.1f} s)"
        return text if self.counterexample is None else f"{text}\n{self.counterexample}"

    def to_json(self) -> dict[str, Any]:
        """The proof as plain data, without the time, which no two runs share."""
        return {"status": self.status.value, "how": self.how, "cases": self.cases}


def fingerprint(rule: Rule) -> str:
    """A text that changes when the rule does: its terms, and the code of its functions with what they call.

    Where a rule pays is no part of what is proved.
    """
    digest = hashlib.sha256()
    for part in _parts(rule):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _parts(rule: Rule) -> Iterator[str]:
    yield rule.name
    yield rule.exactness.name
    yield from _term(rule.lhs)
    yield from _term(rule.rhs)
    yield from _value(rule.where)


def _term(term: Term) -> Iterator[str]:
    match term:
        case Var():
            yield f"var {term.name}"
        case Const():
            yield f"const {term.name} {term.like}"
            yield from _value(term.value)
        case Op():
            yield f"op {term.op.name} {len(term.operands)} {term.commutes} {term.like}"
            for operand in term.operands:
                yield from _term(operand)
            for name, value in term.properties.items():
                yield name
                yield from _value(value)
            yield from _value(term.type)


def _value(value: Any) -> Iterator[str]:
    if isinstance(value, Calc):
        yield f"of {value.needs}"
        yield from _function(value.function, set())
    elif isinstance(value, Attr):
        yield f"attr {value.name}"
    else:
        yield repr(value)


def _function(function: Any, seen: set[str]) -> Iterator[str]:
    """The source of a function, and of the functions of its own module that it calls."""
    if not isinstance(function, FunctionType):
        yield f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
        return
    if function.__qualname__ in seen:
        return
    seen.add(function.__qualname__)
    try:
        yield inspect.getsource(function)
    except OSError:
        yield function.__code__.co_code.hex() + repr(function.__code__.co_consts)
    scope = cast("Mapping[str, Any]", function.__globals__)
    for name in sorted(set(names_in(function.__code__))):
        called = scope.get(name)
        if isinstance(called, FunctionType) and called.__module__ == function.__module__:
            yield from _function(called, seen)


def names_in(code: CodeType) -> Iterator[str]:
    """The names that code uses, that of functions inside it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
