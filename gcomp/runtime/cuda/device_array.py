"""Arrays on the GPU, from whatever library has them, and for it: `__cuda_array_interface__` and DLPack.

Source: version 3 of the CUDA array interface (Numba's documentation), and `dlpack.h` for the layouts of tensors.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, cast

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.runtime.cuda.driver import Address, Driver, Handle

DType = np.dtype[Any]
Array = np.ndarray[Any, Any]

CUDA = 2
"""DLPack's number for memory of CUDA."""

_DEFAULT = 1
"""The default stream in both protocols."""


class DeviceArray:
    """An array in a GPU's memory, C-contiguous. Libraries take it by DLPack or as what `__cuda_array_interface__` says;
    NumPy by `numpy.asarray`, as a copy."""

    def __init__(
        self, driver: Driver, address: Address, shape: tuple[int, ...], dtype: DType, owner: object = None
    ) -> None:
        """`owner` is kept alive as long as this is."""
        self.address, self.shape, self.dtype = address, shape, dtype
        self._driver, self._owner = driver, owner

    @staticmethod
    def empty(driver: Driver, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """An array in memory of its own."""
        address = driver.allocate(math.prod(shape) * dtype.itemsize)
        made = DeviceArray(driver, address, shape, dtype)
        weakref.finalize(made, driver.release, address)
        return made

    @staticmethod
    def of(driver: Driver, array: Array) -> DeviceArray:
        """A copy of an array of the host."""
        made = DeviceArray.empty(driver, array.shape, array.dtype)
        upload(driver, made.address, array)
        return made

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array on the GPU can only be copied to the host")
        result = np.empty(self.shape, self.dtype)
        stream = self._driver.stream()
        if result.nbytes:
            self._driver.download(result.ctypes.data, self.address, result.nbytes, stream)
        self._driver.wait(stream)
        self._driver.close(stream)
        return result if dtype is None else result.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3, "stream": None,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return _capsule(self)

    def __repr__(self) -> str:
        return f"<gcomp array on the GPU: {self.dtype}{list(self.shape)}>"


def upload(driver: Driver, address: Address, array: Array) -> None:
    """Copy an array of the host to an address; it is there when this returns."""
    if array.nbytes:
        array, stream = np.ascontiguousarray(array), driver.stream()
        driver.upload(address, array.ctypes.data, array.nbytes, stream)
        driver.wait(stream)
        driver.close(stream)


class Foreign:
    """Another library's array on the GPU: where it is, and what must stay alive meanwhile."""

    def __init__(
        self, address: Address, shape: tuple[int, ...], dtype: DType | None, contiguous: bool, owner: object,
        stream: Handle | None = None, readonly: bool = False,
    ) -> None:  # fmt: skip
        self.address, self.shape, self.dtype, self.contiguous = address, shape, dtype, contiguous
        self.owner, self.stream, self.readonly = owner, stream, readonly


def foreign(value: Any) -> Foreign | None:
    """An array on the GPU by what it says of itself; None for what is not there.

    Its work is on a stream to be waited for, or on the default one, for which the session's stream waits.
    """
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        return _by_interface(value, cast("dict[str, Any]", interface))
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == CUDA:
        # 1 is the default stream: it is made to wait for what the library still does.
        return _by_dlpack(value.__dlpack__(stream=_DEFAULT))
    return None


def _by_interface(value: Any, interface: dict[str, Any]) -> Foreign:
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    contiguous = strides is None or tuple(strides) == _strides(shape, dtype.itemsize) or 0 in shape
    stream = interface.get("stream")
    other = stream if isinstance(stream, int) and stream not in (0, _DEFAULT) else None
    address, readonly = interface["data"]
    return Foreign(address or 0, shape, dtype, contiguous, value, other, bool(readonly))


def _strides(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    return tuple(item * math.prod(shape[i + 1 :]) for i in range(len(shape)))


# ---- DLPack ----


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """`DLManagedTensor`."""


_Deleter = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter))  # pyright: ignore[reportPrivateUsage]

_CODES: dict[str, tuple[int, int]] = {
    "i1": (6, 8), "bf16": (4, 16), "f16": (2, 16), "f32": (2, 32), "f64": (2, 64),
    **{f"i{n}": (0, n) for n in (8, 16, 32, 64)}, **{f"ui{n}": (1, n) for n in (8, 16, 32, 64)},
    "complex<f32>": (5, 64), "complex<f64>": (5, 128), "f8E4M3FN": (10, 8), "f8E5M2": (12, 8),
}  # fmt: skip
"""Element type -> DLPack's code and bits."""

_NEW, _USED = b"dltensor", b"used_dltensor"


def _python(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of Python's own library, which is called with the interpreter's lock held."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_pointer = _python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_rename = _python("PyCapsule_SetName", c_int32, py_object, c_char_p)
_new = _python("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
# Of a capsule that is being deleted no reference may be taken.
_dying_is = _python("PyCapsule_IsValid", c_int32, c_void_p, c_char_p)
_dying_pointer = _python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


class _Imported:
    """A managed tensor that was taken over, until it is deleted as its maker wants it."""

    def __init__(self, managed: Any) -> None:
        def delete() -> None:
            if managed.contents.deleter:
                managed.contents.deleter(managed)

        weakref.finalize(self, delete)


def _by_dlpack(capsule: Any) -> Foreign:
    managed = ctypes.cast(_pointer(capsule, _NEW), POINTER(_Managed))
    _rename(capsule, _USED)
    owner = _Imported(managed)
    tensor = managed.contents.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    code = (tensor.code, tensor.bits)
    dtype = next((DTYPES[name] for name, known in _CODES.items() if known == code and tensor.lanes == 1), None)
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _strides(shape, 1)
    contiguous = strides == _strides(shape, 1) or 0 in shape
    return Foreign((tensor.data or 0) + tensor.byte_offset, shape, dtype, contiguous, owner)


_held: dict[int, tuple[object, ...]] = {}
"""What exported tensors need, by their address, until they are deleted."""


def _delete(managed: Any) -> None:
    _held.pop(ctypes.addressof(managed.contents), None)


_deleter = _Deleter(_delete)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _forget(capsule: int) -> None:
    """Delete the DLPack tensor of a capsule that was never consumed."""
    if _dying_is(capsule, _NEW):
        _held.pop(_dying_pointer(capsule, _NEW), None)


def _capsule(array: DeviceArray) -> Any:
    """An array as a new capsule, which keeps it alive."""
    rank = len(array.shape)
    shape = (c_int64 * rank)(*array.shape)
    strides = (c_int64 * rank)(*_strides(array.shape, 1))
    name = next((name for name, dtype in DTYPES.items() if dtype == array.dtype and name in _CODES), None)
    if name is None:
        raise BufferError(f"DLPack has no name for {array.dtype}")
    code, bits = _CODES[name]
    managed = _Managed()
    managed.tensor = _Tensor(array.address or None, CUDA, 0, rank, code, bits, 1, shape, strides, 0)
    managed.deleter = _deleter
    _held[ctypes.addressof(managed)] = (managed, shape, strides, array)
    return _new(ctypes.addressof(managed), _NEW, ctypes.cast(_forget, c_void_p))
