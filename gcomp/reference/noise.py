"""Monte Carlo arithmetic (Parker, 1997): how far rounding alone may bring a program's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast
from zlib import crc32

import numpy as np
from xdsl.ir import Operation

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.errors import GcompError, InternalError
from gcomp.ir.families import APPROXIMATED, SIMPLE
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.reference.numpy.bounds import TERMS
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.dtypes import float_format
from gcomp.reference.table import MEANINGS, Scope, Value
from gcomp.reference.varied import MOVES, PlainRow, VariedInterpreter, name_of, short_name

Array = np.ndarray[Any, Any]

_SAMPLES, _MARGIN, _FEW = 12, 6.0, 3
_MOST_SAMPLES = 40
"""How often a program is run where what differs did not move: a sum that cancels may be 0 each time by chance."""
_LEAST_BITS = (0, 16, 32)
"""Runs by turns leave floats of fewer bits as they are: what cancels in f32 does not where noise of f8 comes first."""
_ULPS, _FUNCTION_ULPS = 1.0, 8.0
FUNCTIONS = frozenset(map(name_of, APPROXIMATED))
"""What targets approximate, within some ulps (docs/generated/ulp.md)."""
_MIXING = FUNCTIONS | {"multiply", "divide"}
"""What makes either part of a complex number of both: a part that cancels is off by as much as the whole number."""
_FOLDS = frozenset(
    ("batch_norm_grad", "batch_norm_inference", "batch_norm_training", "cholesky", "convolution", "dot", "dot_general",
     "dynamic_conv", "fft", "ragged_dot", "reduce", "reduce_window", "triangular_solve")
)  # fmt: skip
"""What adds in another order: the error is one of the operands' (of factors and solutions: Higham, 2002, 8.1, 10.1)."""
_POLES = frozenset(("atanh", "digamma", "erf_inv", "lgamma", "log_plus_one", "polygamma", "zeta"))
"""Functions that are infinite at some whole numbers, and not beside them."""
STATISTICS = frozenset(("batch_norm_grad", "batch_norm_training"))
"""What sums in double in the reference, and in the operand's type elsewhere."""
_ROUNDS = (frozenset(map(name_of, SIMPLE)) - MOVES) | frozenset(
    ("host", "map", "rng", "rng_bit_generator", "scatter", "select_and_scatter", "sort", "top_k")
)
"""What is off by an ulp, at most, of its own result."""
NOISY = MOVES | FUNCTIONS | _FOLDS | _ROUNDS
"""Short names of all ops of which it is known what rounding does. Rows that enter regions leave it to the ops there."""
_CHANCE = 0.5
"""How often a sum whose error is as large as itself is zero, and numbers next to each other are equal, in a run."""


