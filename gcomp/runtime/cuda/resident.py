"""Runs a plan whose state stays on the GPU: given away to each call, and replaced by what the call makes of it.

The state is brought there by the first call, so that a model loads, and its state is read and set, where there is no
GPU. The next state lies in the memory of the last one where the plan has it so, else in memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.runtime.cuda.arrays import Array, Intake, Kind, hand_over, hold_array, stream_of
from gcomp.runtime.cuda.device_array import DeviceArray
from gcomp.runtime.cuda.driver import Driver
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.executor import state_gone
from gcomp.runtime.plan import DeviceSegment, Plan

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording


class ResidentExecutor(CudaExecutor):
    """A plan with a state, called without it. Calls from several threads wait for each other."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array], opened: Callable[[], Driver] | None = None) -> None:
        """Raises ArtifactError when the plan is not valid."""
        super().__init__(plan, weights, opened)
        self._signature = plan.signature.public
        self._intake = Intake(self._signature)
        following = list(plan.signature.states.values())
        self._following = [plan.results[k] for k in following]
        self._made = [value for k, value in enumerate(plan.results) if k not in following]
        self._sources = plan.signature.sources
        self._state: Sequence[Array | DeviceArray] = ()
        self._lock, self._doubtful = Lock(), False

    def put_state(self, arrays: Sequence[Array]) -> None:
        """Set the state, in order of the inputs: to copies, which the next call brings to the GPU."""
        with self._lock:
            self._state, self._doubtful = [np.array(array, order="C") for array in arrays], False

    def get_state(self, index: int) -> Array:
        """A copy of one of the state's arrays. Raises InputError where it is gone."""
        with self._lock:
            self._refuse_gone()
            if isinstance(array := self._state[index], DeviceArray):
                self.device.driver.enter()
                for session in self.sessions:
                    session.settle()
            return np.array(array)

    def __call__(self, values: list[Any]) -> list[Any]:
        """What a call gives beside the state, which is at its next value then. Raises InputError, GcompError."""
        given, env, kind = self._taken_in(values)
        with self._lock:
            self._refuse_gone()
            gpu, stream = self.device.driver, stream_of(kind)
            gpu.enter()
            brought = [a if isinstance(a, DeviceArray) else DeviceArray.of(gpu, a) for a in self._state]
            self._state, state = brought, [hold_array(array) for array in brought]
            found = self._run([given[i] if i >= 0 else state[~i] for i in self._sources], env, kind)
            # What the caller gave is not the model's to keep, and what the model keeps is nobody else's.
            others = {i for i, source in enumerate(self._sources) if source >= 0}
            following: list[DeviceArray] = []
            for i in self._following:
                following.append(hand_over(gpu, found[i], Kind.DEVICE, stream, given=i in others))
                others.add(i)
            others.update(range(len(self._sources)))
            made = [hand_over(gpu, found[i], kind, stream, given=i in others) for i in self._made]
            self._state, self._doubtful = following, False
        return made

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Raises UnsupportedError: each call goes on from the last one's state."""
        raise UnsupportedError("the steps of a model that keeps a state are not timed")

    def _shared_bytes(self, step: DeviceSegment, outputs: Sequence[int]) -> int:
        return sum(outputs[k] for argument, k in step.aliases if self._sources[step.inputs[argument]] < 0)

    def _starting(self) -> None:
        self._doubtful = True  # until the next state is known

    def _kind(self, number: int, kind: Kind) -> Kind:
        return Kind.DEVICE if number in self._following else super()._kind(number, kind)

    def _refuse_gone(self) -> None:
        """Raises InputError when a call that did not end well may have used the state up."""
        if self._doubtful:
            raise state_gone()
