"""Lines of source that a campaign is about, and the statements that run when they count.

A line in a function counts when its statement runs. One that runs when its module is imported (a table, a constant, a
default) counts where what it binds is used: by the functions of its file that name it, by what else is made of it, and
by the files that import it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from gcomp.errors import UsageError

_ASKED = re.compile(r"(?P<path>.*?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?$")
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"[A-Za-z_]\w+")
_FEW_LINES = 5
_MOST_FILES = 40
"""A name that more files use belongs to nobody in particular: then its own file counts."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Hits = frozenset[tuple[str, int]]


@dataclass(frozen=True, order=True)
class Span:
    """Lines of a file, as they were asked for; all of them where none is named."""

    path: Path
    first: int = 1
    last: int = sys.maxsize

    @staticmethod
    def of(text: str) -> Span:
        """FILE, FILE:LINE or FILE:FIRST-LAST. UsageError for a file, or lines, that there are not."""
        asked = _ASKED.match(text)
        assert asked is not None
        path = Path(asked["path"])
        if not path.is_file():
            raise UsageError(f"there is no file {asked['path']!r}", fix="FILE, FILE:LINE or FILE:FIRST-LAST")
        span = Span(path.resolve())
        if asked["first"] is not None:
            first = int(asked["first"])
            span = Span(span.path, first, int(asked["last"] or first))
        if not 1 <= span.first <= min(span.last, len(path.read_text("utf-8").splitlines())):
            raise UsageError(f"{text} has no lines", fix="FILE, FILE:LINE or FILE:FIRST-LAST")
        return span

    def __str__(self) -> str:
        lines = "" if self.last == sys.maxsize else f":{self.first}" + f"-{self.last}" * (self.first != self.last)
        return f"{self.path.name}{lines}"


def changed_spans(folder: Path) -> list[Span]:
    """The lines of Python that differ from the last commit, in the repository around a folder, and files not in it."""
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    found: list[Span] = []
    path = top
    options = ("-U0", "--no-ext-diff", "--no-color", "--no-prefix")
    for line in _git(top, "diff", *options, "HEAD", "--", "*.py").split("\n"):
        if line.startswith("+++ "):
            path = top / line[4:].strip()
        elif path.is_file() and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] if hunk[2] is not None else 1)
            found.append(Span(path.resolve(), max(1, first), max(1, first + count - 1)))
    new = _git(top, "ls-files", "--others", "--exclude-standard", "--", "*.py").split("\n")
    return found + [Span((top / name).resolve()) for name in new if name]


def _git(folder: Path, *words: str) -> str:
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip()
        raise UsageError("what changed is not known", why=why, fix="name the lines: --about FILE:LINE") from None


@dataclass(frozen=True)
class SourceLines:
    """What a campaign is about: the statements that count when they run, by file and first line, and the words of the
    lines asked for."""

    spans: tuple[Span, ...]

    @cached_property
    def wanted(self) -> Hits:
        """File and line of each that counts: all of a file's where nobody uses by name what is bound. UsageError where
        none can run."""
        found = frozenset(hit for span in self.spans for hit in _runs(span))
        found = found or frozenset((str(s.path), n) for s in self.spans for n in _source(s.path).marks)
        if not found:
            raise UsageError(f"no function runs {self}", why="there are no functions in the file")
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """The names and texts on single lines: a program of an op that is named there is more to the point."""
        few = [span for span in self.spans if span.last - span.first < _FEW_LINES]
        lines = [line for s in few for line in s.path.read_text("utf-8").splitlines()[s.first - 1 : s.last]]
        return frozenset(word for line in lines for word in _WORD.findall(line))

    @cached_property
    def kin(self) -> frozenset[str]:
        """The parts of the names and texts around the lines: in what they belong to, and in what names that."""
        few = [span for span in self.spans if span.last - span.first < _FEW_LINES]
        return frozenset(part for span in few for part in _source(span.path).kin(span.first))

    def __str__(self) -> str:
        return ", ".join(map(str, self.spans[:4])) + (f" and {len(self.spans) - 4} more" if self.spans[4:] else "")


# ---- which lines run ------------------------------------------------------------------------------------------------


