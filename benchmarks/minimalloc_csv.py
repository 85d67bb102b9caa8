"""MiniMalloc's CSV: a row for each buffer, `id,lower,upper,size` and, if wanted, `alignment` and `offset`.

Columns are found by the header's names, in any order. `upper` is the first step at which the buffer is dead; the older
name `end` is for the last step at which it is alive.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from gcomp.errors import InvalidModelError, UsageError
from gcomp.memory.problem import Buffer, Problem, flaw

REQUIRED = ("id", "lower", "upper", "size")
OPTIONAL = ("alignment", "offset")
OLDER = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
"""Other names of columns."""


def read(path: Path | str, capacity: int | None = None) -> Problem:
    """The problem in a file."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("The buffers cannot be read.", where=str(path), why=str(error)) from error
    return parse(text, str(path), capacity)


def parse(text: str, where: str, capacity: int | None = None) -> Problem:
    """The problem in a text; `where` names it in messages."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    buffers: dict[str, Buffer] = {}
    try:
        names = [column.strip() for column in next(rows, list[str]())]
        header = [OLDER.get(name, name) for name in names]
        check_header(header, where)
        longer = 1 if "end" in names else 0
        for row in rows:
            if row:
                buffer = buffer_of(header, row, longer, f"{where}, line {rows.line_num}")
                if buffer.name in buffers:
                    raise refusal(f"{where}, line {rows.line_num}", f"the id {buffer.name!r} is in two rows")
                buffers[buffer.name] = buffer
    except csv.Error as error:
        raise refusal(f"{where}, line {rows.line_num}", str(error)) from error
    return Problem(buffers.values(), capacity)


def refusal(where: str, why: str) -> InvalidModelError:
    """What is wrong in a file of buffers."""
    return InvalidModelError("This is no list of buffers.", where=where, why=why)


def check_header(header: list[str], where: str) -> None:
    """Refuse columns that are missing, unknown or doubled: an unknown one could be a constraint."""
    expected = f"expected {','.join(REQUIRED)}[,{'][,'.join(OPTIONAL)}]"
    for column in REQUIRED:
        if column not in header:
            raise refusal(f"{where}, line 1", f"no column {column!r}; {expected}")
    for column in header:
        if column not in REQUIRED + OPTIONAL or header.count(column) > 1:
            problem = "two columns" if header.count(column) > 1 else "an unknown column"
            raise refusal(f"{where}, line 1", f"{problem} {column!r}; {expected}")


def buffer_of(header: list[str], row: list[str], longer: int, where: str) -> Buffer:
    """The buffer of a row; `longer` is what makes its last column of steps the first dead step."""
    if len(row) != len(header):
        raise refusal(where, f"{len(row)} fields for {len(header)} columns")
    fields = {column: text if column == "id" else text.strip() for column, text in zip(header, row, strict=True)}
    numbers: dict[str, int] = {}
    for column, text in fields.items():
        if column != "id" and (text or column not in OPTIONAL):
            if not (text.isascii() and text.removeprefix("-").isdigit()) or len(text) > 20:
                raise refusal(where, f"the {column} {text!r} is not an integer of at most 64 bits")
            numbers[column] = int(text)
    buffer = Buffer(
        fields["id"], numbers["lower"], numbers["upper"] + longer, numbers["size"],
        numbers.get("alignment", 1), numbers.get("offset"),
    )  # fmt: skip
    if (why := flaw(buffer)) is not None:
        raise refusal(where, f"buffer {buffer.name!r}: {why}")
    return buffer


def write(problem: Problem, offsets: Iterable[int] | None = None) -> str:
    """The text of a problem, with the offsets of an assignment or else the fixed ones."""
    places = [buffer.offset for buffer in problem.buffers] if offsets is None else list(offsets)
    aligned = any(buffer.alignment != 1 for buffer in problem.buffers)
    placed = any(place is not None for place in places)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*REQUIRED, *("alignment",) * aligned, *("offset",) * placed])
    for buffer, place in zip(problem.buffers, places, strict=True):
        fields = [buffer.name, buffer.lower, buffer.upper, buffer.size]
        rows.writerow([*fields, *(buffer.alignment,) * aligned, *("" if place is None else place,) * placed])
    return text.getvalue()
