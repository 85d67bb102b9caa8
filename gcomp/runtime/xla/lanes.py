"""What a call needs that repeats the last one's kinds and shapes, and no more.

Calls mostly repeat. The steps that a call takes otherwise are short, but each runs from cold memory where the call
before has swept the processor's caches: 0.1 ms together.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gcomp.runtime.xla.client import Client, DeviceArray, Executable, JaxRuntimeError, abstract
from gcomp.runtime.xla.dispatch import FastPath, dispatcher, list_structure

_FEW_WEIGHTS = 32
AS_THEY_ARE = frozenset(
    ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32")
)
"""The types of arrays that JAX's dispatcher leaves as they are; it makes 32 bits of 64."""

Lane = Callable[[Sequence[Any]], list[Any] | None]
"""Runs an executable on inputs like those of the last call: the results, or None when it is not for such inputs."""
Types = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]


class Segment(Protocol):
    """What a lane asks of the part of a plan that it runs."""

    @property
    def weights(self) -> list[DeviceArray]: ...
    def launch(self, executable: Executable, arguments: Sequence[DeviceArray]) -> list[DeviceArray]: ...


class NumpyLane:
    """A lane for NumPy arrays. Those of types that are `passed` are placed by whoever launches the segment."""

    def __init__(
        self,
        client: Client,
        segment: Segment,
        executable: Executable,
        types: Types,
        passed: frozenset[str] = frozenset(),
    ) -> None:
        self._launch, self._executable = segment.launch, executable
        self._inputs = [
            (shape, dtype, _itself if dtype.name in passed else client.placer(shape, dtype)) for shape, dtype in types
        ]

    def __call__(self, values: Sequence[Any]) -> list[Any] | None:
        results = self.arrays(values)
        return None if results is None else [np.asarray(result) for result in results]

    def arrays(self, values: Sequence[Any]) -> list[DeviceArray] | None:
        """The results on the device."""
        for value, (shape, dtype, _) in zip(values, self._inputs, strict=True):
            if value.__class__ is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return None
        placed = [place(value) for value, (_, _, place) in zip(values, self._inputs, strict=True)]
        return self._launch(self._executable, placed)


def _itself(array: Any) -> Any:
    return array


class DispatchedLane:
    """A lane for NumPy arrays through the dispatcher of `jax.jit`, which places them and runs in C++.

    It looks at the weights at each call too, and makes 32 bits of 64: for few weights, and other types (`suits`).
    """

    def __init__(self, client: Client, segment: Segment, executable: Executable, types: Types) -> None:
        by_hand, weights = NumpyLane(client, segment, executable, types), tuple(segment.weights)
        outputs = [abstract(shape, dtype) for shape, dtype in executable.types()[1]]
        path = FastPath(executable, list_structure(len(outputs)), outputs, len(types) + len(weights))

        def run(*arguments: Any) -> list[DeviceArray] | None:
            return by_hand.arrays(arguments[:-1])

        def miss(*arguments: Any) -> tuple[list[DeviceArray] | None, FastPath | None]:
            results = run(*arguments)
            return results, None if results is None else path

        self._dtypes, self._weights = [dtype for _, dtype in types], weights
        self._call = dispatcher(run, miss, (), ())

    @staticmethod
    def suits(segment: Segment, types: Types) -> bool:
        """Whether the dispatcher takes such inputs as they are, and is faster."""
        return len(segment.weights) <= _FEW_WEIGHTS and all(dtype.name in AS_THEY_ARE for _, dtype in types)

    def __call__(self, values: Sequence[Any]) -> list[Any] | None:
        for value, dtype in zip(values, self._dtypes, strict=True):
            # The dispatcher would make 32 bits of 64 before it compares.
            if value.__class__ is not np.ndarray or value.dtype != dtype:
                return None
        try:
            results = self._call(*values, self._weights)
        except JaxRuntimeError:
            return None  # the long way says what is wrong
        return None if results is None else [np.asarray(result) for result in results]


def numpy_lane(client: Client, segment: Segment, executable: Executable, types: Types) -> Lane:
    """The faster lane of the two; an executable keeps its own, which takes long to make."""
    if not DispatchedLane.suits(segment, types):
        return NumpyLane(client, segment, executable, types)
    if executable.lane is None:
        executable.lane = DispatchedLane(client, segment, executable, types)
    return executable.lane


class TorchLane:
    """A lane for contiguous torch tensors on the processor, none of which is donated.

    A tensor mostly lies where that of the call before lay: parameters stay, and torch's allocator gives freed memory
    out again. The device's view of that memory is kept, and owns nothing: it is read only while a tensor is there.
    """

    def __init__(self, client: Client, segment: Segment, executable: Executable, types: Types) -> None:
        torch: Any = sys.modules["torch"]
        self._weights, self._run = segment.weights, executable.run
        self._kinds = {torch.Tensor, torch.nn.Parameter}
        self._address: Callable[[Any], int] = torch.Tensor.data_ptr
        self._from_dlpack, self._to_dlpack = torch._C._from_dlpack, client.to_dlpack
        self._inputs = [
            (torch.Size(shape), getattr(torch, dtype.name, None), _View(client, shape, dtype)) for shape, dtype in types
        ]
        self._held: tuple[list[int], list[DeviceArray]] = ([-1], [])
        """The addresses of the last call's tensors, and the arguments made of them: one tuple, as threads may meet."""

    def __call__(self, values: Sequence[Any]) -> list[Any] | None:
        for value, (shape, dtype, _) in zip(values, self._inputs, strict=True):
            if value.__class__ not in self._kinds or value.dtype is not dtype or value.shape != shape:
                return None
            if not value.is_cpu or not value.is_contiguous() or value.is_neg() or value.is_conj():
                return None
        addresses = list(map(self._address, values))
        views = [view.at(address) for address, (_, _, view) in zip(addresses, self._inputs, strict=True)]
        if None in views:
            return None
        self._held = addresses, [*views, *self._weights]
        return self.again(values)

    def again(self, values: Sequence[Any]) -> list[Any] | None:
        """As a call, for values whose kinds, types, shapes and strides are known to be those of the last call."""
        addresses, arguments = self._held
        if list(map(self._address, values)) != addresses:
            return self(values)
        try:
            arrays = self._run(arguments)
        except JaxRuntimeError:
            return None  # the long way says what is wrong
        results: list[Any] = []
        for result in arrays:
            # The caller may write to the memory that the call still reads.
            result.block_until_ready()
            results.append(self._from_dlpack(self._to_dlpack(result, None)))
        return results


class _View:
    """A device array of one shape that borrows memory owned by another object."""

    def __init__(self, client: Client, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._place, self._shape, self._dtype = client.placer(shape, dtype), shape, dtype
        self._memory = ctypes.c_char * (math.prod(shape) * dtype.itemsize)
        self._held: tuple[int, DeviceArray] = (-1, None)
        """The address that it was last at, and the array."""

    def at(self, address: int) -> DeviceArray | None:
        """The array at an address; None where the device cannot read memory in place."""
        held = self._held
        if held[0] == address:
            return held[1]
        if not address:
            return None
        memory = np.frombuffer(memoryview(self._memory.from_address(address)), self._dtype).reshape(self._shape)
        array = self._place(memory)
        if array.unsafe_buffer_pointer() != address:
            return None
        self._held = (address, array)
        return array


__all__ = ["AS_THEY_ARE", "Lane", "NumpyLane", "TorchLane", "numpy_lane"]
