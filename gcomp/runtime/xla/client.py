"""JAX's PJRT client: compiling text, placing arrays, running executables.

Everything that gcomp uses of JAX's internals is here, typed, so that a new jaxlib can break only this file, and
`mesh_client` for several devices.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from gcomp.errors import GcompError, InternalError, UnsupportedError
from gcomp.runtime.xla.forking import refuse_lost
from gcomp.runtime.xla.options import settle_threads

# JAX's inner modules carry no types.
core: Any = import_module("jax._src.core")
bridge: Any = import_module("jax._src.xla_bridge")
shardings: Any = import_module("jax._src.sharding_impls")
result_handler: Any = import_module("jax._src.interpreters.pxla").global_aval_to_result_handler
jaxlib: Any = import_module("jaxlib._jax")
xla_client: Any = import_module("jaxlib.xla_client")

Array = np.ndarray[Any, Any]
ArrayType = tuple[tuple[int, ...], np.dtype[Any]]
DeviceArray = Any
"""A `jax.Array` on one device."""

ArrayImpl: type[Any] = jaxlib.ArrayImpl
JaxRuntimeError: type[Exception] = jaxlib.JaxRuntimeError
VERSION: str = import_module("jaxlib.version").__version__
_ZERO_COPY: Any = jaxlib.HostBufferSemantics.ZERO_COPY


class Executable:
    """A compiled program. Arguments must have exactly the shapes and types of its parameters: XLA checks only sizes."""

    def __init__(self, loaded: Any, sharding: Any) -> None:
        self.loaded, self.sharding = loaded, sharding
        """JAX's own executable, and where its arguments and results lie."""
        self._execute = loaded.execute_sharded
        self._handlers: list[Any] | None = None
        """What makes results arrays in C++, once the first call has shown their types."""
        self.lane: Any = None
        """What calls it fastest with NumPy arrays, once there is such a thing."""

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run it; donated arguments are deleted. Results may still be under way. Raises GcompError."""
        try:
            return self.run(arguments)
        except JaxRuntimeError as error:
            raise run_error(error) from None

    def run(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """As a call, but what goes wrong is JAX's own error."""
        results = self._execute(arguments)
        if self._handlers is not None:
            return results.consume_with_handlers(self._handlers)
        arrays: list[DeviceArray] = [shards[0] for shards in results.disassemble_into_single_device_arrays()]
        # Results are no more bound to the device than those of `jax.jit`: bound ones are another type of arguments.
        self._handlers = [result_handler(array.aval, self.sharding, False) for array in arrays]
        return [handle([array]) for handle, array in zip(self._handlers, arrays, strict=True)]

    def types(self) -> tuple[list[ArrayType], list[ArrayType]]:
        """Shape and dtype of each parameter and of each result, as compiled."""
        (module,) = self.loaded.hlo_modules()
        shape = xla_client.XlaComputation(module.as_serialized_hlo_module_proto()).program_shape()
        result = shape.result_shape()
        results = result.tuple_shapes() if result.is_tuple() else [result]
        return _types(shape.parameter_shapes()), _types(results)

    def memory(self) -> dict[str, int]:
        """XLA's own figures in bytes: arguments, outputs, temporaries, and what outputs share with arguments."""
        stats = self.loaded.get_compiled_memory_stats()
        return {
            "arguments": stats.argument_size_in_bytes,
            "outputs": stats.output_size_in_bytes,
            "temporaries": stats.temp_size_in_bytes,
            "shared": stats.alias_size_in_bytes,
        }

    def cost(self) -> dict[str, float]:
        """XLA's cost analysis: `flops`, `bytes accessed`, `transcendentals`, ..."""
        return dict(cast("Mapping[str, float]", self.loaded.cost_analysis()))

    def hlo(self) -> str:
        """The optimized program that XLA made, as text."""
        return "\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes | None:
        """The executable as bytes that `Client.deserialize` reads, where XLA can write it. They hold native code."""
        try:
            return cast(bytes, self.loaded.serialize())
        except (JaxRuntimeError, ValueError):
            return None


_INSTALL: Mapping[str, str] = {
    "cuda": "Run it on a machine with a GPU of NVIDIA's, with JAX's plugin for it (pip install 'jax[cuda12]'), or "
    "compile the model for cpu."
}
"""What to do where a platform is not there."""


