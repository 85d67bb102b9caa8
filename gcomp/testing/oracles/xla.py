"""XLA's CPU backend as an oracle: an independent compiler, and no definition of what is right.

Known deviations from docs/guides/semantics.md: it flushes denormals, rewrites algebra (`log(exp(x))` is `x`, `x + 0`
keeps
-0, `x / 3` is `x * (1 / 3)`, `sqrt(x * x)` is `x`), contracts multiply and add, reassociates sums, and approximates
elementary functions by a few ulp. So compare with bounds, and not on denormals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from gcomp.testing.oracles.process import WorkerOracle

Array = np.ndarray[Any, Any]


class XlaOracle(WorkerOracle):
    """`XlaOracle().run(text, inputs)`: the outputs as XLA:CPU computes them, or an OracleFailure."""

    EVALUATOR = "xla"


def make_evaluator() -> Callable[[str, Sequence[Array]], list[Array]]:
    """The evaluator, for the worker process; imports jax."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    backend: Any = cast(Any, import_module("jax._src.xla_bridge")).get_backend("cpu")
    device: Any = backend.local_devices()[0]
    devices: Any = cast(Any, import_module("jaxlib._jax")).DeviceList((device,))

    def evaluate(text: str, inputs: Sequence[Array]) -> list[Array]:
        executable: Any = backend.compile_and_load(text, devices)
        arguments = [jax.device_put(np.array(x), device) for x in inputs]
        sharded: Any = executable.execute_sharded(arguments)
        return [np.array(shards[0]) for shards in sharded.disassemble_into_single_device_arrays()]

    return evaluate
