"""Tables that keep what matters in a narrow terminal: numbers and names whole, places elided in their middle."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_LEAST_PLACE, _LEAST_NAME = 8, 16
"""The fewest characters that a place and a name are elided to."""

_PROSE = 24
"""The narrowest column of words that wrap."""


class Elided:
    """A text on one line, without its middle where there is no room: both ends of a place say most."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = Text(self.text).cell_len
        return Measurement(min(_LEAST_PLACE, width), width).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(elide(self.text, options.max_width), no_wrap=True, overflow="crop")


class FittedTable(Table):
    """A table whose rows are texts: `names` and `places` are columns that can be elided, `prose` can be wrapped.

    All others are as wide as they need. Where the terminal is too narrow, the frame goes first and headers wrap; then
    the middles of places go, and last those of names.
    """

    def __init__(
        self, *headers: str, names: Sequence[str] = (), places: Sequence[str] = (), prose: Sequence[str] = (),
        numbers: Sequence[str] = (), title: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(title=title)
        self._elided = {*names, *places}
        # In the order in which they give way, each with its narrowest width.
        self._least = (
            [(header, _LEAST_PLACE) for header in places]
            + [(header, _PROSE) for header in prose]
            + [(header, _LEAST_NAME) for header in names]
        )
        for header in headers:
            justify = "right" if header in numbers else "left"
            self.add_column(header, no_wrap=header not in prose, justify=justify)

    def add(self, *cells: str) -> None:
        """Add a row of plain texts."""
        columns = zip(self.columns, cells, strict=True)
        self.add_row(*[Elided(cell) if column.header in self._elided else escape(cell) for column, cell in columns])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for column in self.columns:
            column.max_width = None
        self.box, self.padding, self.show_edge, self.pad_edge = box.HEAVY_HEAD, (0, 1), True, True
        natural = {str(c.header): max(len(str(c.header)), _widest(console, options, c)) for c in self.columns}
        if sum(natural.values()) + 3 * len(natural) + 1 > options.max_width:
            self.box, self.padding, self.show_edge, self.pad_edge = box.SIMPLE_HEAD, (0, 0), False, False
            words = {header: max(map(len, header.split()), default=0) for header in natural}
            natural = {str(c.header): max(words[str(c.header)], _widest(console, options, c)) for c in self.columns}
            excess = sum(natural.values()) + len(natural) - 1 - options.max_width
            for header, least in self._least:
                taken = max(min(excess, natural[header] - max(least, words[header])), 0)
                excess -= taken
                natural[header] -= taken
            for column in self.columns:
                column.max_width, column.no_wrap = natural[str(column.header)], False
        yield from super().__rich_console__(console, options)


def elide(text: str, width: int) -> str:
    """A text of at most so many columns: where it is longer, its two ends and an ellipsis between."""
    if Text(text).cell_len <= width:
        return text
    head = (width - 1) // 2
    tail = max(width - 1 - head, 0)
    found = Text(text)
    return f"{found[:head].plain}…{found[len(found) - tail :].plain if tail else ''}"


def _widest(console: Console, options: ConsoleOptions, column: Column) -> int:
    """How wide the cells of a column are that have all the room there is."""
    wide = options.update(max_width=10**6)
    return max((Measurement.get(console, wide, cell).maximum for cell in column.cells), default=0)


__all__ = ["Elided", "FittedTable", "elide"]
