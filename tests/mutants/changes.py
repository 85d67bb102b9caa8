"""Changes of a module's source: a comparison turned round, a number off by one, a condition negated, a loop cut.

Cosmic Ray makes them. What changes nothing that runs is no change: annotations, docstrings, the texts of errors and of
documentation, how a data class is made, how much a cache holds, and what says how a thing is printed.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add", "ReplaceBinaryOperator_Mul_Add",
    "ReplaceBinaryOperator_FloorDiv_Mul", "ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd",
    "ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq", "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt", "ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is", "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer",
    "ZeroIterationForLoop",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One changed source: the module, the operator, the line that differs, before and after, and the whole text."""

    module: str
    operator: str
    line: int
    before: str
    after: str
    source: str = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.operator}\n  - {self.before}\n  + {self.after}"

    @property
    def place(self) -> str:
        """The line, as `gcomp fuzz --about` takes it in the folder that the package is in."""
        return f"{self.module.replace('.', '/')}.py:{self.line}"

    @property
    def key(self) -> str:
        """What the same change of the same source has in another run."""
        return sha256(f"{self.module} {self.source}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sites:
    """Where each operator applies in the sources of some modules, in order."""

    sources: dict[str, str]
    counts: tuple[tuple[str, str, int], ...]
    """Module, operator, how often."""

    @staticmethod
    def of(sources: dict[str, str], known: dict[str, list[int]] | None = None) -> Sites:
        """Those of sources by module. Counting takes long: `known` has what was counted before, and gets the rest."""
        known = {} if known is None else known
        counts: list[tuple[str, str, int]] = []
        for module, source in sources.items():
            key = sha256("\0".join((source, *OPERATORS)).encode()).hexdigest()[:16]
            if key not in known:
                known[key] = _counted(source)
            counts += zip([module] * len(OPERATORS), OPERATORS, known[key], strict=True)
        return Sites(sources, tuple(counts))

    @property
    def total(self) -> int:
        """How many there are, those included that change nothing."""
        return sum(count for *_, count in self.counts)

    def change(self, number: int) -> Change | None:
        """The change of a number below the total; None where it changes nothing that runs."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        for module, name, count in self.counts:
            if number < count:
                source = self.sources[module]
                changed = mutate_code(source, get_operator(f"core/{name}")(), number)
                return None if meaning(changed) == meaning(source) else _described(module, name, source, changed)
            number -= count
        raise IndexError(number)

    def drawn(self, random: Random) -> Iterator[Change]:
        """All changes, each once, in an order of chance."""
        seen: set[str] = set()
        for number in random.sample(range(self.total), self.total):
            change = self.change(number)
            if change is not None and change.key not in seen:
                seen.add(change.key)
                yield change


def _counted(source: str) -> list[int]:
    """How often each operator applies."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    nodes: list[Any] = list(ast_nodes(get_ast(source)))
    operators = [get_operator(f"core/{name}")() for name in OPERATORS]
    return [sum(len(list(operator.mutation_positions(node))) for node in nodes) for operator in operators]


def changes(module: str, source: str) -> Iterator[Change]:
    """All changes of a module's source, in order."""
    sites, seen = Sites.of({module: source}), set[str]()
    for number in range(sites.total):
        change = sites.change(number)
        if change is not None and change.key not in seen:
            seen.add(change.key)
            yield change


def _described(module: str, operator: str, source: str, changed: str) -> Change:
    lines = source.splitlines()
    pairs = zip(lines, changed.splitlines(), strict=False)
    line, (before, after) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    # A word alone, as `continue`, says little of where it stands.
    above = f"{lines[line - 2].strip()} " if len(before.split()) == 1 else ""
    return Change(module, operator, line, above + before.strip(), above + after.strip(), changed)


# ---- what runs ------------------------------------------------------------------------------------------------------


def meaning(source: str) -> str:
    """A module without what cannot alter what it does: what runs."""
    try:
        return ast.dump(_Bare().visit(ast.parse(source)))
    except SyntaxError:
        return ""


_TEXTS = ("doc", "description", "why", "fix", "help", "strict")
"""Keywords that say something to people; and that lengths agree, which is checked, and they do."""
_SHOWN = ("__repr__", "__str__", "describe", "_where")
"""Methods that say how a thing is printed."""
_ERRORS = (
    "UnsupportedError",
    "UsageError",
    "InvalidModelError",
    "InternalError",
    "VerificationError",
    "unsupported",
    "invalid",
    "refuse",
    "warn",
)
"""What makes an error or a warning: its text is for people."""


class _Bare(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        if node.name in _SHOWN:
            node.body = [ast.Pass()]
        self._undocumented(node.body)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # How a data class is made (frozen, with slots) is a matter of style: nothing here relies on an error of it.
        node.decorator_list = [d.func if _named(d, "dataclass") else d for d in node.decorator_list]  # type: ignore[attr-defined]
        self._undocumented(node.body)
        return self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self._undocumented(node.body)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        # Which error is raised counts, and what it says does not.
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        node.cause = None
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.msg = None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        return (
            ast.Pass()
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            else self.generic_visit(node)
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in _TEXTS]
        if isinstance(node.func, ast.Name) and node.func.id in ("cast", "TypeVar"):
            node.args[0] = ast.Constant(None)
        if any(_named(node, name) for name in (*_ERRORS, "lru_cache")):
            node.args, node.keywords = [], []
        return self.generic_visit(node)

    @staticmethod
    def _undocumented(body: list[ast.stmt]) -> None:
        body[:] = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))] or [
            ast.Pass()
        ]


def _named(node: ast.AST, name: str) -> bool:
    """Whether a node is a call of something of a name."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Name) and called.id == name) or (
        isinstance(called, ast.Attribute) and called.attr == name
    )


__all__ = ["OPERATORS", "Change", "Sites", "changes", "meaning"]
