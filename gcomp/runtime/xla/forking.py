"""What has become of XLA in a process that was forked: its threads are the parent's, and a call would wait for ever.

XLA cannot be started a second time there either: what its threads held when the process was forked stays held. So calls
are refused, without a look at each of them: the fork itself puts the refusal where a call begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol
from weakref import WeakSet

from gcomp.errors import UsageError

_bridge: Any = import_module("jax._src.xla_bridge")
_jaxlib: Any = import_module("jaxlib._jax")


class Runs(Protocol):
    """What runs plans, and asks its lane first."""

    lane: Callable[[Sequence[Any]], list[Any] | None] | None


_running: WeakSet[Runs] = WeakSet()
_lost = False


def watch(executor: Runs) -> None:
    """Let an executor refuse its calls in processes that are forked from this one."""
    _running.add(executor)


def refuse_lost() -> None:
    """Raises UsageError in a process that was forked from one where XLA ran."""
    if _lost:
        raise UsageError(
            "XLA does not run in this process, which was forked from one where it ran.",
            why="A fork has none of the threads that XLA computes with, and would wait for them for ever.",
            fix='Start processes with multiprocessing.get_context("spawn") (for torch: '
            'DataLoader(..., multiprocessing_context="spawn")), or fork before the first model is loaded.',
        )


def _refuse(values: Sequence[Any]) -> list[Any] | None:
    refuse_lost()
    return None


def _after_fork() -> None:
    global _lost
    if _bridge.backends_are_initialized():
        _lost = True
        for executor in list(_running):
            executor.lane = _refuse
        # The dispatcher runs in C++ and asks nobody, as long as it knows a call.
        _jaxlib.PjitFunctionCache.clear_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


__all__ = ["refuse_lost", "watch"]
