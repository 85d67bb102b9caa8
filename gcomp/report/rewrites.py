"""The rewrites of a pass as a report lists them: how often, their class, what is proved of them, where they stand."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gcomp.ir.rules import Rule
from gcomp.passes.rewriting import Pattern
from gcomp.report.recording import PassRecord

SHOWN = 4
"""Places that are listed of a rewrite."""

_ROOT = Path(__file__).parents[2]


def rewrite_rows(record: PassRecord) -> list[list[Any]]:
    """For each rewrite that a pass applied: name, how often, class, status of its proof, `file:line`, first places."""
    places: dict[str, list[str]] = {}
    for name, where in record.rewrites:
        places.setdefault(name, []).append(where)
    return [list(_row(record, name, found)) for name, found in sorted(places.items(), key=lambda p: -len(p[1]))]


def _row(record: PassRecord, name: str, found: Sequence[str]) -> Iterator[Any]:
    rewrite = record.known.get(name)
    yield name
    yield len(found)
    yield rewrite.exactness.name if rewrite is not None else ""
    yield _status(rewrite)
    yield _place(rewrite, name, record.module)
    yield [place.partition(" at ")[2] or place for place in list(dict.fromkeys(found))[:SHOWN]]


def _status(rewrite: Any) -> str:
    from gcomp.testing.prove.catalog import pattern_status, status_of

    match rewrite:
        case Rule():
            return status_of(rewrite)
        case Pattern():
            return pattern_status(type(rewrite))
        case _:
            return "part of the pass"


def _place(rewrite: Any, name: str, module: str) -> str:
    """The file and line in which a rewrite stands; a pass's own, where it is no object."""
    if isinstance(rewrite, Pattern):
        cls = type(rewrite)
        file = inspect.getsourcefile(cls)
        return f"{_shown(file)}:{inspect.getsourcelines(cls)[1]}" if file else ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return ""
    names = [name, *([rewrite.family] if isinstance(rewrite, Rule) and rewrite.family else [])]
    rows = (n for text in names for n, line in enumerate(_source(file), 1) if f'"{text}"' in line)
    return f"{_shown(file)}:{next(rows, 1)}"


@cache
def _source(file: str) -> list[str]:
    return Path(file).read_text("utf-8").splitlines()


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else file


__all__ = ["rewrite_rows"]
