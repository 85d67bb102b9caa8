"""Does a program mean after a pass what it meant before? The reference answers, on sample inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of, is_complex, is_float
from gcomp.errors import VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.passes.base import Pass
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import interpret
from gcomp.reference.wider import interpret_wider

Array = np.ndarray[Any, Any]

_SAMPLE_SIZE = 3

_PASS_ROUNDINGS = 4.0
_TARGET_ROUNDINGS = 16.0
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
            self._compare(f"the pass {step.spec()}", step.exactness, before, interpret(after, arrays), arrays)

    def compare_target(self, original: Program, model: Callable[..., Any]) -> None:
        """Raise VerificationError where a compiled model computes something else than the program it came from."""
        arrays = list(self.inputs(original) if self.inputs is not None else sample_inputs(original, self.seed))
        results = [np.asarray(r) for r in model(*arrays)]
        self._compare("the target", Exactness.E2, original, results, arrays, _TARGET_ROUNDINGS)

    def _compare(
        self,
        who: str,
        exactness: Exactness,
        before: Program,
        actual: Sequence[Array],
        arrays: Sequence[Array],
        roundings: float = _PASS_ROUNDINGS,
    ) -> None:
        expected = interpret(before, arrays)
        wider: Sequence[Array | None] = [None] * len(expected)
        if exactness is Exactness.E2:
            wider = interpret_wider(before, arrays)
        for port, old, new, wide in zip(before.outputs(), expected, actual, wider, strict=True):
            if mismatches := compare(old, new, exactness, wider=wide, roundings=roundings):
                raise VerificationError(
                    f"{who} changed what the program computes",
                    where=f"output {port.name!r}",
                    why="; ".join(map(str, mismatches[:3])) + f" ({exactness.name}: {exactness.value})",
                    fix="reduce the program, or bisect with --bisect-limit, to find the rewrite",
                )


def sample_sizes(program: Program) -> Mapping[str, int]:
    """A size for every symbol of the inputs: small, and different for different symbols where ranges allow."""
    ranges = program.ranges
    names = sorted({s for port in program.inputs() for size in port.shape for s in dims.symbols_of(size)})
    sizes: dict[str, int] = {}
    for position, name in enumerate(names):
        known = ranges[name]
        wanted = max(known.lo, _SAMPLE_SIZE + position)
        wanted = -(-wanted // known.multiple_of) * known.multiple_of
        sizes[name] = wanted if known.hi is None else min(wanted, known.hi)
    return sizes


def sample_inputs(program: Program, seed: int) -> list[Array]:
    """Inputs for a program: standard normal floats, integers from 0 to 3, random booleans."""
    rng, sizes = np.random.default_rng(seed), sample_sizes(program)
    return [_sample(port, [_size(s, sizes) for s in port.shape], rng) for port in program.inputs()]


def _size(size: Size, sizes: Mapping[str, int]) -> int:
    return dims.evaluate(size, sizes)


def _sample(port: Port, shape: Sequence[int], rng: np.random.Generator) -> Array:
    if is_complex(port.dtype):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype_of(port.dtype))
    if is_float(port.dtype):
        return rng.standard_normal(shape).astype(dtype_of(port.dtype))
    return rng.integers(0, 2 if port.dtype == "i1" else 4, shape).astype(dtype_of(port.dtype))
