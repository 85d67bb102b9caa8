"""A plan beside another: what looks into a program runs in executables of its own, before those of the program itself.

XLA contracts and vectorizes by who uses a value, so that one more user of it changes the bits of others. Nothing of the
program's own steps is touched here: its outputs are the same to the last bit, by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.ir.weights import Weights
from gcomp.runtime.plan import DeviceSegment, Plan, Step

Array = np.ndarray[Any, Any]


def beside(plan: Plan, aside: Plan, weights: Weights, own: Weights, texts: Mapping[str, str]) -> Plan:
    """The plan that runs `aside` first, and gives its outputs after those of `plan`: what was fetched.

    Both take the same inputs. What `aside` reads of `own` joins `weights`; `texts` has new names for its segments'.
    """
    inputs = len(plan.signature.inputs)
    if any(value < inputs for value in aside.results) and any(spec.donated for spec in plan.signature.inputs):
        raise UnsupportedError(
            "an input that is given away cannot be fetched where sizes depend on data",
            fix="do not donate it, or do not fetch it",
        )
    renamed = {name: _weight_name(name, own[name], weights) for name in aside.weights}
    first = tuple(_renumber(step, 0, inputs, texts, renamed) for step in aside.steps)
    count = sum(len(step.outputs) for step in aside.steps)
    results, outputs = [_shift(value, count, inputs) for value in plan.results], len(plan.signature.outputs)
    return replace(
        plan,
        signature=replace(
            plan.signature,
            outputs=(*plan.signature.outputs, *(replace(spec, alias=None) for spec in aside.signature.outputs)),
            ranges=aside.signature.ranges.with_ranges(dict(plan.signature.ranges)),
            constraints=tuple(dict.fromkeys((*plan.signature.constraints, *aside.signature.constraints))),
        ),
        steps=(*first, *(_renumber(step, count, inputs, {}, {}) for step in plan.steps)),
        results=(*results[:outputs], *aside.results, *results[outputs:]),
        texts={**{texts.get(name, name): text for name, text in aside.texts.items()}, **plan.texts},
        binaries={**aside.binaries, **plan.binaries},
        weights={**plan.weights, **{renamed[name]: value for name, value in aside.weights.items()}},
        fetched=len(aside.results),
    )


def _shift(value: int, count: int, inputs: int) -> int:
    return value if value < inputs else value + count


def _renumber(step: Step, count: int, inputs: int, texts: Mapping[str, str], weights: Mapping[str, str]) -> Step:
    """A step whose values are numbered after `count` others, with other names of texts and weights."""
    numbers = tuple(_shift(value, count, inputs) for value in step.inputs)
    if not isinstance(step, DeviceSegment):
        return replace(step, inputs=numbers)
    names = tuple(weights.get(name, name) for name in step.weights)
    return replace(step, inputs=numbers, weights=names, text=texts.get(step.text, step.text))


def _weight_name(name: str, array: Array, weights: Weights) -> str:
    """The name under which an array is among weights: its own, or another where that one is of other data."""
    if name in weights and _equal(weights[name], array):
        return name
    return weights.add(name, array)


def _equal(a: Array, b: Array) -> bool:
    if a is b:
        return True
    same = a.shape == b.shape and a.dtype == b.dtype
    return same and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
