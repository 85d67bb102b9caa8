"""Runs a plan on the devices of a mesh: one program, which XLA partitions as its shardings say."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.errors import ArtifactError, GcompError, UnsupportedError
from gcomp.runtime.executor import Executor, state_gone
from gcomp.runtime.hosting import host_functions
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Shapes
from gcomp.runtime.xla import custom_calls, guard
from gcomp.runtime.xla.arrays import JAX, TORCH, Intake
from gcomp.runtime.xla.client import Array, ArrayImpl, DeviceArray, client, enable_lapack
from gcomp.runtime.xla.executor import declared_type
from gcomp.runtime.xla.mesh_client import MeshClient, SpreadExecutable, mesh_client
from gcomp.runtime.xla.options import check_options, choose, executables_kept, thread_count, use_threads

Env = dict[str, int]
_BINDINGS = 256


class MeshExecutor(Executor):
    """A plan of one segment, ready to be called on a mesh, with or without a state.

    Inputs of NumPy are whole in every process, which reads the parts of its own devices alone. Results of NumPy are
    whole, too; jax arrays lie on the devices.
    """

    def __init__(self, plan: Plan, weights: Mapping[str, Array], platform: str) -> None:
        """Raises ArtifactError for a plan that is not valid, UsageError where there are not so many devices."""
        plan.check(host_functions)
        if len(plan.steps) != 1 or not plan.segments:
            raise ArtifactError("The plan is not valid.", why="A program on a mesh has one segment.")
        (self._step,) = plan.segments
        check_options(self._step.options)
        self.template = plan.templates[self._step.text]
        if refused := custom_calls.refused_targets(custom_calls.targets_in(self.template.text)):
            raise ArtifactError("The program calls a custom function that gcomp does not allow.", why=refused[0][:80])
        self._plan, self._host_weights = plan, weights
        self._mesh: MeshClient = mesh_client(platform, math.prod(axis.size for axis in plan.mesh))
        self._whole, self._signature = plan.signature, plan.signature.public
        self._intake = Intake(self._signature, client(platform))
        self._bindings: Lru[Shapes, Env] = Lru(_BINDINGS)
        self._symbols = sorted(self.template.symbols)
        self._executables: Lru[tuple[int, ...], SpreadExecutable] = Lru(executables_kept())
        self._weights: dict[tuple[str, str], DeviceArray] = {}
        """The weights on the devices, by name and place."""
        self._state: list[Any] = []
        self._doubtful = False
        self._seconds = 0.0

    # ---- calls ----

    def __call__(self, values: list[Any]) -> list[Any]:
        shapes, kind = self._intake.recognise(values)
        env = self._bindings.get(shapes, lambda: self._signature.bind(shapes))
        executable = self._executable(env)
        results = self._run(executable, values)
        if kind == JAX:
            return results
        found = [self._mesh.whole(result) for result in results]
        return [_to_torch(array) for array in found] if kind == TORCH else found

    def _run(self, executable: SpreadExecutable, values: Sequence[Any]) -> list[DeviceArray]:
        """What a call gives beside the state, which is at its next value then."""
        if self._doubtful:
            self._refuse_gone()
        given = [values[i] if i >= 0 else self._state[~i] for i in self._whole.sources]
        arguments = [self._placed(value, executable.inputs[i]) for i, value in enumerate(given)]
        self._doubtful = bool(self._whole.states)
        try:
            results = executable([*arguments, *self._placed_weights(executable)])
        except GcompError as error:
            raise self._plan.blamed(error, self._step.text) from error.__cause__
        if self._mesh.processes > 1:
            # Whether the others are there shows in what comes of the call.
            self._mesh.wait(results)
        following = list(self._whole.states.values())
        self._state, self._doubtful = [results[k] for k in following], False
        return [result for k, result in enumerate(results) if k not in following]

    def _placed(self, value: Any, sharding: Any) -> DeviceArray:
        if value.__class__ is ArrayImpl:
            return self._mesh.move(value, sharding)
        return self._mesh.place(np.asarray(value), sharding, copy=True)

    def _placed_weights(self, executable: SpreadExecutable) -> list[DeviceArray]:
        """The weights, each placed once as the program takes it: parts of mapped files are read, and no more."""
        found: list[DeviceArray] = []
        shardings = executable.inputs[len(self._whole.inputs) :]
        for name, sharding in zip(self._step.weights, shardings, strict=True):
            key = name, str(sharding)
            if key not in self._weights:
                self._weights[key] = self._mesh.place(self._host_weights[name], sharding)
            found.append(self._weights[key])
        return found

    # ---- compiling ----

    def _executable(self, env: Mapping[str, int]) -> SpreadExecutable:
        return self._executables.get(tuple([env[s] for s in self._symbols]), lambda: self._compile(env))

    def _compile(self, env: Mapping[str, int]) -> SpreadExecutable:
        start = time.perf_counter()
        text = self.template.fill(env)
        options = choose(self._step.options, thread_count())
        parameters = len(self._step.inputs) + len(self._step.weights)
        try:
            targets = guard.check_program(text, foreign=self._plan.origin is not None, is_spread=True)
            if any(target.startswith("lapack_") for target in targets):
                enable_lapack()
            executable = self._mesh.compile(text, options, parameters, len(self._step.outputs))
        except GcompError as error:
            raise self._plan.blamed(error, self._step.text) from error.__cause__
        declared = [declared_type(value) for value in self._step.outputs]
        executable.declare([(tuple(dims.evaluate(s, env) for s in shape), dtype) for shape, dtype in declared])
        self._seconds += time.perf_counter() - start
        return executable

    def prepare(self, env: Mapping[str, int]) -> object:
        return self._executable(env)

    @property
    def seconds(self) -> float:
        return self._seconds

    @property
    def source(self) -> str:
        return f"XLA ({self._mesh.version}, {len(self._mesh.devices)} devices), on each device"

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """XLA's figures in bytes, of each device."""
        return self._executable(env).memory()

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """XLA's cost analysis, of each device."""
        return self._executable(env).cost()

    def partitioned(self, env: Mapping[str, int]) -> str:
        """The program that each device runs, as XLA made it."""
        return self._executable(env).hlo()

    def keep(self, count: int) -> None:
        self._executables.size = count

    def set_threads(self, count: int) -> None:
        use_threads(count)

    # ---- the state ----

    def put_state(self, arrays: Sequence[Array]) -> None:
        """Set the state, in order of the inputs. It is placed by the next call."""
        self._state, self._doubtful = [np.array(array) for array in arrays], False

    def get_state(self, index: int) -> Array:
        """A copy of one of the state's arrays, whole. Raises InputError where it is gone."""
        self._refuse_gone()
        value = self._state[index]
        return np.array(self._mesh.whole(value) if value.__class__ is ArrayImpl else value)

    def _refuse_gone(self) -> None:
        if any(value.__class__ is ArrayImpl and value.is_deleted() for value in self._state):
            raise state_gone()


def _to_torch(array: Array) -> Any:
    torch: Any = sys.modules["torch"]
    try:
        return torch.from_numpy(np.array(array))
    except TypeError as error:
        why = str(error)[:200]
        raise UnsupportedError(
            f"torch has no tensors of {array.dtype}.", why=why, fix="Pass NumPy arrays to get NumPy arrays."
        ) from None


__all__ = ["MeshExecutor"]
