"""Tables as HTML: of pages, and of objects that notebooks show."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str]) -> str:
    """A table of texts; the columns of `left` are words, the others numbers."""
    sides = [' class="left"' if column in left else "" for column in columns]
    head = "".join(f"<th{side}>{escape(column)}</th>" for side, column in zip(sides, columns, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{s}>{escape(cell)}</td>" for s, cell in zip(sides, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def html_text(text: str, title: str, lines: int = 400) -> str:
    """A program's text under a title that opens it; of a long one the beginning."""
    shown = text.splitlines()
    more = f"\n... and {len(shown) - lines:,} lines more" if len(shown) > lines else ""
    body = escape("\n".join(shown[:lines]))
    return f"<details open><summary>{escape(title)}</summary><pre>{body}{more}</pre></details>"


__all__ = ["html_table", "html_text"]
