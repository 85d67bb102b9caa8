"""What a class of exactness leaves open inside a program, and which outputs depend on it.

E1 leaves open the sign of zeros and the bits of NaN, and E2 rounding and where sums overflow: for each value that is
computed, not for the outputs only. An op that looks at what is open (a division by zero, a total order, a conversion
of bits, a comparison of what was rounded) makes another value of it, which no rewrite can prevent. The reference runs
again with what is open chosen otherwise; elements of the outputs that change are not held against a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.reference.contract import values_differ
from gcomp.reference.noise import STATISTICS, rounding_masks
from gcomp.reference.numpy.dtypes import float_format
from gcomp.reference.numpy.rounding import from_value_bits, is_nan, value_bits
from gcomp.reference.spreading import Merging, Spreading, may_be_merged
from gcomp.reference.table import MEANINGS, Scope, Value
from gcomp.reference.varied import MOVES, PlainRow, VariedInterpreter, short_name

Array = np.ndarray[Any, Any]
Choice = Callable[[Array, Array, np.random.Generator], Array]
"""An array of floats, with what is open in it chosen otherwise; it is given the NaN of the operands, too."""

_SAMPLES, _FOLD_SAMPLES = 8, 20
"""How often each choice is made: an element may come out the same by chance, which it often does for folds."""
_OVERFLOW = 16.0
"""A sum whose value is so many times smaller than the type's greatest may overflow in another order."""
_MERGED = (np.nan, np.inf, -np.inf)
"""What terms that read an infinity may be, where their sum may be one convolution."""
_FINITE = (2.0, 3.0, 8.0, 64.0)
"""So many times smaller than the type's greatest may be what stands for an infinity."""


def _signs(array: Array, nans: Array, random: np.random.Generator) -> Array:
    """Zeros of signs at random; NaN of other signs and payloads, or those of an operand."""
    form = float_format(array.dtype)
    nan = np.asarray(is_nan(array))
    open_ = nan | np.asarray(array == 0)
    if not open_.any() or not form.has_negative_zero:
        return array
    bits = value_bits(array)
    sign, payload = 1 << (form.bits - 1), (1 << form.mantissa_bits) - 1
    flips = cast(Array, random.integers(0, 2, array.shape)).astype(bits.dtype) * bits.dtype.type(sign)
    fills = cast(Array, random.integers(0, 2, array.shape)).astype(bits.dtype) * bits.dtype.type(payload)
    other: Array = (bits ^ flips) | np.where(nan, fills, np.zeros_like(bits))
    if nans.size:
        passed_on = value_bits(nans)[random.integers(0, nans.size, array.shape)]
        other = np.where(nan & (cast(Array, random.random(array.shape)) < 0.5), passed_on, other)
    return from_value_bits(np.where(open_, other, bits), array.dtype)


def _overflow(array: Array, nans: Array, random: np.random.Generator) -> Array:
    """Numbers near the type's limits as infinities or NaN, and infinities as numbers."""
    wide: Array = array.astype(np.float64)
    greatest = float_format(array.dtype).max
    near = np.asarray(np.abs(wide) > greatest / _OVERFLOW)
    if not near.any():
        return array
    drawn = cast(Array, random.random(array.shape))
    other = np.where(np.isinf(wide), np.sign(wide) * greatest / 2, np.sign(wide) * np.inf)
    other = np.where(drawn < 0.25, np.nan, other)
    return np.where(near & (drawn < 0.75), other, wide).astype(array.dtype)


def _no_overflow(array: Array, nans: Array, random: np.random.Generator) -> Array:
    """All infinities as numbers, those of each op as another: of two that are subtracted, either may be the greater."""
    wide: Array = array.astype(np.float64)
    finite = np.sign(wide) * float_format(array.dtype).max / random.choice(_FINITE)
    return np.where(np.isinf(wide), finite, wide).astype(array.dtype)


_CHOICES: dict[Exactness, tuple[Choice, ...]] = {
    Exactness.E1: (_signs,),
    Exactness.E2: (_signs, _overflow, _no_overflow),
}


