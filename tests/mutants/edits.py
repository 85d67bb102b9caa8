"""Mistakes as edits of source text: a function of gcomp is compiled again with a few words changed, in place.

Whoever holds the function (a table, a decorator, a closure) has the new one, since only its code is replaced. The words
are found whatever the function's local variables are called now (`tests.mutants.matching`). An edit whose words are not
in the source any more is an error, so that no mutant loses its mistake unnoticed.
"""

from __future__ import annotations
import __future__

import builtins
import dis
import inspect
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

from tests.mutants.matching import edited
from tests.mutants.mutant import Apply, Mutant, control, mutant


class Edit(NamedTuple):
    """Words of a function's source, and others in their place. `where` is `ir.builder:Builder.broadcast`, for one."""

    where: str
    old: str
    new: str


PATCHED: set[tuple[str, str]] = set()
"""The functions that this process has patched: module and qualified name."""


Edits = Sequence[tuple[str, str, str]]


_SOURCES: dict[FunctionType, str] = {}
"""Of functions that were changed already: what they are now."""


def wrong(name: str, target: str, *, about: str, classes: Sequence[int], edits: Edits) -> None:
    """Register edits that make a mistake as a mutant."""
    mutant(name, target, classes=classes, about=about)(_applied(edits))


def right(name: str, target: str, *, about: str, edits: Edits) -> None:
    """Register edits that keep the meaning as a control."""
    control(name, target, about=about)(_applied(edits))


def _applied(edits: Edits) -> Apply:
    def apply() -> None:
        for edit in edits:
            make(Edit(*edit))

    _IN_PLACE.add(apply)
    return apply


_IN_PLACE: set[Apply] = set()


def edits_only(one: Mutant) -> bool:
    """Whether a mutant is nothing but edits: every function stays the object that it was, with other code."""
    return one.apply in _IN_PLACE


def make(edit: Edit) -> None:
    """Change a function of this process for good. LookupError where the words do not occur exactly once."""
    change(function_at(edit.where), edit.old, edit.new)


def change(found: Any, old: str, new: str) -> None:
    """The same for a function at hand."""
    function = cast(FunctionType, inspect.unwrap(found))
    source = _SOURCES.get(function) or textwrap.dedent(inspect.getsource(function))
    source = edited(source, old, new, function.__code__.co_freevars)
    changed = _compiled(function, source)
    if unknown := _globals(changed.__code__) - function.__globals__.keys() - vars(builtins).keys():
        raise LookupError(f"{new!r} has names that {function.__qualname__} has not: {', '.join(sorted(unknown))}")
    _SOURCES[function] = source
    function.__code__ = changed.__code__
    function.__defaults__, function.__kwdefaults__ = changed.__defaults__, changed.__kwdefaults__
    PATCHED.add((function.__module__, function.__qualname__))
    _forget()


def _globals(code: CodeType) -> set[str]:
    """The globals that a function reads, and the functions in it."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_globals, inner))


def _forget() -> None:
    """Empty gcomp's caches: they hold what the functions made before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("gcomp."):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def function_at(where: str) -> Any:
    """The function at a place of gcomp, `module:name` or `module:Class.name`."""
    module, _, path = where.partition(":")
    found: Any = import_module(f"gcomp.{module}")
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found


def _compiled(function: FunctionType, source: str) -> FunctionType:
    """The function of a source, without its decorators, in the other's module and with its free variables' names."""
    lines = source[source.index("def ") :] if source.startswith("@") else source
    free = function.__code__.co_freevars
    if free:
        lines = f"def outer({', '.join(free)}):\n{textwrap.indent(lines, '    ')}\n    return {function.__name__}\n"
    code = compile(lines, f"<mutant of {function.__qualname__}>", "exec", __future__.annotations.compiler_flag)
    names: dict[str, Any] = {}
    exec(code, function.__globals__, names)  # noqa: S102 - the mistake
    made = names["outer"](*[None] * len(free)) if free else names[function.__name__]
    return cast(FunctionType, made)
