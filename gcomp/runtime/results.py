"""What callers get in place of the numbers that a target computes: typed random keys, and names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gcomp.runtime.manifest import OutputSpec


def result_view(spec: OutputSpec) -> Callable[[Any], Any] | None:
    """What makes of an output's numbers what they stand for; None where they are numbers."""
    if (generator := spec.key) is not None:
        return lambda value: as_keys(value, generator)
    if spec.names is None:
        return None
    names = np.asarray(spec.names)
    return lambda value: names[np.asarray(value)]


def as_keys(value: Any, generator: str) -> Any:
    """A result as typed random keys, where it is an array of JAX."""
    jax: Any = sys.modules.get("jax")
    if jax is None or not isinstance(value, jax.Array):
        return value
    return jax.random.wrap_key_data(value, impl=generator)
