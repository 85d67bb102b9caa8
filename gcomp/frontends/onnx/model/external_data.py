"""Opening the files that an ONNX model names, without ever leaving the model's folder.

A location in a model is text from a stranger. It is taken apart and opened component by component, each
relative to the open folder before it and none through a link, so that nothing can be swapped between a check
and the opening. Files behind links are read where the user names the folder that they lead to (`allow_links`).
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from pathlib import PurePosixPath

from gcomp.errors import GcompError, InvalidModelError, UsageError

_CHUNK = 1 << 22
_allowed: ContextVar[tuple[str, ...]] = ContextVar("allowed", default=())


@contextmanager
def allow_links(*folders: str | os.PathLike[str]) -> Generator[None]:
    """Inside of the block, models may keep data behind links that lead into one of these folders.

    Hugging Face's cache is such a place: what it calls a model are links to files elsewhere in it. Raises UsageError
    where there is no such folder.
    """
    token = permit_links(*folders)
    try:
        yield
    finally:
        _allowed.reset(token)


def permit_links(*folders: str | os.PathLike[str]) -> Token[tuple[str, ...]]:
    """As `allow_links`, for the rest of the context (`contextvars`)."""
    return _allowed.set((*_allowed.get(), *map(_folder, folders)))


def _folder(path: str | os.PathLike[str]) -> str:
    found = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(found):
        fix = "--allow-links and gcomp.allow_links take the folder that a model's links lead into"
        raise UsageError(f"there is no folder {os.fspath(path)}", fix=fix)
    return found


class ModelFolder:
    """The folder of a model, held open; the files in it that the model names are mapped into memory once each.

    `path` is None for a model that came without a folder (from bytes, say): then every location is refused.
    `checksums` are SHA-1 digests by location, as ONNX stores them; files that have one are checked against
    it. A mapping shows the file itself: whoever changes or truncates the file while the model is in use
    changes the weights, or crashes the process.
    """

    def __init__(self, path: str | None, checksums: Mapping[str, str]) -> None:
        self._path = path
        self._checksums = checksums
        self._maps: dict[str, memoryview] = {}
        self._descriptor = None if path is None else _open_base(path)

    def read(self, location: str, offset: int, size: int, where: str) -> memoryview:
        """`size` bytes at `offset` of the file at `location`, mapped and read-only.

        Raises InvalidModelError if the location leaves the folder, is no plain file of its own, or is too
        short.
        """
        if location not in self._maps:
            self._maps[location] = self._map(location, where)
        data = self._maps[location]
        if offset + size > len(data):
            raise InvalidModelError(
                "A tensor's external data lies outside its file.",
                where=where,
                why=f"It needs bytes {offset} to {offset + size}; `{location}` has {len(data)}.",
                fix="The data file is truncated or belongs to another model: copy both files again.",
            )
        return data[offset : offset + size]

    def close(self) -> None:
        """Closes the folder; mapped data stays valid."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> ModelFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _map(self, location: str, where: str) -> memoryview:
        parts = _plain_parts(location, where)
        if self._descriptor is None:
            raise InvalidModelError(
                "The model keeps weights in another file, and has no folder to look for it in.",
                where=where,
                why=f"The data is in `{location}`, relative to the model's own file.",
                fix="Give the path of the model's file, or its folder.",
            )
        try:
            data = self._map_allowed(location, where)
            if data is None:
                data = _map_relative(self._descriptor, parts, location, where)
        except OSError as error:
            raise _unreadable(location, where, error) from error
        if location in self._checksums:
            _check_sha1(data, self._checksums[location], location, where)
        return data

    def _map_allowed(self, location: str, where: str) -> memoryview | None:
        """The file of a location if it lies, links followed, in a folder that the user allows; else None.

        The path that was followed has no links, and is opened without following any: it cannot lead elsewhere.
        """
        target = os.path.realpath(os.path.join(self._path or ".", location))
        for allowed in _allowed.get():
            inside = os.path.relpath(target, allowed)
            if inside != os.curdir and inside.split(os.sep)[0] != os.pardir:
                base = _open_base(allowed)
                try:
                    return _map_relative(base, tuple(inside.split(os.sep)), location, where, shared=True)
                finally:
                    os.close(base)
        return None


def _open_base(path: str) -> int:
    # The folder is the user's own choice, so links on the way to it are followed.
    try:
        return os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InvalidModelError("The model's folder cannot be opened.", where=path, why=str(error)) from error


def _plain_parts(location: str, where: str) -> tuple[str, ...]:
    """The components of a location that stays inside its folder. Backslashes would be separators elsewhere."""
    path = PurePosixPath(location)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise _refusal(location, where, "It does not stay inside the model's folder.")
    if "\\" in location or "\0" in location or path.parts[0][1:2] == ":":
        raise _refusal(location, where, "It is not a plain relative path.")
    return path.parts


def _map_relative(base: int, parts: tuple[str, ...], location: str, where: str, *, shared: bool = False) -> memoryview:
    folder = os.dup(base)
    try:
        for part in parts[:-1]:
            status = os.stat(part, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                raise _refusal(location, where, f"`{part}` is {_kind(status)} and not a folder.")
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = below
        # Looking before opening keeps pipes and devices from being touched; looking again after makes it certain.
        _check_file(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False), location, where, shared)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(parts[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        status = os.fstat(descriptor)
        _check_file(status, location, where, shared)
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def _check_file(status: os.stat_result, location: str, where: str, shared: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _refusal(location, where, f"It is {_kind(status)} and not a regular file.")
    if status.st_nlink != 1 and not shared:
        raise _refusal(
            location,
            where,
            f"The file has {status.st_nlink} names (hard links), so it may be one from outside the folder.",
        )


def _kind(status: os.stat_result) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(status.st_mode), "a special file")


def _refusal(location: str, where: str, why: str) -> GcompError:
    return InvalidModelError(
        f"The model's external data {location[:200]!r} may not be read.",
        where=where,
        why=why,
        fix="If you trust the model, put a plain copy of the data file into the model's folder, without links, or "
        "allow the folder that the links lead to: --allow-links DIR, or `with gcomp.allow_links(DIR):`.",
    )


def _unreadable(location: str, where: str, error: OSError) -> GcompError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return _refusal(location, where, "A part of the path is a link, or not a folder.")
    return InvalidModelError(
        f"The model's external data {location[:200]!r} cannot be read.",
        where=where,
        why=error.strerror or str(error),
        fix="Put the data file next to the model's file, under the name it was saved with.",
    )


def _check_sha1(data: memoryview, expected: str, location: str, where: str) -> None:
    digest = hashlib.sha1(usedforsecurity=False)
    for start in range(0, len(data), _CHUNK):
        digest.update(data[start : start + _CHUNK])
    if digest.hexdigest() != expected.lower():
        raise InvalidModelError(
            "A file of external data does not match the checksum in the model.",
            where=where,
            why=f"`{location}` has SHA-1 {digest.hexdigest()}; the model says {expected[:40]}.",
            fix="The data file is damaged or belongs to another model: copy both files again.",
        )
