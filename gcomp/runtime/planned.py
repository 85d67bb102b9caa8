"""Device segments that have plans for several machines, and what they are at known sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import DTYPES
from gcomp.errors import ArtifactError, UnsupportedError
from gcomp.records import record
from gcomp.runtime.engine import engine_of
from gcomp.runtime.lru import Lru
from gcomp.runtime.plan import DeviceSegment, Plan, Value
from gcomp.runtime.signature import parse_dims
from gcomp.runtime.steps import Launch

SIZES_KEPT = 256
"""For how many combinations of sizes a model remembers what it worked out."""

P = TypeVar("P")

Sizes = tuple[list[int], list[int]]
"""The bytes of each input, and of each output."""


@record
class Type:
    """The type of a value, read."""

    dims: tuple[Size, ...]
    dtype: np.dtype[Any]

    @staticmethod
    def of(value: Value) -> Type:
        """The type of a plan's value."""
        return Type(parse_dims(value.dims), DTYPES[value.dtype])

    def shape(self, env: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at known sizes. Raises ArtifactError for one that cannot be."""
        found = tuple([dims.evaluate(size, env) for size in self.dims])
        if min(found, default=0) < 0:
            raise ArtifactError("A size in the model's plan is negative.", why=f"The shape is {list(found)}.")
        return found

    def bytes(self, env: Mapping[str, int]) -> int:
        """The bytes that a value takes at known sizes."""
        return math.prod(self.shape(env)) * self.dtype.itemsize


@record
class Sized:
    """A segment at known sizes: the bytes of its inputs and outputs, and the shapes and types of its outputs."""

    sizes: Sizes
    outputs: list[tuple[tuple[int, ...], np.dtype[Any]]]


@record
class Segment(Generic[P]):
    """A device segment: its plans by machine, and the types of its inputs and outputs.

    `first` is the number of its first output among the plan's values.
    """

    step: DeviceSegment
    plans: Mapping[str, P]
    inputs: tuple[Type, ...]
    outputs: tuple[Type, ...]
    first: int
    _sized: Lru[object, Sized] = field(default_factory=lambda: Lru[object, Sized](SIZES_KEPT))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that its inputs and outputs mention."""
        types = (*self.inputs, *self.outputs)
        return tuple(sorted(frozenset[str]().union(*(dims.symbols_of(size) for type in types for size in type.dims))))

    def sized(self, env: Mapping[str, int]) -> Sized:
        """The sizes of a call. Raises UnsupportedError where data determine them, ArtifactError for negative ones."""
        if late := [name for name in self.symbols if name not in env]:
            raise size_known_late(late)
        return self._sized.get(tuple([env[name] for name in self.symbols]), lambda: self._measured(env))

    def _measured(self, env: Mapping[str, int]) -> Sized:
        inputs, outputs = [type.bytes(env) for type in self.inputs], [type.bytes(env) for type in self.outputs]
        return Sized((inputs, outputs), [(type.shape(env), type.dtype) for type in self.outputs])


def size_known_late(names: Sequence[str]) -> UnsupportedError:
    """The error where sizes are asked for that data determine."""
    return UnsupportedError(
        f"The size {', '.join(names)} is known only while the model runs.", fix="Call the model instead."
    )


Check = Callable[[P, DeviceSegment, frozenset[str], frozenset[int]], None]
"""Validates a segment's plan, given the symbols and the indices of writable inputs. Raises ArtifactError."""


def segments_of(
    plan: Plan, kind: str, read: Callable[[str, str], Mapping[str, P]], check: Check[P]
) -> Iterator[Segment[P]]:
    """A plan's segments, all that they hold read and checked, for one `kind` of machine. Raises ArtifactError."""
    symbols = frozenset(plan.signature.ranges) | plan.signature.symbols
    given = {i for i, spec in enumerate(plan.signature.inputs) if spec.donated}
    first = len(plan.signature.inputs)
    for step in plan.steps:
        if isinstance(step, DeviceSegment):
            plans = read(plan.texts[step.text], step.text)
            if set(plans) != set(engine_of(plan).variants):
                why = f"It is for {', '.join(plans) or 'nothing'}, and the target is {plan.target[:80]}."
                raise ArtifactError(f"The plan for the {kind} is not valid.", where=step.text, why=why)
            donated = frozenset(k for k, value in enumerate(step.inputs) if value in given)
            for chosen in plans.values():
                check(chosen, step, symbols, donated)
            inputs, outputs = (plan.values[i] for i in step.inputs), step.outputs
            yield Segment(step, plans, tuple(map(Type.of, inputs)), tuple(map(Type.of, outputs)), first)
        first += len(step.outputs)


def cost_of(launches: Sequence[Launch], env: Mapping[str, int]) -> dict[str, float]:
    """What launches compute and move at known sizes."""
    return {
        name: float(sum(dims.evaluate(dims.parse(text), env) for text in texts))
        for name, texts in (
            ("flops", [launch.flops for launch in launches]), ("bytes accessed", [launch.bytes for launch in launches]),
        )
    }  # fmt: skip


__all__ = ["SIZES_KEPT", "Segment", "Sized", "Sizes", "Type", "cost_of", "segments_of", "size_known_late"]
