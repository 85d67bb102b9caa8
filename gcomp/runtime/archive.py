"""The container of an artifact: one zip whose members are stored, aligned and read in place, never extracted.

Same members, same bytes. Writing is all or nothing. Reading refuses a file that differs in any structural
byte from what writing would have produced (see `zipform`); the members' data is covered by checksums,
`Archive.check` and the manifest's SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import stat
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from gcomp.errors import ArtifactError, UsageError
from gcomp.records import record
from gcomp.runtime import zipform
from gcomp.runtime.replacing import replacing
from gcomp.runtime.zipform import Entry, Placed

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")
_CHUNK = 1 << 22
_LARGE = 1 << 20
"""Bytes of which a checksum takes longer than it takes to start a thread."""


@record
class Stream:
    """A member whose bytes are produced while they are written: `size` bytes in all, buffer by buffer."""

    size: int
    buffers: Iterable[Buffer]


def bytes_of(buffer: Buffer) -> memoryview:
    """A flat view of a C-contiguous buffer's bytes, without a copy."""
    view = memoryview(buffer)
    # `cast` refuses views with a zero in their shape.
    return view.cast("B") if view.nbytes else memoryview(b"")


@contextlib.contextmanager
def beside(work: Callable[[], T], view: memoryview) -> Generator[Callable[[], T]]:
    """Does `work` on a view while the block runs, on a thread of its own if the view is large; yields its result.

    Checksums let go of the interpreter, and so does writing, so that they take only as long as the longer of them.
    """
    if view.nbytes < _LARGE:
        found = work()
        yield lambda: found
        return
    from concurrent.futures import ThreadPoolExecutor  # seldom needed by a process that only loads

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work).result


def stream_of(content: Buffer | Sequence[Buffer] | Stream) -> Stream:
    """Any content that `write_archive` accepts, as a `Stream`."""
    if isinstance(content, Stream):
        return content
    parts = content if isinstance(content, (list, tuple)) else [cast("Buffer", content)]
    views = [bytes_of(part) for part in parts]
    return Stream(sum(view.nbytes for view in views), views)


def write_archive(
    path: str | os.PathLike[str], members: Iterable[tuple[str, Buffer | Sequence[Buffer] | Stream]]
) -> None:
    """Writes an archive of named members, in the order given, and puts it at `path` once it is whole.

    `members` is consumed lazily, so a later member may depend on earlier ones having been written. A file
    already at `path` is replaced in one step; on any failure it is left as it was. A process killed while
    writing leaves at most a file named `.NAME.*.tmp` behind, until the next write to `path`. Raises
    ArtifactError if the file cannot be written or a name is refused.
    """
    target = Path(os.path.realpath(path))
    try:
        with _replacing(target) as file:
            _write_members(file, str(target), members)
    except OSError as error:
        raise ArtifactError(
            "The artifact could not be written.",
            where=str(target),
            why=error.strerror or str(error),
            fix="Check that the folder exists, is writable and has enough space; nothing was changed.",
        ) from error


def write_file(path: str | os.PathLike[str], parts: Iterable[Buffer]) -> None:
    """Writes a file of these bytes, whole or not at all. Raises ArtifactError."""
    target = Path(os.path.realpath(path))
    try:
        with _replacing(target) as file:
            for part in parts:
                file.write(part)
    except OSError as error:
        raise ArtifactError(
            "The file could not be written.",
            where=str(target),
            why=error.strerror or str(error),
            fix="Check that the folder exists, is writable and has enough space; nothing was changed.",
        ) from error


@contextlib.contextmanager
def _replacing(target: Path) -> Generator[BinaryIO]:
    """As `replacing`. Raises ArtifactError where something else than a plain file is there."""
    if target.exists() and not target.is_file():
        raise ArtifactError(
            "The artifact could not be written.",
            where=str(target),
            why="Something other than a regular file is there.",
            fix="Name a new file or an existing artifact.",
        )
    with replacing(target) as file:
        yield file


def _write_members(
    file: BinaryIO, where: str, members: Iterable[tuple[str, Buffer | Sequence[Buffer] | Stream]]
) -> None:
    placed: list[Placed] = []
    names: set[str] = set()
    for name, content in members:
        if problem := _name_problem(name, names):
            raise ArtifactError("A member of the artifact may not have this name.", where=where, why=problem)
        start = placed[-1].end if placed else 0
        placed.append(_write_member(file, name, stream_of(content), start))
    if len(placed) > zipform.MAX_MEMBERS:
        raise ArtifactError("The artifact has too many members.", where=where, why=f"{len(placed)} members")
    directory = zipform.central_directory(placed)
    file.write(directory)
    file.write(zipform.end_records(len(placed), placed[-1].end if placed else 0, len(directory)))


def _write_member(file: BinaryIO, name: str, content: Stream, start: int) -> Placed:
    # The checksum is known only behind the data: leave room for the header, and come back to fill it in.
    file.write(zipform.local_header(Entry(name, content.size, 0), start))
    crc = written = 0
    for buffer in content.buffers:
        view = bytes_of(buffer)
        with beside(lambda view=view, crc=crc: zlib.crc32(view, crc), view) as checksum:
            written += file.write(view)
        crc = checksum()
    if written != content.size:
        raise UsageError(
            "A member of the archive has not the size that was announced.",
            where=name,
            why=f"announced {content.size} bytes, got {written}",
        )
    placed = zipform.place(Entry(name, content.size, crc), start)
    file.seek(start)
    file.write(zipform.local_header(placed.entry, start))
    file.seek(placed.end)
    return placed


