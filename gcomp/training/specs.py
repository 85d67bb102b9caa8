"""What a name and its settings stand for: `adamw:lr=1e-3,weight_decay=0.01`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from gcomp.errors import UsageError, did_you_mean


def make_by_name(kind: str, table: Mapping[str, Callable[..., Any]], text: str) -> Any:
    """The entry of a name, with its settings: an object of a class, or a function. Raises UsageError."""
    name, colon, rest = text.partition(":")
    if name not in table:
        raise UsageError(f"there is no {kind} {name!r}", fix=did_you_mean(name, table))
    entry = table[name]
    settings = {
        parameter.name: parameter
        for parameter in inspect.signature(entry).parameters.values()
        if inspect.isclass(entry) or parameter.kind is parameter.KEYWORD_ONLY
    }
    options: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise UsageError(f"the {kind} {text!r} cannot be read", fix=f"write {name}:NAME=VALUE,NAME=VALUE")
        if key not in settings:
            raise UsageError(f"the {kind} {name} has no setting {key!r}", fix=did_you_mean(key, settings))
        if key in options:
            raise UsageError(f"the {kind} {text!r} gives {key} twice")
        options[key] = _value(value, settings[key], f"{name}'s {key}")
    missing = [key for key, p in settings.items() if p.default is p.empty and key not in options]
    if missing:
        raise UsageError(f"the {kind} {name} needs {missing[0]}", fix=f"write {name}:{missing[0]}=...")
    return entry(**options) if inspect.isclass(entry) else functools.partial(entry, **options)


def _value(text: str, parameter: inspect.Parameter, what: str) -> Any:
    """A setting's value, of the type that the parameter is annotated with."""
    wanted = str(cast(object, parameter.annotation))
    try:
        if wanted == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if wanted.startswith("tuple[int"):
            return tuple(map(int, text.split("/")))
        if wanted.startswith("int"):
            return int(text)
        if wanted == "float":
            return _finite(text)
    except (ValueError, KeyError):
        raise UsageError(f"{what} cannot be {text!r}", why=f"it is of type {wanted}") from None
    return text


def _finite(text: str) -> float:
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value
