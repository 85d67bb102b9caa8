"""Compiled kernels on disk (`gcomp.runtime.folders`), by a hash of all that decides what they become.

An entry is the length of a JSON text, that text and the binary. One that does not hold together is compiled again.
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

from gcomp.lowering.triton import worker
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture, triton_version
from gcomp.runtime import strict_json
from gcomp.runtime.folders import Cache
from gcomp.runtime.strict_json import Json, JsonError

FORMAT = 2
"""Raised by one whenever the same source would be compiled to something else, or an entry be read as something else."""

KERNELS = Cache("kernels", 4 << 30)

_LENGTH = struct.Struct("<Q")


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


def load(name: str) -> tuple[Mapping[str, Json], bytes] | None:
    """The facts and the binary of an entry; None where there is none that holds together."""
    with contextlib.suppress(struct.error, JsonError):
        if (data := KERNELS.load(name)) is not None:
            (length,) = _LENGTH.unpack_from(data)
            body = data[_LENGTH.size :]
            return strict_json.loads(body[:length]), body[length:]
    return None


def store(name: str, facts: Mapping[str, Json], binary: bytes) -> None:
    """Keep a compiled kernel."""
    text = strict_json.dumps(facts)
    KERNELS.store(name, _LENGTH.pack(len(text)), text, binary)


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