class _Free(VariedInterpreter):
    """An interpreter that chooses otherwise in the results of all that computes; `far` infinities, those of what is
    far too large for its type, stay as they are if it is told so."""

    def __init__(
        self, program: Program, choice: Choice, seed: int, max_steps: int | None, *, far: bool = False
    ) -> None:
        self._choice, self._random, self._far = choice, np.random.default_rng(seed), far
        super().__init__(program, max_steps=max_steps)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if short_name(op) in MOVES:
                return results
            chosen = [self._chosen(value, args) for value in results]
            if type(op) not in MEANINGS or not MEANINGS[type(op)].elementwise:
                return chosen
            wide = (lambda: row(op, [_widened(arg) for arg in args], scope)) if self._far else None
            return [_keep_infinities(v, other, args, wide) for v, other in zip(results, chosen, strict=True)]

        return run

    def _chosen(self, value: Value, args: Sequence[Value]) -> Value:
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        text = text_of(array.dtype)
        with np.errstate(all="ignore"):
            if is_complex(text):
                chosen = np.empty_like(array)
                parts = (array.real, array.imag)
                chosen.real, chosen.imag = (self._choice(p, _nans(args, p), self._random) for p in parts)
                return chosen
            return self._choice(array, _nans(args, array), self._random) if is_float(text) else array


def _keep_infinities(
    value: Value, chosen: Value, args: Sequence[Value], wide: Callable[[], Sequence[Value]] | None
) -> Value:
    """What was chosen, but for the infinities of an elementwise op that no rounding makes: those that operands bring,
    and, where `wide` computes the op in double precision, what is far too large for the type.

    Of complex numbers, whose parts an op may mix, none is kept.
    """
    if not _is_floats(value) or not (infinite := np.isinf(array := cast(Array, value))).any():
        return chosen
    kept = np.zeros(array.shape, np.bool_)
    for arg in args:
        if _is_floats(arg) and cast(Array, arg).shape in ((), array.shape):
            kept |= np.isinf(cast(Array, arg))
    if wide is not None and array.dtype != np.float64:
        found = cast(Array, wide()[0])
        if found.dtype == np.float64:
            kept |= np.abs(found) > float_format(array.dtype).max * _OVERFLOW
    return np.where(infinite & kept, array, cast(Array, chosen))


def _widened(value: Value) -> Value:
    return cast(Array, value).astype(np.float64) if _is_floats(value) else value


def _nans(args: Sequence[Value], like: Array) -> Array:
    """The NaN among operands of an array's type, or among the parts of such complex ones."""
    arrays = [cast(Array, arg) for arg in args if isinstance(arg, np.ndarray)]
    parts = [part for a in arrays for part in ((a.real, a.imag) if a.dtype.kind == "c" else (a,))]
    found = [part[np.asarray(is_nan(part))] for part in parts if part.dtype == like.dtype]
    return np.concatenate([np.empty(0, like.dtype), *found])


_SPECIAL = (np.inf, -np.inf, np.nan, 1.0)
_VANISHING = (0.0, 1.0, -1.0)
"""Of the least number above 0: what is left of a product of which a part is lost."""


