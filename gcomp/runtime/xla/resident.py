"""Runs a plan whose state stays on the device: given away to each call, and replaced by what the call makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.runtime.checks import Check, check_results
from gcomp.runtime.executor import state_gone
from gcomp.runtime.plan import DeviceSegment, Plan
from gcomp.runtime.signature import Signature
from gcomp.runtime.xla.arrays import NUMPY, Intake
from gcomp.runtime.xla.client import (
    Array,
    Client,
    DeviceArray,
    Executable,
    JaxRuntimeError,
    abstract,
    client,
    run_error,
)
from gcomp.runtime.xla.dispatch import FastPath, dispatcher, list_structure
from gcomp.runtime.xla.executor import Env, Segment, XlaExecutor
from gcomp.runtime.xla.lanes import AS_THEY_ARE, NumpyLane

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

Run = Callable[[list[DeviceArray]], Sequence[DeviceArray]]


class DeviceState:
    """The arrays that a model keeps, and where they stand among the inputs and outputs of its plan.

    A plan with checks is given none of its memory away: where a check fails, the state is what it was.
    """

    def __init__(self, signature: Signature, client: Client, checks: Sequence[Check] = ()) -> None:
        self._client, self._lock, self._checks = client, Lock(), checks
        self._following = list(signature.states.values())
        self._made = [k for k in range(len(signature.outputs)) if k not in set(self._following)]
        self._sources = signature.sources
        self._arrays: list[DeviceArray] = []
        self._doubtful = False
        """Whether the last call did not end well: the state may be used up."""

    def put(self, arrays: Sequence[Array]) -> None:
        """Set the state. The device gets copies, which it owns and may write to."""
        placed = [self._client.put(np.asarray(array, order="C"), copy=True) for array in arrays]
        for array in placed:
            array.block_until_ready()  # the caller may change its own
        self._arrays, self._doubtful = placed, False

    def get(self, index: int) -> Array:
        """A copy of one of the arrays. Raises InputError where it is gone."""
        with self._lock:
            self._refuse_gone()
            try:
                return np.array(self._arrays[index])
            except JaxRuntimeError as error:
                raise run_error(error) from None

    def advance(self, given: Sequence[DeviceArray], run: Run) -> list[DeviceArray]:
        """What a call gives beside the state, which is at its next value then. Raises GcompError."""
        with self._lock:
            if self._doubtful:
                self._refuse_gone()
            held, self._doubtful = self._arrays, True
            results = run([given[i] if i >= 0 else held[~i] for i in self._sources])
            if self._checks:
                results = check_results(list(results), self._checks)
            self._arrays, self._doubtful = [results[k] for k in self._following], False
        return [results[k] for k in self._made]

    def _refuse_gone(self) -> None:
        """Raises InputError when a call that did not end well has used the state up."""
        if any(array.is_deleted() for array in self._arrays):
            raise state_gone()


class Whole(Segment):
    """The segment of a plan that has no other, as its callers see it: without the state."""

    state: DeviceState

    def launch(self, executable: Executable, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results of a call beside the state."""
        if executable.lane is None:
            executable.lane = _dispatch(executable, self._client)
        return self.state.advance(arguments, lambda all_: self.run_whole(executable.lane, all_))

    def run_whole(self, call: Callable[..., list[DeviceArray]], arguments: list[DeviceArray]) -> list[DeviceArray]:
        """All results, for all arguments. Raises GcompError."""
        try:
            return call(*arguments, *self.weights)
        except JaxRuntimeError as error:
            raise self._blamed(run_error(error), self.step.text) from None


def _dispatch(executable: Executable, device: Client) -> Callable[..., list[DeviceArray]]:
    """An executable called by JAX's dispatcher, which makes many results faster than Python can take them apart.

    It places arrays of NumPy faster, too: those whose types it leaves alone (`AS_THEY_ARE`) come as they are.
    """
    parameters, results = executable.types()
    outputs = [abstract(shape, dtype) for shape, dtype in results]
    path = FastPath(executable, list_structure(len(outputs)), outputs, len(parameters))

    def run(*arguments: DeviceArray | Array) -> list[DeviceArray]:
        return executable([device.put(x) if x.__class__ is np.ndarray else x for x in arguments])

    def miss(*arguments: DeviceArray | Array) -> tuple[list[DeviceArray], FastPath]:
        return run(*arguments), path

    return dispatcher(run, miss, (), ())


class ResidentExecutor(XlaExecutor):
    """A plan with a state, called without it."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array], platform: str) -> None:
        """Raises ArtifactError when the plan is not valid or asks for what is not allowed."""
        self._state = DeviceState(plan.signature, client(platform), plan.checks)
        super().__init__(plan, weights, platform)
        self._signature = plan.signature.public
        self._intake = Intake(self._signature, self._client)
        self._lanes = {NUMPY: partial(NumpyLane, passed=AS_THEY_ARE)}

    def _segment(self, step: DeviceSegment, kept: int) -> Segment:
        if not self._plan.is_single:
            return super()._segment(step, kept)
        segment = Whole(self._plan, step, self._client, kept)
        segment.state = self._state
        return segment

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Raises UnsupportedError: each call goes on from the last one's state."""
        raise UnsupportedError("the steps of a model that keeps a state are not timed")

    def put_state(self, arrays: Sequence[Array]) -> None:
        """Set the state, in order of the inputs."""
        self._state.put(arrays)

    def get_state(self, index: int) -> Array:
        """A copy of one of the state's arrays."""
        return self._state.get(index)

    @property
    def bare(self) -> None:
        """None: the state is an argument, too."""
        return None

    def _run_steps(self, arguments: list[DeviceArray], env: Env) -> list[DeviceArray]:
        run = super()._run_steps
        return self._state.advance(arguments, lambda all_: run(all_, env))


__all__ = ["ResidentExecutor", "Whole"]
