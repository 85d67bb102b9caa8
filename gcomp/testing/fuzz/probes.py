"""Probes: functions of some files note which of their statements run.

The code of each function of a file is exchanged for the same code with a call before each statement. What other files
do is as fast as before, so that campaigns can watch all that they try.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeVar, cast

from gcomp.testing.fuzz.source_lines import Hits, SourceLines

_NOTE = "_gcomp_note_that_this_runs"


class Probes:
    """What runs of the files of some lines, from now on. One is made in a process for the same lines."""

    def __init__(self, lines: SourceLines) -> None:
        self._hits: set[tuple[str, int]] = set()
        for path in sorted({path for path, _ in lines.wanted}):
            self._install(Path(path))

    def watch(self, run: Callable[[], object]) -> Hits:
        """Run, and give the statements that ran, by file and first line; what it raises is not raised here."""
        self._hits.clear()
        with suppress(Exception):  # whoever judges it says what it is
            run()
        return self.seen()

    def seen(self) -> Hits:
        """The statements that ran since this was asked last."""
        found = frozenset(self._hits)
        self._hits.clear()
        return found

    def _install(self, path: Path) -> None:
        _import(path)
        text, hits, name = path.read_text("utf-8"), self._hits, str(path)

        def note(line: int) -> None:
            hits.add((name, line))

        plain = _codes(compile(text, name, "exec", dont_inherit=True))
        probed = _codes(compile(_probe(text), name, "exec", dont_inherit=True))
        known: dict[tuple[str, int], list[tuple[CodeType, CodeType]]] = defaultdict(list)
        for old, new in zip(plain, probed, strict=True):
            known[old.co_qualname, old.co_firstlineno].append((old, new))
        for function in _functions(path):
            code = function.__code__
            pairs = known.get((code.co_qualname, code.co_firstlineno), [])
            new = next((new for old, new in pairs if len(pairs) == 1 or old == code), None)
            if new is not None and new.co_freevars == code.co_freevars:
                function.__globals__[_NOTE] = note
                function.__code__ = new


def _import(path: Path) -> None:
    """Import the module of a file of a package, if it has not been: functions are exchanged, and no files."""
    if any(_is_of(module, path) for module in [*sys.modules.values()]):
        return
    parts, folder = [path.stem] if path.stem != "__init__" else [], path.parent
    while (folder / "__init__.py").exists():
        parts, folder = [folder.name, *parts], folder.parent
    import_module(".".join(parts))


def _is_of(module: object, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.endswith(path.name) and Path(file).resolve() == path


def _functions(path: Path) -> list[FunctionType]:
    """All functions that there are whose code is of a file: those in tables and closures too."""
    gc.unfreeze()  # what a campaign has put aside is not listed
    found = [f for f in cast("list[object]", gc.get_objects()) if type(f) is FunctionType]
    ours = [f for f in found if f.__code__.co_filename.endswith(path.name)]
    return [f for f in ours if Path(f.__code__.co_filename).resolve() == path]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _probe(text: str) -> ast.Module:
    tree = ast.parse(text)
    _Probing().visit(tree)
    return tree


class _Probing(ast.NodeTransformer):
    """Puts a call before each statement of functions, and before the values of lambdas."""

    def __init__(self) -> None:
        self._inside = False

    def visit(self, node: ast.AST) -> ast.AST:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        before, self._inside = self._inside, (self._inside or function) and not isinstance(node, ast.ClassDef)
        node = cast(ast.AST, super().visit(node))
        if isinstance(node, ast.Lambda):
            both = ast.Tuple([_call(node.body), node.body], ast.Load())
            node.body = _at(node.body, ast.Subscript(both, ast.Constant(-1), ast.Load()))
        elif self._inside:
            for field in ("body", "orelse", "finalbody"):
                statements = getattr(node, field, None)
                if isinstance(statements, list):
                    setattr(node, field, [*_with_calls(cast("list[ast.stmt]", statements), function)])
        self._inside = before
        return node


def _with_calls(statements: list[ast.stmt], is_function: bool) -> Iterator[ast.stmt]:
    for i, statement in enumerate(statements):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (is_function and i == 0 and is_text) and not isinstance(statement, ast.Nonlocal | ast.Global):
            yield _at(statement, ast.Expr(_call(statement)))
        yield statement


def _call(node: ast.stmt | ast.expr) -> ast.expr:
    called = ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(node.lineno)], [])
    return _at(node, called)


Node = TypeVar("Node", bound=ast.AST)


def _at(node: ast.AST, made: Node) -> Node:
    return ast.fix_missing_locations(ast.copy_location(made, node))


__all__ = ["Probes"]
