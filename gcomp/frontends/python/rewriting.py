"""Python control flow as calls: a function's source rewritten so that `if`, `while` and `for` can become a program's.

    if c:                    def gc_then(): nonlocal y; y = a
        y = a        ->      def gc_else(): nonlocal y; y = b
    else:                    __gcomp__.if_(c, gc_then, gc_else, ("y",))
        y = b

`flow` holds what is called. Where a condition is known, it runs the branch as Python would; where it is traced, it
builds both. Names of variables stay, and so do lines. Jumps inside of control flow become flags (`desugaring`).
Calls go through `__gcomp__.call`, so that functions of the user's that are called are rewritten, too.
"""

from __future__ import annotations

import ast
import inspect
import types
from functools import lru_cache
from typing import Any, cast

from gcomp.frontends.python.desugaring import desugar_jumps
from gcomp.frontends.python.scopes import assigned_names, is_plain, own_nodes

RUNTIME = "__gcomp__"
"""What rewritten code calls `flow`."""


@lru_cache(1024)
def rewritten_code(code: types.CodeType) -> types.CodeType | None:
    """The rewritten code of a function; None where its source is not at hand, or is no plain function."""
    found = _definition(code)
    if found is None or not is_plain(found):
        return None
    tree = rewrite_module(found, code)
    flags = code.co_flags & (0x01000000 | 0x00100000)  # annotations, generator_stop: of `from __future__`
    compiled = compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return _inner(_inner(compiled, "gc_factory"), code.co_name)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _definition(code: types.CodeType) -> ast.FunctionDef | None:
    """The definition that code was compiled from, with its own lines and columns."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    source = "".join(lines)
    indented = source[:1].isspace()
    try:
        tree = ast.parse(f"if 1:\n{source}" if indented else source)
    except SyntaxError:
        return None
    ast.increment_lineno(tree, first - (2 if indented else 1))
    body: list[ast.stmt] = cast(ast.If, tree.body[0]).body if indented else tree.body
    found = body[0]
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        return None
    given = found.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    # The file may have changed since it was imported.
    return found if list(code.co_varnames[:count]) == names else None


def rewrite_module(function: ast.FunctionDef, code: types.CodeType) -> ast.Module:
    """A module with a factory whose parameters are the function's free variables, and the rewritten function in it."""
    names = [RUNTIME, *(n for n in code.co_freevars if n != RUNTIME)]
    own = Rewriter().definition(function)
    own.decorator_list = []
    factory = _define("gc_factory", _parameters(names), [own])
    tree = ast.Module([factory], [])
    ast.copy_location(factory, function)
    return ast.fix_missing_locations(tree)


