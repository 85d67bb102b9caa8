"""Compiled kernels on disk, by a hash of all that decides what they become.

An entry is the SHA-256 of the rest, the length of a JSON text, that text and the binary. One that does not hold
together is compiled again. The folder is private, since what is taken from it ends up in artifacts.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.lowering.triton import worker
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture, triton_version
from gcomp.runtime import strict_json
from gcomp.runtime.folders import CACHE, trusted, write_whole
from gcomp.runtime.strict_json import Json, JsonError

FORMAT = 2
"""Raised by one whenever the same source would be compiled to something else, or an entry be read as something else."""

MOST = 4 << 30
"""Bytes that entries may take. Beyond that, those go that were used least recently."""

_HEAD = struct.Struct("<32sQ")


def key(source: KernelSource, target: Architecture) -> str:
    """The name of a kernel's entry: of its text, arguments and configuration, the architecture and the compilers."""
    # The grid is launched with, not compiled; neither are roles.
    arguments = [(argument.name, argument.type, argument.alignment) for argument in source.arguments]
    parts = {
        "format": FORMAT,
        "name": source.name,
        "text": source.code,
        "arguments": arguments,
        "configuration": asdict(source.configuration),
        "target": target.name,
        "triton": triton_version(),
        "assembler": assembler() if target.backend == "cuda" else "",
        "worker": _digest(Path(worker.__file__)),
    }
    return hashlib.sha256(strict_json.dumps(parts)).hexdigest()


def folder() -> Path:
    """Where entries lie: in `GCOMP_CACHE_DIR`, else in the user's own cache.

    Raises UsageError where the user has named an unsafe place, OSError where the user has no cache of their own.
    """
    if named := os.environ.get(CACHE):
        return trusted(trusted(Path(named)) / "kernels")
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if not home.is_absolute():
        raise OSError("there is no home")
    try:
        return trusted(trusted(home / "gcomp") / "kernels")
    except UsageError as error:
        raise OSError(str(error)) from None


def load(name: str) -> tuple[Mapping[str, Json], bytes] | None:
    """The facts and the binary of an entry; None where there is none that holds together."""
    with contextlib.suppress(OSError, struct.error, JsonError):
        path = folder() / name
        data = path.read_bytes()
        os.utime(path)
        digest, length = _HEAD.unpack_from(data)
        if hashlib.sha256(data[32:]).digest() == digest:
            body = data[_HEAD.size :]
            return strict_json.loads(body[:length]), body[length:]
    return None


def store(name: str, facts: Mapping[str, Json], binary: bytes) -> None:
    """Keep a compiled kernel. A full or read-only disk costs time at the next start, and nothing else."""
    text = strict_json.dumps(facts)
    rest = struct.pack("<Q", len(text)) + text + binary
    with contextlib.suppress(OSError):
        write_whole(folder() / name, hashlib.sha256(rest).digest(), rest)


def trim(most: int = MOST) -> None:
    """Remove what was used least recently until entries take no more than so many bytes."""
    entries: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        entries = [(found.st_mtime, found.st_size, path) for path in folder().iterdir() if (found := path.stat())]
    rest = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if rest <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        rest -= size


def assembler() -> str:
    """The versions of the assemblers that Triton has for NVIDIA's architectures, as they print them."""
    names = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}
    found = importlib.util.find_spec("triton")
    place = Path(found.origin or "").parent / "backends" / "nvidia" / "bin" if found else Path()
    return "; ".join(f"{name} {_version(os.environ.get(v) or str(place / name))}" for name, v in names.items())


@lru_cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache
def _version(path: str) -> str:
    """What a tool prints after `release`; `none` where it does not run."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "none"
    return text.split("release")[-1].strip().splitlines()[0]
