"""What options and arguments say, as Python values, without pydantic: it takes longer to load than small models to
compile, and typer asks it for every value, given or not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args


def convert_simply(parameter: Any) -> Any:
    """A parameter of a typer command, which takes texts, paths, and what was not given by itself: typer the others."""
    described = getattr(parameter, "type_descriptor", None)
    if described is None or "process_value" in vars(parameter):
        return parameter
    by_typer = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        found = _convert(parameter, described.annotation, value)
        if found is _HARD:
            return by_typer(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    parameter.process_value = process_value
    return parameter


_HARD = object()
"""In place of a value: it takes more than a look to have it."""


def _convert(parameter: Any, annotation: Any, value: Any) -> Any:
    """The value of a parameter, as typer would have it."""
    if value is None and not parameter.required:
        return () if parameter.multiple else None
    if not parameter.multiple:
        return _convert_one(annotation, value)
    values = [_convert_one(get_args(annotation)[0], one) for one in value or ()]
    return _HARD if not values or _HARD in values else values


def _convert_one(kind: Any, value: Any) -> Any:
    if kind in (str, int, float, bool) and type(value) is kind:
        return value
    if kind is not Path or not isinstance(value, str | Path):
        return _HARD
    # What exists and cannot be read is an error, in typer's words.
    return Path(value) if not os.path.exists(value) or os.access(value, os.R_OK) else _HARD


__all__ = ["convert_simply"]
