"""Monte Carlo arithmetic (Parker, 1997): how far rounding alone may bring a program's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.dtypes import float_format
from gcomp.reference.table import Scope, Value
from gcomp.reference.varied import MOVES, PlainRow, VariedInterpreter, short_name

Array = np.ndarray[Any, Any]

_SAMPLES, _MARGIN = 8, 6.0
_ULPS, _FUNCTION_ULPS = 1.0, 8.0
FUNCTIONS = frozenset(
    ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i1e", "cbrt", "cosh", "cosine", "digamma",
     "erf", "erf_inv", "erfc", "exponential", "exponential_minus_one", "lgamma", "log", "log_plus_one", "logistic",
     "polygamma", "power", "rsqrt", "sine", "sinh", "sqrt", "tan", "tanh", "zeta")
)  # fmt: skip
"""What targets approximate, within some ulps (docs/ulp.md)."""
_FOLDS = frozenset(("convolution", "dot", "dot_general", "reduce", "reduce_window", "batch_norm_inference", "fft"))
"""What adds in another order: the error is one of the operands'."""


class NoisyInterpreter(VariedInterpreter):
    """An interpreter whose floats are off by some ulps, at random."""

    def __init__(self, program: Program, seed: int, *, max_steps: int | None = None) -> None:
        self._random = np.random.default_rng(seed)
        super().__init__(program, max_steps=max_steps)

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            name = short_name(op)
            if name in MOVES:
                return row(op, args, scope)
            given = [self._off(v, _ULPS) for v in args] if name in _FOLDS else args
            ulps = _FUNCTION_ULPS if name in FUNCTIONS else _ULPS
            return [self._off(value, ulps) for value in row(op, given, scope)]

        return run

    def _off(self, value: Value, ulps: float) -> Value:
        if not isinstance(value, np.ndarray):
            return value
        array = cast(Array, value)
        text = text_of(array.dtype)
        if is_complex(text):
            return from_parts(*(cast(Array, self._off(part, ulps)) for part in (array.real, array.imag)))
        if not is_float(text):
            return array
        noise = cast(Array, self._random.uniform(-ulps, ulps, array.shape))
        with np.errstate(all="ignore"):
            wide, form = array.astype(np.float64), float_format(array.dtype)
            ulp = np.maximum(np.abs(wide) * form.epsilon, form.smallest)  # below the normal numbers, of one size
            return np.where(np.isfinite(wide) & (wide != 0), wide + noise * ulp, wide).astype(array.dtype)


def rounded_otherwise(
    program: Program, inputs: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array],
    *, max_steps: int | None = None,
) -> list[Array]:  # fmt: skip
    """Where outputs are as far from the reference's as rounding alone may bring them: masks.

    The reference runs with its floats off by some ulps at random, several times; what comes out spreads by as much as
    the program amplifies errors. Integers and infinities count where they do not come out the same each time.
    """
    spread = [np.zeros(old.shape) for old in expected]
    for seed in range(_SAMPLES):
        try:
            outputs = NoisyInterpreter(program, seed, max_steps=max_steps).run(inputs)
        except GcompError:
            continue
        spread = [np.maximum(s, _distance(old, new)) for s, old, new in zip(spread, expected, outputs, strict=True)]
    return [
        (s > 0) & (_distance(old, new) <= _MARGIN * s) for s, old, new in zip(spread, expected, actual, strict=True)
    ]


def _distance(old: Array, new: Array) -> Array:
    """How far elements are apart; infinitely, where one is a number and the other is not, or shapes differ."""
    if old.shape != new.shape:
        return np.full(old.shape, np.inf)
    wide = np.complex128 if is_complex(text_of(old.dtype)) else np.float64
    with np.errstate(all="ignore"):
        a, b = old.astype(wide), new.astype(wide)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf)
    return np.where(same, 0.0, apart)
