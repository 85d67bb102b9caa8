"""NVIDIA's driver library by ctypes: what the runtime asks of a GPU, and its answers as errors that say what to do.

Source: the CUDA driver API's reference, and `cuda.h` for the layouts of structures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import lru_cache
from typing import Any, Protocol

from gcomp.errors import GcompError, InternalError, UnsupportedError

LIBRARY = "libcuda.so.1"
"""What the driver is called where it is installed."""

OLDEST = 12_000
"""The oldest driver API, as the driver counts: clusters of blocks and launches with attributes."""

Address = int
Handle = int
Value = tuple[int, int]
"""An argument of a kernel: the number, and the bytes that it takes."""


class Driver(Protocol):
    """What the runtime asks of one GPU. Addresses are of its memory, handles are its own; work is queued on streams."""

    @property
    def architecture(self) -> str: ...
    @property
    def name(self) -> str: ...
    def enter(self) -> None: ...
    def allocate(self, size: int) -> Address: ...
    def release(self, address: Address) -> None: ...
    def load(self, binary: bytes, what: str) -> Handle: ...
    def function(self, module: Handle, name: str, shared: int, ctas: int) -> Handle: ...
    def unload(self, module: Handle) -> None: ...
    def stream(self) -> Handle: ...
    def wait(self, stream: Handle) -> None: ...
    def event(self) -> Handle: ...
    def mark(self, event: Handle, stream: Handle) -> None: ...
    def follow(self, stream: Handle, event: Handle) -> None: ...
    def reach(self, event: Handle) -> None: ...
    def milliseconds(self, first: Handle, last: Handle) -> float: ...
    def forget(self, event: Handle) -> None: ...
    def upload(self, target: Address, source: Address, size: int, stream: Handle) -> None: ...
    def download(self, target: Address, source: Address, size: int, stream: Handle) -> None: ...
    def copy(self, target: Address, source: Address, size: int, stream: Handle) -> None: ...
    def fill(self, target: Address, byte: int, size: int, stream: Handle) -> None: ...
    def launch(
        self, function: Handle, grid: tuple[int, int, int], threads: int, shared: int, ctas: int,
        arguments: Sequence[Value], stream: Handle,
    ) -> None: ...  # fmt: skip
    def close(self, stream: Handle) -> None: ...
    def begin(self) -> Handle: ...
    def end(self, stream: Handle) -> Handle: ...
    def abandon(self, stream: Handle) -> None: ...
    def replay(self, graph: Handle, stream: Handle) -> None: ...
    def drop(self, graph: Handle) -> None: ...


class LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute`: an identifier, and a value in a union of 64 bytes."""

    _fields_ = (("id", c_int), ("_pad", c_char * 4), ("value", c_uint64 * 8))


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("gridDimX", c_uint), ("gridDimY", c_uint), ("gridDimZ", c_uint),
        ("blockDimX", c_uint), ("blockDimY", c_uint), ("blockDimZ", c_uint),
        ("sharedMemBytes", c_uint), ("hStream", c_void_p), ("attrs", POINTER(LaunchAttribute)), ("numAttrs", c_uint),
    )  # fmt: skip


_CLUSTER, _SPREAD, _SCHEDULING = 4, 1, 5
"""Attributes of launches: the cluster's dimension; how clusters are spread, and that they are."""

_MAX_SHARED, _WIDE_CLUSTERS = 8, 14
"""Attributes of functions: bytes of shared memory, and whether clusters of more than eight blocks may be."""

_MAJOR, _MINOR = 75, 76
_RELAXED, _NON_BLOCKING = 2, 1
_UNASKED_SHARED = 48 << 10
"""Bytes of shared memory that a kernel may have without being asked for."""

