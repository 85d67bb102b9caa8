"""Which ops a pass looks at, as its source names them, and which ops a step makes.

A pattern does not say what it matches. But the names in its code do: a pass that looks for a softmax names the
exponential, the division and the reductions. So a pass that nobody has seen before is tried on programs that hold what
it names, and first of all on those that hold several of these ops together.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard, cast

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.rules import Op, Rule
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.program import started

Ops = frozenset[type[Operation]]

_ORDINARY = frozenset({hlo.ConstantOp, hlo.ReturnOp})
"""They are in every program."""
_TRIED = 4
_LARGEST_FAMILY = 48


@cache
def _by_name() -> dict[str, type[Operation]]:
    """The ops by the names of their classes and in the IR, and the names of families of them."""
    own = [value for module in (hlo, chlo) for value in vars(module).values()]
    found = {v.__name__: v for v in own if isinstance(v, type) and issubclass(v, Operation)}
    found |= {kind.__name__: kind for kind in (CallOp, DimOp, WeightOp)}
    return found | {kind.name: kind for kind in found.values() if "name" in vars(kind)}


@cache
def mentioned(module: ModuleType) -> Ops:
    """The ops that the functions, patterns, rules and tables of a module name."""
    found: set[type[Operation]] = set()
    for value in vars(module).values():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            for member in vars(value).values():
                found |= {*_named(member)}
        elif not isinstance(value, FunctionType) or value.__module__ == module.__name__:
            found |= {*_named(value)}
    concrete = {op for kind in found for op in _kinds(kind)}
    return frozenset(concrete - _ORDINARY)


@cache
def compared(module: ModuleType) -> tuple[float, ...]:
    """The numbers in the functions and names of a module: its conditions may compare constants with them."""
    found: set[float] = set()
    for value in vars(module).values():
        if _is_number(value):
            found.add(value)
        elif getattr(value, "__module__", None) == module.__name__:
            members = vars(value).values() if inspect.isclass(value) else (value,)
            found |= {n for member in members if isinstance(member, FunctionType) for n in _numbers_in(member.__code__)}
    return tuple(sorted(found - {0, 1, -1}))


def _numbers_in(code: CodeType) -> Iterator[float]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _numbers_in(constant)
        elif _is_number(constant):
            yield constant


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _kinds(kind: type[Operation]) -> Sequence[type[Operation]]:
    """An op, or the ops of a family such as all binary ones; of one that nearly all belong to, none."""
    if "name" in vars(kind):
        return [kind]
    family = [
        op for name, op in _by_name().items() if name == op.__name__ and issubclass(op, kind) and "name" in vars(op)
    ]
    return family if len(family) <= _LARGEST_FAMILY else []


def _named(value: object) -> Iterator[type[Operation]]:
    """The ops that a value names: itself, those in a table, in a rule's left side, or in a function's code."""
    match value:
        case type() if issubclass(value, Operation):
            yield value
        case Rule():
            yield from _in_term(value.lhs)
        case FunctionType():
            yield from _in_code(value.__code__)
        case classmethod() | staticmethod() | property():
            inner = value.fget if isinstance(value, property) else cast("Any", value).__func__
            yield from _named(inner)
        case tuple() | list() | set() | frozenset():
            for item in cast("tuple[object, ...]", value):
                yield from _named(item)
        case dict():
            for key, item in cast("dict[object, object]", value).items():
                yield from _named(key)
                yield from _named(item)
        case _:
            return


def _in_term(term: object) -> Iterator[type[Operation]]:
    if isinstance(term, Op):
        yield term.op
        for operand in term.operands:
            yield from _in_term(operand)


def _in_code(code: CodeType) -> Iterator[type[Operation]]:
    known = _by_name()
    yield from (known[name] for name in code.co_names if name in known)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _in_code(constant)
        for text in cast("tuple[object, ...]", constant) if isinstance(constant, tuple) else (constant,):
            if isinstance(text, str) and text in known:
                yield known[text]


@cache
def makes(grow: Callable[[Growth], object]) -> Ops:
    """The ops that a step makes, by trying it."""
    found: set[type[Operation]] = set()
    for seed in range(_TRIED):
        g = started(Seeded(seed), 8)
        before = set(g.program.ops())
        grow(g)
        found |= {type(op) for op in g.program.ops() if op not in before}
    return frozenset(found - _ORDINARY)


__all__ = ["Ops", "compared", "makes", "mentioned"]
