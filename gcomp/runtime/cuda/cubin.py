"""What a cubin says of its kernel: the sizes of its parameters, its registers, its stack.

A cubin is an ELF file of 64 bits. The section `.nv.info.NAME` holds attributes of the kernel NAME, `.nv.info` those
that name kernels by symbol; their layout is what NVIDIA's `cuobjdump -elf` shows. The driver trusts a launch to pass
what the kernel takes, so a plan is compared with this table before anything is launched.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gcomp.errors import ArtifactError

_MAGIC = b"\x7fELF\x02\x01"
_CUDA = 190
"""The machine's number among ELF's."""

_NO_BITS = 8
_PARAMETER, _THREADS, _REGISTERS, _FRAME = 0x17, 0x10, 0x2F, 0x11
_SIZED = 4
"""The format of an attribute that is followed by as many bytes as it says; the others hold two."""


@dataclass(frozen=True)
class Table:
    """Of one kernel: its name, each parameter's size in bytes in order, registers of a thread, bytes of its stack.

    `threads` is how many a block must have, None where any number will do. A stack holds what no register did.
    """

    name: str
    parameters: tuple[int, ...]
    registers: int
    stack: int
    threads: int | None


def read(binary: bytes | memoryview, where: str) -> Table:
    """The table of the one kernel in a cubin. Raises ArtifactError for whatever else the bytes are."""
    try:
        return _table(bytes(binary))
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise _bad(where, f"it ends too early, or lies about where things are ({error})") from None
    except ValueError as error:
        raise _bad(where, str(error)) from None


def check(table: Table, name: str, sizes: Sequence[int], threads: int, where: str) -> None:
    """Raises ArtifactError unless a kernel has this name, these sizes of parameters, and runs with so many threads."""
    if table.name != name:
        raise _bad(where, f"its kernel is {table.name[:80]!r}, not {name[:80]!r}")
    if table.parameters != tuple(sizes):
        raise _bad(where, f"its parameters have {list(table.parameters)} bytes, and are given {list(sizes)}")
    if table.threads is not None and table.threads != threads:
        raise _bad(where, f"it runs with {table.threads} threads in a block, and is given {threads}")


def _bad(where: str, why: str) -> ArtifactError:
    return ArtifactError(
        "A compiled kernel is not what it should be.", where=where, why=f"{why}.", fix="Compile the model again."
    )


def _table(data: bytes) -> Table:
    sections = dict(_sections(data))
    kernels = [name for name in sections if name.startswith(".nv.info.")]
    if len(kernels) != 1:
        raise ValueError(f"it holds {len(kernels)} kernels, and should hold one")
    (section,) = kernels
    parameters: dict[int, int] = {}
    threads = None
    for attribute, value in _attributes(sections[section]):
        if attribute == _PARAMETER:
            _, ordinal, _, flags = struct.unpack("<IHHI", value)
            if ordinal in parameters:
                raise ValueError(f"it has parameter {ordinal} twice")
            parameters[ordinal] = flags >> 18
        elif attribute == _THREADS:
            x, y, z = struct.unpack("<III", value)
            threads = x * y * z
    if sorted(parameters) != list(range(len(parameters))):
        raise ValueError(f"its parameters are numbered {sorted(parameters)}")
    registers = stack = 0
    for attribute, value in _attributes(sections.get(".nv.info", b"")):
        if attribute == _REGISTERS:
            registers = struct.unpack("<II", value)[1]
        elif attribute == _FRAME:
            stack = struct.unpack("<II", value)[1]
    sizes = tuple(parameters[i] for i in range(len(parameters)))
    return Table(section.removeprefix(".nv.info."), sizes, registers, stack, threads)


def _sections(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the sections of an ELF file."""
    if data[:6] != _MAGIC or struct.unpack_from("<H", data, 0x12)[0] != _CUDA:
        raise ValueError("it is no cubin")
    segments, start = struct.unpack_from("<QQ", data, 0x20)
    segment, parts, size, count, names = struct.unpack_from("<HHHHH", data, 0x36)
    if segments + segment * parts > len(data):
        raise ValueError("it ends before its segments do")
    if size != 64:
        raise ValueError(f"its sections' headers have {size} bytes")
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    table = headers[names]
    for header in headers:
        at = table[4] + header[0]
        end = data.index(b"\0", at)
        content = b"" if header[1] == _NO_BITS else data[header[4] : header[4] + header[5]]
        if header[1] != _NO_BITS and len(content) != header[5]:
            raise ValueError("a section lies outside of it")
        yield data[at:end].decode("ascii"), content


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and values of the attributes in an information section."""
    at = 0
    while at < len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            yield attribute, struct.pack("<H", value)
            continue
        if at + value > len(data):
            raise ValueError("an attribute lies outside of its section")
        yield attribute, data[at : at + value]
        at += value
