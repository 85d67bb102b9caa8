"""A process that has eight virtual devices: JAX counts devices once, and other tests have one."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

COUNT = 8


def _begin() -> None:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={COUNT}"
    os.environ["JAX_PLATFORMS"] = "cpu"


@cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _begin)


def on_devices(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a function of a module gives in the process with the devices."""
    return _pool().submit(function, *args, **kwargs).result()
