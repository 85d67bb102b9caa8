"""Arrays in and out: NumPy, torch and jax arrays become device arrays, and results become the caller's kind.

Memory is shared where it can be: NumPy arrays and torch tensors that are contiguous and start at a multiple of 64
bytes are read in place, results are handed out in place. A NumPy result is a read-only view of the device's memory,
a torch result owns it, a jax result is the device array itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.runtime.inputs import Inputs, is_key, is_torch
from gcomp.runtime.signature import Signature
from gcomp.runtime.xla.client import ArrayImpl, Client, DeviceArray, abstract, client, dlpack_of, is_tracer

NUMPY, JAX, TORCH = 0, 1, 2
"""Kinds of arrays; results are of the greatest kind among the inputs."""


class Intake(Inputs):
    """Recognises a model's inputs, and moves them to the device once their shapes are known to fit."""

    def __init__(self, signature: Signature, client: Client) -> None:
        super().__init__(signature)
        self._client = client
        self._torch_dtypes: list[Any] | None = None
        """torch's dtypes of the inputs, once torch is needed."""

    def recognise(self, values: list[Any]) -> tuple[tuple[tuple[int, ...], ...], int]:
        """The values' shapes and the kind of the results. Replaces in `values` what is not an array yet.

        Raises InputError for values that are no arrays, or of another element type.
        """
        kind = NUMPY
        for i, value in enumerate(values):
            cls = value.__class__
            if cls is not np.ndarray:
                if cls is ArrayImpl:
                    kind = max(kind, JAX)
                else:
                    values[i] = value = self._foreign(i, value)
                    kind = max(kind, TORCH if is_torch(value) else JAX if value.__class__ is ArrayImpl else NUMPY)
                    continue
            if value.dtype != self._dtypes[i]:
                raise self.wrong_dtype(i, value.dtype)
        return tuple([tuple(value.shape) for value in values]), kind

    def move(self, values: Sequence[Any]) -> list[DeviceArray]:
        """The recognised values as device arrays."""
        put, take = self._client.put, self._client.take
        moved: list[DeviceArray] = []
        for i, value in enumerate(values):
            cls = value.__class__
            if cls is np.ndarray:
                moved.append(put(value))
            elif cls is ArrayImpl:
                if value.is_deleted():
                    raise self.mismatch(i, "a deleted array", "it was donated to an earlier call")
                moved.append(take(value))
            else:
                moved.append(self._from_torch(i, value))
        return moved

    def _foreign(self, i: int, value: Any) -> Any:
        """A tensor of torch as it is, everything else as an ndarray of the input's dtype."""
        if is_torch(value):
            self._check_torch(i, value)
            return value
        if is_tracer(value):
            fix = "Call the model outside of jax.jit, jax.grad and jax.vmap."
            raise self.mismatch(i, "a value that JAX is tracing", None, fix)
        if is_key(value):
            return self.of_key(i, value)
        return self.host(i, value)

    def _check_torch(self, i: int, tensor: Any) -> None:
        torch: Any = sys.modules["torch"]
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise self.mismatch(i, f"a tensor of layout {tensor.layout}", None, "Pass a dense tensor.")
        if tensor.device.type != "cpu":
            why = f"it is on {tensor.device}, and the model reads torch's tensors in the processor's memory"
            raise self.mismatch(i, "a tensor on another device", why, "Pass x.cpu().")
        if self._torch_dtypes is None:
            self._torch_dtypes = [getattr(torch, dtype.name, None) for dtype in self._dtypes]
        if tensor.dtype is not self._torch_dtypes[i]:
            raise self.mismatch(i, f"dtype {tensor.dtype}", None, f"Pass x.to(torch.{self._dtypes[i].name}).")

    def _from_torch(self, i: int, tensor: Any) -> DeviceArray:
        # Each of these makes another tensor, and mostly none is needed.
        if tensor.requires_grad:
            tensor = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        # Not through DLPack: a thread of the device would free the tensor then, maybe while Python shuts down.
        dtype = self._dtypes[i]
        if dtype.isbuiltin != 1:  # bfloat16 and the small floats, which are not NumPy's own
            torch: Any = sys.modules["torch"]
            tensor = tensor.view(torch.int16 if dtype.itemsize == 2 else torch.uint8)
        return self._client.put(tensor.numpy().view(dtype))


def _to_torch(array: DeviceArray) -> Any:
    torch: Any = sys.modules["torch"]
    if array.device.platform != "cpu":
        array = client("cpu").put(np.asarray(array))
    try:
        return torch.utils.dlpack.from_dlpack(dlpack_of(array))
    except (RuntimeError, BufferError, ValueError, TypeError) as error:
        raise UnsupportedError(
            f"torch has no tensors of {array.dtype}.",
            why=str(error)[:200],
            fix="Pass NumPy arrays to get NumPy arrays.",
        ) from None


OUT: tuple[Callable[[DeviceArray], Any], ...] = (np.asarray, lambda array: array, _to_torch)
"""How a device array becomes a result, by kind."""

__all__ = ["JAX", "NUMPY", "OUT", "TORCH", "Intake", "abstract", "is_torch"]