class Client:
    """One device of JAX's client for a platform (`cpu`, `cuda`)."""

    def __init__(self, platform: str) -> None:
        try:
            self._backend = bridge.get_backend(platform)
        except RuntimeError as error:
            raise UnsupportedError(
                f"There is no XLA device of the kind `{platform}` here.",
                why=str(error).splitlines()[0],
                fix=_INSTALL.get(platform, "Load a model that was compiled for another target."),
            ) from None
        self.platform, self.on_host = platform, platform == "cpu"
        """`on_host`: the device computes in the host's memory."""
        self.device: Any = self._backend.local_devices()[0]
        self._devices = [self.device]
        self._device_list = jaxlib.DeviceList((self.device,))
        self.to_dlpack: Callable[[DeviceArray, None], object] = jaxlib.buffer_to_dlpack_managed_tensor
        self._sharding = shardings.SingleDeviceSharding(self.device)
        self.version = f"jaxlib {VERSION}, {self._backend.platform_version}"

    def compile(self, text: str, options: Mapping[str, str | int]) -> Executable:
        """Compile StableHLO text. Raises GcompError."""
        refuse_lost()
        try:
            loaded = self._backend.compile_and_load(text, self._device_list, _options(options))
        except JaxRuntimeError as error:
            raise compile_error(error, text) from None
        finally:
            give_back()
        return Executable(loaded, self._sharding)

    def deserialize(self, data: bytes, options: Mapping[str, str | int]) -> Executable | None:
        """The executable that `serialize` wrote, or None when it is not one for this machine. Runs its code."""
        refuse_lost()
        try:
            loaded = self._backend.deserialize_executable(data, self._device_list, _options(options))
        except (JaxRuntimeError, ValueError):
            return None
        finally:
            give_back()
        return Executable(loaded, self._sharding)

    def put(self, array: Array, *, copy: bool = False) -> DeviceArray:
        """An array on the device; it shares memory when it is contiguous, 64-byte aligned and of whole bytes.

        As results are, it is no more bound to the device than arrays of JAX's own.
        """
        refuse_lost()
        aval = abstract(array.shape, array.dtype)
        return jaxlib.batched_device_put(aval, self._sharding, [array], self._devices, False, copy, _ZERO_COPY, True)

    def placer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[Array], DeviceArray]:
        """`put` for arrays of one shape and dtype."""
        aval, sharding, devices, place = (
            abstract(shape, dtype),
            self._sharding,
            self._devices,
            jaxlib.batched_device_put,
        )
        return lambda array: place(aval, sharding, [array], devices, True, False, _ZERO_COPY, True)

    def shares(self, array: Array, placed: DeviceArray) -> bool:
        """Whether a device array uses the memory of the array that it was made from."""
        return placed.unsafe_buffer_pointer() == array.ctypes.data

    def take(self, array: DeviceArray) -> DeviceArray:
        """A jax array on this device and in row-major layout; the same object where it already is."""
        if array.sharding == self._sharding and array._pjrt_layout == default_layout(self, array.ndim, array.dtype):
            return array
        return self.put(np.asarray(array))

    def fingerprint(self) -> str:
        """A hash of what native code depends on: jaxlib, the platform, and the processor's features."""
        parts = [self.version, self.platform, str(getattr(self.device, "device_kind", "")), _processor()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def raw_layout(self, rank: int, dtype: np.dtype[Any]) -> Any:
        """The layout that executables expect of their arguments."""
        return self._backend.get_default_layout(dtype, (1,) * rank, self.device)


def client(platform: str) -> Client:
    """The client of a platform. Raises UnsupportedError where there is none, UsageError in a forked process."""
    refuse_lost()
    settle_threads()
    return _start_client(platform)


@lru_cache(maxsize=4)
def _start_client(platform: str) -> Client:
    return Client(platform)


@lru_cache(maxsize=4096)
def abstract(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """JAX's abstract value of a shape and dtype."""
    return core.ShapedArray(shape, dtype)


@lru_cache(maxsize=1024)
def default_layout(owner: Client, rank: int, dtype: np.dtype[Any]) -> Any:
    """The row-major layout."""
    return owner.raw_layout(rank, dtype)


@lru_cache(maxsize=1)
def enable_lapack() -> None:
    """Let programs call jaxlib's dense linear algebra; without this, such a call would jump to nowhere."""
    import_module("jaxlib.cpu._lapack").initialize()


def register(name: str, capsule: object) -> None:
    """Give programs a function of the host's to call: a capsule of its address."""
    xla_client.register_custom_call_target(name, capsule, platform="cpu", api_version=0)


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int]:
    """The C library's function that gives free memory back, where it has one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return lambda _: 0


def give_back() -> None:
    """Give memory that is free back to the system: compilers leave tens of megabytes, which C's library would keep."""
    _malloc_trim()(0)


def _types(shapes: Sequence[Any]) -> list[ArrayType]:
    if odd := [shape for shape in shapes if not shape.is_array()]:
        # Asking a token for its dimensions would end the process.
        raise InternalError("The program takes or gives something that is no tensor.", why=str(odd[0])[:200])
    return [(tuple(shape.dimensions()), shape.numpy_dtype()) for shape in shapes]


def dlpack_of(array: DeviceArray) -> object:
    """A DLPack capsule that shares a device array's memory."""
    return jaxlib.buffer_to_dlpack_managed_tensor(array, None)


def is_tracer(value: object) -> bool:
    """Whether a value is JAX's stand-in for an array while it traces a function."""
    return isinstance(value, core.Tracer)


def _options(options: Mapping[str, str | int]) -> Any:
    compile_options = xla_client.CompileOptions()
    compile_options.env_option_overrides = list(options.items())
    return compile_options


def _processor() -> str:
    """The processor's feature flags; which machine it is, where the system does not list them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith(("flags", "Features", "model name"))]
    except OSError:
        return " ".join(platform.uname())
    return platform.machine() + "".join(sorted(set(lines)))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__


def compile_error(error: Exception, program: str) -> GcompError:
    """The error for a program that XLA does not compile; names the op where XLA does."""
    text = _first_line(error)
    place = re.search(r" -:(\d+):\d+: error: (.*)", text)
    where = program.split("\n")[int(place[1]) - 1].strip()[:300] if place else None
    why = place[2] if place else text
    if text.startswith(("UNIMPLEMENTED", "RESOURCE_EXHAUSTED")) or _UNSUPPORTED.search(text):
        fix = "Rewrite the model without it, or choose another target."
        return UnsupportedError("XLA does not support a part of the program.", where=where, why=why, fix=fix)
    return InternalError("XLA refused the program that gcomp made.", where=where, why=why, fix="Please report this.")


_UNSUPPORTED = re.compile(r"failed to legalize|can't be translated|not supported|Expected element type|not implemented")


def run_error(error: Exception) -> GcompError:
    """The error for a program that fails while it runs."""
    text = _first_line(error)
    if text.startswith("RESOURCE_EXHAUSTED"):
        fix = "Use smaller inputs, or free memory."
        return UnsupportedError("There is not enough memory for this call.", why=text, fix=fix)
    return InternalError("XLA failed while it ran the program.", why=text, fix="Please report this.")
