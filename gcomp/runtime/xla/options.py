"""Compile options that an artifact may ask of XLA, and which of them apply on this machine.

An artifact stores options as data: `{"always": {...}, "one_thread": {...}, "many_threads": {...}}`. How many threads
there are is known only where the model is loaded. Other options are refused: some of XLA's write files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

from gcomp.errors import ArtifactError
from gcomp.runtime.strict_json import Json

ALLOWED: Mapping[str, type] = {
    "xla_cpu_experimental_ynn_fusion_type": str,
    "xla_cpu_prefer_vector_width": int,
    "xla_cpu_scheduler_type": str,
    "xla_disable_hlo_passes": str,
}
"""The options that may be set, and the type of their values."""

_ONLY: Mapping[str, str] = {"xla_disable_hlo_passes": "fusion"}
"""The one value that an option may have: without other passes XLA may not survive."""

SECTIONS = ("always", "one_thread", "many_threads")


def thread_count() -> int:
    """How many threads XLA uses on this machine: `PJRT_NPROC` where set, else the CPUs of this process."""
    if (text := os.environ.get("PJRT_NPROC", "")).isdigit() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_options(options: Mapping[str, Json]) -> None:
    """Raises ArtifactError for options that are not allowed."""
    if unknown := sorted(options.keys() - set(SECTIONS)):
        raise _refused(f"unknown section {unknown[0][:80]!r}")
    for section in options.values():
        if not isinstance(section, dict):
            raise _refused("a section is not an object")
        for name, value in cast("dict[str, Json]", section).items():
            if name not in ALLOWED or type(value) is not ALLOWED[name] or value != _ONLY.get(name, value):
                raise _refused(f"{name[:80]!r} = {str(value)[:80]!r} is not allowed")


def choose(options: Mapping[str, Json], threads: int) -> dict[str, str | int]:
    """The options that apply with this many threads."""
    chosen: dict[str, str | int] = {}
    for section in ("always", "one_thread" if threads == 1 else "many_threads"):
        chosen.update(options.get(section, {}))
    return chosen


def _refused(why: str) -> ArtifactError:
    return ArtifactError("The artifact asks for compile options that gcomp does not set.", why=why)
