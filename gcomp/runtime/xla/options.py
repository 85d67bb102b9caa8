"""Compile options that an artifact may ask of XLA, and which of them apply on this machine.

An artifact stores options as data: `{"always": {...}, "one_thread": {...}, "many_threads": {...}}`. How many threads
there are is known only where the model is loaded. Other options are refused: some of XLA's write files.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any, cast

from gcomp.errors import ArtifactError, UsageError
from gcomp.processors import processors
from gcomp.runtime.environment import THREADS, check_whole, number_in
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


EXECUTABLES = "GCOMP_EXECUTABLES"
"""The variable of the environment that says for how many combinations of sizes a model keeps executables."""

_KEPT = 128
_XLA_THREADS = "PJRT_NPROC"
"""XLA's own variable, which it reads when it starts."""


def thread_count() -> int:
    """How many threads XLA uses on this machine: as many as it was told to, else the CPUs of this process."""
    if (text := os.environ.get(_XLA_THREADS, "")).isdigit() and int(text) > 0:
        return int(text)
    return processors()


def use_threads(count: int) -> None:
    """Let XLA compute with so many threads, which are the process's: they are started with the first model.

    Raises UsageError where XLA runs already, with another number.
    """
    check_whole("threads", count)
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if count != thread_count() and bridge is not None and bridge.backends_are_initialized():
        raise UsageError(
            f"XLA runs with {thread_count()} threads in this process already, and not with {count}",
            why="its threads are shared by all models, and are started with the first one (or by JAX)",
            fix=f"say it for the first model, or set {THREADS}={count} before the process starts",
        )
    os.environ[THREADS] = os.environ[_XLA_THREADS] = str(count)


def settle_threads() -> None:
    """Do what the environment says of threads. Raises UsageError where that is no number, or comes too late."""
    if (count := number_in(THREADS)) is not None:
        use_threads(count)


def executables_kept() -> int:
    """For how many combinations of sizes a model keeps executables. Raises UsageError where the variable is wrong."""
    return number_in(EXECUTABLES) or _KEPT


class ExecutablesWarning(UserWarning):
    """A model meets more combinations of sizes than it keeps executables for."""


def warn_of_dropping(kept: int) -> None:
    """Tell that what is compiled now had been compiled before."""
    warnings.warn(
        f"a model met more than {kept} combinations of sizes, and compiles again what it had dropped: keep more "
        f"executables (model.keep(1000), gcomp.load(path, executables=1000) or {EXECUTABLES}=1000), or pad to buckets",
        ExecutablesWarning,
        stacklevel=2,
    )


def check_options(options: Mapping[str, Json]) -> None:
    """Raises ArtifactError for options that are not allowed."""
    if unknown := sorted(options.keys() - set(SECTIONS)):
        raise _refusal(f"unknown section {unknown[0][:80]!r}")
    for section in options.values():
        if not isinstance(section, dict):
            raise _refusal("a section is not an object")
        for name, value in cast("dict[str, Json]", section).items():
            if name not in ALLOWED or type(value) is not ALLOWED[name] or value != _ONLY.get(name, value):
                raise _refusal(f"{name[:80]!r} = {str(value)[:80]!r} is not allowed")


def choose(options: Mapping[str, Json], threads: int) -> dict[str, str | int]:
    """The options that apply with this many threads."""
    chosen: dict[str, str | int] = {}
    for section in ("always", "one_thread" if threads == 1 else "many_threads"):
        chosen.update(options.get(section, {}))
    return chosen


def _refusal(why: str) -> ArtifactError:
    return ArtifactError("The artifact asks for compile options that gcomp does not set.", why=why)
