# pyright: basic
"""JAX's own harnesses of its primitives: by group, functions with parameters of all kinds and arguments for them.

They are a part of JAX's test utilities, which every installation has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_OPEN = ("approx_top_k", "device_put")
"""Groups whose results JAX leaves open, or which are about devices."""


@cache
def groups() -> dict[str, list[Any]]:
    """Group (most often a primitive) -> the harnesses that JAX has on CPUs, in an order of chance that is always the
    same."""
    from jax._src.internal_test_util import test_harnesses

    found: dict[str, list[Any]] = {}
    for harness in sorted(test_harnesses.all_harnesses, key=lambda h: h.fullname):
        if harness.filter("cpu") and harness.group_name not in _OPEN and not _is_unstable(harness):
            found.setdefault(harness.group_name, []).append(harness)
    random = np.random.default_rng(0)
    names = sorted(found)
    return {names[i]: [found[names[i]][j] for j in random.permutation(len(found[names[i]]))]
            for i in random.permutation(len(names))}  # fmt: skip


def _is_unstable(harness: Any) -> bool:
    """Whether equal elements may come in any order."""
    return harness.group_name == "sort" and not harness.params["is_stable"]


def name_of(number: int) -> str:
    """The group of a number."""
    return [*groups()][number % len(groups())]


def function_of(number: int) -> tuple[str, Callable[..., Any], list[Array]]:
    """The function of a number, with the name of its group, and arguments."""
    known = groups()[name_of(number)]
    harness = known[number // len(groups()) % len(known)]
    args = harness.dyn_args_maker(np.random.RandomState(number % 2**32))
    return harness.group_name, harness.dyn_fun, [np.asarray(x) for x in args]
