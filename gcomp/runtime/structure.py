"""How flat results become the source's own structure, and its arguments flat inputs. Structures are JSON, so that they
live in the manifest:

    7                                    the result number 7
    null                                 None
    {"tuple": [S, ...]}  {"list": [S, ...]}
    {"dict": [[key, S], ...]}            keys are strings or integers, in order
    {"constant": value}                  a JSON value that the model always returns

A structure of `null` as a whole means a tuple of all results in order. The structure of arguments is that of the pair
(args, kwargs), in which numbers are those of inputs; `null` means inputs by position or by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gcomp.errors import ArtifactError, InputError
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


# ---- arguments ------------------------------------------------------------------------------------------------------

Take = Callable[[Any, list[Any]], None]
"""Puts the leaves of an argument into the flat inputs."""


def taker(structure: Json, count: int) -> Callable[[Any], list[Any]]:
    """The function that flattens (args, kwargs) into `count` inputs. It raises InputError for another structure.

    Raises ArtifactError when the structure does not fit the inputs.
    """
    used: set[int] = set()
    _builder(structure, count, used)
    if len(used) != count:
        raise _bad(f"it uses {len(used)} of {count} inputs")
    take = _taker(structure, "")

    def flatten(value: Any) -> list[Any]:
        found: list[Any] = [None] * count
        take(value, found)
        return found

    return flatten


def _taker(structure: Any, path: str) -> Take:
    """`structure` has passed `_builder`."""
    if type(structure) is int:
        return lambda value, found: found.__setitem__(structure, value)
    if structure is None:
        return _nothing(path)
    ((kind, content),) = structure.items()
    if kind == "constant":
        raise _bad("arguments have no constants")
    if kind == "dict":
        return _entries({key: _taker(part, f"{path}[{key!r}]") for key, part in content}, path)
    return _items([_taker(part, f"{path}[{i}]") for i, part in enumerate(content)], path)


def _nothing(path: str) -> Take:
    def take(value: Any, found: list[Any]) -> None:
        if value is not None:
            raise _unlike(path, value, "None")

    return take


def _items(parts: Sequence[Take], path: str) -> Take:
    def take(value: Any, found: list[Any]) -> None:
        if not isinstance(value, tuple | list) or len(cast("Sequence[Any]", value)) != len(parts):
            raise _unlike(path, value, f"a sequence of {len(parts)}")
        for part, item in zip(parts, cast("Sequence[Any]", value), strict=True):
            part(item, found)

    return take


def _entries(parts: Mapping[Any, Take], path: str) -> Take:
    def take(value: Any, found: list[Any]) -> None:
        if not isinstance(value, Mapping) or cast("Mapping[Any, Any]", value).keys() != parts.keys():
            raise _unlike(
                path, value, f"a dict with the keys {', '.join(map(repr, parts))}" if parts else "no keywords"
            )
        for key, part in parts.items():
            part(value[key], found)

    return take


def _unlike(path: str, value: Any, expected: str) -> InputError:
    # A path begins with the place in (args, kwargs).
    name = ("args", "kwargs")[int(path[1])] + path[3:] if path else "args"
    got = f"a {type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else repr(value)[:80]
    return InputError(
        f"The structure of {name} is not what the model was traced with.", why=f"{got}, expected {expected}"
    )


def _bad(why: str) -> ArtifactError:
    return ArtifactError(
        "The structure of the model's arguments or results is not valid.", why=why, fix="Compile the model again."
    )
