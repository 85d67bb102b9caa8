"""JSON without its loose ends, and dataclasses as its schema.

One value has one text: keys sorted, no spaces, UTF-8. Reading refuses deep or huge texts before parsing them,
duplicate keys, NaN and infinities, integers past 64 bits, and fields that are missing, unknown or of the
wrong type.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import types
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

Json: TypeAlias = Any
"""Any value that JSON can say; a field of this type is opaque to the schema."""

MAX_BYTES = 64 << 20
MAX_DEPTH = 64

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_T = TypeVar("_T")


class JsonError(ValueError):
    """The text or value is refused; the message says why."""


def dumps(value: Any) -> bytes:
    """The canonical text of a JSON value or of a dataclass (fields as keys). Raises JsonError."""
    try:
        plain = dataclasses.asdict(cast(Any, value)) if dataclasses.is_dataclass(value) else value
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonError(str(error)) from error


def loads(data: bytes) -> Json:
    """Parses a JSON text. Raises JsonError, and nothing else."""
    if len(data) > MAX_BYTES:
        raise JsonError(f"the text has {len(data)} bytes, more than {MAX_BYTES}")
    if _depth(data) > MAX_DEPTH:
        raise JsonError(f"the text is nested more than {MAX_DEPTH} levels deep")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_small,
        )
    except ValueError as error:  # of the hooks, of json, of UTF-8
        raise error if isinstance(error, JsonError) else JsonError(str(error)) from error


def _depth(data: bytes) -> int:
    """How deep the brackets outside strings are nested."""
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NOT_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise JsonError("an object has the same key twice")
    return result


def _refuse_constant(text: str) -> Json:
    raise JsonError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"{text[:40]} is too large for a number")
    return value


def _small(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise JsonError(f"{text[:40]} is too large for an integer")
    return int(text)


def decode(hint: type[_T], value: Json, where: str) -> _T:
    """Builds a dataclass, and what its fields' types name, from a parsed JSON value. Raises JsonError."""
    return cast(_T, _decode(hint, value, where))


def _decode(hint: Any, value: Json, where: str) -> Any:
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        return _decode_fields(hint, _parse_typed(dict, value, where), where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _decode(arguments[0], value, where)
    if origin is tuple:
        items = cast(list[Json], _parse_typed(list, value, where))
        if arguments[-1] is not Ellipsis and len(items) != len(arguments):
            raise JsonError(f"{where} has {len(items)} items and should have {len(arguments)}")
        return tuple(_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if origin is Mapping:
        fields = cast(dict[str, Json], _parse_typed(dict, value, where))
        return {key: _decode(arguments[1], item, f"{where}.{key}") for key, item in fields.items()}
    return _parse_typed(hint, value, where)


def _decode_fields(hint: Any, value: dict[str, Json], where: str) -> Any:
    hints = _field_types(hint)
    for problem, keys in (
        ("lacks", hints.keys() - value.keys()),
        ("has unknown", value.keys() - hints.keys()),
    ):
        if keys:
            raise JsonError(f"{where} {problem} {', '.join(sorted(repr(key[:80]) for key in keys))}")
    return hint(**{key: _decode(hints[key], value[key], f"{where}.{key}") for key in hints})


@functools.cache
def _field_types(hint: Any) -> dict[str, Any]:
    return get_type_hints(hint)


def _parse_typed(kind: type[Any], value: Json, where: str) -> Any:
    # By exact type: JSON's true is not the integer 1.
    if type(value) is not kind:
        raise JsonError(f"{where} is a {type(value).__name__} and should be a {kind.__name__}")
    return value
