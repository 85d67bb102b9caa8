"""`return`, `break` and `continue` inside of control flow, as flags; so that a branch ends where its block does.

    if c:                    if c:
        return x     ->          gc_value = x
    return y                 else:
                                 gc_value = y
                             return gc_value

What follows a branch that always leaves goes into the other one. Where a branch may leave, what follows it is done only
if no flag is set.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from gcomp.frontends.python.scopes import own_nodes

VALUE, RETURNED = "gc_value", "gc_returned"
"""The variables of what a function returns, and whether it has."""
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try)


def desugar_jumps(function: ast.FunctionDef) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The body of a function without jumps and `else` of loops, and the statements that set its flags at the start."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if not any(isinstance(n, ast.Return) for s in body if isinstance(s, _COMPOUND) for n in own_nodes(s)):
        return _Lowering(returns=False).block(body), []
    if not _leaves(body):
        last = body[-1]
        body = [*body, ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), last)), last)]
    made = _Lowering(returns=True).block(body)
    flags: list[ast.stmt] = [_set(RETURNED, False, function.body[0])]
    return [*made, _at(ast.Return(ast.Name(VALUE, ast.Load())), body[-1])], flags


@dataclass
class _Loop:
    """The flags of the loop around a statement."""

    broken: str
    continued: str
    used: set[str] = field(default_factory=set[str])


class _Lowering:
    """Takes the jumps out of blocks."""

    def __init__(self, *, returns: bool) -> None:
        """`returns` tells whether returns are jumps, and not only the end of the function."""
        self._returns = returns
        self._loops: list[_Loop] = []
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A block without jumps."""
        made: list[ast.stmt] = []
        for i, statement in enumerate(body):
            rest = list(body[i + 1 :])
            if isinstance(statement, ast.If) and rest and (merged := _absorb(statement, rest)) is not None:
                return [*made, *self._statement(merged)]
            made += self._statement(statement)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                return made
            if rest and (flags := self._flags(statement)):
                guarded = self.block(rest)
                return [*made, _at(ast.If(_unset(flags, rest[0]), guarded, []), rest[0])]
        return made

    def _flags(self, statement: ast.stmt) -> list[str]:
        """The flags that a statement may set."""
        if not isinstance(statement, _COMPOUND):
            return []
        jumps = _jumps(statement)
        found = [RETURNED] if ast.Return in jumps else []
        if self._loops:
            loop = self._loops[-1]
            found += [loop.broken] if ast.Break in jumps else []
            found += [loop.continued] if ast.Continue in jumps else []
        return found

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Return(value) if self._returns:
                given = value or ast.copy_location(ast.Constant(None), node)
                returned = ast.Assign([ast.Name(VALUE, ast.Store())], given)
                return [_at(returned, node), _set(RETURNED, True, node)]
            case ast.Break():
                return [self._jump(self._loops[-1].broken, node)]
            case ast.Continue():
                return [self._jump(self._loops[-1].continued, node)]
            case ast.If(test, body, orelse):
                return [_at(ast.If(test, self.block(body), self.block(orelse)), node)]
            case ast.While() | ast.For():
                return self._loop(node)
            case ast.With(items, body):
                return [_at(ast.With(items, self.block(body)), node)]
            case ast.Try(body, handlers, orelse, finalbody):
                kept = [_at_handler(ast.ExceptHandler(h.type, h.name, self.block(h.body)), h) for h in handlers]
                return [_at(ast.Try(self.block(body), kept, self.block(orelse), self.block(finalbody)), node)]
            case _:
                return [node]

    def _jump(self, flag: str, node: ast.stmt) -> ast.stmt:
        self._loops[-1].used.add(flag)
        return _set(flag, True, node)

    def _loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        self._count += 1
        loop = _Loop(f"gc_break_{self._count}", f"gc_continue_{self._count}")
        self._loops.append(loop)
        body = self.block(node.body)
        self._loops.pop()
        if loop.continued in loop.used:
            body = [_set(loop.continued, False, node), *body]
        leaving = [loop.broken] if loop.broken in loop.used else []
        leaving += [RETURNED] if ast.Return in _jumps(node) else []
        before = [_set(loop.broken, False, node)] if loop.broken in loop.used else []
        made: ast.stmt
        if isinstance(node, ast.While):
            test = node.test
            if leaving:
                test = ast.copy_location(ast.BoolOp(ast.And(), [_unset(leaving, node), node.test]), node.test)
            made = ast.While(test, body, [])
        else:
            made = ast.For(node.target, node.iter, body, [])
            made.goes_on = _unset(leaving, node) if leaving else None  # type: ignore[attr-defined]
        after: list[ast.stmt] = []
        if node.orelse:
            rest = self.block(node.orelse)
            after = [_at(ast.If(_unset(leaving, node), rest, []), node.orelse[0])] if leaving else rest
        return [*before, _at(made, node), *after]


def _absorb(node: ast.If, rest: list[ast.stmt]) -> ast.If | None:
    """The `if` with what follows it in the branch that does not leave; None where both may stay."""
    if _leaves(node.body):
        return _same(ast.If(node.test, node.body, [*node.orelse, *rest]), node)
    if node.orelse and _leaves(node.orelse):
        return _same(ast.If(node.test, [*node.body, *rest], node.orelse), node)
    return None


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block always ends in a jump (or an exception)."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise)


def _jumps(node: ast.AST, inside_loop: bool = False) -> set[type[ast.stmt]]:
    """The kinds of jumps out of a statement: returns, and breaks and continues that are not of a loop in it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return set()
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not inside_loop):
        return {type(node)}
    # The `else` of a loop is not inside of it.
    own = node.body if isinstance(node, ast.For | ast.While) else []
    found: set[type[ast.stmt]] = set()
    for child in ast.iter_child_nodes(node):
        found |= _jumps(child, inside_loop or child in own)
    return found


def _set(flag: str, value: bool, node: ast.stmt) -> ast.stmt:
    return _at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(value)), node)


def _unset(flags: Sequence[str], node: ast.stmt) -> ast.expr:
    """That no flag is set."""
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), ast.Name(f, ast.Load())) for f in flags]
    made = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _at(made: ast.stmt, node: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _same(made: ast.If, node: ast.If) -> ast.If:
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _at_handler(made: ast.ExceptHandler, node: ast.ExceptHandler) -> ast.ExceptHandler:
    return ast.fix_missing_locations(ast.copy_location(made, node))
