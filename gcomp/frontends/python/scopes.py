"""Which names a piece of Python assigns, and which functions can be rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_JUMPS = (ast.Return, ast.Break, ast.Continue)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned_names(body: Sequence[ast.stmt]) -> list[str]:
    """The variables of the enclosing function that statements assign (or delete), in order."""
    return list(dict.fromkeys(name for statement in body for name in _names(statement)))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Import(aliases) | ast.ImportFrom(names=aliases):
            yield from ((a.asname or a.name).partition(".")[0] for a in aliases)
        case ast.ExceptHandler(name=str() as name):
            yield name
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            yield name
        case _:
            pass
    if isinstance(node, _COMPREHENSIONS):
        # Only `:=` reaches out of a comprehension.
        yield from (n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
    elif not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function itself, without those of functions and classes inside of it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _SCOPES):
            yield from own_nodes(child)


def is_plain(node: ast.FunctionDef) -> bool:
    """Whether a function can be rewritten: no generator or coroutine, no `match` with jumps in it, and no names that
    Python mangles for a class."""
    for one in own_nodes(node):
        if isinstance(one, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith):
            return False
        if isinstance(one, ast.Match | ast.TryStar) and any(isinstance(n, _JUMPS) for n in own_nodes(one)):
            return False
        name = one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else ""
        if name.startswith("__") and not name.endswith("__"):
            return False
    return True
