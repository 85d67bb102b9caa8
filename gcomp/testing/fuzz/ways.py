"""Ways to make and to ask a model besides a plain call: options of `gcomp.compile`, other libraries' arrays, reports.

Each makes something that has `flat`, as a model has: what it gives must be what the program computes. What a report
says (bytes, steps, code) is held to the program by `flat` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gcomp
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.model import Model
from gcomp.targets.base import target_named
from gcomp.testing.foreign.arrays import array_forms
from gcomp.testing.fuzz.door import Undefined

Array = np.ndarray[Any, Any]


class OtherArrays:
    """A model that is called with arrays of one library after the other."""

    def __init__(self, model: Model) -> None:
        self._model, self._calls = model, 0

    def flat(self, values: list[Any]) -> list[Any]:
        """What the model gives, in arrays of NumPy. TypeError where it gives another library's than it was given."""
        forms = array_forms()
        name = [*forms][self._calls % len(forms)]
        self._calls += 1
        if any(np.asarray(x).dtype.kind == "V" or np.asarray(x).dtype.itemsize > 8 for x in values):
            return self._model.flat(values)  # types that NumPy does not have, which not all libraries have
        wanted = name.partition(",")[0]
        found = self._model.flat([forms[name](np.asarray(x)) for x in values])
        for result in found if values else ():
            if (got := type(result).__module__.partition(".")[0].removesuffix("lib")) != wanted:
                raise TypeError(f"called with arrays of {name}, it gives {got}'s")
        return [np.asarray(result) for result in found]


class Reports:
    """A model, what of it is said beside its results: bytes, times of steps, and the text of its code."""

    def __init__(self, program: Program, target: str) -> None:
        copy = program.clone()
        self._model = gcomp.compile(program, target=target)
        self._target = target_named(target)
        PassManager(parse_pipeline(self._target.pipeline()), ()).run(copy)
        self._texts = self._target.code_texts(copy)

    def flat(self, values: list[Any]) -> list[Any]:
        """What the model gives. ValueError for a report that is wrong."""
        model = self._model
        given = [np.array(x) for x in values]
        found = [np.asarray(result) for result in model.flat(values)]
        sizes = model.signature.bind(tuple(x.shape for x in given))
        asked = {name: sizes[name] for name in model.signature.symbols if name in sizes}
        try:
            memory = model.memory(**asked)
        except GcompError:  # sizes that are known while it runs only
            return found
        if len(model.plan.steps) == 1:
            weights = [model.weights[name] for name in model.plan.weights]
            most, bytes_out = sum(map(_bytes, [*given, *weights])), sum(map(_bytes, found))
            if memory.output_bytes != bytes_out or memory.argument_bytes > most or memory.temporary_bytes < 0:
                raise ValueError(f"{memory} for {most} bytes of inputs and weights, {bytes_out} of results")
        if not any(port.donated for port in model.inputs):
            profile = model.profile(*given, repeat=1)
            if profile.calls != 1 or any(s.seconds < 0 or s.bytes < 0 or s.flops < 0 for s in profile.samples):
                raise ValueError(f"the profile says {profile}")
            kernels = [s for s in profile.samples if s.kind == "kernel"]
            if kernels and not self._texts:
                raise ValueError(f"there are {len(kernels)} kernels, and no text of their code")
        return found


class Fetched:
    """A model that gives its first input, too."""

    def __init__(self, program: Program, target: str) -> None:
        if not program.inputs():
            raise Undefined("there is no input to fetch")
        name = program.inputs()[0].name
        self._model = gcomp.compile(program, target=target, fetch=[name])

    def flat(self, values: list[Any]) -> list[Any]:
        """What the program gives. ValueError where what is fetched is no input."""
        first = np.array(values[0])
        *results, fetched = self._model.flat(values)
        if np.asarray(fetched).tobytes() != first.tobytes():
            raise ValueError(f"the first input is fetched as {fetched!r}, and is {first!r}")
        return results


NO_TARGETS = ("cpu:", "cpu:nothing", "cpu:x86-64-v3,nothing", "cpu:x86-64-v3,x86-64-v3")
NO_OPTIONS: Sequence[Mapping[str, Any]] = (
    {"buckets": {"n": [4]}}, {"tuned": Path("nothing.json")}, {"memory_budget": -1}, {"numerics": "nothing"},
    {"threads": 0}, {"checks": ("nothing",)}, {"fetch": ["nothing.at.all"]},
)  # fmt: skip
"""What `cpu` must refuse."""


def model_of_kinds(program: Program, kinds: Sequence[str]) -> Model:
    """A model for several kinds of processors. ValueError where a target or an option is taken that there is not."""
    for name in NO_TARGETS:
        _refused(f"the target {name}", partial(target_named, name))
    for options in NO_OPTIONS:
        _refused(f"{options}", partial(gcomp.compile, program.clone(), target="cpu", **options))
    return gcomp.compile(program, target=f"cpu:{','.join(kinds)}")


def _refused(what: str, ask: Callable[[], object]) -> None:
    try:
        ask()
    except GcompError:
        return
    raise ValueError(f"{what} is not refused")


def _bytes(array: Any) -> int:
    """The bytes of an array: elements of less than a byte have one each."""
    held = np.asarray(array)
    return held.size * max(1, held.dtype.itemsize)


__all__ = ["Fetched", "OtherArrays", "Reports", "model_of_kinds"]
