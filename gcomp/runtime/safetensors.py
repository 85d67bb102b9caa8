"""Files of named arrays in the safetensors format, as other tools read and write them.

Source: the safetensors format (8 bytes of header size, a JSON header, the data without holes). Nothing in such a file
is code. Element types that it has no name for are stored as bytes, as in an artifact; reading asks for the types that
are expected, and refuses others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from gcomp.dtypes import text_of
from gcomp.errors import InputError
from gcomp.runtime import strict_json
from gcomp.runtime.archive import write_file
from gcomp.runtime.strict_json import JsonError
from gcomp.runtime.weights import MAX_HEADER, stored_name, stored_shape

Array: TypeAlias = np.ndarray[Any, Any]


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], notes: Mapping[str, str] | None = None
) -> None:
    """Write arrays, in order of their names, and notes by name as the file's metadata.

    A file already there is replaced in one step. Raises ArtifactError.
    """
    table: dict[str, Any] = {"__metadata__": dict(notes)} if notes else {}
    end = 0
    contiguous = {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}
    for name, array in contiguous.items():
        text = text_of(array.dtype)
        span = [end, end + array.nbytes]
        table[name] = {"dtype": stored_name(text), "shape": stored_shape(text, array.shape), "data_offsets": span}
        end += array.nbytes
    header = strict_json.dumps(table)
    header += b" " * (-len(header) % 8)
    parts = [len(header).to_bytes(8, "little") + header]
    write_file(path, [*parts, *(_bytes(array) for array in contiguous.values())])


def read_arrays(path: str | os.PathLike[str], expected: Mapping[str, np.dtype[Any]]) -> dict[str, Array]:
    """The arrays of a file that have one of the `expected` names, as elements of their types, and all others' names.

    Others are given as empty arrays of their stored bytes' type. Raises InputError for a file that is damaged.
    """
    where = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {where}", why=error.strerror or str(error)) from None
    try:
        return dict(_parse(data, expected))
    except JsonError as error:
        raise InputError(f"{where} is not a valid safetensors file", why=str(error)) from None


def read_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """What a file's metadata says by name; nothing where it has none. Raises InputError for a file that is damaged."""
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            table = strict_json.loads(file.read(size).rstrip(b" ")) if size <= MAX_HEADER else None
    except OSError as error:
        raise InputError(f"cannot read {where}", why=error.strerror or str(error)) from None
    except JsonError as error:
        raise InputError(f"{where} is not a valid safetensors file", why=str(error)) from None
    notes = cast("dict[str, Any]", table).get("__metadata__", {}) if isinstance(table, dict) else None
    if not isinstance(notes, dict):
        raise InputError(f"{where} is not a valid safetensors file", why="its header is no object")
    return {name: str(text) for name, text in cast("dict[str, Any]", notes).items()}


def _parse(data: bytes, expected: Mapping[str, np.dtype[Any]]) -> list[tuple[str, Array]]:
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(MAX_HEADER, len(data) - 8):
        raise JsonError("its header does not fit into it")
    table = strict_json.loads(data[8 : 8 + size].rstrip(b" "))
    if not isinstance(table, dict):
        raise JsonError("its header is no object")
    rows = {name: row for name, row in cast("dict[str, Any]", table).items() if name != "__metadata__"}
    found: list[tuple[str, Array]] = []
    end = 0
    for name, row in sorted(rows.items(), key=lambda item: _span(item[0], item[1])):
        start, stop = _span(name, row)
        if start != end:
            raise JsonError(f"the data of {name[:80]!r} does not follow what is before it")
        end = stop
        if stop > len(data) - 8 - size:
            raise JsonError(f"the data of {name[:80]!r} ends behind the file")
        found.append((name, _array(name, row, data[8 + size + start : 8 + size + stop], expected.get(name))))
    if end != len(data) - 8 - size:
        raise JsonError("it has data that belongs to no tensor")
    return found


def _span(name: str, row: Any) -> tuple[int, int]:
    match row:
        case {"dtype": str(), "shape": list(), "data_offsets": [int(start), int(stop)]} if 0 <= start <= stop:
            return start, stop
        case _:
            raise JsonError(f"the entry of {name[:80]!r} is not valid")


def _array(name: str, row: Mapping[str, Any], data: bytes, dtype: np.dtype[Any] | None) -> Array:
    shape = cast("list[Any]", row["shape"])
    if not all(type(n) is int and n >= 0 for n in shape):
        raise JsonError(f"the shape of {name[:80]!r} is not valid")
    if dtype is None:
        return np.empty(0, np.uint8)
    text = text_of(dtype)
    if row["dtype"] != stored_name(text):
        raise JsonError(f"{name!r} has elements of {row['dtype'][:20]}, and should have {stored_name(text)}")
    if text == "complex<f64>":
        shape = shape[:-1] if shape and shape[-1] == 2 else [*shape, 0]
    if math.prod(shape) * dtype.itemsize != len(data):
        raise JsonError(f"{name!r} has {len(data)} bytes, which is no array of shape {shape}")
    return np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape).astype(dtype, copy=False)


def _bytes(array: Array) -> memoryview:
    little = np.asarray(array.astype(array.dtype.newbyteorder("<"), copy=False), order="C")
    return little.reshape(-1).view(np.uint8).data
