"""Models with a state: what a call changes stays on the device, and is the next call's input.

step = gcomp.load("step.gcomp")
loss = step(images, labels)  # the parameters in `step.state` have moved
step.save_state("params.safetensors")
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.errors import InputError, UnsupportedError, did_you_mean
from gcomp.runtime.bucketed import BucketedModel
from gcomp.runtime.executor import Array, Executor, StatefulExecutor
from gcomp.runtime.manifest import InputSpec, initial_name
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from gcomp.runtime.safetensors import read_arrays, write_arrays
from gcomp.runtime.signature import Signature, describe


class State(Mapping[str, Array]):
    """A model's state by name, as it is now. Arrays are copies: they stay as they are when the model goes on."""

    def __init__(self, specs: Mapping[str, InputSpec], executor: StatefulExecutor) -> None:
        self._specs, self._executor = specs, executor
        self._places = {name: i for i, name in enumerate(specs)}

    def __getitem__(self, name: str) -> Array:
        return self._executor.get_state(self._places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}: {describe(spec)}" for name, spec in self._specs.items())
        return f"<state {listed}>"


class StatefulModel(Model):
    """A model that keeps a state on the device: parameters, moments, a counter.

    A call takes and gives all but the state, and sets the state to its next value, in place where the target can. A
    call that fails leaves the state as it was, or says from then on that it is gone.
    """

    def _start(self) -> tuple[Executor, Signature]:
        executor = self.on.stateful_executor(self.plan, self.weights)
        signature = self.plan.signature
        self._specs = {signature.inputs[i].name: signature.inputs[i] for i in signature.states}
        self._resident = executor
        self._state = State(self._specs, executor)
        self.reset()
        return executor, signature.public

    @property
    def state(self) -> State:
        """The state by name: arrays that are copies of what is on the device now."""
        return self._state

    def reset(self) -> None:
        """Set the state to its first value, that of the artifact."""
        self._resident.put_state([self._first(spec) for spec in self._specs.values()])

    def _first(self, spec: InputSpec) -> Array:
        name = initial_name(spec.name)
        if name in self.weights:
            return self.weights[name]
        return np.zeros(tuple(map(int, spec.dims)), DTYPES[spec.dtype])

    def save_state(self, path: str | os.PathLike[str], *, notes: Mapping[str, str] | None = None) -> None:
        """Write the state as a safetensors file, with `notes` as its metadata.

        Raises ArtifactError where it cannot be written.
        """
        write_arrays(path, dict(self.state), notes)

    def load_state(self, source: str | os.PathLike[str] | Mapping[str, Array], *, partial: bool = False) -> None:
        """Set the state from what `save_state` wrote, or from a mapping.

        All of the state, or with `partial` what there is of it. Raises InputError, and changes nothing, for a name that
        the state does not have, and for an array of another shape or element type.
        """
        expected = {name: DTYPES[spec.dtype] for name, spec in self._specs.items()}
        where, arrays = "the mapping", source
        if not isinstance(arrays, Mapping):
            where, arrays = os.fspath(arrays), read_arrays(arrays, expected)
        given = {name: np.asarray(array) for name, array in arrays.items()}
        for name, array in given.items():
            self._check(name, array, where)
        if (missing := [name for name in self._specs if name not in given]) and not partial:
            raise InputError(
                f"the state of {where} lacks {missing[0]!r}",
                why=f"{len(missing)} of {len(self._specs)} arrays are missing",
                fix="use a file of this model's state, or pass partial=True to leave the others as they are",
            )
        self._resident.put_state([given[name] if name in given else self.state[name] for name in self._specs])

    def _check(self, name: str, array: Array, where: str) -> None:
        spec = self._specs.get(name)
        if spec is None:
            raise InputError(
                f"the model's state has no {name!r}",
                where=where,
                why="this is the state of another model",
                fix=did_you_mean(name, self._specs),
            )
        shape = tuple(map(int, spec.dims))
        if array.dtype != DTYPES[spec.dtype] or array.shape != shape:
            raise InputError(
                f"the state {name!r} does not fit: expected {describe(spec)}, got {array.dtype}{list(array.shape)}",
                where=where,
            )

    def instance(self) -> Model:
        """Raises UnsupportedError: two models cannot go on from one state."""
        raise UnsupportedError("a model with a state has no second instance", fix="load the artifact again")


def model_of(
    plan: Plan,
    weights: Mapping[str, Array],
    *,
    timings: Mapping[str, float] | None = None,
    producers: Mapping[str, str] | None = None,
    licences: tuple[str, ...] = (),
    start: bool = True,
) -> Model:
    """The model of a plan: one with a state where its signature has one, or with buckets. Raises GcompError."""
    kind = StatefulModel if plan.signature.states else BucketedModel if plan.buckets else Model
    return kind(plan, weights, timings=timings, producers=producers, licences=licences, start=start)


def with_state(weights: Mapping[str, Array], initial: Mapping[str, Array]) -> dict[str, Array]:
    """What a model with a state is made of: a program's weights, and the first values of its state by input."""
    return {**weights, **{initial_name(name): array for name, array in initial.items()}}


def without_state(model: Model) -> Model:
    """A model as a function: one that takes its state, and gives the next one."""
    if not model.plan.signature.states:
        return model
    whole = replace(model.plan.signature, result=None, arguments=None)
    return Model(replace(model.plan, signature=whole), model.weights)


__all__ = ["State", "StatefulModel", "model_of", "with_state", "without_state"]