class _Folds(VariedInterpreter):
    """An interpreter whose reductions overflow (or underflow) wherever some order of the terms would."""

    def __init__(self, program: Program, seed: int, max_steps: int | None) -> None:
        self._seed, self._random = seed, np.random.default_rng(seed)
        super().__init__(program, max_steps=max_steps)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if short_name(op) in _PRODUCTS and _is_open(args, results):
                return [self._transformed(cast(Array, value)) for value in results]
            if short_name(op) == "power" and _is_open(args, results):
                # C99 leaves open how infinities and NaN meet in cpow (G.6.4.1): exp(w log z) by any product.
                special = ~np.logical_and.reduce([np.isfinite(cast(Array, arg)) for arg in args])
                return [np.where(special, self._transformed(cast(Array, v)), cast(Array, v)) for v in results]
            if short_name(op) in STATISTICS:
                return self._normalized(op, [cast(Array, a) for a in args], [cast(Array, v) for v in results])
            if short_name(op) not in _FOLDS or not any(map(_is_floats, results)):
                return results
            products = any(inner.name == "stablehlo.multiply" for inner in op.walk())
            arrays = [cast(Array, value) for value in args]

            def of(change: Callable[[Array], Array]) -> Sequence[Value]:
                return row(op, [change(a) if _is_floats(a) else a for a in arrays], scope)

            above = of(lambda a: _magnitudes(a, products))
            others = [of(_fractions), of(lambda a: (a != 0).astype(a.dtype))] if products else []
            chosen = self._multiplied if products else self._chosen
            columns = [cast("tuple[Array, ...]", column) for column in zip(results, above, *others, strict=True)]
            return [chosen(*column) if _is_floats(column[0]) else column[0] for column in columns]

        return run

    def _chosen(self, result: Array, above: Array) -> Array:
        """What overflows in some order."""
        near = ~(above.astype(np.float64) < float_format(result.dtype).max / 2)
        return np.where(near, self._one_of(_SPECIAL, result), result.astype(np.float64)).astype(result.dtype)

    def _multiplied(self, result: Array, above: Array, below: Array, nonzero: Array) -> Array:
        """What overflows in some order, or loses its digits, or its zeros meet infinities."""
        form, wide, least = float_format(result.dtype), result.astype(np.float64), below.astype(np.float64)
        # Digits that a part loses matter where other factors make them large again.
        lost = (least < form.tiny) & (above.astype(np.float64) > 2) & (nonzero.astype(np.float64) != 0)
        lost &= np.isfinite(wide)
        found = np.where(lost, self._one_of(_VANISHING, result) * form.smallest, wide)
        near = ~(above.astype(np.float64) < form.max / 2)
        near |= (least == 0) & ~np.isfinite(wide)  # 0 * inf, in some order
        return np.where(near, self._one_of(_SPECIAL, result), found).astype(result.dtype)

    def _normalized(self, op: Operation, args: Sequence[Array], results: Sequence[Array]) -> Sequence[Array]:
        """What overflows where the statistics of a feature are computed in the operand's type."""
        feature: int = cast(GraphOp, op).value("feature_index")
        open_ = _statistics_overflow(args[0], args[4] if op.name == "stablehlo.batch_norm_grad" else None, feature)
        along = [-1 if d == feature else 1 for d in range(args[0].ndim)]
        masks = [open_ if v.ndim == 1 else open_.reshape(along) for v in results]
        chosen = [np.where(m, self._one_of(_SPECIAL, v), v) for m, v in zip(masks, results, strict=True)]
        return [new.astype(v.dtype) for new, v in zip(chosen, results, strict=True)]

    def _one_of(self, values: Sequence[float], result: Array) -> Array:
        if self._seed < len(_SPECIAL):
            # The same everywhere: where many are summed, chance makes NaN of them nearly always.
            return np.full(result.shape, values[self._seed % len(values)])
        return np.asarray(values)[self._random.integers(0, len(values), result.shape)]

    def _transformed(self, result: Array) -> Array:
        """Each part of what comes of infinities: which products with zeros are made is open."""
        changed = np.empty_like(result)
        changed.real = self._one_of(_SPECIAL, result)
        if not is_float(text_of(result.dtype)):
            changed.imag = self._one_of(_SPECIAL, result)
        return changed


class _Kept(VariedInterpreter):
    """An interpreter whose products and quotients do not vanish where only their type has no number that is so small,
    and whose batch normalizations do not overflow before they are scaled: in a wider type they would not."""

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if short_name(op) == "batch_norm_inference":
                return [_scaled_first(op, [cast(Array, a) for a in args], cast(Array, results[0]))]
            if short_name(op) not in ("divide", "multiply") or not all(map(_is_floats, results)):
                return results
            wide = row(op, [_widened(arg) for arg in args], scope)
            return [_kept(cast(Array, v), cast(Array, w)) for v, w in zip(results, wide, strict=True)]

        return run


def _kept(value: Array, wide: Array) -> Array:
    """Zeros that are none in double precision as the least numbers of the type."""
    least = np.sign(wide) * float_format(value.dtype).smallest
    return np.where((value == 0) & (wide != 0), least, value).astype(value.dtype)


def _scaled_first(op: Operation, args: Sequence[Array], result: Array) -> Array:
    """A batch normalization with finite operands, and its factor first where its quotient overflows (in doubles only:
    the reference computes others in them)."""
    along = [-1 if d == cast(GraphOp, op).value("feature_index") else 1 for d in range(result.ndim)]
    wide = [a.astype(np.float64) for a in args]
    x, (scale, offset, mean, variance) = wide[0], [a.reshape(along) for a in wide[1:]]
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + cast(GraphOp, op).value("epsilon"))
        other = (x - mean) * factor + offset
    lost = np.isfinite(other) & ~np.isfinite(result.astype(np.float64))
    return np.where(lost, other, result.astype(np.float64)).astype(result.dtype)


_FOLDS = frozenset(
    ("convolution", "cumulative", "dot", "dot_general", "ragged_dot", "reduce", "reduce_window", "select_and_scatter")
)


_PRODUCTS = frozenset(("convolution", "dot", "dot_general", "fft", "ragged_dot"))


