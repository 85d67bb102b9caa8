"""JAX's PJRT client for programs on several devices: XLA partitions them as their shardings say (Shardy).

With `gcomp.runtime.xla.client`, the only file that uses JAX's internals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.runtime.xla.client import (
    Array,
    DeviceArray,
    Executable,
    JaxRuntimeError,
    abstract,
    bridge,
    client,
    compile_error,
    give_back,
    jaxlib,
    result_handler,
    run_error,
    shardings,
    xla_client,
)
from gcomp.runtime.xla.forking import refuse_lost

jax: Any = import_module("jax")
_GONE = re.compile(r"Gloo|NCCL|[Cc]oordination ?[Ss]ervice|Connection closed")
"""What XLA says where another process does not answer."""
_COUNT_FLAG = re.compile(r"--xla_force_host_platform_device_count=\d+")


class SpreadExecutable(Executable):
    """A compiled program on the devices of a mesh. Arguments lie as `inputs` say, results as `outputs` do."""

    def __init__(self, loaded: Any, devices: Any) -> None:
        super().__init__(loaded, None)
        self.inputs = [shardings.GSPMDSharding(devices, s) for s in loaded.get_parameter_shardings()]
        self.outputs = [shardings.GSPMDSharding(devices, s) for s in loaded.get_output_shardings()]

    def run(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        results = self.loaded.execute_sharded(arguments)
        return results.consume_with_handlers(self._result_handlers)

    def declare(self, results: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        """Say the whole shapes and dtypes of the results: the program has those of one device."""
        self._result_handlers = [
            result_handler(abstract(shape, dtype), sharding, True)
            for (shape, dtype), sharding in zip(results, self.outputs, strict=True)
        ]

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        with told():
            return self.run(arguments)


@contextmanager
def told() -> Generator[None]:
    """Errors of JAX's as gcomp's."""
    try:
        yield
    except JaxRuntimeError as error:
        raise mesh_error(error) from None


def mesh_error(error: Exception) -> GcompError:
    """The error for a program that fails while several devices run it."""
    text = str(error)
    if _GONE.search(text) is None:
        return run_error(error)
    return GcompError(
        "another process is gone", why=text.strip().splitlines()[0][:300],
        fix="start all processes again; a training goes on from the state that was saved last",
    )  # fmt: skip


class MeshClient:
    """The devices of a mesh: of this process, or of all that `jax.distributed` joins."""

    def __init__(self, platform: str, count: int) -> None:
        """Raises UsageError where there are fewer devices."""
        make_virtual_devices(platform, count)
        self._one = client(platform)
        self.platform, self.version = platform, self._one.version
        self._backend = bridge.get_backend(platform)
        found = self._backend.devices()
        if len(found) < count:
            counted = (
                "JAX counts its devices when it starts, and it has started already." if self._one.on_host else None
            )
            more = (
                f"Set XLA_FLAGS=--xla_force_host_platform_device_count={count} before the process starts, or run the "
                "model first." if self._one.on_host else "Start processes on as many machines as have them together."
            )  # fmt: skip
            raise UsageError(
                f"The mesh has {count} devices, and there are {len(found)} of {platform}.",
                why=counted if self.processes == 1 else f"They are those of {self.processes} processes.",
                fix=more,
            )
        if self.processes > 1 and len(found) > count:
            raise UsageError(
                f"The mesh has {count} devices, and the processes have {len(found)} together.",
                why="Each process takes part in each call.", fix=f"Start processes that have {count} devices together.",
            )  # fmt: skip
        self.devices = jaxlib.DeviceList(tuple(found[:count]))

    @property
    def processes(self) -> int:
        """How many processes take part."""
        return bridge.process_count(self.platform)

    def compile(self, text: str, options: Mapping[str, str | int], arguments: int, results: int) -> SpreadExecutable:
        """Compile StableHLO text with shardings. Raises GcompError."""
        refuse_lost()
        try:
            loaded = self._backend.compile_and_load(text, self.devices, self._options(options, arguments, results))
        except JaxRuntimeError as error:
            raise compile_error(error, text) from None
        finally:
            give_back()
        return SpreadExecutable(loaded, self.devices)

    def _options(self, options: Mapping[str, str | int], arguments: int, results: int) -> Any:
        made = xla_client.CompileOptions()
        made.env_option_overrides = list(options.items())
        made.num_replicas, made.num_partitions = 1, len(self.devices)
        ids = np.array([[device.id for device in self.devices]])
        made.device_assignment = xla_client.DeviceAssignment.create(ids)
        build = made.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        # Where nothing is said of an input, a weight or an output, XLA says it.
        build.allow_spmd_sharding_propagation_to_parameters = [True] * arguments
        build.allow_spmd_sharding_propagation_to_output = [True] * results
        return made

    def place(self, array: Array, sharding: Any, *, copy: bool = False) -> DeviceArray:
        """The array on the devices; each process reads the parts of its own devices alone, and may share them.

        `copy`: nothing is shared, also between devices that hold the same part.
        """
        refuse_lost()

        def part(index: tuple[slice, ...]) -> Array:
            return np.array(array[index], order="C", copy=copy or None)

        with told(), jax.enable_x64(True):
            return jax.make_array_from_callback(array.shape, sharding, part)

    def move(self, array: DeviceArray, sharding: Any) -> DeviceArray:
        """A jax array, lying as the sharding says. Raises UnsupportedError where it is on other processes."""
        if array.sharding.is_equivalent_to(sharding, array.ndim):
            return array
        if array.sharding.device_set == sharding.device_set:
            with told(), jax.enable_x64(True):
                return jax.jit(_same, out_shardings=sharding)(array)
        if not array.is_fully_addressable:
            raise UnsupportedError(
                "A jax array lies on other devices than those of the model, on several processes.",
                why=f"It lies as {array.sharding}, and the model takes {sharding}.",
                fix="Place it so, or pass the whole array as NumPy's in each process.",
            )
        return self.place(np.asarray(array), sharding, copy=True)

    def wait(self, arrays: Sequence[DeviceArray]) -> None:
        """Wait until arrays are computed. Raises GcompError where another process is gone."""
        with told():
            for array in arrays:
                array.block_until_ready()

    def whole(self, array: DeviceArray) -> Array:
        """The whole array, which the processes put together where each has a part."""
        with told(), jax.enable_x64(True):
            if array.is_fully_addressable or array.is_fully_replicated:
                return np.asarray(array)
            utils: Any = import_module("jax.experimental.multihost_utils")
            return np.asarray(utils.process_allgather(array, tiled=True))


def _same(array: Any) -> Any:
    return array


def make_virtual_devices(platform: str, count: int) -> None:
    """Let the processor count as so many devices, where JAX has not started, and nobody has said how many."""
    said = _COUNT_FLAG.search(os.environ.get("XLA_FLAGS", "")) is not None
    if platform != "cpu" or said or bridge.backends_are_initialized():
        return
    if jax.config.jax_num_cpu_devices <= 0 and not jax.distributed.is_initialized():
        jax.config.update("jax_num_cpu_devices", count)


@lru_cache(maxsize=16)
def mesh_client(platform: str, count: int) -> MeshClient:
    """The client for so many devices of a platform. Raises UsageError where there are fewer."""
    refuse_lost()
    return MeshClient(platform, count)
