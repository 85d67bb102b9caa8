"""XLA's compiler for GPUs without a GPU: JAX's plugin for CUDA compiles for a machine that is only described.

    pip install jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12

of jaxlib's own version. What it makes is looked at, and cannot run here.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

MISSING = "JAX's plugin for CUDA is not installed (pip install jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12)"
"""Why a test is skipped where `is_there` says no."""

_H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84942979072 shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 thread_dim_limit_x: 1024 thread_dim_limit_y: 1024
  thread_dim_limit_z: 64 device_vendor: "NVIDIA Corporation" device_address_bits: 64 name: "NVIDIA H100 80GB HBM3"
  driver_version: "12.9.0" runtime_version: "12.9.0" compile_time_toolkit_version: "12.9.0" dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""NVIDIA's data sheet in the words of XLA's `GpuTargetConfigProto`."""


def is_there() -> bool:
    """Whether the plugin is installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("jax_plugins", "jax_plugins.xla_cuda12"))


ENVIRONMENT = {
    "XLA_FLAGS": "--xla_gpu_autotune_level=0",  # kernels are chosen by rules: there is nothing to measure them on
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # the libraries that kernels are called from are not there
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
"""What must be set before JAX starts."""


@cache
def _devices(count: int) -> tuple[Any, ...]:
    topologies: Any = import_module("jax.experimental.topologies")
    return tuple(topologies.get_topology_desc("", "cuda", topology=f"1x1x{count}", target_config=_H100).devices)


def compile_for_gpus(text: str, count: int, arguments: int, results: int) -> Any:
    """What XLA makes of StableHLO text for so many GPUs. Raises jaxlib's JaxRuntimeError where it refuses."""
    mlir: Any = import_module("jax._src.interpreters.mlir")
    jaxlib: Any = import_module("jaxlib._jax")
    xla_client: Any = import_module("jaxlib.xla_client")
    devices, options = _devices(count), xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(count).reshape(1, count))
    if count > 1:
        build = options.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_parameters = [True] * arguments
        build.allow_spmd_sharding_propagation_to_output = [True] * results
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(text)
    return devices[0].client.compile(module, jaxlib.DeviceList(devices), options)


__all__ = ["ENVIRONMENT", "MISSING", "compile_for_gpus", "is_there"]
