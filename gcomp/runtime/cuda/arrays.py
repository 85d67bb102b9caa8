"""Arrays in and out: what a caller has on the host or on the GPU, and results of the same kind.

A torch tensor on the GPU is read where it is, on torch's current stream, and results are tensors whose work is on that
stream. Other arrays on the GPU are read where they are, too, and results are `DeviceArray`s. All else is copied to the
GPU and back, and results are NumPy arrays, or torch tensors where any input is one.

The memory of donated arrays on the GPU is written to: a result lies in it, or it holds anything. Arrays on the host are
never written to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from gcomp.dtypes import TEXTS
from gcomp.errors import UnsupportedError
from gcomp.runtime.cuda.device_array import DeviceArray, foreign, upload
from gcomp.runtime.cuda.driver import Address, Driver, Handle
from gcomp.runtime.inputs import Inputs, array_of, is_torch

DType = np.dtype[Any]
Array = np.ndarray[Any, Any]


class Kind(IntEnum):
    """Of arrays; results are of the greatest kind among the inputs."""

    NUMPY = 0
    TORCH = 1
    DEVICE = 2
    TORCH_DEVICE = 3


@dataclass(frozen=True)
class Held:
    """A value: `where` is an array of the host or an address of the GPU, `owner` what keeps that alive.

    For what a call makes, the owner is what the caller gets: an array, a tensor or a `DeviceArray`.
    """

    where: Array | Address
    shape: tuple[int, ...]
    dtype: DType
    kind: Kind
    owner: Any
    stream: Handle | None = None
    """Where the caller's work on it is, if that must be waited for."""
    readonly: bool = False
    """Whether its library says that it must not be written to."""

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Intake(Inputs):
    """Recognises a model's inputs."""

    def take(self, i: int, value: Any) -> Held:
        """A value for an input. Raises InputError for what is no array, of another type, or on another device."""
        if is_torch(value):
            return self._torch(i, value)
        if (found := None if isinstance(value, np.ndarray) else foreign(value)) is not None:
            if found.dtype != self._dtypes[i]:
                raise self.mismatch(i, f"dtype {found.dtype or 'unknown'}", None)
            if not found.contiguous:
                raise self.mismatch(i, "an array with strides", "it is not C-contiguous", "Pass a contiguous copy.")
            kind = Kind.DEVICE
            return Held(found.address, found.shape, self._dtypes[i], kind, found.owner, found.stream, found.readonly)
        array = self.host(i, value)
        return _on_host(np.ascontiguousarray(array).reshape(array.shape))

    def check_donated(self, given: Sequence[Held]) -> None:
        """Raises InputError for a donated array on the GPU that is read-only, or in whose memory another input lies."""
        inputs = self._signature.inputs
        for i, held in enumerate(given):
            if not inputs[i].donated or isinstance(held.where, np.ndarray):
                continue
            if held.readonly:
                raise self.mismatch(i, "a read-only array", "it is donated, and may be written to", "Pass a copy.")
            start, stop = held.where, held.where + held.nbytes
            for j, other in enumerate(given):
                at = other.where
                if j != i and not isinstance(at, np.ndarray) and max(start, at) < min(stop, at + other.nbytes):
                    what = f"memory in which {inputs[j].name!r} lies, too"
                    raise self.mismatch(i, what, "it is donated, and may be written to", "Pass a copy of one of them.")

    def _torch(self, i: int, given: Any) -> Held:
        tensor = self.torch_dense(i, given, ("cuda:0", "cuda", "cpu"))
        shape, dtype = tuple(tensor.shape), self._dtypes[i]
        if tensor.device.type == "cpu":
            return Held(array_of(tensor, dtype), shape, dtype, Kind.TORCH, tensor)
        if tensor.device.index:
            why = f"it is on {tensor.device}, and the model runs on cuda:0"
            raise self.mismatch(i, "a tensor on another device", why, 'Pass x.to("cuda:0").')
        return Held(tensor.data_ptr(), shape, dtype, Kind.TORCH_DEVICE, tensor)


def stream_of(kind: Kind) -> Handle | None:
    """The stream on which the caller expects the work; None for the session's own, which is waited for."""
    if kind is not Kind.TORCH_DEVICE:
        return None
    torch: Any = sys.modules["torch"]
    return torch.cuda.current_stream(0).cuda_stream


def room(driver: Driver, kind: Kind, shape: tuple[int, ...], dtype: DType) -> Held:
    """Room for a value of a kind. Raises UnsupportedError for types that torch does not have."""
    match kind:
        case Kind.NUMPY:
            try:
                return _on_host(np.empty(shape, dtype))
            except (MemoryError, ValueError) as error:
                raise UnsupportedError("The result does not fit into memory.", why=str(error)) from None
        case Kind.DEVICE:
            return hold_array(DeviceArray.empty(driver, shape, dtype))
        case Kind.TORCH | Kind.TORCH_DEVICE:
            torch: Any = sys.modules["torch"]
            if (known := getattr(torch, dtype.name, None)) is None:
                why = f"The output is of type {TEXTS[dtype]}."
                raise UnsupportedError("torch has no tensors of this type.", why=why, fix="Pass NumPy arrays.")
            tensor = torch.empty(shape, dtype=known, device="cpu" if kind is Kind.TORCH else "cuda:0")
            where = array_of(tensor, dtype) if kind is Kind.TORCH else tensor.data_ptr()
            return Held(where, shape, dtype, kind, tensor)


def take_donation(
    driver: Driver, value: Held | Array | None, kind: Kind, shape: tuple[int, ...], dtype: DType
) -> Held | None:
    """A donated array's memory, reused for a result of the same kind, shape and dtype; None where these differ."""
    if not isinstance(value, Held) or isinstance(value.where, np.ndarray):
        return None
    if (value.kind, value.shape, value.dtype) != (kind, shape, dtype):
        return None
    if kind is Kind.TORCH_DEVICE or isinstance(value.owner, DeviceArray):
        return Held(value.where, shape, dtype, kind, value.owner)
    return hold_array(DeviceArray(driver, value.where, shape, dtype, value.owner))


def hold_array(array: DeviceArray) -> Held:
    """A value that a `DeviceArray` holds."""
    return Held(array.address, array.shape, array.dtype, Kind.DEVICE, array)


def on_host(driver: Driver, value: Held, stream: Handle | None) -> Array:
    """A value as an array of the host, once the caller's stream, if there is one, has made it."""
    if isinstance(value.where, np.ndarray):
        return value.where
    if stream is not None:
        driver.wait(stream)
    return np.asarray(DeviceArray(driver, value.where, value.shape, value.dtype, value.owner))


def hand_over(driver: Driver, value: Held | Array, kind: Kind, stream: Handle | None, *, given: bool) -> Any:
    """A value as one of a kind, by a copy where it is of another, or was `given` by the caller."""
    held = _on_host(value) if isinstance(value, np.ndarray) else value
    if held.kind is kind and not given:
        return held.owner
    target, source = room(driver, kind, held.shape, held.dtype), on_host(driver, held, stream)
    if isinstance(target.where, np.ndarray):
        target.where[...] = source
    else:
        upload(driver, target.where, source)
    return target.owner


def _on_host(array: Array) -> Held:
    return Held(array, array.shape, array.dtype, Kind.NUMPY, array)