_UPDATE = "Update NVIDIA's driver."
_MEANINGS: Mapping[int, tuple[str, str]] = {
    2: ("The GPU has not enough free memory.", "End other programs on it, or choose smaller sizes."),
    3: (
        "NVIDIA's driver does not run in this process, which was forked from one where it ran.",
        'Start processes with multiprocessing.get_context("spawn"), or fork before the first model is loaded.',
    ),
    4: ("NVIDIA's driver is shutting down.", "Do not call models while the process ends."),
    34: ("NVIDIA's driver is a stub, as toolkits have for linking.", "Install the driver itself."),
    46: ("The GPU is used exclusively by another process.", "End that, or choose another GPU."),
    100: ("There is no GPU that CUDA can use.", "Check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES."),
    101: ("There is no GPU of this number.", "Check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES."),
    200: ("The driver does not take a compiled kernel.", "Compile the model for this GPU, or update the driver."),
    209: ("A kernel was compiled for another GPU.", "Compile the model for this one."),
    218: ("The driver does not take a compiled kernel.", _UPDATE),
    222: ("A kernel was compiled by a newer compiler than the driver knows.", _UPDATE),
    802: ("The GPU is not ready yet.", "Wait until its services have started; see `nvidia-smi`."),
    803: ("Parts of NVIDIA's driver are of different versions.", "Restart the machine, or install the driver again."),
    804: ("NVIDIA's driver is too old for the libraries that are installed.", _UPDATE),
}
"""Error codes of the driver that a user can do something about: what happened, and what to do."""

_FATAL = "The process's work on the GPU is lost: start it again. If the model's inputs are sound, please report it."


