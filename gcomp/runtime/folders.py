"""Caches of code on disk: folders that are private to the user, and entries that are read and written whole.

An entry is code that runs later, or ends up in artifacts. So its folder belongs to the user, nobody else can reach it,
and it is no link; while it is used it is held open, so that no other folder can take its place. An entry is the SHA-256
of the rest, and the rest: what does not hold together is no entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.records import record

CACHE = "GCOMP_CACHE_DIR"
"""The variable of the environment that names the folder for caches; `off` turns them off."""

OFF = "off"

_DIGEST = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ABANDONED = 3600.0
"""Seconds after which a file that is still being written is one that a process left when it was killed."""


class Unsafe(OSError):
    """A folder or a file that somebody else could have written to."""


@record
class Cache:
    """The entries of one kind, in a folder of that name, which take `most` bytes at most once `trim` is called.

    Where there is no place for them, there are none: a full or read-only disk costs time, and nothing else. All raise
    UsageError where the user has named a place that cannot be used, or is not safe.
    """

    kind: str
    most: int

    def load(self, name: str) -> bytes | None:
        """What an entry holds; None where there is none that holds together."""
        with contextlib.suppress(OSError), self._opened() as folder:
            descriptor = os.open(name, _READ, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or not _is_own(status):
                    return None
                data = file.read()
            rest = data[_DIGEST:]
            if hashlib.sha256(rest).digest() == data[:_DIGEST]:
                os.utime(name, dir_fd=folder)
                return rest
        return None

    def store(self, name: str, *parts: bytes) -> None:
        """Keep an entry, in one step."""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        with contextlib.suppress(OSError), self._opened() as folder:
            temporary = f".{os.urandom(8).hex()}.tmp"
            try:
                with os.fdopen(os.open(temporary, _WRITE, 0o600, dir_fd=folder), "wb") as file:
                    file.writelines((digest.digest(), *parts))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(temporary, dir_fd=folder)
                raise

    def trim(self, most: int | None = None) -> None:
        """Remove what was used least recently until entries take no more than so many bytes."""
        with contextlib.suppress(OSError), self._opened() as folder:
            entries: list[tuple[float, int, str]] = []
            with os.scandir(folder) as found:
                for entry in found:
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        entries.append((status.st_mtime, status.st_size, entry.name))
            abandoned = time.time() - _ABANDONED
            left = sum(size for _, size, _ in entries)
            for used, size, name in sorted(entries):
                if left > (self.most if most is None else most) or (name.startswith(".") and used < abandoned):
                    left -= size
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)

    def path(self) -> Path:
        """Where the entries lie. Raises OSError where there is no such place."""
        with self._opened():
            return _place()[0] / self.kind

    @contextlib.contextmanager
    def _opened(self) -> Generator[int]:
        """The folder, held open. Raises UsageError for a place that the user named, OSError for any other."""
        place, is_named = _place()
        try:
            with _private(place, None) as around, _private(self.kind, around) as folder:
                yield folder
        except Unsafe as error:
            if not is_named:
                raise
            raise UsageError(
                "The folder for the cache is not safe.",
                where=str(place),
                why=str(error),
                fix=f"chmod 700 {place}, or name another folder in {CACHE}.",
            ) from None


def turn_off() -> None:
    """Keep nothing, and take nothing that was kept, in this process and in those that it starts."""
    os.environ[CACHE] = OFF


def _place() -> tuple[Path, bool]:
    """The folder for all caches, and whether the user named it. Raises OSError where there is none."""
    named = os.environ.get(CACHE)
    if named == OFF:
        raise OSError("caches are turned off")
    if named:
        place = Path(named).absolute()
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            fix = f"Name another one in {CACHE}."
            what = "The folder for the cache cannot be used."
            raise UsageError(what, where=named, why=str(error), fix=fix) from None
        return place, True
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if not home.is_absolute():
        raise OSError("there is no home")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home / "gcomp", False


@contextlib.contextmanager
def _private(path: Path | str, around: int | None) -> Generator[int]:
    """A folder inside another, held open; made if need be. Raises Unsafe where it may not be the user's alone."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=around)
    if stat.S_ISLNK(os.stat(path, dir_fd=around, follow_symlinks=False).st_mode):
        raise Unsafe("It is a link, and gcomp runs the code in it.")
    folder = os.open(path, _FOLDER, dir_fd=around)
    try:
        status = os.fstat(folder)
        if not _is_own(status):
            raise Unsafe("It belongs to, or can be written by, someone else, and gcomp runs the code in it.")
        if around is not None and stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(folder, 0o700)
        yield folder
    finally:
        os.close(folder)


def _is_own(status: os.stat_result) -> bool:
    """Whether nobody but the user, and who administers the machine, could have written something."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
