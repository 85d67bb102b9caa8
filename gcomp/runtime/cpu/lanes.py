"""What a call needs that repeats the last one's kinds and shapes, and no more.

Such a call of a small model takes a few microseconds, most of them in Python: each look at an argument counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.runtime.cpu.arrays import torch_type
from gcomp.runtime.cpu.frames import Bound
from gcomp.runtime.cpu.memory import Array, address_of, result_array
from gcomp.runtime.cpu.session import Session
from gcomp.runtime.inputs import is_torch

DType = np.dtype[Any]
Type = tuple[tuple[int, ...], DType]


class Lane:
    """Runs a segment on inputs like those of the last call: NumPy arrays that can be read where they lie."""

    def __init__(self, session: Session, bound: Bound, inputs: Sequence[Type], outputs: Sequence[Type]) -> None:
        self._session, self._bound, self._run = session, bound, session.frames.run
        self._inputs = [(shape, dtype, dtype.alignment) for shape, dtype in inputs]
        self._outputs = [_maker(shape, dtype) for shape, dtype in outputs]

    def addresses(self, values: Sequence[Any]) -> list[int] | None:
        """Where the values lie, or None when it is not for such inputs."""
        found: list[int] = []
        for value, (shape, dtype, alignment) in zip(values, self._inputs, strict=True):
            if value.__class__ is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return None
            if not value.flags.c_contiguous or (address := address_of(value)) % alignment:
                return None
            found.append(address)
        return found

    def __call__(self, values: Sequence[Any]) -> list[Any] | None:
        """The results, or None when it is not for such inputs."""
        if (addresses := self.addresses(values)) is None:
            return None
        results = [make() for make in self._outputs]
        self._run(self._bound, self._session.pool, addresses, [address_of(result) for result in results])
        return results

    def again(self, values: Sequence[Any]) -> list[Any] | None:
        """As a call, for values whose kinds, types, shapes and strides are known to be those of the last call."""
        return self(values)


def _maker(shape: tuple[int, ...], dtype: DType) -> Callable[[], Array]:
    return lambda: result_array(shape, dtype)


class TorchLane(Lane):
    """A lane for contiguous torch tensors on the processor; results are tensors."""

    def __init__(self, session: Session, bound: Bound, inputs: Sequence[Type], outputs: Sequence[Type]) -> None:
        super().__init__(session, bound, inputs, outputs)
        torch: Any = sys.modules["torch"]
        self._kinds = {torch.Tensor, torch.nn.Parameter}
        self._address: Callable[[Any], int] = torch.Tensor.data_ptr
        self._empty = torch.empty
        self._types = [(torch.Size(shape), torch_type(dtype)) for shape, dtype in inputs]
        self._held: list[int] = [-1]
        """Where the tensors of the last call lay."""
        self._made = [(shape, torch_type(dtype)) for shape, dtype in outputs]

    def addresses(self, values: Sequence[Any]) -> list[int] | None:
        for value, (shape, dtype) in zip(values, self._types, strict=True):
            if value.__class__ not in self._kinds or value.dtype is not dtype or value.shape != shape:
                return None
            if not value.is_cpu or not value.is_contiguous() or value.is_neg() or value.is_conj():
                return None
        found = list(map(self._address, values))
        if any(address % alignment for address, (_, _, alignment) in zip(found, self._inputs, strict=True)):
            return None
        self._held = found
        return found

    def __call__(self, values: Sequence[Any]) -> list[Any] | None:
        return None if (found := self.addresses(values)) is None else self._results(found)

    def again(self, values: Sequence[Any]) -> list[Any] | None:
        # Most tensors lie where those of the call before lay: parameters stay, and freed memory is given out again.
        found = list(map(self._address, values))
        return self._results(found) if found == self._held else self(values)

    def _results(self, addresses: list[int]) -> list[Any]:
        results = [self._empty(shape, dtype=dtype, device="cpu") for shape, dtype in self._made]
        self._run(self._bound, self._session.pool, addresses, list(map(self._address, results)))
        return results


def lane_for(
    values: Sequence[Any], dtypes: Sequence[DType], session: Session, bound: Bound, outputs: Sequence[Type]
) -> Lane | None:
    """The lane for values like these; None where there is none."""
    arrays, tensors = all(type(value) is np.ndarray for value in values), all(is_torch(value) for value in values)
    if not arrays and not tensors:
        return None
    inputs = [(tuple(value.shape), dtype) for value, dtype in zip(values, dtypes, strict=True)]
    if arrays:
        lane = Lane(session, bound, inputs, outputs)
    elif all(torch_type(dtype) is not None for _, dtype in outputs):
        lane = TorchLane(session, bound, inputs, outputs)
    else:
        return None
    return None if lane.addresses(values) is None else lane


__all__ = ["Lane", "lane_for"]
