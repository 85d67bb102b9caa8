"""The cache of compiled executables on disk: off unless `GCOMP_CACHE_DIR` names a folder.

Executables are native code, and loading one runs it. So the folder must belong to the user and be writable by
nobody else, and nothing is cached unless the user asks for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from gcomp.runtime.folders import CACHE, trusted, write_whole
from gcomp.runtime.xla.client import Client, Executable


def compile_cached(client: Client, text: str, options: Mapping[str, str | int]) -> Executable:
    """Compile, or take the executable from the cache where there is one. Raises GcompError."""
    folder = os.environ.get(CACHE)
    if not folder:
        return client.compile(text, options)
    path = trusted(Path(folder)) / f"{_key(client, text, options)}.xla"
    with contextlib.suppress(FileNotFoundError):
        if (found := client.deserialize(path.read_bytes(), options)) is not None:
            return found
    executable = client.compile(text, options)
    # A full or read-only disk costs time at the next start, and nothing else.
    with contextlib.suppress(OSError):
        write_whole(path, executable.serialize())
    return executable


def _key(client: Client, text: str, options: Mapping[str, str | int]) -> str:
    parts = [client.fingerprint(), json.dumps(options, sort_keys=True), os.environ.get("XLA_FLAGS", ""), text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
