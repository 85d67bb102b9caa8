"""Files that linkers read: an ELF object around an image, and the static archive around an object."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from gcomp.lowering.llvm.elf import SECTION_ENTRY, SYMBOL_ENTRY
from gcomp.lowering.llvm.relocations import PAGE

_CODE, _NOTE, _SYMBOLS, _STRINGS, _NAMES = range(1, 6)
"""Numbers of the sections."""
_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC_EXECUTE = 0x6
_GLOBAL_FUNCTION = 0x12


def object_of(code: bytes, functions: Mapping[str, int], machine: int, flags: int) -> bytes:
    """A relocatable object of an image, which asks for nothing, and whose functions, by offset, it gives.

    `machine` and `flags` are as in `elf.Object`. The code begins at a page, as images do.
    """
    names, symbols = b"\0", bytes(SYMBOL_ENTRY.size)
    for name, offset in sorted(functions.items()):
        symbols += SYMBOL_ENTRY.pack(len(names), _GLOBAL_FUNCTION, 0, _CODE, offset, 0)
        names += name.encode() + b"\0"
    titles = b"\0.text\0.note.GNU-stack\0.symtab\0.strtab\0.shstrtab\0"
    rows = [
        (".text", _PROGBITS, _ALLOC_EXECUTE, code, 0, 0, PAGE, 0),
        (".note.GNU-stack", _PROGBITS, 0, b"", 0, 0, 1, 0),
        (".symtab", _SYMTAB, 0, symbols, _STRINGS, 1, 8, SYMBOL_ENTRY.size),
        (".strtab", _STRTAB, 0, names, 0, 0, 1, 0),
        (".shstrtab", _STRTAB, 0, titles, 0, 0, 1, 0),
    ]
    body, table = bytearray(_HEADER.size), bytearray(SECTION_ENTRY.size)
    for title, kind, section_flags, data, link, info, alignment, entry in rows:
        body += bytes(-len(body) % min(alignment, 64))
        at = titles.index(f"{title}\0".encode())
        table += SECTION_ENTRY.pack(at, kind, section_flags, 0, len(body), len(data), link, info, alignment, entry)
        body += data
    body += bytes(-len(body) % 8)
    body[: _HEADER.size] = _HEADER.pack(
        b"\x7fELF", 2, 1, 1, 0, 0, 1, machine, 1, 0, 0, len(body), flags, _HEADER.size, 0, 0, SECTION_ENTRY.size,
        len(rows) + 1, _NAMES,
    )  # fmt: skip
    return bytes(body + table)


def archive_of(name: str, data: bytes, symbols: Mapping[str, int]) -> bytes:
    """A static archive of one object, with the table of its symbols, without times and owners."""
    assert len(name) < 16
    names = b"".join(symbol.encode() + b"\0" for symbol in sorted(symbols))
    first = len(_MAGIC) + _LENGTH + 4 + 4 * len(symbols) + len(names)
    first += first % 2
    table = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[first] * len(symbols)) + names
    return _MAGIC + _member("/", table) + _member(f"{name}/", data)


_MAGIC = b"!<arch>\n"
_LENGTH = 60


def _member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


__all__ = ["archive_of", "object_of"]
