"""A cache of lowered code, valid for one version of gcomp: the baseline of each model is lowered once."""

from __future__ import annotations

import hashlib
import json
import time
from functools import cache
from importlib import metadata
from pathlib import Path

from gcomp.ir.program import Program
from gcomp.measuring.timing import processor
from gcomp.runtime.folders import Cache
from gcomp.targets.base import target_named

_PACKAGE = Path(__file__).parents[1]
_CACHE = Cache("lowered", 16 << 20)


def lowered(program: Program, target: str) -> tuple[int, float]:
    """Bytes of code that a program becomes, and the seconds that this took when it was first done. The program may be
    changed. Raises GcompError."""
    name = hashlib.sha256(f"{_version()} {target} {identity(program)}".encode()).hexdigest()
    if (known := _CACHE.load(name)) is not None:
        code, seconds = json.loads(known)
        return int(code), float(seconds)
    started = time.perf_counter()
    plan = target_named(target).lower(program, report=lambda said: None)
    seconds = time.perf_counter() - started
    code = sum(map(len, plan.binaries.values())) or sum(map(len, plan.texts.values()))
    _CACHE.store(name, json.dumps([code, seconds]).encode())
    return code, seconds


def identity(program: Program) -> str:
    """A text that is equal for programs of the same ops and the same values of weights."""
    digest = hashlib.sha256(program.text().encode())
    for name in sorted(program.weights):
        digest.update(program.weights.sha256(name).encode())
    return digest.hexdigest()


@cache
def _version() -> str:
    """A text that changes when gcomp or the machine does."""
    digest = hashlib.sha256(f"{processor()} {metadata.version('llvmlite')}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


__all__ = ["identity", "lowered"]
