"""Which ops a pass looks at, as its source names them, and which ops a step makes.

A pattern does not say what it matches. But the names in its code do: a pass that looks for a softmax names the
exponential, the division and the reductions. So a pass that nobody has seen before is tried on programs that hold what
it names, and first of all on those that hold several of these ops together.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TypeGuard, cast

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.rules import Op, Rule
from gcomp.ir.types import ELEMENT_TYPES
from gcomp.passes.rewriting import Pattern
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.program import start_growth

Ops = frozenset[type[Operation]]

_ORDINARY = frozenset({hlo.ConstantOp, hlo.ReturnOp})
"""They are in every program."""
_TELL_CONSTANTS = frozenset({"ConstantOp", "constant_value", "elements_attr", "is_constant", "stored_array"})
_TRIED = 4
_LARGEST_FAMILY = 48


@cache
def _by_name() -> dict[str, type[Operation]]:
    """The ops by the names of their classes and in the IR, and the names of families of them."""
    own = [value for module in (hlo, chlo) for value in vars(module).values()]
    found = {v.__name__: v for v in own if isinstance(v, type) and issubclass(v, Operation)}
    found |= {kind.__name__: kind for kind in (CallOp, DimOp, WeightOp)}
    return found | {kind.name: kind for kind in found.values() if "name" in vars(kind)}


def mentioned_ops(cls: type, rewrites: Sequence[object] = ()) -> Ops:
    """The ops that a class of passes names: in its methods, and in the patterns, rules, tables and functions that
    these use. `rewrites` are those that it is known to apply, wherever it has them from."""
    reached = _reached_values(cls, rewrites)
    found = frozenset({op for value in reached for kind in _named_ops(value) for op in _kinds(kind)} - _ORDINARY)
    return found or frozenset({op for value in vars(sys.modules[cls.__module__]).values()
                               for kind in _named_ops(value) for op in _kinds(kind)} - _ORDINARY)  # fmt: skip


def compared_numbers(cls: type, rewrites: Sequence[object] = ()) -> tuple[float, ...]:
    """The numbers that a class of passes names likewise: its conditions may compare constants with them."""
    values = _reached_values(cls, rewrites)
    found = {value for value in values if _is_number(value)}
    found |= {n for value in values if (code := _code_of(value)) is not None for n in _numbers_in(code)}
    return tuple(sorted(found - {0, 1, -1}))


def asks_for_constants(cls: type, rewrites: Sequence[object] = ()) -> bool:
    """Whether a class of passes names, likewise, what tells constants from other values."""
    codes = [code for value in _reached_values(cls, rewrites) if (code := _code_of(value)) is not None]
    return any(name in _TELL_CONSTANTS for code in codes for name in _names_in(code))


def named_elements(cls: type, rewrites: Sequence[object] = ()) -> tuple[str, ...]:
    """The element types that a class of passes names, likewise: it may do something else where a value has one."""
    codes = [code for value in _reached_values(cls, rewrites) if (code := _code_of(value)) is not None]
    return tuple(sorted({text for code in codes for text in _texts_in(code) if text in ELEMENT_TYPES}))


def _reached_values(cls: type, rewrites: Sequence[object]) -> tuple[object, ...]:
    """What a class uses, itself first: members of classes of its module and of patterns, and what functions name."""
    waiting: list[tuple[object, ModuleType]] = [(value, sys.modules[cls.__module__]) for value in (*rewrites, cls)]
    found: dict[int, object] = {}
    while waiting:
        value, module = waiting.pop()
        if id(value) in found:
            continue
        found[id(value)] = value
        waiting += [(one, module) for one in _used_values(value, module)]
    return tuple(found.values())


def _used_values(value: object, module: ModuleType) -> Iterator[object]:
    """What a value uses at once, of a module's own."""
    if inspect.isclass(value):
        home = sys.modules.get(value.__module__, module)
        for member in vars(value).values():
            yield from _used_values(member, home) if _code_of(member) is not None else (member,)
        yield from (base for base in value.__bases__ if base.__module__ == value.__module__)
    elif (code := _code_of(value)) is not None:
        yield value
        yield from (cell for cell in _captured(value) if _is_own(cell, module))
        known = vars(module)
        yield from (known[name] for name in _names_in(code) if name in known and _is_own(known[name], module))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from (one for one in cast("tuple[object, ...]", value) if _is_own(one, module))
    elif isinstance(value, dict):
        yield from (one for one in cast("dict[object, object]", value).values() if _is_own(one, module))
    elif isinstance(value, Pattern):
        yield type(value)
        yield from vars(value).values()  # a pattern may be made for ops of a table
    elif isinstance(value, Rule):
        yield from (one.function for one in (value.where, value.profit) if one is not None)


def _captured(value: object) -> Iterator[object]:
    """What a function has from the functions around it."""
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):  # it has no value yet
            yield cell.cell_contents


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether a value is of a module: made there, or plain data, rules and patterns, wherever they come from."""
    if isinstance(value, Pattern) or (inspect.isclass(value) and issubclass(value, Pattern)):
        return True
    if inspect.isclass(value) or _code_of(value) is not None:
        return getattr(value, "__module__", None) == module.__name__
    return isinstance(value, Rule | tuple | list | set | frozenset | dict | int | float)


def _code_of(value: object) -> CodeType | None:
    """The code of a function, method or property, one that is kept in a cache too."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    value = getattr(value, "__wrapped__", value)
    return value.__code__ if isinstance(value, FunctionType) else None


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _texts_in(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_in(constant)
        for text in cast("tuple[object, ...]", constant) if isinstance(constant, tuple | frozenset) else (constant,):
            if isinstance(text, str):
                yield text


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


def _named_ops(value: object) -> Iterator[type[Operation]]:
    """The ops that a value names: itself, those in a table, in a rule's left side, or in a function's code."""
    match value:
        case type() if issubclass(value, Operation):
            yield value
        case Rule():
            yield from _in_term(value.lhs)
        case _ if (code := _code_of(value)) is not None:
            yield from _in_code(code)
        case tuple() | list() | set() | frozenset():
            for item in cast("tuple[object, ...]", value):
                yield from _named_ops(item)
        case dict():
            for key, item in cast("dict[object, object]", value).items():
                yield from _named_ops(key)
                yield from _named_ops(item)
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
        g = start_growth(Seeded(seed), 8)
        before = set(g.program.ops())
        grow(g)
        found |= {type(op) for op in g.program.ops() if op not in before}
    return frozenset(found - _ORDINARY)


__all__ = ["Ops", "asks_for_constants", "compared_numbers", "makes", "mentioned_ops", "named_elements"]
