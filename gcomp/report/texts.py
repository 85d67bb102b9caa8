"""The difference of two programs as text, for notebooks and the terminal."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from html import escape

from gcomp.ir.program import Program
from gcomp.records import record

_COLORS = {"-": "#fbe9e7", "+": "#e6f4ea"}


@record
class TextDifference:
    """Lines of two programs, each as it is in both (" "), in the first ("-") or the second ("+"), or a gap ("~")."""

    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "\n".join(f"{sign} {line}" for sign, line in self.lines)

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(
            f'<div style="background:{_COLORS.get(sign, "none")};color:{"#222" if sign in _COLORS else "inherit"}">'
            f"{sign} {escape(line)}</div>"
            for sign, line in self.lines
        )
        return f'<div style="font-family:monospace;white-space:pre;overflow:auto">{rows}</div>'


def difference_of(first: Program | str, second: Program | str, context: int = 2) -> TextDifference:
    """What differs between two programs, or texts of programs, with some lines around it."""
    one, other = (side.splitlines() if isinstance(side, str) else side.text().splitlines() for side in (first, second))
    return TextDifference(tuple(_lines(list(difflib.unified_diff(one, other, lineterm="", n=context)))))


def _lines(found: Sequence[str]) -> list[tuple[str, str]]:
    """Without the head; marks of places become gaps."""
    return [("~", "") if line.startswith("@@") else (line[0], line[1:]) for line in found[2:]]


__all__ = ["TextDifference", "difference_of"]