class _Source:
    """A file: its statements and its functions."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text("utf-8")
        self.tree = ast.parse(self.text, str(path))
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, Function)]
        self.statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]

    def around(self, line: int, column: int | None = None) -> Function | None:
        """The innermost function whose body has a line, or a place in it."""
        within = [f for f in self.functions if _body(f)[0] <= line <= _body(f)[1]]
        if column is not None:
            within = [f for f in within if not isinstance(f, ast.Lambda) or _is_within(f.body, line, column)]
        return max(within, key=lambda f: _body(f)[0], default=None)

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement of a line."""
        within = [s for s in self.statements if _first(s) <= line <= (s.end_lineno or 0)]
        return max(within, key=lambda s: (_first(s), -(s.end_lineno or 0)), default=None)

    def runs_in(self, first: int, last: int) -> Iterator[int]:
        """The lines of functions' statements among some lines."""
        return (n for n in self.marks if first <= n <= last)

    def at(self, line: int) -> Iterator[int]:
        """The statement in a function that a line belongs to, by its first line; of a lambda, the lambda's."""
        function, statement = self.around(line), self.statement(line)
        if isinstance(function, ast.Lambda) and (statement is None or statement.lineno <= function.lineno):
            yield function.body.lineno
        elif statement is not None:
            yield statement.lineno

    @cached_property
    def marks(self) -> frozenset[int]:
        """The first lines of statements in functions, and of the bodies of lambdas."""
        lambdas = {f.body.lineno for f in self.functions if isinstance(f, ast.Lambda)}
        return frozenset({s.lineno for f in self.functions for s in _statements(f)} | lambdas)

    def kin(self, line: int) -> frozenset[str]:
        """The parts of names and texts in the definition of a line, in those of its file that name it, and so on.

        Of what is no function or class, such as a table, its line counts, and who uses its names, in other files too.
        """
        lines, pending, found = self.text.splitlines(), [line], set[str]()
        seen = set[int]()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            statement = next((s for s in self.tree.body if _first(s) <= place <= (s.end_lineno or 0)), None)
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found |= parts(" ".join(lines[max(0, place - 1) : place]))
                for name in _bound_names(statement) if statement is not None else ():
                    found |= parts(name) | _users(self, name)
                    pending += [n for n, inside in self.mentions(name) if inside]
                continue
            first, last = _first(statement), statement.end_lineno or 0
            seen.update(range(first, last + 1))
            found |= parts(" ".join(lines[first - 1 : last]))
            pending += [n for n, _ in self.mentions(statement.name) if not first <= n <= last]
        return frozenset(found)

    def mentions(self, name: str) -> Iterator[tuple[int, bool]]:
        """The lines that name something, and whether that is in a function."""
        for node in ast.walk(self.tree):
            known = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if known == name and isinstance(node, ast.expr):
                yield node.lineno, self.around(node.lineno, node.col_offset) is not None


@cache
def _source(path: Path) -> _Source:
    return _Source(path)


def _statements(function: Function) -> Iterator[ast.stmt]:
    if not isinstance(function, ast.Lambda):
        yield from (node for part in function.body for node in ast.walk(part) if isinstance(node, ast.stmt))


def _body(function: Function) -> tuple[int, int]:
    first = function.body if isinstance(function, ast.Lambda) else function.body[0]
    return first.lineno, function.end_lineno or first.lineno


def _is_within(node: ast.expr, line: int, column: int) -> bool:
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return (node.lineno, node.col_offset) <= (line, column) <= end


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _runs(span: Span) -> Iterator[tuple[str, int]]:
    """What runs where lines of a file count."""
    source = _source(span.path)
    last = min(span.last, len(source.text.splitlines()))
    whole = span.last == sys.maxsize
    found: set[tuple[str, int]] = set()
    for line in [*source.runs_in(1, last)] if whole else range(span.first, last + 1):
        if source.around(line) is not None:
            found.update((str(span.path), n) for n in source.at(line))
        elif (statement := source.statement(line)) is not None:
            used = [*_used_lines(source, statement, set())]
            found.update(used or ((str(span.path), n) for n in source.runs_in(1, sys.maxsize)))
    return iter(found)