class Rewriter(ast.NodeTransformer):
    """Rewrites one function, and those that are defined in it."""

    def __init__(self) -> None:
        self._count = 0
        self._first = ""
        self._globals: set[str] = set()

    def definition(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function: flags first, and then calls in place of statements."""
        outer, parameters = (self._first, self._globals), [*node.args.posonlyargs, *node.args.args]
        self._first = parameters[0].arg if parameters else ""
        body, flags = desugar_jumps(node)
        self._globals = {n for one in own_nodes(node) if isinstance(one, ast.Global) for n in one.names}
        variables = sorted({*assigned_names(body)} - _declared_names(body) - {a.arg for a in _all(node.args)})
        body = [s for one in body for s in self._statements(one)]
        # So that they are local variables of this function, though only inner ones assign them.
        local = [ast.If(ast.Constant(False), [_store(variables)], [])] if variables else []
        made = _define(node.name, node.args, [*_head(body), *local, *flags, *_tail(body)])
        made.decorator_list = [self.visit(d) for d in node.decorator_list]
        self._first, self._globals = outer
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def _statements(self, node: ast.stmt) -> list[ast.stmt]:
        found: Any = self.visit(node)
        return cast("list[ast.stmt]", found) if isinstance(found, list) else [found]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [s for one in body for s in self._statements(one)]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self.definition(node) if is_plain(node) else node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    # ---- statements ----

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names = assigned_names([*node.body, *node.orelse])
        then = self._function("then", [], self._block(node.body), names, node)
        other = self._function("else", [], self._block(node.orelse), names, node)
        test = self.visit(node.test)
        call = _runtime("if_", [test, _load(then.name), _load(other.name), _texts(names)], node)
        return [then, other, call]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names = assigned_names(node.body)
        returned = ast.copy_location(ast.Return(self.visit(node.test)), node.test)
        test = self._function("test", [], [returned], [], node)
        body = self._function("body", [], self._block(node.body), names, node)
        return [test, body, _runtime("while_", [_load(test.name), _load(body.name), _texts(names)], node)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names = assigned_names([node])
        target = ast.copy_location(ast.Assign([node.target], _load("gc_item")), node.target)
        more: ast.expr = ast.Constant(None)
        functions: list[ast.stmt] = []
        if (goes_on := getattr(node, "goes_on", None)) is not None:
            returned = ast.copy_location(ast.Return(self.visit(goes_on)), node)
            functions.append(test := self._function("more", [], [returned], [], node))
            more = _load(test.name)
        body = self._function("body", ["gc_item"], [target, *self._block(node.body)], names, node)
        call = _runtime("for_", [self._iterable(node.iter), _load(body.name), more, _texts(names)], node)
        return [*functions, body, call]

    def _iterable(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            call = _call("range_", [node.func, *(self.visit(a) for a in node.args)], node)
            return call if not node.keywords else node
        return self.visit(node)

    def _function(
        self, kind: str, parameters: list[str], body: list[ast.stmt], names: list[str], node: ast.stmt
    ) -> ast.FunctionDef:
        """A nested function that assigns the outer one's variables."""
        self._count += 1
        outer: list[ast.stmt] = []
        if own := [n for n in names if n not in self._globals]:
            outer.append(ast.Nonlocal(own))
        if shared := [n for n in names if n in self._globals]:
            outer.append(ast.Global(shared))
        made = _define(f"gc_{kind}_{self._count}", _parameters(parameters), [*outer, *(body or [ast.Pass()])])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    # ---- expressions ----

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if not _movable(node):
            return cast(ast.expr, self.generic_visit(node))
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _call(name, [_thunk(self.visit(v)) for v in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("not_", [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if not _movable(node):
            return cast(ast.expr, self.generic_visit(node))
        parts = [self.visit(node.test), _thunk(self.visit(node.body)), _thunk(self.visit(node.orelse))]
        return _call("either", parts, node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if not _movable(node):
            return cast(ast.expr, self.generic_visit(node))
        parts: list[ast.expr] = [self.visit(node.left)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts += [ast.Constant(type(op).__name__), _thunk(self.visit(right))]
        return _call("compare", parts, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first:
            node.args = [ast.copy_location(_load(n), node) for n in ("__class__", self._first)]
            return node
        node.func = _call("call", [node.func], node.func)
        return node


# ---- pieces of syntax -----------------------------------------------------------------------------------------------


def _define(name: str, parameters: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name=name, args=parameters, body=body, decorator_list=[])
    made.type_params = []  # pyright: ignore  # Python 3.12 wants it
    return made


def _parameters(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(names: list[str]) -> ast.stmt:
    return ast.Assign([ast.Name(n, ast.Store()) for n in names], ast.Constant(None))


def _texts(names: list[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def _thunk(body: ast.expr) -> ast.expr:
    made = ast.Lambda(_parameters([]), body)
    return ast.fix_missing_locations(ast.copy_location(made, body))


def _call(name: str, args: list[ast.expr], node: ast.AST) -> ast.Call:
    made = ast.Call(ast.Attribute(_load(RUNTIME), name, ast.Load()), args, [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _runtime(name: str, args: list[ast.expr], node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(_call(name, args, node)), node)


def _movable(node: ast.expr) -> bool:
    """Whether an expression means the same inside of a lambda: it binds no names."""
    return not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for n in ast.walk(node))


def _all(args: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def _declared_names(body: list[ast.stmt]) -> set[str]:
    """The names that are declared as others' variables."""
    return {n for s in body for one in ast.walk(s) if isinstance(one, ast.Nonlocal | ast.Global) for n in one.names}


def _head(body: list[ast.stmt]) -> list[ast.stmt]:
    """What must stand first: a docstring, and declarations."""
    return [s for s in body if isinstance(s, ast.Nonlocal | ast.Global)]


def _tail(body: list[ast.stmt]) -> list[ast.stmt]:
    return [s for s in body if not isinstance(s, ast.Nonlocal | ast.Global)]
