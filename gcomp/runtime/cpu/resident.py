"""Runs a plan whose state stays in arrays of the model's own: written in place where the plan does, else swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.runtime.checks import check_results
from gcomp.runtime.cpu.arrays import OUT, Intake, Kind
from gcomp.runtime.cpu.executor import CpuExecutor
from gcomp.runtime.cpu.memory import ALIGNMENT, Array, result_array
from gcomp.runtime.executor import Executor, state_gone
from gcomp.runtime.plan import Plan

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

DType = np.dtype[Any]


class ResidentExecutor(CpuExecutor):
    """A plan with a state, called without it. Calls from several threads wait for each other."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array]) -> None:
        """Raises ArtifactError when the plan is not valid."""
        super().__init__(plan, weights)
        states = plan.signature.states
        self._signature = plan.signature.public
        self._intake = Intake(self._signature)
        self._sources = plan.signature.sources
        self._following = [plan.results[k] for k in states.values()]
        # Results beyond the outputs are what checks found.
        results = plan.results[: len(plan.signature.outputs)]
        self._made = [value for k, value in enumerate(results) if k not in set(states.values())]
        self._in_place = any(plan.signature.inputs[i].donated for i in states)
        self._state: list[Array] = []
        self._spare: dict[int, Array] = {}
        """Memory for the next state, by the number of its value: that of the state before."""
        self._lock, self._doubtful = Lock(), False

    def put_state(self, arrays: Sequence[Array]) -> None:
        """Set the state, in order of the inputs: to copies, which are the model's own."""
        with self._lock:
            self._state, self._doubtful = [_own(array) for array in arrays], False
            self._spare = {}

    def get_state(self, index: int) -> Array:
        """A copy of one of the state's arrays. Raises InputError where it is gone."""
        with self._lock:
            self._refuse_gone()
            return self._state[index].copy()

    def __call__(self, values: list[Any]) -> list[Any]:
        """What a call gives beside the state, which is at its next value then. Raises InputError, GcompError."""
        arrays, kind = self._intake.take(values)
        with self._lock:
            self._refuse_gone()
            env = self._bound(arrays)
            held = self._state
            given = [arrays[i] if i >= 0 else held[~i] for i in self._sources]
            found = self._run(given, env, kind)
            if self._plan.checks:
                check_results([found[i] for i in self._plan.results], self._plan.checks)
            made = self._given_out(found, len(given), kind)
            self._keep(found, arrays)
            self._doubtful = False
        return made

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Raises UnsupportedError: each call goes on from the last one's state."""
        Executor.profile(self, values, recording)

    def again(self, values: list[Any]) -> list[Any]:
        """As a call."""
        return self(values)

    def _given_out(self, found: Sequence[Array], given: int, kind: Kind) -> list[Any]:
        """The results for the caller: what is the model's, or the caller's already, as a copy."""
        taken = {*range(given), *self._following}
        made: list[Any] = []
        for i in self._made:
            made.append(OUT[kind](np.array(found[i], order="C") if i in taken else found[i]))
            taken.add(i)
        return made

    def _keep(self, found: Sequence[Array], callers: Sequence[Array]) -> None:
        """Make the results the next state. Arrays that belong to the caller, or occur twice, are copied."""
        taken = {id(array) for array in callers}
        following: list[Array] = []
        for i in self._following:
            following.append(_own(found[i]) if id(found[i]) in taken else found[i])
            taken.add(id(found[i]))
        kept = {id(array) for array in following}
        self._spare = {i: old for i, old in zip(self._following, self._state, strict=True) if id(old) not in kept}
        self._state = following

    def _room(self, number: int, shape: tuple[int, ...], dtype: DType, kind: Kind) -> Array:
        spare = self._spare.pop(number, None)
        if spare is not None and (spare.shape, spare.dtype) == (shape, dtype):
            return spare
        return super()._room(number, shape, dtype, kind)

    def _starting(self) -> None:
        self._doubtful = self._in_place  # until the next state is known

    def _lane_of(self, values: Sequence[Any], env: Mapping[str, int]) -> None:
        """There is none: the state is an argument, too."""

    def _refuse_gone(self) -> None:
        """Raises InputError when a call that did not end well may have used the state up."""
        if self._doubtful:
            raise state_gone()


def _own(array: Array) -> Array:
    """A copy that is the model's."""
    copy = result_array(array.shape, array.dtype, ALIGNMENT)
    copy[...] = array
    return copy


__all__ = ["ResidentExecutor"]