class CudaDriver:
    """One GPU, through the driver's library. Its primary context is used, which other libraries share."""

    def __init__(self, library: Any, ordinal: int = 0) -> None:
        """`library` has the driver's functions as attributes. Raises UnsupportedError where there is no such GPU."""
        self._library = library
        self._functions: dict[str, Callable[..., int]] = {}
        self("cuInit", 0)
        self.version = self._number("cuDriverGetVersion")
        if self.version < OLDEST:
            major, minor = self.version // 1000, self.version % 1000 // 10
            raise UnsupportedError(
                "NVIDIA's driver is too old.",
                why=f"It knows CUDA {major}.{minor}, and gcomp needs {OLDEST // 1000}.{OLDEST % 1000 // 10}.",
                fix=_UPDATE,
            )
        device = self._number("cuDeviceGet", ordinal)
        name = ctypes.create_string_buffer(256)
        self("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode(errors="replace")
        major, minor = (self._number("cuDeviceGetAttribute", which, device) for which in (_MAJOR, _MINOR))
        self.architecture = f"sm_{major}{minor}"
        self._context = self._handle("cuDevicePrimaryCtxRetain", device)

    def __call__(self, function: str, *arguments: Any) -> None:
        """Call a function of the library. Raises GcompError for what it does not do."""
        code = self._function(function)(*arguments)
        if code:
            raise self._error(function, code)

    def enter(self) -> None:
        """Make this GPU the thread's own: other libraries may have chosen another one meanwhile."""
        self("cuCtxSetCurrent", c_void_p(self._context))

    # ---- memory ----

    def allocate(self, size: int) -> Address:
        """Memory on the GPU; its address is a multiple of 256."""
        self.enter()
        try:
            return self._handle("cuMemAlloc_v2", c_size_t(max(size, 1)))
        except UnsupportedError as error:
            free, total = c_size_t(), c_size_t()
            self("cuMemGetInfo_v2", byref(free), byref(total))
            why = f"{size:,} bytes are needed, and {free.value:,} of {total.value:,} are free on {self.name}."
            raise UnsupportedError(error.what, why=why, fix=error.fix) from None

    def release(self, address: Address) -> None:
        """Give memory back."""
        self.enter()
        self("cuMemFree_v2", c_uint64(address))

    def upload(self, target: Address, source: Address, size: int, stream: Handle) -> None:
        """Copy from the host's memory, which must stay as it is until the stream is there."""
        self("cuMemcpyHtoDAsync_v2", c_uint64(target), c_void_p(source), c_size_t(size), c_void_p(stream))

    def download(self, target: Address, source: Address, size: int, stream: Handle) -> None:
        """Copy to the host's memory."""
        self("cuMemcpyDtoHAsync_v2", c_void_p(target), c_uint64(source), c_size_t(size), c_void_p(stream))

    def copy(self, target: Address, source: Address, size: int, stream: Handle) -> None:
        """Copy within the GPU's memory."""
        self("cuMemcpyDtoDAsync_v2", c_uint64(target), c_uint64(source), c_size_t(size), c_void_p(stream))

    def fill(self, target: Address, byte: int, size: int, stream: Handle) -> None:
        """Set every byte."""
        self("cuMemsetD8Async", c_uint64(target), c_ubyte(byte), c_size_t(size), c_void_p(stream))

    # ---- kernels ----

    def load(self, binary: bytes, what: str) -> Handle:
        """A module from a cubin; `what` names it in errors."""
        self.enter()
        try:
            return self._handle("cuModuleLoadData", ctypes.c_char_p(binary))
        except GcompError as error:
            major, minor = self.version // 1000, self.version % 1000 // 10
            where = f"{what} on {self.name} ({self.architecture}), driver for CUDA {major}.{minor}"
            raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from None

    def function(self, module: Handle, name: str, shared: int, ctas: int) -> Handle:
        """A kernel of a module, allowed the shared memory and the clusters that it needs."""
        function = self._handle("cuModuleGetFunction", c_void_p(module), name.encode())
        for attribute, value in ((_MAX_SHARED, shared * (shared > _UNASKED_SHARED)), (_WIDE_CLUSTERS, int(ctas > 8))):
            if value:
                self("cuFuncSetAttribute", c_void_p(function), c_int(attribute), c_int(value))
        return function

    def unload(self, module: Handle) -> None:
        """Give a module back."""
        self.enter()
        self("cuModuleUnload", c_void_p(module))

    def launch(
        self, function: Handle, grid: tuple[int, int, int], threads: int, shared: int, ctas: int,
        arguments: Sequence[Value], stream: Handle,
    ) -> None:  # fmt: skip
        """Queue a kernel on `grid` clusters of `ctas` blocks each, one after the other in the first dimension."""
        values = [(c_ubyte * size).from_buffer_copy(_pack(value, size)) for value, size in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        attributes = (LaunchAttribute * 2)()
        if ctas > 1:
            attributes[0].id, attributes[1].id = _CLUSTER, _SCHEDULING
            ctypes.memmove(attributes[0].value, (c_uint * 3)(ctas, 1, 1), 12)
            attributes[1].value[0] = _SPREAD
        x, y, z = grid
        config = LaunchConfig(x * ctas, y, z, threads, 1, 1, shared, stream, attributes, 2 * (ctas > 1))
        self("cuLaunchKernelEx", byref(config), c_void_p(function), pointers, c_void_p(None))

    # ---- streams and graphs ----

    def stream(self) -> Handle:
        """A stream that waits for the default one, and that one for it."""
        self.enter()
        return self._handle("cuStreamCreate", c_uint(0))

    def wait(self, stream: Handle) -> None:
        """Block until the work of a stream is done."""
        self.enter()
        self("cuStreamSynchronize", c_void_p(stream))

    def event(self) -> Handle:
        """A point in the work of a stream, once it is marked."""
        self.enter()
        return self._handle("cuEventCreate", c_uint(0))

    def mark(self, event: Handle, stream: Handle) -> None:
        """Let an event be where a stream is now."""
        self("cuEventRecord", c_void_p(event), c_void_p(stream))

    def follow(self, stream: Handle, event: Handle) -> None:
        """Let a stream's further work wait for an event."""
        self("cuStreamWaitEvent", c_void_p(stream), c_void_p(event), c_uint(0))

    def reach(self, event: Handle) -> None:
        """Block until an event is reached."""
        self.enter()
        self("cuEventSynchronize", c_void_p(event))

    def milliseconds(self, first: Handle, last: Handle) -> float:
        """The time from one event to another, once that has come."""
        self.reach(last)
        found = c_float()
        self("cuEventElapsedTime", byref(found), c_void_p(first), c_void_p(last))
        return found.value

    def forget(self, event: Handle) -> None:
        """Give an event back."""
        self.enter()
        self("cuEventDestroy_v2", c_void_p(event))

    def close(self, stream: Handle) -> None:
        """Give a stream back; its work is done all the same."""
        self.enter()
        self("cuStreamDestroy_v2", c_void_p(stream))

    def begin(self) -> Handle:
        """A stream whose work is recorded instead of done. It does not wait for the default stream, nor disturb it."""
        self.enter()
        stream = self._handle("cuStreamCreate", c_uint(_NON_BLOCKING))
        self("cuStreamBeginCapture_v2", c_void_p(stream), c_int(_RELAXED))
        return stream

    def end(self, stream: Handle) -> Handle:
        """What was recorded, ready to be replayed. Gives the stream back."""
        try:
            graph = self._handle("cuStreamEndCapture", first=c_void_p(stream))
        finally:
            self.close(stream)
        try:
            found = c_void_p()
            self("cuGraphInstantiateWithFlags", byref(found), c_void_p(graph), c_uint64(0))
        finally:
            self("cuGraphDestroy", c_void_p(graph))
        return found.value or 0

    def abandon(self, stream: Handle) -> None:
        """Forget what was recorded, and give the stream back."""
        graph = c_void_p()
        # Its code is that of what went wrong before.
        self._function("cuStreamEndCapture")(c_void_p(stream), byref(graph))
        if graph.value:
            self("cuGraphDestroy", graph)
        self.close(stream)

    def replay(self, graph: Handle, stream: Handle) -> None:
        """Do what was recorded."""
        self("cuGraphLaunch", c_void_p(graph), c_void_p(stream))

    def drop(self, graph: Handle) -> None:
        """Give a graph back."""
        self.enter()
        self("cuGraphExecDestroy", c_void_p(graph))

    # ---- calls ----

    def _number(self, function: str, *arguments: int) -> int:
        found = c_int()
        self(function, byref(found), *map(c_int, arguments))
        return found.value

    def _handle(self, function: str, *arguments: Any, first: Any = None) -> Handle:
        found = c_void_p()
        self(function, *([] if first is None else [first]), byref(found), *arguments)
        return found.value or 0

    def _function(self, name: str) -> Callable[..., int]:
        if name not in self._functions:
            try:
                self._functions[name] = getattr(self._library, name)
            except AttributeError:
                raise UnsupportedError(
                    "NVIDIA's driver is too old.", why=f"It has no function {name}.", fix=_UPDATE
                ) from None
        return self._functions[name]

    def _error(self, function: str, code: int) -> GcompError:
        named, text = ctypes.c_char_p(), ctypes.c_char_p()
        if self._function("cuGetErrorName")(code, byref(named)) == 0:
            self._function("cuGetErrorString")(code, byref(text))
        said = " ".join(part.decode(errors="replace") for part in (named.value, text.value) if part)
        why = f"{function} says {code} {said}".strip()
        if code in _MEANINGS:
            what, fix = _MEANINGS[code]
            return UnsupportedError(what, why=why, fix=fix)
        return InternalError("The GPU did not do what it was asked.", why=why, fix=_FATAL)


def _pack(value: int, size: int) -> bytes:
    return (value % (1 << 8 * size)).to_bytes(size, "little")


@lru_cache
def driver(ordinal: int = 0) -> CudaDriver:
    """The GPU of a number, as CUDA counts those that are visible. Raises UnsupportedError where there is none."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise UnsupportedError(
            "There is no NVIDIA driver on this machine, so it cannot run models for GPUs.",
            why=str(error),
            fix="Run the model on a machine with a GPU, or compile it for `xla:cpu`.",
        ) from None
    return CudaDriver(library, ordinal)
