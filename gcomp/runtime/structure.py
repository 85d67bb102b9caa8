"""How flat results become the source's own structure. The structure is JSON, so that it lives in the manifest:

    7                                    the result number 7
    null                                 None
    {"tuple": [S, ...]}  {"list": [S, ...]}
    {"dict": [[key, S], ...]}            keys are strings or integers, in order
    {"constant": value}                  a JSON value that the model always returns

A structure of `null` as a whole means a tuple of all results in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from gcomp.errors import ArtifactError
from gcomp.runtime.strict_json import Json

Build = Callable[[Sequence[Any]], Any]


def builder(structure: Json, count: int) -> Build:
    """The function that arranges `count` results. Raises ArtifactError when the structure does not fit them."""
    if structure is None:
        return tuple
    used: set[int] = set()
    build = _builder(structure, count, used)
    if len(used) != count:
        raise _bad(f"it uses {len(used)} of {count} results")
    return build


def _builder(structure: Json, count: int, used: set[int]) -> Build:
    if structure is None:
        return lambda results: None
    if type(structure) is int:
        if not 0 <= structure < count:
            raise _bad(f"there is no result {structure}")
        used.add(structure)
        return lambda results: results[structure]
    entries = cast("dict[str, Json]", structure) if isinstance(structure, dict) else {}
    if len(entries) == 1:
        ((kind, content),) = entries.items()
        if kind == "constant":
            return lambda results: content
        if isinstance(content, list) and kind in _CONTAINERS:
            return _CONTAINERS[kind](cast("list[Json]", content), count, used)
    raise _bad(f"unexpected {str(cast(object, structure))[:80]}")


def _sequence(kind: Callable[[Any], Any]) -> Callable[[list[Json], int, set[int]], Build]:
    def make(content: list[Json], count: int, used: set[int]) -> Build:
        parts = [_builder(item, count, used) for item in content]
        return lambda results: kind(part(results) for part in parts)

    return make


def _dict(content: list[Json], count: int, used: set[int]) -> Build:
    parts: list[tuple[str | int, Build]] = []
    for entry in content:
        match entry:
            case [str() | int() as key, value]:
                parts.append((key, _builder(value, count, used)))
            case _:
                raise _bad(f"unexpected dict entry {str(entry)[:80]}")
    return lambda results: {key: part(results) for key, part in parts}


_CONTAINERS = {"tuple": _sequence(tuple), "list": _sequence(list), "dict": _dict}


def _bad(why: str) -> ArtifactError:
    return ArtifactError("The structure of the results is not valid.", why=why, fix="Compile the model again.")
