"""The one byte form of an artifact's zip: headers as a function of its members' names, sizes and checksums.

Source: PKWARE APPNOTE 6.3.10. Everything that the format leaves open is fixed here: members are stored in
order and without gaps, times are 1980-01-01, names are plain ASCII, data starts at multiples of 64 bytes,
zip64 fields appear only where a value needs them. So a reader can compute the structural bytes that a file
must have and compare them; no header field is believed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator

from gcomp.records import record

ALIGNMENT = 64
"""Every member's data starts at a multiple of this many bytes."""

MAX_MEMBERS = 0xFFFE
MAX_CENTRAL_BYTES = 64 << 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_MAX_NAME = 200

_DATE, _TIME = (1 << 5) | 1, 0  # 1980-01-01 00:00:00, the first moment that DOS times can say
_UNIX = 3 << 8
_MODE = 0o100644 << 16
_PADDING_ID = 0xD935  # the alignment field of Android's zipalign: two bytes of alignment, then zeros
_ZIP64_ID = 0x0001
_LIMIT32 = 0xFFFFFFFF

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<IIQI")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = 0x04034B50, 0x02014B50, 0x06054B50
_END64_MAGIC, _LOCATOR64_MAGIC = 0x06064B50, 0x07064B50

END_BYTES = _END.size
END64_BYTES = _END64.size + _LOCATOR64.size


@record
class Entry:
    """One member as the headers describe it. `crc` is the CRC-32 of its data."""

    name: str
    size: int
    crc: int


@record
class Placed:
    """An entry in its place: where its local header starts, and where its data starts and ends."""

    entry: Entry
    start: int
    data: int
    end: int


def is_plain_name(name: str) -> bool:
    """Whether a member may be so named: letters, digits, `_`, `-`, inner dots, 200 characters at most."""
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def place(entry: Entry, start: int) -> Placed:
    """Places an entry whose local header starts at byte `start`."""
    data = start + len(local_header(entry, start))
    return Placed(entry, start, data, data + entry.size)


def place_all(entries: Iterable[Entry]) -> Iterator[Placed]:
    """Places entries one after the other from the start of the file."""
    start = 0
    for entry in entries:
        placed = place(entry, start)
        yield placed
        start = placed.end


def local_header(entry: Entry, start: int) -> bytes:
    """The header in front of a member's data, padded so that the data is aligned."""
    name = entry.name.encode("ascii")
    is_large = entry.size >= _LIMIT32
    size = _LIMIT32 if is_large else entry.size
    extra = struct.pack("<HHQQ", _ZIP64_ID, 16, entry.size, entry.size) if is_large else b""
    unpadded = start + _LOCAL.size + len(name) + len(extra) + 6
    zeros = -unpadded % ALIGNMENT
    extra += struct.pack("<HHH", _PADDING_ID, 2 + zeros, ALIGNMENT) + bytes(zeros)
    version = 45 if is_large else 20
    fixed = (_LOCAL_MAGIC, version, 0, 0, _TIME, _DATE, entry.crc, size, size, len(name), len(extra))
    return _LOCAL.pack(*fixed) + name + extra


def central_directory(members: Iterable[Placed]) -> bytes:
    """The table of contents behind the last member."""
    return b"".join(_central_header(placed) for placed in members)


def _central_header(placed: Placed) -> bytes:
    entry, name = placed.entry, placed.entry.name.encode("ascii")
    large: list[int] = []
    size, start = entry.size, placed.start
    if size >= _LIMIT32:
        large += [size, size]
        size = _LIMIT32
    if start >= _LIMIT32:
        large.append(start)
        start = _LIMIT32
    extra = struct.pack(f"<HH{len(large)}Q", _ZIP64_ID, 8 * len(large), *large) if large else b""
    version = 45 if large else 20
    fixed = (_CENTRAL_MAGIC, _UNIX | version, version, 0, 0, _TIME, _DATE, entry.crc, size, size)
    return _CENTRAL.pack(*fixed, len(name), len(extra), 0, 0, 0, _MODE, start) + name + extra


def end_records(count: int, directory_start: int, directory_size: int) -> bytes:
    """The records that end the file, for `count` members and a central directory at this place."""
    start, prefix = directory_start, b""
    if directory_start >= _LIMIT32:
        fixed = (_END64_MAGIC, _END64.size - 12, _UNIX | 45, 45, 0, 0, count, count)
        prefix = _END64.pack(*fixed, directory_size, directory_start)
        prefix += _LOCATOR64.pack(_LOCATOR64_MAGIC, 0, directory_start + directory_size, 1)
        start = _LIMIT32
    return prefix + _END.pack(_END_MAGIC, 0, 0, count, count, directory_size, start, 0)


def parse_directory_place(tail: bytes) -> tuple[int, int, int] | None:
    """Reads (count, start, size) of the central directory from the last bytes of a file.

    `tail` holds at least `END_BYTES` and, where the file has them, `END64_BYTES` more. None if there is no
    end record.
    """
    magic, _, _, _, count, size, start, _ = _END.unpack(tail[-_END.size :])
    if magic != _END_MAGIC:
        return None
    if start == _LIMIT32 and len(tail) >= END_BYTES + END64_BYTES:
        record = tail[-END_BYTES - END64_BYTES :][: _END64.size]
        magic, *_, size, start = _END64.unpack(record)
        if magic != _END64_MAGIC:
            return None
    return count, start, size


def parse_central_directory(data: bytes, count: int) -> list[Entry] | None:
    """Reads each member's name, size and checksum, and nothing else. None if they do not parse."""
    entries: list[Entry] = []
    place = 0
    for _ in range(count):
        if place + _CENTRAL.size > len(data):
            return None
        fields = _CENTRAL.unpack_from(data, place)
        crc, size, name_size, extra_size = fields[7], fields[9], fields[10], fields[11]
        name_start, extra_start = place + _CENTRAL.size, place + _CENTRAL.size + name_size
        place = extra_start + extra_size
        if place > len(data):
            return None
        if size == _LIMIT32:
            if extra_size < 12:
                return None
            (size,) = struct.unpack_from("<Q", data, extra_start + 4)
        # Latin-1 decodes every byte; a name that is not plain ASCII is refused by `is_plain_name`.
        entries.append(Entry(data[name_start:extra_start].decode("latin-1"), size, crc))
    return entries
