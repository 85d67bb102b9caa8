"""Nearest misses: where a rewrite would have applied in a model but for one condition, and which condition that is."""

from __future__ import annotations

import inspect
import itertools
import linecache
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.ir import locations
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import Match, Pattern, constant_value, match
from gcomp.testing.prove.catalog import rewrites_of


@dataclass(frozen=True)
class Miss:
    """A rewrite that did not apply for one condition, in how many places, and one of them. `parts` is how much of its
    left side was there."""

    rewrite: str
    condition: str
    count: int
    where: str
    parts: int


def misses_in(program: Program, steps: Sequence[Pass], until: float = math.inf) -> list[Miss]:
    """The nearest misses of the rewrites of passes in a program, which stays as it is, those of most parts first; of
    ops that are looked at until a moment of `time.monotonic`."""
    count, places, parts = Counter[tuple[str, str]](), dict[tuple[str, str], str](), dict[tuple[str, str], int]()
    for step in steps:
        rules, patterns = rewrites_of(type(step))
        for op in itertools.takewhile(lambda _: time.monotonic() < until, program.ops()):
            for name, condition, size in (*_of_rules(rules, op), *_of_patterns(patterns, op, program)):
                key = name, condition
                count[key] += 1
                places.setdefault(key, locations.where(op))
                parts[key] = max(parts.get(key, 0), size)
    found = [Miss(*key, n, places[key], parts[key]) for key, n in count.items()]
    return sorted(found, key=lambda miss: (-miss.parts, -miss.count))


# ---- rules ----


def _of_rules(rules: Sequence[Rule], op: Operation) -> Iterator[tuple[str, str, int]]:
    for rule in rules:
        if op.name == rule.lhs.op.name and match(rule, op) is None:
            looked = _Look()
            looked.op(rule.lhs, op)
            if len(looked.wrong) == 1 and looked.parts > 1:
                yield rule.name, looked.wrong[0], looked.parts
            elif not looked.wrong and rule.where is not None:
                looked.found.captured["root"] = op.results[0]
                for word, condition in (("where", rule.where), ("profit", rule.profit)):
                    with suppress(Exception):
                        if condition is not None and not condition(looked.found.captured):
                            yield rule.name, f"{word}: {_source(condition)} does not hold", looked.parts + 1
                            break


class _Look:
    """Matches a left side and goes on where it does not: what is wrong, and how many parts are as they should be."""

    def __init__(self) -> None:
        self.found: Match = Match()
        self.wrong: list[str] = []
        self.parts: int = 0

    def op(self, term: Op, op: Operation) -> None:
        """Compare an op of the right name with a term."""
        self.parts += 1
        if len(op.operands) != len(term.operands):
            self.wrong.append(f"{op.name} has {len(op.operands)} operands, not {len(term.operands)}")
            return
        for name, wanted in term.properties.items():
            actual = sizes_of(op.properties[name]) if name in SIZE_PROPERTIES else self._value(op, name)
            if not (self.found.bind(wanted.name, actual) if isinstance(wanted, Attr) else actual == wanted):
                said = f"what it is elsewhere ({wanted.name})" if isinstance(wanted, Attr) else repr(wanted)
                self.wrong.append(f"{name} of {op.name} is {actual!r}, not {said}"[:160])
        orders = [list(op.operands), list(op.operands)[::-1]] if term.commutes else [list(op.operands)]
        tried: list[_Look] = []
        for order in orders:
            one = _Look()
            one.found.captured, one.wrong, one.parts = dict(self.found.captured), list(self.wrong), self.parts
            for inner, value in zip(term.operands, order, strict=True):
                one.value(inner, value)
            tried.append(one)
        best = min(tried, key=lambda one: (len(one.wrong), -one.parts))
        self.found, self.wrong, self.parts = best.found, best.wrong, best.parts

    def value(self, term: Term, value: SSAValue) -> None:
        """Compare a value with a term."""
        match term:
            case Var():
                if not self.found.bind(term.name, value):
                    self.wrong.append(f"two operands that are both {term.name} are different values")
            case Const():
                self.constant(term, value)
            case Op():
                if isinstance(value, OpResult) and value.op.name == term.op.name:
                    self.op(term, value.op)
                else:
                    made = value.op.name if isinstance(value, OpResult) else "an input"
                    self.wrong.append(f"an operand is {made}, not {term.op.name}")

    def constant(self, term: Const, value: SSAValue) -> None:
        """Compare a value with a constant."""
        array = constant_value(value)
        if array is None:
            self.wrong.append("an operand is no constant" + (f" ({term.value})" if term.value is not None else ""))
        elif term.value is not None and not np.all(np.asarray(array) == term.value):
            self.wrong.append(f"a constant is not {term.value}")
        elif term.name and not self.found.bind(term.name, array):
            self.wrong.append(f"two constants that are both {term.name} are different")
        else:
            self.parts += 1

    def _value(self, op: Operation, name: str) -> Any:
        return cast(Any, op).value(name)


def _source(condition: Calc) -> str:
    """The words of a condition: the name of its function, or the text of a lambda."""
    name = condition.function.__name__
    if name != "<lambda>":
        return name
    try:
        text = " ".join(inspect.getsource(condition.function).split())
    except OSError:
        return "the condition"
    return text[text.find("lambda") :].rstrip("),")[:100] if "lambda" in text else text[:100]


# ---- imperative patterns ----


def _of_patterns(patterns: Sequence[type[Pattern]], op: Operation, program: Program) -> Iterator[tuple[str, str, int]]:
    """The line at which a pattern gave up, for ops that it looks at: the later the line, the nearer it was."""
    for kind in patterns:
        if not isinstance(op, kind.roots):
            continue
        with suppress(Exception):
            gave_up = _last_line(kind(), op, program)
            if gave_up is not None:
                number, first, text = gave_up
                yield kind.name, f"gives up at: {text}", 1 + max(0, number - first) // 2


def _last_line(pattern: Pattern, op: Operation, program: Program) -> tuple[int, int, str] | None:
    """The line of a pattern's method at which it returned that it does not apply; None where it does apply."""
    code, lines = type(pattern).rewrite.__code__, list[int]()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line":
            lines.append(frame.f_lineno)
        return trace

    copy = program.clone()  # a pattern that applies builds
    place = next(i for i, one in enumerate(program.ops()) if one is op)
    twin = next(one for i, one in enumerate(copy.ops()) if i == place)
    before = sys.gettrace()
    builder = Builder(copy, InsertPoint.before(twin))
    sys.settrace(trace)
    try:
        values = pattern.rewrite(twin, builder) if pattern.applies(twin) else None
    finally:
        sys.settrace(before)
    if values is not None or not lines:
        return None
    texts = [linecache.getline(code.co_filename, number).strip() for number in lines[-2:]]
    said = texts[0] if texts[-1] == "return None" else texts[-1]  # the condition says more
    return lines[-1], code.co_firstlineno, said


__all__ = ["Miss", "misses_in"]