class NoisyInterpreter(VariedInterpreter):
    """An interpreter whose floats are off by some ulps, at random.

    With `narrow_sums`, so are sums as if their terms were added one by one in their own type: by some sqrt(n) ulps of
    the sum, and of the terms (Higham & Mary, 2019). The reference adds in double, as rewrites are held to; targets
    do not.
    """

    def __init__(self, program: Program, seed: int, *, max_steps: int | None = None, narrow_sums: bool = False) -> None:
        self._random, self._least_bits = np.random.default_rng(seed), _LEAST_BITS[seed % len(_LEAST_BITS)]
        self._seed = seed
        self._narrow_sums = narrow_sums
        super().__init__(program, max_steps=max_steps)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            name = short_name(op)
            if name in MOVES:
                return row(op, args, scope)
            if scope.place is not None:  # devices that compute the same are off by the same
                self._random = np.random.default_rng([self._seed, *map(_checksum, args)])
            if name == "compare":
                args = self._tied(*args)
            elif name in _POLES:
                args = [self._whole(value) for value in args]
            results = row(op, args, scope)
            ulps = _FUNCTION_ULPS if name in FUNCTIONS else _ULPS
            if name in STATISTICS:
                # Sums of n terms are off by some sqrt(n) ulp (Higham & Mary, 2019).
                ulps *= max(1.0, np.asarray(args[0]).size / max(1, np.asarray(args[1]).size)) ** 0.5
            if name in _FOLDS:
                within = ulps if name in STATISTICS else _ULPS
                if self._narrow_sums and name not in STATISTICS:
                    within = ulps = _ULPS * _terms(args, results) ** 0.5
                others = row(op, [self._off(v, within) for v in args], scope)
                results = [self._cancelled(old, new) for old, new in zip(results, others, strict=True)]
            if name in TERMS:
                size = TERMS[name](cast(Array, args[0]))
                return [self._floats_off(cast(Array, value), ulps, size) for value in results]
            return [self._off(value, ulps, mixed=name in _MIXING) for value in results]

        return run

    def _tied(self, left: Value, right: Value) -> tuple[Value, Value]:
        """What is compared, with some equal of those that are next to each other: noise alone would part them all."""
        a, b = np.asarray(left), np.asarray(right)
        text = text_of(a.dtype)
        if not is_float(text) and not is_complex(text):
            return left, right
        form, wide = float_format(a.dtype), np.complex128 if is_complex(text) else np.float64
        with np.errstate(all="ignore"):
            x, y = a.astype(wide), b.astype(wide)
            ulp = np.maximum(np.maximum(np.abs(x), np.abs(y)) * form.epsilon, form.smallest)
            near = np.abs(x - y) <= _FUNCTION_ULPS * ulp
        near &= cast(Array, self._random.random(a.shape)) < _CHANCE
        return a, np.where(near, a, b)

    def _whole(self, value: Value) -> Value:
        """Floats, with some whole of those that are next to a whole number: noise alone would seldom meet it."""
        array = np.asarray(value)
        return self._tied(np.rint(array), array)[1] if is_float(text_of(array.dtype)) else value

    def _cancelled(self, exact: Value, noisy: Value) -> Value:
        """What a fold gives of operands that are off, with zeros among that of which the noise may leave nothing."""
        if not isinstance(exact, np.ndarray) or not isinstance(noisy, np.ndarray):
            return noisy
        old, new = cast(Array, exact), cast(Array, noisy)
        text = text_of(old.dtype)
        if is_complex(text):
            parts = zip((old.real, old.imag), (new.real, new.imag), strict=True)
            return from_parts(*(cast(Array, self._cancelled(a, b)) for a, b in parts))
        if not is_float(text) or old.shape != new.shape:
            return new
        with np.errstate(all="ignore"):
            wide = old.astype(np.float64)
            lost = np.abs(wide) <= _MARGIN * np.abs(new.astype(np.float64) - wide)
        lost &= cast(Array, self._random.random(old.shape)) < _CHANCE
        return np.where(lost, np.zeros_like(new), new)

    def _off(self, value: Value, ulps: float, *, mixed: bool = False) -> Value:
        """Numbers, off by some ulps: of their own, or, where parts of complex ones are `mixed`, of the greater part."""
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        text = text_of(array.dtype)
        if is_complex(text):
            parts = array.real, array.imag
            size = np.maximum(*(np.abs(part.astype(np.float64)) for part in parts)) if mixed else None
            noisy = from_parts(*(self._floats_off(part, ulps, size) for part in parts))
            return self._cancelled(array, noisy) if mixed else noisy
        return self._floats_off(array, ulps) if is_float(text) else array

    def _floats_off(self, array: Array, ulps: float, size: Array | None = None) -> Array:
        """Floats, off by ulps of numbers of this size, where it is finite, or of their own."""
        if float_format(array.dtype).bits < self._least_bits:
            return array
        noise = cast(Array, self._random.uniform(-ulps, ulps, array.shape))
        with np.errstate(all="ignore"):
            wide, form = array.astype(np.float64), float_format(array.dtype)
            size = np.abs(wide) if size is None else np.where(np.isfinite(size), size, np.abs(wide))
            ulp = np.maximum(size * form.epsilon, form.smallest)  # below the normal numbers, of one size
            return np.where(np.isfinite(wide) & (wide != 0), wide + noise * ulp, wide).astype(array.dtype)


