"""Relocatable ELF objects, as LLVM writes them: 64 bit, little endian, with addends in the relocations."""

from __future__ import annotations

import struct

from gcomp.errors import InternalError
from gcomp.records import record

X86_64, AARCH64, RISCV64 = 62, 183, 243
"""Numbers of machines (`e_machine`)."""

ALLOCATED, WRITABLE, EXECUTABLE, THREAD_LOCAL = 0x2, 0x1, 0x4, 0x400
"""Flags of sections."""
NO_DATA = 8
"""The type of sections that take no place in the file: what is zero at the begin."""
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
"""Sections of symbols that have none."""
FUNCTION, SECTION = 2, 3
"""Types of symbols."""

_SYMBOLS, _RELOCATIONS_ADDENDS, _RELOCATIONS = 2, 4, 9
SECTION_ENTRY, SYMBOL_ENTRY = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
"""Entries of the table of sections, and of symbols."""
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01\x01"
_RELOCATABLE = 1


@record
class Relocation:
    """A place in a section that depends on where a symbol lies. `symbol` is a number, `kind` the machine's own."""

    offset: int
    kind: int
    symbol: int
    addend: int


@record
class Section:
    """A section, its bytes and its relocations."""

    name: str
    type: int
    flags: int
    alignment: int
    size: int
    data: bytes
    relocations: tuple[Relocation, ...]


@record
class Symbol:
    """A name for a place in a section (a number, or one of those above)."""

    name: str
    type: int
    is_local: bool
    section: int
    offset: int


@record
class Object:
    """An object's sections and symbols, by number. `flags` say which conventions of the machine its code keeps."""

    machine: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]


def read_object(data: bytes) -> Object:
    """What an object has. Raises InternalError for what is none, or is cut off."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise InternalError("An object file does not hold together.", why=str(error)) from error


def _read(data: bytes) -> Object:
    identity, kind, machine, _, _, _, begin, flags, _, _, _, entry, count, names = _HEADER.unpack_from(data)
    if not identity.startswith(_MAGIC) or kind != _RELOCATABLE or entry != SECTION_ENTRY.size:
        raise ValueError("it is no relocatable ELF object of 64 bits, little endian")
    rows = [SECTION_ENTRY.unpack_from(data, begin + SECTION_ENTRY.size * number) for number in range(count)]

    def content(number: int) -> bytes:
        _, type, _, _, offset, size, *_ = rows[number]
        if type == NO_DATA:
            return b""
        if offset + size > len(data):
            raise ValueError("a section ends behind the file")
        return data[offset : offset + size]

    relocations: dict[int, tuple[Relocation, ...]] = {}
    symbols: tuple[Symbol, ...] = ()
    for number, (_, type, _, _, _, _, link, info, _, _) in enumerate(rows):
        if type == _SYMBOLS:
            symbols = _symbols(content(number), content(link))
        elif type == _RELOCATIONS_ADDENDS:
            found = _RELOCATION.iter_unpack(content(number))
            relocations[info] = tuple(Relocation(o, i & 0xFFFFFFFF, i >> 32, addend) for o, i, addend in found)
        elif type == _RELOCATIONS:
            raise ValueError("its relocations have no addends")
    texts = content(names)
    sections = tuple(
        Section(_text(texts, name), type, flags, alignment, size, content(number), relocations.get(number, ()))
        for number, (name, type, flags, _, _, size, _, _, alignment, _) in enumerate(rows)
    )
    return Object(machine, flags, sections, symbols)


def _symbols(table: bytes, names: bytes) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(_text(names, name), info & 15, info >> 4 == 0, section, value)
        for name, info, _, section, value, _ in SYMBOL_ENTRY.iter_unpack(table)
    )


def _text(names: bytes, offset: int) -> str:
    return names[offset : names.index(b"\0", offset)].decode()


__all__ = [
    "AARCH64", "ABSOLUTE", "ALLOCATED", "COMMON", "EXECUTABLE", "FUNCTION", "NO_DATA", "RISCV64", "SECTION",
    "THREAD_LOCAL", "UNDEFINED", "WRITABLE", "X86_64", "Object", "Relocation", "Section", "Symbol", "read_object",
]  # fmt: skip