def _used_lines(source: _Source, statement: ast.stmt, seen: set[tuple[Path, str]]) -> Iterator[tuple[str, int]]:
    """What runs where something is used that is bound when a module is imported."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield from ((str(source.path), n) for n in source.runs_in(statement.lineno, statement.end_lineno or 0))
        return
    inside = any(isinstance(c, ast.ClassDef) and statement in c.body for c in ast.walk(source.tree))
    for name in _bound_names(statement):
        yield from _of_attribute(source, name) if inside else _of_name(source, name, seen)


def _bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement binds, or fills: `TABLE[key] = ...`, `TABLE.update(...)`."""
    targets: list[ast.expr] = getattr(statement, "targets", None) or [getattr(statement, "target", None)]  # type: ignore[list-item]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        targets = [statement.value.func, *statement.value.args]
    names: list[str] = []
    for target in filter(None, targets):
        names += [node.id for node in ast.walk(target) if isinstance(node, ast.Name)][:_NAMES]
    return names


_NAMES = 4


def _of_name(source: _Source, name: str, seen: set[tuple[Path, str]]) -> Iterator[tuple[str, int]]:
    if (source.path, name) in seen:
        return
    seen.add((source.path, name))
    for line, inside in source.mentions(name):
        if inside:
            yield from ((str(source.path), n) for n in source.at(line))
        elif (statement := source.statement(line)) is not None and name not in _bound_names(statement):
            yield from _used_lines(source, statement, seen)
    for other in _importers(source.path, name):
        yield from _of_name(_source(other), name, seen)


def _of_attribute(source: _Source, name: str) -> Iterator[tuple[str, int]]:
    for path in _files_with(source.path.parent, name):
        other = _source(path)
        yield from ((str(path), n) for line, inside in other.mentions(name) if inside for n in other.at(line))


def _importers(path: Path, name: str) -> Iterator[Path]:
    """The files of the package that import a name of a module."""
    top = path.parent
    while (top.parent / "__init__.py").exists():
        top = top.parent
    if not (top / "__init__.py").exists():
        return
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    for other in _files_with(top, name):
        imports = [node for node in ast.walk(_source(other).tree) if isinstance(node, ast.ImportFrom)]
        named = any((node.module or "").rpartition(".")[2] == stem and _brings(node, name) for node in imports)
        if other != path and (named or any(_brings(node, stem) for node in imports)):  # the name, or `module.name`
            yield other


def _users(source: _Source, name: str) -> frozenset[str]:
    """The parts of names and texts in the definitions of other files that use a name of a file."""
    found = frozenset[str]()
    for path in _importers(source.path, name):
        other = _source(path)
        found = found.union(*(other.kin(line) for line, inside in other.mentions(name) if inside))
    return found


def _brings(node: ast.ImportFrom, name: str) -> bool:
    return any(alias.name == name for alias in node.names)


@cache
def _files_with(folder: Path, name: str) -> list[Path]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    found = [path for path in sorted(folder.rglob("*.py")) if word.search(_text(path))]
    return found if len(found) <= _MOST_FILES else []


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


def parts(text: str) -> frozenset[str]:
    """The words that names and texts are made of, in lower case: `TriangularSolveOp` has triangular and solve."""
    return frozenset(part.lower() for part in _PART.findall(text)) - _COMMON


_PART = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])")
_COMMON = frozenset({"op", "hlo", "stablehlo", "chlo", "gcomp", "broadcast", "random", "for", "the", "pass"})


def spans_of(texts: Iterable[str], folder: Path | None) -> SourceLines | None:
    """What is named, with what changed around a folder; None where nothing is asked for. UsageError for nothing."""
    spans = [Span.of(text) for text in texts]
    if folder is not None:
        spans += [span for span in changed_spans(folder) if _is_code(span.path)]
        if not spans:
            raise UsageError("nothing has changed", why="no line of Python differs from the last commit")
    return SourceLines(tuple(dict.fromkeys(spans))) if spans else None


def _is_code(path: Path) -> bool:
    return "tests" not in path.parts and path.is_file()


__all__ = ["Hits", "SourceLines", "Span", "changed_spans", "parts", "spans_of"]
