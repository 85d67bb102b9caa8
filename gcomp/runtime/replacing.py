"""Files that take the place of others in one step, or not at all.

What is being written lies beside the target as `.NAME.16 hex digits.tmp`, locked by who writes it. A process that is
killed leaves such a file and its lock is gone: whoever writes the same target next removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LEFT = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def replacing(target: Path) -> Generator[BinaryIO]:
    """A new file that takes the place of `target` when the block ends well, and vanishes when it does not.

    `target` is a plain file, or none yet. Raises OSError, and then has changed nothing.
    """
    _remove_left(target)
    temporary, descriptor = _begin(target)
    try:
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _begin(target: Path) -> tuple[Path, int]:
    """A new file beside the target, open and locked."""
    while True:
        temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
        descriptor = os.open(temporary, _NEW, 0o666)
        with contextlib.suppress(OSError):  # where there are no locks, nothing is removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # somebody took it for left, before it was locked


def _remove_left(target: Path) -> None:
    """Remove what processes left that were killed while they wrote this target: no lock is on it."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            if ours.fullmatch(name):
                _remove_unlocked(target.with_name(name))


def _remove_unlocked(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _LEFT)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # Without this, a crash of the machine may forget the renaming.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
