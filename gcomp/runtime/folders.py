"""Folders for caches of code: private to the user, written to all or nothing."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from gcomp.errors import UsageError

CACHE = "GCOMP_CACHE_DIR"
"""The variable of the environment that names the folder for caches."""


def trusted(folder: Path) -> Path:
    """The folder, created if need be. Raises UsageError when somebody else could have written to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UsageError(
            "The folder for the cache cannot be used.",
            where=str(folder),
            why=str(error),
            fix=f"Name another one in {CACHE}.",
        ) from None
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            "The folder for the cache is not safe.",
            where=str(folder),
            why="It belongs to, or can be written by, someone else, and gcomp runs the code in it.",
            fix=f"chmod 700 {folder}, or name another folder in {CACHE}.",
        )
    return folder


def write_whole(path: Path, *parts: bytes) -> None:
    """Put a file at `path` in one step. Raises OSError, and then has changed nothing."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(b"".join(parts))
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
