"""Prints of programs that XLA runs: custom calls of one function, which is this one.

What is printed is data: a call's configuration has the types of its operands and the format, as in `f32[2,3];i1[]|x is
{values}`. Operands are read by those types, so they are compared with the program's own before it is compiled.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.formats import parse_format
from gcomp.reference.numpy.printing import render, write

TARGET = "gcomp_print"

Array = np.ndarray[Any, Any]
_failed: list[BaseException] = []
_TYPE = re.compile(r"([a-zA-Z][A-Za-z0-9<>]*)\[([0-9,]*)\]")


@lru_cache(4096)
def types_of(config: str) -> tuple[list[tuple[str, tuple[int, ...]]], str]:
    """The operands' types and the format in a call's configuration. Raises ValueError when it is not one."""
    listed, bar, text = config.partition("|")
    if not bar:
        raise ValueError("it has no format")
    types: list[tuple[str, tuple[int, ...]]] = []
    for item in listed.split(";") if listed else []:
        found = _TYPE.fullmatch(item)
        if found is None or found[1] not in DTYPES:
            raise ValueError(f"{item[:80]!r} is no type")
        types.append((found[1], tuple(int(size) for size in found[2].split(",") if size)))
    parse_format(text, len(types))
    return types, text


@ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)
def _call(out: int, operands: Any, config: int, length: int, status: int) -> None:
    """Print a line, and count it. Runs inside of XLA, which no exception may cross."""
    try:
        ctypes.c_int32.from_address(out).value = ctypes.c_int32.from_address(operands[0]).value + 1
        types, text = types_of(ctypes.string_at(config, length).decode())
        write(render(text, [_array(operands[i + 1], *type) for i, type in enumerate(types)]))
    except BaseException as error:
        _failed.append(error)


def _array(address: int | None, text: str, shape: Sequence[int]) -> Array:
    dtype = DTYPES[text]
    count = math.prod(shape)
    if not count or address is None:
        return np.empty(shape, dtype)
    return np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype).reshape(shape)


def raise_failure() -> None:
    """Raise what went wrong in a call back, once the program has run."""
    if _failed:
        error = _failed[0]
        _failed.clear()
        raise error


@lru_cache(maxsize=1)
def enable_prints() -> None:
    """Let programs call the function."""
    from gcomp.runtime.xla.client import register  # what is above is read where programs are lowered, without XLA

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.cast(_call, ctypes.c_void_p).value, b"xla._CUSTOM_CALL_TARGET", None)
    register(TARGET, capsule)


__all__ = ["TARGET", "enable_prints", "raise_failure", "types_of"]