def _is_open(args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether an op multiplies complex numbers, or transforms any, that are not finite."""
    arrays = [cast(Array, value) for value in (*args, *results)]
    return any(a.dtype.kind == "c" for a in arrays) and not all(np.isfinite(a).all() for a in arrays)


def _statistics_overflow(operand: Array, grad: Array | None, feature: int) -> Array:
    """The features whose sum, sum of squares, or sums of products with a gradient may overflow: a mask of theirs.

    Narrow floats are summed in f32.
    """
    others = tuple(d for d in range(operand.ndim) if d != feature)
    limit = max(float_format(operand.dtype).max, float_format(np.dtype(np.float32)).max) / 2
    x = _finite(operand)
    centered = np.abs(x - x.mean(axis=others, keepdims=True)) if x.size else x
    above = np.maximum(np.abs(x).sum(axis=others), (centered * centered).sum(axis=others))
    if grad is not None:
        g = np.abs(_finite(grad))
        farthest = np.maximum(np.abs(x), centered).max(axis=others, initial=1.0)
        above = np.maximum(above, g.sum(axis=others) * max(1, operand.size) * farthest * farthest)
    return ~(above < limit)


def _finite(array: Array) -> Array:
    """An array in double, with zeros for infinities and NaN."""
    wide: Array = array.astype(np.float64)
    return np.where(np.isfinite(wide), wide, 0.0)


def _is_floats(value: Value) -> bool:
    return isinstance(value, np.ndarray) and is_float(text_of(cast(Array, value).dtype))


def _magnitudes(array: Array, products: bool) -> Array:
    """Whose sum, or product, is at least as large as that of any part: factors below 1 make a product smaller."""
    wide = np.abs(array.astype(np.float64))
    wide = np.where(np.isfinite(wide), wide, 1.0)
    return (np.maximum(wide, 1.0) if products else wide).astype(array.dtype)


def _fractions(array: Array) -> Array:
    """Whose product is at most that of any part, but for zeros and NaN, which any order meets."""
    wide = np.abs(array.astype(np.float64))
    return np.where((wide > 0) & (wide < 1), wide, 1.0).astype(array.dtype)


def open_elements(
    program: Program,
    exactness: Exactness,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    actual: Sequence[Array],
    *,
    max_steps: int | None = None,
) -> list[Array]:
    """The outputs' elements that depend on what `exactness` leaves open inside the program: masks of their shapes.

    `expected` is what the program computes. `actual`, of the same shapes, is what is held against it: how far rounding
    may bring an element is compared with how far it is.
    """
    masks = _open_to_choices(program, exactness, inputs, expected, max_steps)
    if exactness is not Exactness.E2:
        return masks
    # An overflow by far that the outputs show is their value; what comes of one that is used up inside is open.
    shown = [mask & np.isinf(old) & np.isfinite(new) if _is_floats(old) else np.zeros(old.shape, np.bool_)
             for mask, old, new in zip(masks, expected, actual, strict=True)]  # fmt: skip
    if any(mask.any() for mask in shown):
        kept = _open_to_choices(program, exactness, inputs, expected, max_steps, far=True)
        masks = [mask & (other | ~at) for mask, other, at in zip(masks, kept, shown, strict=True)]
    merged = _MERGED if any(map(may_be_merged, program.ops())) else ()
    others = (
        _Kept(program, max_steps=max_steps), Spreading(program, max_steps=max_steps),
        *(Merging(program, value, max_steps=max_steps) for value in merged),
        *(_Folds(program, seed, max_steps) for seed in range(_FOLD_SAMPLES)),
    )  # fmt: skip
    for other in others:
        try:
            outputs = other.run(inputs)
        except GcompError:
            continue
        masks = [mask | values_differ(old, new) for mask, old, new in zip(masks, expected, outputs, strict=True)]
    rounded = rounding_masks(program, inputs, expected, actual, max_steps=max_steps)
    return [mask | other for mask, other in zip(masks, rounded, strict=True)]


def _open_to_choices(
    program: Program, exactness: Exactness, inputs: Sequence[Array], expected: Sequence[Array],
    max_steps: int | None, *, far: bool = False,
) -> list[Array]:  # fmt: skip
    """The outputs' elements that other choices within a class change."""
    masks = [np.zeros(old.shape, np.bool_) for old in expected]
    for choice in _CHOICES.get(exactness, ()):
        for seed in range(_SAMPLES):
            try:
                outputs = _Free(program, choice, seed, max_steps, far=far).run(inputs)
            except GcompError:
                continue
            masks = [mask | values_differ(old, new) for mask, old, new in zip(masks, expected, outputs, strict=True)]
    return masks