def _name_problem(name: str, taken: set[str]) -> str | None:
    """Why a member's name is refused (it is a path, or collides with one in `taken` on a file system); else adds it."""
    if not zipform.is_plain_name(name):
        return f"{name[:80]!r} is not made of ASCII letters, digits, `_`, `-` and inner dots"
    if name.lower() in taken:
        return f"`{name}` is taken"
    taken.add(name.lower())
    return None


class Archive:
    """An archive open for reading: the whole file mapped into memory, its structure checked, nothing copied.

    Raises ArtifactError if the file cannot be read or is not in canonical form. The data of a member is not
    checked by opening; see `check` and `sha256`. Views of members stay valid after `close` for as long as
    something holds them. The file must not be changed in place while it is open (`write_archive` never does).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._map = _map_file(self.path)
        self._view = memoryview(self._map)
        try:
            self._members = {placed.entry.name: placed for placed in self._read_structure()}
        except BaseException:
            self.close()
            raise

    def names(self) -> tuple[str, ...]:
        """The members' names in file order."""
        return tuple(self._members)

    def member(self, name: str) -> memoryview:
        """The bytes of a member, read-only, without a copy. Raises ArtifactError if there is none."""
        placed = self._placed(name)
        return self._view[placed.data : placed.end]

    def check(self, name: str) -> None:
        """Raises ArtifactError unless the member's data has the checksum (CRC-32) that its headers state."""
        crc = 0
        for chunk in _chunks(self.member(name)):
            crc = zlib.crc32(chunk, crc)
        if crc != self._placed(name).entry.crc:
            raise damage_error(self.path, f"the data of `{name}` does not match its checksum")

    def sha256(self, name: str) -> str:
        """The SHA-256 of a member's data, as 64 hexadecimal digits."""
        digest = hashlib.sha256()
        for chunk in _chunks(self.member(name)):
            digest.update(chunk)
        return digest.hexdigest()

    def close(self) -> None:
        """Lets go of the file. Views that were handed out keep the mapping alive until they are gone."""
        self._view.release()
        # BufferError: someone still holds a view. The mapping then ends with the last view.
        with contextlib.suppress(BufferError):
            self._map.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _placed(self, name: str) -> Placed:
        if name not in self._members:
            raise ArtifactError(
                f"The artifact has no member `{name}`.",
                where=self.path,
                why=f"It has: {', '.join(self.names())}.",
            )
        return self._members[name]

    def _read_structure(self) -> list[Placed]:
        """Reads names, sizes and checksums, and compares every other byte with what it must be."""
        directory_start, entries = self._read_directory()
        names: set[str] = set()
        for entry in entries:
            if problem := _name_problem(entry.name, names):
                raise damage_error(self.path, f"a member may not be named so: {problem}")
        # Sizes are compared with the file before anything is made of them.
        if sum(entry.size for entry in entries) > directory_start:
            raise damage_error(self.path, "its members claim more bytes than it has")
        members = list(zipform.place_all(entries))
        if (members[-1].end if members else 0) != directory_start:
            raise damage_error(self.path, "there are gaps or overlaps between its members")
        directory = zipform.central_directory(members)
        tail = directory + zipform.end_records(len(members), directory_start, len(directory))
        if not same_bytes(self._view[directory_start:], tail):
            raise damage_error(self.path, "its table of contents is not in canonical form")
        for placed in members:
            header = zipform.local_header(placed.entry, placed.start)
            if not same_bytes(self._view[placed.start : placed.data], header):
                raise damage_error(self.path, f"the header of `{placed.entry.name}` contradicts the table of contents")
        return members

    def _read_directory(self) -> tuple[int, list[Entry]]:
        total = len(self._view)
        if total < zipform.END_BYTES:
            raise damage_error(self.path, f"it has only {total} bytes")
        tail = bytes(self._view[-zipform.END_BYTES - zipform.END64_BYTES :])
        place = zipform.parse_directory_place(tail)
        if place is None:
            raise damage_error(self.path, "it does not end like an artifact: it is truncated, or something else")
        count, start, size = place
        if start + size > total or size > zipform.MAX_CENTRAL_BYTES:
            raise damage_error(self.path, "its table of contents lies outside the file")
        entries = zipform.parse_central_directory(bytes(self._view[start : start + size]), count)
        if entries is None:
            raise damage_error(self.path, "its table of contents does not parse")
        return start, entries


def damage_error(path: str, why: str) -> ArtifactError:
    """The error for a file that is not what gcomp wrote."""
    return ArtifactError(
        "The file is not a gcomp artifact, or it is damaged.",
        where=path,
        why=f"{why}.",
        fix="Copy it again from where it was built, or compile the model again.",
    )


def same_bytes(view: memoryview, expected: bytes) -> bool:
    """Whether a view shows exactly these bytes."""
    return view.nbytes == len(expected) and bytes(view) == expected


def _chunks(view: memoryview) -> Iterator[memoryview]:
    return (view[start : start + _CHUNK] for start in range(0, len(view), _CHUNK))


def _map_file(path: str) -> mmap.mmap:
    try:
        # O_NONBLOCK: opening a named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise damage_error(path, "it is not a regular file")
            if status.st_size == 0:
                raise damage_error(path, "it is empty")
            return mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ArtifactError(
            "The artifact could not be opened.",
            where=path,
            why=why,
            fix="Check the path and its permissions.",
        ) from error
