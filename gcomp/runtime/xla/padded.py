"""Runs a padded plan: inputs are padded to buckets, and results are cut to their true sizes."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.errors import InputError
from gcomp.runtime.buckets import Buckets
from gcomp.runtime.inputs import is_torch
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Shapes, Signature, parse_dims
from gcomp.runtime.xla.arrays import JAX, Intake
from gcomp.runtime.xla.client import Array, Executable
from gcomp.runtime.xla.executor import Env, XlaExecutor
from gcomp.runtime.xla.options import executables_kept
from gcomp.runtime.xla.profiling import record

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

_BINDINGS = 256
Shape = tuple[Size, ...]


class PaddedExecutor:
    """An executor whose callers know nothing of padding, around one that gets padded inputs and their lengths."""

    def __init__(self, plan: Plan, weights: Mapping[str, Array], signature: Signature, platform: str) -> None:
        """Raises ArtifactError when the plan is not valid or asks for what is not allowed."""
        self._inner = XlaExecutor(plan, weights, platform)
        count = math.prod([len(bucketing.sizes) for bucketing in plan.buckets.values()])
        self._inner.keep(max(executables_kept(), count))
        self._signature = signature
        self._intake = Intake(signature, self._inner.client)
        self.buckets = Buckets(plan.buckets)
        self._bindings: Lru[Shapes, tuple[Env, Env]] = Lru(_BINDINGS)
        padded = frozenset(plan.buckets)
        lengths = {bucketing.input: name for name, bucketing in plan.buckets.items()}
        places = {spec.name: i for i, spec in enumerate(signature.inputs)}
        self._sources = [lengths.get(spec.name, places.get(spec.name, 0)) for spec in plan.signature.inputs]
        self._shapes = [_if_padded(shape, padded) for shape in signature.shapes]
        self._results = [_if_padded(parse_dims(spec.dims), padded) for spec in signature.outputs]

    @property
    def source(self) -> str:
        """Who says how much memory a call needs."""
        return self._inner.source

    @property
    def bare(self) -> None:
        """None: no executable takes the inputs as they are."""
        return None

    @property
    def seconds(self) -> float:
        """Seconds spent in XLA's compiler so far."""
        return self._inner.seconds

    def __call__(self, values: list[Any]) -> list[Any]:
        """Results for inputs in order, of the same kind as the inputs. Raises InputError, GcompError."""
        shapes, kind = self._intake.recognise(values)
        true, padded = self._bindings.get(shapes, lambda: self._bound(shapes))
        grown = [_grow(value, shape, padded) for value, shape in zip(values, self._shapes, strict=True)]
        given = [np.asarray(true[s], np.int64) if isinstance(s, str) else grown[s] for s in self._sources]
        results = self._inner(given)
        self.buckets.count(true, padded)
        self.buckets.compilations = self._inner.compilations
        cut = [_cut(result, shape, true, padded) for result, shape in zip(results, self._results, strict=True)]
        return [self._inner.client.put(_own(array)) if kind == JAX and _is_host(array) else array for array in cut]

    def again(self, values: list[Any]) -> list[Any]:
        """As a call."""
        return self(values)

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Do what a call does, padded, and note the time of each step. Raises InputError, GcompError."""
        record(lambda: self(values), recording)

    def _bound(self, shapes: Shapes) -> tuple[Env, Env]:
        true = self._signature.bind(shapes)
        padded = self.buckets.padded(true)
        try:
            self._signature.check(padded)
        except InputError as error:
            sizes = ", ".join(f"{name} = {padded[name]}" for name in self.buckets)
            raise InputError(
                f"The inputs' sizes fit together, and do not when padded to {sizes}.",
                why=error.why,
                fix="Compile the model with other buckets, or with buckets for fewer dimensions.",
            ) from None
        return true, padded

    def keep(self, count: int) -> None:
        """As `XlaExecutor.keep`."""
        self._inner.keep(count)

    def prepare(self, env: Mapping[str, int]) -> list[Executable]:
        """Compile what these lengths need."""
        made = self._inner.prepare(self.buckets.padded(env))
        self.buckets.compilations = self._inner.compilations
        return made

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """XLA's figures in bytes, for the buckets of these lengths."""
        return self._inner.memory(self.buckets.padded(env))

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """XLA's cost analysis, for the buckets of these lengths."""
        return self._inner.cost(self.buckets.padded(env))

    def set_threads(self, count: int) -> None:
        self._inner.set_threads(count)

    def instance(self) -> PaddedExecutor:
        """As `XlaExecutor.instance`; the tally of the buckets is shared."""
        other = copy.copy(self)
        other._inner = self._inner.instance()
        return other


def blank(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """What padding is made of: anything would do, since no result depends on it."""
    return np.zeros(tuple(shape), dtype)


def _if_padded(shape: Shape, padded: frozenset[str]) -> Shape | None:
    """A shape, where padding changes it."""
    return shape if any(not padded.isdisjoint(dims.symbols_of(size)) for size in shape) else None


def _grow(value: Any, shape: Shape | None, padded: Env) -> Any:
    """A value at the front of a greater array."""
    if shape is None:
        return value
    sizes = tuple([dims.evaluate(size, padded) for size in shape])
    if sizes == tuple(value.shape):
        return value
    front = tuple([slice(0, n) for n in value.shape])
    if is_torch(value):
        value = value.detach()
        grown: Any = value.new_zeros(sizes)
        grown[front] = value
        return grown
    array = np.asarray(value)
    try:
        filled = blank(sizes, array.dtype)
    except (MemoryError, ValueError) as error:
        raise InputError(f"There is no memory to pad an input to {list(sizes)}.", why=str(error)) from None
    filled[front] = array
    return filled


def _cut(result: Any, shape: Shape | None, true: Env, padded: Env) -> Any:
    """The true part of a result."""
    if shape is None:
        return result
    sizes = [dims.evaluate(size, true) for size in shape]
    if sizes == [dims.evaluate(size, padded) for size in shape]:
        return result
    # Slicing an array of jax would compile a program for each size.
    host = result if is_torch(result) else np.asarray(result)
    return host[tuple([slice(0, n) for n in sizes])]


def _is_host(value: Any) -> bool:
    return value.__class__ is np.ndarray


def _own(array: Array) -> Array:
    return np.array(array, order="C")


__all__ = ["PaddedExecutor", "blank"]