def _checksum(value: Value) -> int:
    return crc32(cast(Array, value).tobytes()) if isinstance(value, np.ndarray) else 0


def _terms(args: Sequence[Value], results: Sequence[Value]) -> float:
    """How many terms an element of a fold's result is the sum of, about; no fewer."""
    sizes, others = ([cast(Array, v).size for v in values if isinstance(v, np.ndarray)] for values in (args, results))
    sizes, result = [size for size in sizes if size > 1], max(1, *others)
    if len(sizes) < 2:
        return max(1.0, max(sizes, default=1) / result)
    return max(1.0, min(float(min(sizes)), (sizes[0] * sizes[1] / result) ** 0.5))


def rounding_masks(
    program: Program, inputs: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array],
    *, max_steps: int | None = None, each: Callable[[], object] | None = None, narrow_sums: bool = False,
) -> list[Array]:  # fmt: skip
    """Where outputs are as far from the reference's as rounding alone may bring them: masks.

    The reference runs with its floats off by some ulps at random, several times; what comes out spreads by as much as
    the program amplifies errors. Infinities and NaN count where they do not come out each time, and other numbers as
    far as those spread that did. `each` is called before each run: it may raise, where the time ended.
    `narrow_sums` is as for `NoisyInterpreter`.
    """
    _check_rows(program)
    spreads = [_Spread(old) for old in expected]
    for seed in range(_MOST_SAMPLES):
        if seed >= _SAMPLES and not any(s.rests(new) for s, new in zip(spreads, actual, strict=True)):
            break
        if each is not None:
            each()
        try:
            outputs = NoisyInterpreter(program, seed, max_steps=max_steps, narrow_sums=narrow_sums).run(inputs)
        except GcompError:
            continue
        for spread, new in zip(spreads, outputs, strict=True):
            spread.take(new)
    return [spread.reaches(new) for spread, new in zip(spreads, actual, strict=True)]


def _check_rows(program: Program) -> None:
    """Raise InternalError where an op has a meaning, and nothing is known of what rounding does in it."""
    for op in program.ops():
        meaning = MEANINGS.get(type(op))
        if meaning is not None and not meaning.enters and short_name(op) not in NOISY:
            raise InternalError(f"gcomp.reference.noise has no row for {op.name}", where=where(op))


class _Spread:
    """How far the elements of an array come out from what is expected of them."""

    def __init__(self, expected: Array) -> None:
        self._expected = expected
        self._far = np.zeros(expected.shape)
        self._near = np.zeros(expected.shape, np.int64)
        self._otherwise = np.zeros(expected.shape, np.bool_)

    def take(self, found: Array) -> None:
        apart = _distance(self._expected, found)
        number = np.isfinite(apart)
        self._far = np.maximum(self._far, np.where(number, apart, 0.0))
        self._near += number
        self._otherwise |= ~number

    def rests(self, actual: Array) -> bool:
        """Whether something differs from what is expected that never did, or is of another kind and never was."""
        apart = _distance(self._expected, actual)
        still = ~np.isfinite(apart) | ((apart > 0) & (self._far == 0))
        return bool((still & ~self._otherwise).any())

    def reaches(self, actual: Array) -> Array:
        """Where `actual` is as far as that: anywhere, where too few were of one kind with what is expected."""
        apart = _distance(self._expected, actual)
        unknown = self._near < _FEW
        near = (self._far > 0) & (apart <= _MARGIN * self._far)
        return near | (self._otherwise & (unknown | ~np.isfinite(apart)))


def _distance(old: Array, new: Array) -> Array:
    """How far elements are apart; infinitely, where one is a number and the other is not, or shapes differ."""
    if old.shape != new.shape:
        return np.full(old.shape, np.inf)
    wide: type[Any] = np.complex128 if is_complex(text_of(old.dtype)) else np.float64
    if old.dtype in (np.int64, np.uint64):
        # Read as integers, the bits of numbers next to each other differ by less than a double can tell.
        wide = np.longdouble
    with np.errstate(all="ignore"):
        a, b = old.astype(wide), new.astype(wide)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf)
    return np.where(same, 0.0, apart).astype(np.float64)
