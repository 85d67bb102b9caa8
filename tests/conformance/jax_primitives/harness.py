"""JAX's own harnesses of its primitives: a function and example arguments each."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(1)
def harnesses() -> dict[str, Any]:
    """Name -> harness, those that JAX itself has not on CPU left out. Loading them starts JAX: never before a fork."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax._src.internal_test_util import test_harnesses

    return {h.fullname: h for h in test_harnesses.all_harnesses if h.filter("cpu")}


def groups() -> dict[str, str]:
    """Name -> group (most often a primitive)."""
    return {name: harness.group_name for name, harness in harnesses().items()}


def arguments(name: str) -> list[Any]:
    """The arguments of a harness: random, and always the same."""
    return list(harnesses()[name].dyn_args_maker(np.random.RandomState(zlib.crc32(name.encode()))))
