"""Arrays in and out: NumPy arrays, torch tensors and jax arrays are read where they lie, and results are the caller's.

What is no array, not contiguous, or not aligned as its elements want is copied first. The memory of donated NumPy
arrays and torch tensors is written to, where nothing forbids it: a result lies in it, or it holds anything. That of jax
arrays never is: others may read it. They are deleted after the call, as `jax.jit` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from gcomp.dtypes import TEXTS, bit_width
from gcomp.errors import UnsupportedError
from gcomp.runtime.cpu.memory import ALIGNMENT, Array, address_of, result_array
from gcomp.runtime.inputs import Inputs, is_key, is_torch
from gcomp.runtime.signature import Signature

DType = np.dtype[Any]


class Kind(IntEnum):
    """Of arrays; results are of the greatest kind among the inputs."""

    NUMPY = 0
    JAX = 1
    TORCH = 2


class Intake(Inputs):
    """Recognises a model's inputs."""

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        self._donated = [i for i, spec in enumerate(signature.inputs) if spec.donated]

    def take(self, values: Sequence[Any]) -> tuple[list[Array], Kind]:
        """The values' memory as arrays, which code can read, and the kind of the results.

        Raises InputError for values that are no arrays, or of another element type.
        """
        kind = Kind.NUMPY
        arrays: list[Array] = []
        for i, value in enumerate(values):
            array, own = self._taken(i, value)
            arrays.append(readable(array))
            kind = max(kind, own)
        for i in self._donated:
            if not self._may_be_written(i, values[i], arrays):
                arrays[i] = np.array(arrays[i])
        return arrays, kind

    def give_away(self, values: Sequence[Any]) -> None:
        """Delete the arrays of JAX among donated inputs, which a call has read."""
        for i in self._donated:
            if is_jax(values[i]) and not values[i].is_deleted():
                values[i].delete()

    def _taken(self, i: int, value: Any) -> tuple[Array, Kind]:
        if type(value) is np.ndarray:
            if value.dtype != self._dtypes[i]:
                raise self.wrong_dtype(i, value.dtype)
            return value, Kind.NUMPY
        if is_torch(value):
            return self.torch_memory(i, value, ("cpu",)), Kind.TORCH
        if not is_jax(value):
            return self.host(i, value), Kind.NUMPY
        jax: Any = sys.modules["jax"]
        if isinstance(value, jax.core.Tracer):
            fix = "Call the model outside of jax.jit, jax.grad and jax.vmap."
            raise self.mismatch(i, "a value that JAX is tracing", None, fix)
        held = self.of_key(i, value) if is_key(value) else value
        if held.is_deleted():
            raise self.mismatch(i, "a deleted array", "it was donated to an earlier call")
        return self.host(i, held), Kind.JAX

    def _may_be_written(self, i: int, value: Any, arrays: Sequence[Array]) -> bool:
        """Whether an input's memory is the caller's to give, and no other input lies in it."""
        own = arrays[i]
        if is_jax(value) or not own.flags.writeable:
            return False
        return not any(np.may_share_memory(own, other) for j, other in enumerate(arrays) if j != i)


def is_jax(value: object) -> bool:
    """Whether a value is an array of JAX, a traced one included, if JAX is imported at all."""
    jax: Any = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def readable(array: Array) -> Array:
    """An array that code can read: itself, or a copy where it has strides or lies at an odd address."""
    if array.flags.c_contiguous and not address_of(array) % array.dtype.alignment:
        return array
    return np.array(array, order="C")


def room(shape: tuple[int, ...], dtype: DType, kind: Kind) -> Array:
    """Allocate a result, aligned for the kind of array that it becomes. Raises UnsupportedError when out of memory."""
    return result_array(shape, dtype, ALIGNMENT if kind is Kind.JAX else 1)


def _to_jax(array: Array) -> Any:
    from gcomp.runtime.xla.client import client

    return client("cpu").put(array)


def torch_type(dtype: DType) -> Any:
    """torch's name of a type; None for those of less than a byte, and others that it does not have."""
    whole = bit_width(TEXTS[dtype]) >= 8 or dtype == np.bool_
    return getattr(sys.modules["torch"], dtype.name, None) if whole else None


def _to_torch(array: Array) -> Any:
    torch: Any = sys.modules["torch"]
    known = torch_type(array.dtype)
    if known is None:
        why = f"The output is of type {TEXTS[array.dtype]}."
        raise UnsupportedError("torch has no tensors of this type.", why=why, fix="Pass NumPy arrays.")
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    return torch.from_numpy(array.reshape(-1).view(np.uint8)).view(known).reshape(array.shape)


def _itself(array: Array) -> Any:
    return array


OUT: dict[Kind, Callable[[Array], Any]] = {Kind.NUMPY: _itself, Kind.JAX: _to_jax, Kind.TORCH: _to_torch}
"""How an array becomes a result, by kind."""

__all__ = ["OUT", "Intake", "Kind", "is_jax", "readable", "room", "torch_type"]
