"""Export text with holes: `tensor<{{2*batch}}x3xf32>` becomes a program once its symbols have values.

A hole holds a size in the canonical text of `gcomp.dims`. A choice, `{{?p}}...{{:}}...{{/}}`, is its first part where
the size p is not 0, and else its second: of a branch that sizes decide, the other one need not fit. Text outside of
both never contains `{{`: whoever writes a template escapes braces in string literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gcomp import dims
from gcomp.dims import Size
from gcomp.records import record

_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_MAX_NESTING = 64


def hole(size: Size) -> str:
    """The text of a size in a template: a number, or a hole."""
    return str(size) if isinstance(size, int) else f"{{{{{size}}}}}"


def choice(size: Size, first: str, second: str) -> str:
    """The text of a choice between two texts."""
    return f"{{{{?{size}}}}}{first}{{{{:}}}}{second}{{{{/}}}}"


@dataclass
class _Choice:
    """A choice: its size's text, and the pieces of either part."""

    formula: str
    parts: tuple[list[_Piece], list[_Piece]] = field(default_factory=lambda: ([], []))


@record
class _Literal:
    text: str


_Piece = _Literal | _Choice | str
"""Text, a choice, or the text of a size."""


class Template:
    """A text whose holes are sizes. Splitting happens once, so that filling costs little more than joining."""

    def __init__(self, text: str) -> None:
        """Raises DimError when a hole does not hold a size in canonical form, and for choices that do not end."""
        self.text = text
        pieces = _HOLE.split(text)
        self._sizes: dict[str, Size] = {}
        self._pieces: list[_Piece] = []
        self._build(pieces[::2], pieces[1::2])

    def _build(self, literals: list[str], holes: list[str]) -> None:
        here = self._pieces
        open_: list[tuple[list[_Piece], _Choice, bool]] = []
        here.append(_Literal(literals[0]))
        for inner, literal in zip(holes, literals[1:], strict=True):
            if inner.startswith("?"):
                found = _Choice(self._size(inner[1:]))
                here.append(found)
                open_.append((here, found, False))
                here = found.parts[0]
            elif inner in (":", "/"):
                if not open_ or open_[-1][2] != (inner == "/"):
                    raise dims.DimError(f"the text has a {inner!r} that belongs to no choice")
                around, found, _ = open_.pop()
                here = around
                if inner == ":":
                    open_.append((around, found, True))
                    here = found.parts[1]
            else:
                here.append(self._size(inner))
            if len(open_) > _MAX_NESTING:
                raise dims.DimError(f"choices nest deeper than {_MAX_NESTING}")
            here.append(_Literal(literal))
        if open_:
            raise dims.DimError("a choice of the text does not end")

    def _size(self, formula: str) -> str:
        self._sizes[formula] = _canonical(formula)
        return formula

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols that occur in holes."""
        return frozenset[str]().union(*(dims.symbols_of(size) for size in self._sizes.values()))

    def fill(self, env: Mapping[str, int]) -> str:
        """The text with each hole replaced by its size under `env`. Raises DimError for a symbol without value."""
        if not self._sizes:
            return self.text
        return "".join(self._filled(self._pieces, env, {}))

    def _filled(self, pieces: list[_Piece], env: Mapping[str, int], known: dict[str, int]) -> Iterator[str]:
        for piece in pieces:
            match piece:
                case _Literal():
                    yield piece.text
                case _Choice():
                    yield from self._filled(piece.parts[not self._value(piece.formula, env, known)], env, known)
                case _:
                    yield str(self._value(piece, env, known))

    def _value(self, formula: str, env: Mapping[str, int], known: dict[str, int]) -> int:
        if formula not in known:
            known[formula] = dims.evaluate(self._sizes[formula], env)
        return known[formula]


def _canonical(formula: str) -> Size:
    size = dims.parse(formula)
    if str(size) != formula:
        raise dims.DimError(f"{formula!r} is not canonical, write {str(size)!r}")
    return size
