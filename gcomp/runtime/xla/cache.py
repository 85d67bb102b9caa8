"""The cache of compiled executables on disk: off unless `GCOMP_CACHE_DIR` names a folder.

Executables are native code, and loading one runs it. So the folder must belong to the user and be writable by
nobody else, and nothing is cached unless the user asks for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.runtime.xla.client import Client, Executable

VARIABLE = "GCOMP_CACHE_DIR"


def compile_cached(client: Client, text: str, options: Mapping[str, str | int]) -> Executable:
    """Compile, or take the executable from the cache where there is one. Raises GcompError."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return client.compile(text, options)
    path = _trusted(Path(folder)) / f"{_key(client, text, options)}.xla"
    with contextlib.suppress(FileNotFoundError):
        if (found := client.deserialize(path.read_bytes(), options)) is not None:
            return found
    executable = client.compile(text, options)
    # A full or read-only disk costs time at the next start, and nothing else.
    with contextlib.suppress(OSError):
        _write(path, executable.serialize())
    return executable


def _key(client: Client, text: str, options: Mapping[str, str | int]) -> str:
    parts = [client.fingerprint(), json.dumps(options, sort_keys=True), os.environ.get("XLA_FLAGS", ""), text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _trusted(folder: Path) -> Path:
    """The folder, created if need be. Raises UsageError when somebody else could have written to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UsageError(f"The folder named by {VARIABLE} cannot be used.", where=str(folder), why=str(error)) from None
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"The folder named by {VARIABLE} is not safe.",
            where=str(folder),
            why="It belongs to, or can be written by, someone else, and gcomp runs the code in it.",
            fix=f"chmod 700 {folder}, or name another folder.",
        )
    return folder


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
