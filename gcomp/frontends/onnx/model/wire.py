"""Cutting the large weights out of an ONNX file before protobuf parses it.

Protobuf reads a message whole, so a model that keeps its weights inside would be held twice: in the file's bytes and in
the message. `outline` walks the encoding (the protobuf "wire format") down one path, `ModelProto.graph` ->
`GraphProto.initializer` -> `TensorProto.raw_data`, and says where large raw data lies; what it returns for protobuf to
parse is the file with those fields emptied, all else byte by byte. Nothing is decided here: an encoding with anything
odd in it is left to protobuf.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase

from gcomp.records import record

MAX_BYTES = (1 << 31) - 1
"""The largest message that protobuf parses."""

LARGE = 4096
"""Raw data of more bytes is cut out."""

MAX_FIELDS = 1_000_000
"""Files of more fields are left to protobuf, which is quicker at small ones."""

_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9
_LARGEST_NUMBER = (1 << 29) - 1

_VARINT, _LENGTH_DELIMITED = 0, 2
_FIXED = {1: 8, 5: 4}
"""Wire type -> bytes of its values."""


@record
class Span:
    """Bytes of a file."""

    start: int
    size: int


@record
class Outline:
    """A model without the raw data of some of its graph's initializers, and where that lies, by initializer's index."""

    message: bytes
    raw_data: dict[int, Span]


def outline(file: BufferedIOBase, size: int) -> Outline | None:
    """The outline of the model in a file of `size` bytes.

    None if there is nothing to cut out, or the encoding is not one that serializers write: not canonical, with
    deprecated or repeated fields, too large without its weights, or simply damaged.
    """
    scan = _Scan(file)
    try:
        saved = scan.model(size)
    except _OddError:
        return None
    if not scan.raw_data or size - saved > MAX_BYTES:
        return None
    message = b"".join(_edit(file, size, sorted(scan.edits, key=lambda edit: edit.start)))
    return Outline(message, scan.raw_data) if len(message) == size - saved else None


def data_spans(file: BufferedIOBase, size: int) -> dict[int, Span] | None:
    """Where the raw data of the graph's initializers lie, by index; None for an encoding for protobuf to judge."""
    scan = _Scan(file, 0)
    try:
        scan.model(size)
    except _OddError:
        return None
    return scan.raw_data


class _OddError(Exception):
    """The encoding has something that only protobuf itself should judge."""


@record
class _Edit:
    """Other bytes in place of those from `start` to `stop`."""

    start: int
    stop: int
    content: bytes


@dataclass(frozen=True)
class _Field:
    """A length-delimited field: where its length, its payload and what follows it start."""

    number: int
    length: int
    payload: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.payload


class _Scan:
    """One pass over a file. The methods named after messages return by how many bytes their edits shorten it."""

    def __init__(self, file: BufferedIOBase, large: int = LARGE) -> None:
        file.seek(0)
        self._large = large
        self.edits: list[_Edit] = []
        self.raw_data: dict[int, Span] = {}
        self._file = file
        self._at = 0
        self._fields = 0

    def model(self, stop: int) -> int:
        saved, seen = 0, False
        for field in self._walk(stop):
            if field.number == _MODEL_GRAPH:
                # Protobuf merges repeated messages.
                if seen:
                    raise _OddError
                seen = True
                saved += self._shorten(field, self._graph(field.stop))
        return saved

    def _graph(self, stop: int) -> int:
        saved, index = 0, 0
        for field in self._walk(stop):
            if field.number == _GRAPH_INITIALIZER:
                if field.size > self._large:
                    saved += self._shorten(field, self._tensor(field.stop, index))
                index += 1
        return saved

    def _tensor(self, stop: int, index: int) -> int:
        saved, seen = 0, False
        for field in self._walk(stop):
            if field.number == _TENSOR_RAW_DATA:
                # Of repeated fields the last one counts.
                if seen:
                    raise _OddError
                seen = True
                if field.size > self._large:
                    self.raw_data[index] = Span(field.payload, field.size)
                    self.edits.append(_Edit(field.length, field.stop, b"\0"))
                    saved = field.stop - field.length - 1
        return saved

    def _shorten(self, field: _Field, saved: int) -> int:
        """Writes the length of a field whose payload is shorter now; returns what the whole field saves."""
        if not saved:
            return 0
        length = _encode_varint(field.size - saved)
        self.edits.append(_Edit(field.length, field.payload, length))
        return saved + (field.payload - field.length - len(length))

    def _walk(self, stop: int) -> Iterator[_Field]:
        """The length-delimited fields of the message from here to `stop`; their payloads may be walked or not."""
        while self._at < stop:
            self._fields += 1
            tag = self._varint(stop)
            number, kind = tag >> 3, tag & 7
            if not 1 <= number <= _LARGEST_NUMBER or self._fields > MAX_FIELDS:
                raise _OddError
            if kind == _VARINT:
                self._varint(stop)
                continue
            start = self._at
            size = self._varint(stop) if kind == _LENGTH_DELIMITED else _FIXED.get(kind)
            if size is None or size > stop - self._at:
                raise _OddError
            end = self._at + size
            if kind == _LENGTH_DELIMITED:
                yield _Field(number, start, self._at, end)
            if self._at != end:
                self._file.seek(end)
                self._at = end

    def _varint(self, stop: int) -> int:
        """The next varint, if it is in the shortest form and ends before `stop`."""
        value = shift = 0
        while self._at < stop and shift < 70:
            read = self._file.read(1)
            if not read:
                break
            self._at += 1
            byte = read[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if (shift and not byte) or value >> 64:
                    break
                return value
            shift += 7
        raise _OddError


def _encode_varint(value: int) -> bytes:
    """A varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _edit(file: BufferedIOBase, size: int, edits: list[_Edit]) -> Iterator[bytes]:
    """The bytes of a file with edits made, in order of their place."""
    at = 0
    for edit in [*edits, _Edit(size, size, b"")]:
        file.seek(at)
        yield file.read(edit.start - at)
        yield edit.content
        at = edit.stop
