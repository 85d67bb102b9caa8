"""An array as other libraries hold it, and as NumPy does where it is not laid out plainly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _strided(array: Array) -> Array:
    """The array as every second element of a longer one."""
    if not array.ndim:
        return array
    longer = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    longer[..., ::2] = array
    return longer[..., ::2]


def _unaligned(array: Array) -> Array:
    """The array at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    memory[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory.view(array.dtype).reshape(array.shape)


def _of_jax(array: Array) -> Any:
    import jax

    known: Any = jax
    with known.enable_x64(True):
        return known.numpy.asarray(array)


def _of_torch(array: Array) -> Any:
    import torch

    known: Any = torch
    return known.from_numpy(np.array(array))


def array_forms() -> Mapping[str, Callable[[Array], Any]]:
    """What a model is called with, by name: results are of the same library."""
    found = {"jax": _of_jax, "numpy, strided": _strided, "numpy, unaligned": _unaligned}
    return found | ({"torch": _of_torch} if find_spec("torch") else {})


__all__ = ["array_forms"]
