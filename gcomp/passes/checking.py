"""Does a program mean after a pass what it meant before? The reference answers, on sample inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from gcomp import dims
from gcomp.dtypes import dtype_of, is_complex, is_float, real_of
from gcomp.errors import UsageError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.program import Port, Program
from gcomp.passes.base import Pass
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import runner
from gcomp.reference.wider import interpret_wider

Array = np.ndarray[Any, Any]

_SAMPLE_SIZES = (3, 8, 32, 128, 512, 1024)
_EDGE_SHARE = 0.5

_PASS_ROUNDINGS = 4.0
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

    def compare_target(self, original: Program, run: Callable[[list[Array]], Sequence[Any]]) -> None:
        """Raise VerificationError where what was compiled computes something else than the program it came from.

        `run` takes the flat inputs and gives the flat results.
        """
        arrays = list(self.inputs(original) if self.inputs is not None else sample_inputs(original, self.seed))
        results = [np.asarray(r) for r in run(arrays)]
        self._compare("the target", Exactness.E2, original, results, arrays, TARGET_ROUNDINGS)

    def _compare(
        self,
        who: str,
        exactness: Exactness,
        before: Program,
        actual: Sequence[Array],
        arrays: Sequence[Array],
        roundings: float = _PASS_ROUNDINGS,
    ) -> None:
        expected, ports = interpret(before, arrays), before.outputs()
        if same_values(ports, exactness, expected, actual):
            return
        wider: Sequence[Array | None] = [None] * len(expected)
        if exactness is Exactness.E2:
            wider = interpret_wider(before, arrays)
        if found := difference(ports, exactness, expected, actual, wider, roundings):
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
    roundings: float = _PASS_ROUNDINGS,
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


def sample_sizes(program: Program) -> Mapping[str, int]:
    """A size for every symbol of the inputs: small, and different for different symbols where ranges allow.

    Where the program's constraints ask for more, larger ones.
    """
    names = sorted({s for port in program.inputs() for size in port.shape for s in dims.symbols_of(size)})
    constraints = [c for c in program.constraints if c.symbols <= set(names)]
    tried = [_sizes_from(base, names, program.ranges) for base in (_SAMPLE_SIZES if constraints else _SAMPLE_SIZES[:1])]
    return next((sizes for sizes in tried if all(c.check(sizes) is None for c in constraints)), tried[0])


def _sizes_from(base: int, names: Sequence[str], ranges: dims.Ranges) -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for position, name in enumerate(names):
        known = ranges[name]
        wanted = max(known.lo, base + position)
        wanted = -(-wanted // known.multiple_of) * known.multiple_of
        sizes[name] = wanted if known.hi is None else min(wanted, known.hi)
    return sizes


def named_inputs(program: Program, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Array]:
    """Inputs as arrays in the program's order. UsageError for a name that is missing or not known."""
    if not isinstance(inputs, Mapping):
        return [np.asarray(value) for value in inputs]
    ports = program.inputs()
    names = [port.name for port in ports if port.default is None or port.name in inputs]
    if wrong := sorted({*names} ^ inputs.keys()):
        verb = "is missing" if wrong[0] in names else "is not known"
        raise UsageError(f"the input {wrong[0]!r} {verb}", fix=f"the inputs are: {', '.join(p.name for p in ports)}")
    return [np.asarray(inputs[name]) for name in names]


def sample_inputs(program: Program, seed: int) -> list[Array]:
    """Inputs for a program: standard normal floats, integers from 0 to 3, random booleans."""
    return _inputs(program, seed, _sample)


def edge_inputs(program: Program, seed: int) -> list[Array]:
    """Inputs at the edges, mixed with plain ones: zeros of both signs, infinities, NaN, denormals, integers' limits."""
    return _inputs(program, seed, _edges)


def _inputs(
    program: Program, seed: int, draw: Callable[[Port, Sequence[int], np.random.Generator], Array]
) -> list[Array]:
    rng, sizes = np.random.default_rng(seed), sample_sizes(program)
    return [draw(port, [dims.evaluate(s, sizes) for s in port.shape], rng) for port in program.inputs()]


def _sample(port: Port, shape: Sequence[int], rng: np.random.Generator) -> Array:
    if is_complex(port.dtype):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype_of(port.dtype))
    if is_float(port.dtype):
        return rng.standard_normal(shape).astype(dtype_of(port.dtype))
    return rng.integers(0, 2 if port.dtype == "i1" else 4, shape).astype(dtype_of(port.dtype))


_EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 0.1)
_PAYLOADS = {"f64": (0x7FF8000000000123, 0xFFF8000000000000), "f32": (0x7FC00123, 0xFFC00000),
             "f16": (0x7E23, 0xFE00), "bf16": (0x7FC3, 0xFFC0)}  # fmt: skip
"""The bits of NaN that are not the usual one."""


def _edges(port: Port, shape: Sequence[int], rng: np.random.Generator) -> Array:
    plain = _sample(port, shape, rng)
    if port.dtype == "i1":
        return plain
    taken = rng.random(shape) < _EDGE_SHARE
    if is_complex(port.dtype):
        pool = _pool(real_of(port.dtype))
        edges = np.empty(shape, plain.dtype)
        edges.real, edges.imag = (pool[rng.integers(0, len(pool), shape)] for _ in range(2))
    else:
        pool = _pool(port.dtype)
        edges = pool[rng.integers(0, len(pool), shape)]
    return np.where(taken, edges, plain)


@lru_cache(maxsize=64)
def _pool(text: str) -> Array:
    """The values at the edges of a real element type."""
    dtype = dtype_of(text)
    if not is_float(text):
        limits: Any = ml_dtypes.iinfo(dtype)
        signs = [-1] if limits.min < 0 else []
        return np.array([np.asarray(v).astype(dtype) for v in (0, 1, *signs, int(limits.min), int(limits.max))], dtype)
    limits = cast(Any, ml_dtypes.finfo)(dtype)
    values = [*_EDGES, float(limits.max), float(limits.smallest_subnormal), -float(limits.tiny)]
    with np.errstate(all="ignore"):
        known = np.array(values, np.float64).astype(dtype)
    payloads = np.array(_PAYLOADS.get(text, ()), f"u{dtype.itemsize}").view(dtype)
    return np.concatenate([known, payloads])
