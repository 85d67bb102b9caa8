"""What AMD's code objects say of their kernel, as `gcomp.runtime.cuda.cubin` reads it of NVIDIA's.

A code object is an ELF file of 64 bits with a note named AMDGPU: MessagePack, in which `amdhsa.kernels` lists the
kernels. Source: LLVM's "User Guide for AMDGPU Backend", code object V4 and later.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, cast

from gcomp.errors import InternalError
from gcomp.runtime.cuda.cubin import Table

_MAGIC, _AMDGPU, _NOTE, _METADATA = b"\x7fELF\x02\x01", 224, 7, 32
"""The file's first bytes, the machine among ELF's, the type of section, and that of the note."""


def read(binary: bytes, where: str) -> Table:
    """The table of the one kernel in a code object. Raises InternalError: Triton has just made it."""
    try:
        kernels = _metadata(binary)["amdhsa.kernels"]
        (kernel,) = cast("list[Mapping[str, Any]]", kernels)
        arguments = [a for a in kernel.get(".args", ()) if not str(a[".value_kind"]).startswith("hidden_")]
        return Table(
            name=kernel[".name"],
            parameters=tuple(argument[".size"] for argument in arguments),
            registers=kernel[".vgpr_count"],
            stack=kernel[".private_segment_fixed_size"],
            threads=kernel[".max_flat_workgroup_size"],
        )
    except (struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InternalError("A compiled kernel is not what it should be.", where=where, why=str(error)) from None


def _metadata(data: bytes) -> Mapping[str, Any]:
    if data[:6] != _MAGIC or struct.unpack_from("<H", data, 0x12)[0] != _AMDGPU:
        raise ValueError("it is no code object")
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    for i in range(count):
        _, kind, _, _, offset, length, *_ = struct.unpack_from("<IIQQQQIIQQ", data, start + i * size)
        if kind == _NOTE:
            name, described, note = struct.unpack_from("<III", data, offset)
            content = offset + 12 + -(-name // 4) * 4
            if note == _METADATA and content + described <= offset + length:
                return cast("Mapping[str, Any]", _unpack(data, content)[0])
    raise ValueError("it has no metadata")


_LENGTHS = {0xD9: "B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
"""How the lengths of strings, arrays and maps follow their first byte, where it does not hold them."""

_NUMBERS = {0xCC: "B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: "b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    """A value of MessagePack, and where the next one begins."""
    head = data[at]
    at += 1
    if head in _CONSTANTS:
        return _CONSTANTS[head], at
    if head < 0x80 or head >= 0xE0:
        return (head if head < 0x80 else head - 0x100), at
    if head in _NUMBERS:
        form = _NUMBERS[head]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if head in _LENGTHS:
        form = _LENGTHS[head]
        length = struct.unpack_from(form, data, at)[0]
        at += struct.calcsize(form)
    else:
        length = head & (0x1F if head >= 0xA0 else 0x0F)
    if 0xA0 <= head < 0xC0 or 0xD9 <= head <= 0xDB:
        return data[at : at + length].decode(), at + length
    if 0x90 <= head < 0xA0 or head in (0xDC, 0xDD):
        items: list[Any] = []
        for _ in range(length):
            item, at = _unpack(data, at)
            items.append(item)
        return items, at
    if head < 0x90 or head in (0xDE, 0xDF):
        pairs: dict[Any, Any] = {}
        for _ in range(length):
            key, at = _unpack(data, at)
            pairs[key], at = _unpack(data, at)
        return pairs, at
    raise ValueError(f"there is a value of kind {head:#x}")
