"""Does a program mean after a pass what it meant before? The reference answers, on sample inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcomp.dtypes import dtype_of
from gcomp.errors import UsageError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.passes.base import Pass
from gcomp.reference.contract import compare
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import runner
from gcomp.reference.signature import bind_sizes, check_inputs
from gcomp.reference.wider import interpret_wider

Array = np.ndarray[Any, Any]

PASS_ROUNDINGS = 4.0
TARGET_ROUNDINGS = 16.0
"""How many units in the last place, in the mean, a rewrite or a target may add to twice the reference's own error.

The reference rounds each op once and sums in double precision, which no backend does: a rewrite of a chain rounds a few
times more, and a target that sums hundreds of terms in float32 adds about the square root of their number.
"""


@dataclass
class MeaningCheck:
    """Compares programs on `samples` sets of inputs made from `seed`, within the exactness that a pass declares."""

    samples: int = 1
    seed: int = 0
    inputs: Callable[[Program], Sequence[Array]] | None = None
    """Makes inputs for a program; by default normally distributed floats and small integers."""

    def __call__(self, step: Pass, before: Program, after: Program) -> None:
        """Raise VerificationError where the pass changed the meaning."""
        for sample in range(self.samples):
            arrays = list(self.inputs(before) if self.inputs is not None else sample_inputs(before, self.seed + sample))
            self._compare(f"the pass {step.spec()}", step.exactness, before, runner(after).run(arrays), arrays)

    def _compare(
        self,
        who: str,
        exactness: Exactness,
        before: Program,
        actual: Sequence[Array],
        arrays: Sequence[Array],
    ) -> None:
        expected, ports = interpret(before, arrays), before.outputs()
        if same_values(ports, exactness, expected, actual):
            return
        wider: Sequence[Array | None] = [None] * len(expected)
        if exactness is Exactness.E2:
            wider = interpret_wider(before, arrays)
        if found := difference(ports, exactness, expected, actual, wider):
            raise VerificationError(
                f"{who} changed what the program computes",
                where=found.where,
                why=found.why,
                fix="reduce the program with gcomp reduce, or find the rewrite with gcomp bisect",
            )


@dataclass(frozen=True)
class Difference:
    """An output that is not what it was, and how it differs."""

    where: str
    why: str


def difference(
    ports: Sequence[Port],
    exactness: Exactness,
    expected: Sequence[Array],
    actual: Sequence[Array],
    wider: Sequence[Array | None],
    roundings: float = PASS_ROUNDINGS,
) -> Difference | None:
    """The first output that differs by more than `exactness` allows. E2 needs the outputs evaluated in `wider`."""
    if len(expected) != len(actual):
        return Difference("the outputs", f"there were {len(expected)}, now there are {len(actual)}")
    for port, old, new, wide in zip(ports, expected, actual, wider, strict=True):
        if mismatches := compare(old, new, exactness, wider=wide, roundings=roundings):
            shown = "; ".join(map(str, mismatches[:3]))
            return Difference(f"output {port.name!r}", f"{shown} ({exactness.name}: {exactness.value})")
    return None


def same_values(
    ports: Sequence[Port], exactness: Exactness, expected: Sequence[Array], actual: Sequence[Array]
) -> bool:
    """Whether outputs are the same but for signs of zeros and bits of NaN; for E0, whether all bits are the same.

    What E1 allows, E2 and E3 allow too, and it is seen without a wider evaluation.
    """
    strict = Exactness.E0 if exactness is Exactness.E0 else Exactness.E1
    return difference(ports, strict, expected, actual, [None] * len(expected)) is None


def named_inputs(program: Program, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Array]:
    """Inputs as arrays in the program's order.

    UsageError for a name that is missing or not known, and for arrays that a call would refuse.
    """
    ports = program.inputs()
    arrays = _in_order(ports, inputs)
    bind_sizes(program, ports, check_inputs(ports, arrays))
    return arrays


def _in_order(ports: Sequence[Port], inputs: Sequence[Any] | Mapping[str, Any]) -> list[Array]:
    if not isinstance(inputs, Mapping):
        return [np.asarray(value) for value in inputs]
    names = [port.name for port in ports if port.default is None or port.name in inputs]
    if wrong := sorted({*names} ^ inputs.keys()):
        verb = "is missing" if wrong[0] in names else "is not known"
        raise UsageError(f"the input {wrong[0]!r} {verb}", fix=f"the inputs are: {', '.join(p.name for p in ports)}")
    dtypes = {port.name: port.dtype for port in ports}
    return [as_stored(np.asarray(inputs[name]), dtypes[name]) for name in names]


def as_stored(array: Array, dtype: str) -> Array:
    """An array of a file as one of an element type: those that NumPy does not have are read as bytes."""
    other = dtype_of(dtype)
    return array.view(other) if array.dtype.kind == "V" and array.dtype.itemsize == other.itemsize else array
