"""What the known deviations reach: the elements of outputs that change where the reference does likewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp.dtypes import bit_width, is_complex, is_float, text_of
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.judging.deviations import DEVIATIONS, FLUSHED, ZEROS, Deviation, Mask, any_of, denormal, parts_of, tiny
from gcomp.reference.contract import bits_differ
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.elementwise import not_
from gcomp.reference.table import Scope, Value
from gcomp.reference.varied import MOVES, PlainRow, VariedInterpreter, short_name

Array = np.ndarray[Any, Any]

_VARIANTS = 8
"""How often other values are tried: an element may come out the same by chance."""
_EXTREME = {1: np.nan, 2: np.inf, 3: -np.inf}
"""The values that some of the tries take."""
_SCALE = {0: 3.0, 4: 0.2}
"""How large the others are: functions have domains on both sides of 1."""
_LAST, _ANY, _OWN = 5, 6, 7
"""The tries that take the last element of the operands (a fold's initial value), any of them, and what the first has in
the same place, as if nothing had been done."""
_WHOLE = {2: 0, 3: 1}
"""The integers that some of the tries take: the first branches of a `case`, the first places of a dimension."""


_CONTRACTIONS = frozenset(("convolution", "dot", "dot_general"))


class _Deviating(VariedInterpreter):
    """An interpreter in which one deviation happens wherever it may."""

    def __init__(self, program: Program, deviation: Deviation | None, seed: int, max_steps: int | None) -> None:
        self.happened = False
        self._deviation, self._seed, self._random = deviation, seed, np.random.default_rng(seed)
        super().__init__(program, max_steps=max_steps)

    def varied(self, row: PlainRow) -> PlainRow:
        return self._flushing(row) if self._deviation is None else self._open(row)

    def _flushing(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            if short_name(op) in MOVES:
                results = row(op, args, scope)
                # The processor's conversion to bf16 serves to move them, too, and flushes.
                narrow = len(op.results) == 1 and dtype_text(op.results[0].type) == "bf16"
                return self._flushed(results) if narrow else results
            # What rounds up to the least normal number was less before: the processor flushes it.
            results = self._flushed(row(op, self._flushed(args), scope), tiny)
            return [self._without_small_sums(v, args) for v in results] if short_name(op) in _CONTRACTIONS else results

        return run

    def _without_small_sums(self, value: Value, args: Sequence[Value]) -> Value:
        """A sum of products without what may come from denormal products alone: the terms are flushed one by one."""
        array, terms = np.asarray(value), max(np.size(arg) for arg in args)
        if not is_float(text_of(array.dtype)):
            return value
        (wide,) = parts_of([array])
        small = (array != 0) & (np.abs(wide) < terms * np.finfo(wide.dtype).tiny)
        self.happened |= bool(small.any())
        return np.where(small, np.zeros_like(array), array)

    def _flushed(self, values: Sequence[Value], small: Callable[[Array], Any] = denormal) -> list[Value]:
        flushed = [_without(small, value) for value in values]
        self.happened |= any(a is not b for a, b in zip(values, flushed, strict=True))
        return flushed

    def _open(self, row: PlainRow) -> PlainRow:
        deviation = cast(Deviation, self._deviation)

        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if deviation.ops is not None and short_name(op) not in deviation.ops:
                return results
            mask = deviation.reach(op, args, results)
            if not np.any(mask):
                return results
            self.happened = True
            return [self._otherwise(value, mask, args, deviation.name == ZEROS) for value in results]

        return run

    def _otherwise(self, value: Value, mask: Mask, args: Sequence[Value], only_sign: bool) -> Value:
        """A result with other values where it is open."""
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        where = (
            np.broadcast_to(mask, array.shape) if np.shape(mask) in ((), array.shape) else np.full(array.shape, True)
        )
        other = -array if only_sign else _values_like(array, args, self._seed, self._random)
        return np.where(where, other, array).astype(array.dtype)


def _without(small: Callable[[Array], Any], value: Value) -> Value:
    """A value with zeros of the same signs where its numbers are small."""
    if not any_of([value], small):
        return value
    array = cast(Array, value)
    if is_complex(text_of(array.dtype)):
        parts = [np.where(small(part), np.copysign(0, part), part) for part in (array.real, array.imag)]
        return from_parts(*parts)
    (wide,) = parts_of([array])
    zeros = cast(Array, np.copysign(0, wide).astype(array.dtype))
    return np.where(small(wide), zeros, array).astype(array.dtype)


def _values_like(array: Array, args: Sequence[Value], seed: int, random: np.random.Generator) -> Array:
    """Replacement values of an array's type: the operands, ordinary numbers, NaN, or infinities."""
    text = text_of(array.dtype)
    arrays = [cast(Array, arg) for arg in args if isinstance(arg, np.ndarray) and arg.size]
    if seed == _OWN and arrays and (arrays[0].dtype, arrays[0].shape) == (array.dtype, array.shape):
        return arrays[0]
    if seed in (_LAST, _ANY) and (given := [arg.ravel() for arg in arrays if arg.dtype == array.dtype]):
        known = np.concatenate(given)
        return known[random.integers(0, known.size, array.shape) if seed == _ANY else np.full(array.shape, -1)]
    if text == "i1" and seed not in _WHOLE:
        return cast(Array, random.random(array.shape)) < 0.5 if seed % 2 else ~array
    if is_float(text) and seed in _EXTREME:
        return np.full(array.shape, _EXTREME[seed]).astype(array.dtype)
    drawn = cast(Array, random.standard_normal(array.shape)) * _SCALE.get(seed, 1.0)
    if is_float(text) or is_complex(text):
        return drawn.astype(array.dtype)
    if seed == 1:  # Few bits come out the same by chance too often.
        return not_(array)
    if seed in _WHOLE:
        return np.full(array.shape, _WHOLE[seed]).astype(array.dtype)
    return (np.abs(drawn * 9).astype(np.int64) % (1 << min(bit_width(text) - 1, 30))).astype(array.dtype)


def reached_elements(
    program: Program,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    *,
    max_steps: int | None = None,
    each: Callable[[], object] | None = None,
) -> dict[str, list[Array]]:
    """The elements of each output that each known deviation reaches, by its name: masks of the outputs' shapes.

    `each` is called before each run of the program: it may raise, where the time ended.
    """
    found: dict[str, list[Array]] = {}
    for deviation in (None, *DEVIATIONS):
        name = FLUSHED if deviation is None else deviation.name
        for seed in range(1 if deviation is None or name == ZEROS else _VARIANTS):
            if each is not None:
                each()
            variant = _Deviating(program, deviation, seed, max_steps)
            try:
                outputs = variant.run(inputs)
            except GcompError:
                continue
            if not variant.happened:
                break
            masks = [bits_differ(old, new) for old, new in zip(expected, outputs, strict=True)]
            known = found.get(name)
            found[name] = masks if known is None else [a | b for a, b in zip(known, masks, strict=True)]
    return found


def ill_conditioned(expected: Array, wider: Array) -> Array:
    """Where the reference itself gives another integer, or another infinity or NaN, when it rounds less."""
    if expected.dtype == wider.dtype and not (is_float(text_of(wider.dtype)) or is_complex(text_of(wider.dtype))):
        return np.asarray(expected != wider)
    mask = np.zeros(expected.shape, np.bool_)
    for a, b in zip(parts_of([expected]), parts_of([wider]), strict=True):
        mask |= (np.isnan(a) != np.isnan(b)) | (np.isinf(a) != np.isinf(b))
    return mask
