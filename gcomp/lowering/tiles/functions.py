"""Elementwise functions of the tile level: for each, the element types that it takes, and its meaning.

Meanings are those of the graph level, from `gcomp.reference.numpy`; `fma` is the tile level's own. Each printer has its
own table of how a function is computed: `gcomp.lowering.triton.texts`, `gcomp.lowering.llvm.functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.lowering.tiles.fused import fma
from gcomp.records import record
from gcomp.reference.numpy import chlo, elementwise
from gcomp.reference.numpy.dtypes import Array

Meaning = Callable[..., Any]


def kind_of(dtype: str) -> str:
    """The kind of an element type: f32, f64, narrow, signed, unsigned, bool or complex."""
    if dtype in ("f32", "f64"):
        return dtype
    if dtype == "i1":
        return "bool"
    if dtype.startswith("ui"):
        return "unsigned"
    if dtype.startswith("i"):
        return "signed"
    return "complex" if dtype.startswith("complex") else "narrow"


@record
class Function:
    """A function on elements. `kinds` are the kinds of element types that it takes."""

    arity: int
    meaning: Meaning
    kinds: tuple[str, ...]
    gives_bool: bool = False
    picks: bool = False
    """Whether the first operand is a condition, which picks elements of any type."""

    def refuses(self, dtypes: Sequence[str]) -> str | None:
        """Why it does not take operands of these types; None if it does."""
        if len(dtypes) != self.arity:
            return f"takes {self.arity} operands, not {len(dtypes)}"
        if self.picks:
            return None if dtypes[0] == "i1" and len({*dtypes[1:]}) == 1 else f"does not take {', '.join(dtypes)}"
        if len({*dtypes}) != 1:
            return f"takes operands of one type, not {', '.join(dtypes)}"
        return None if kind_of(dtypes[0]) in self.kinds else f"does not take {dtypes[0]}"

    def result(self, dtypes: Sequence[str]) -> str:
        """The element type of the result."""
        return "i1" if self.gives_bool else dtypes[-1]


FLOATS, INTEGERS = ("f32", "f64"), ("signed", "unsigned")
NUMBERS, BITS, ALL = (*FLOATS, *INTEGERS), (*INTEGERS, "bool"), (*FLOATS, *INTEGERS, "bool")


def _comparison(direction: str) -> Function:
    def meaning(lhs: Array, rhs: Array) -> Array:
        return elementwise.compare(lhs, rhs, comparison_direction=direction)

    return Function(2, meaning, ALL, gives_bool=True)


def _above_zero(divisor: Array) -> Array:
    """A divisor of positions; 0, in lanes that take no part, is 1. Raises ValueError for one below 0."""
    if (divisor < 0).any():
        raise ValueError("positions are divided by what is above 0: machine code and Triton see no sign")
    return np.maximum(divisor, 1)


def _divide_floor(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs // _above_zero(rhs))


def _modulo_floor(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs % _above_zero(rhs))


def _divide_positive(lhs: Array, rhs: Array) -> Array:
    """As the operator of the language does it, towards zero: what is never negative does not see the difference."""
    below = (lhs < 0) & (_modulo_floor(lhs, rhs) != 0)
    return np.asarray(_divide_floor(lhs, rhs) + below).astype(lhs.dtype)


def _modulo_positive(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs - _divide_positive(lhs, rhs) * rhs).astype(lhs.dtype)


def _exponential2(x: Array) -> Array:
    return np.asarray(np.exp2(x.astype(np.float64)).astype(x.dtype))


FUNCTIONS: dict[str, Function] = {
    # Arithmetic
    "add": Function(2, elementwise.add, ALL),
    "subtract": Function(2, elementwise.subtract, NUMBERS),
    "multiply": Function(2, elementwise.multiply, ALL),
    "divide": Function(2, elementwise.divide, NUMBERS),
    "remainder": Function(2, elementwise.remainder, NUMBERS),
    "negate": Function(1, elementwise.negate, NUMBERS),
    "abs": Function(1, elementwise.abs, NUMBERS),
    "sign": Function(1, elementwise.sign, NUMBERS),
    "maximum": Function(2, elementwise.maximum, ALL),
    "minimum": Function(2, elementwise.minimum, ALL),
    "power": Function(2, elementwise.power, FLOATS),
    "fma": Function(3, fma, FLOATS),
    # Logic and bits
    "and": Function(2, elementwise.and_, BITS),
    "or": Function(2, elementwise.or_, BITS),
    "xor": Function(2, elementwise.xor, BITS),
    "not": Function(1, elementwise.not_, BITS),
    "shift_left": Function(2, elementwise.shift_left, INTEGERS),
    "shift_right_logical": Function(2, elementwise.shift_right_logical, INTEGERS),
    "shift_right_arithmetic": Function(2, elementwise.shift_right_arithmetic, INTEGERS),
    # Comparison and choice
    **{direction.lower(): _comparison(direction) for direction in ("EQ", "NE", "LT", "LE", "GT", "GE")},
    "select": Function(3, elementwise.select, (), picks=True),
    "is_finite": Function(1, elementwise.is_finite, FLOATS, gives_bool=True),
    # Rounding
    "floor": Function(1, elementwise.floor, FLOATS),
    "ceil": Function(1, elementwise.ceil, FLOATS),
    "round_nearest_even": Function(1, elementwise.round_nearest_even, FLOATS),
    "round_nearest_afz": Function(1, elementwise.round_nearest_afz, FLOATS),
    # Elementary functions
    "sqrt": Function(1, elementwise.sqrt, FLOATS),
    "rsqrt": Function(1, elementwise.rsqrt, FLOATS),
    "cbrt": Function(1, elementwise.cbrt, FLOATS),
    "exponential": Function(1, elementwise.exponential, FLOATS),
    "exponential2": Function(1, _exponential2, FLOATS),
    "exponential_minus_one": Function(1, elementwise.exponential_minus_one, FLOATS),
    "log": Function(1, elementwise.log, FLOATS),
    "log_plus_one": Function(1, elementwise.log_plus_one, FLOATS),
    "logistic": Function(1, elementwise.logistic, FLOATS),
    "tanh": Function(1, elementwise.tanh, FLOATS),
    "sine": Function(1, elementwise.sine, FLOATS),
    "cosine": Function(1, elementwise.cosine, FLOATS),
    "tan": Function(1, elementwise.tan, FLOATS),
    "atan2": Function(2, elementwise.atan2, FLOATS),
    "acos": Function(1, chlo.acos, FLOATS),
    "acosh": Function(1, chlo.acosh, FLOATS),
    "asin": Function(1, chlo.asin, FLOATS),
    "asinh": Function(1, chlo.asinh, FLOATS),
    "atan": Function(1, chlo.atan, FLOATS),
    "atanh": Function(1, chlo.atanh, FLOATS),
    "cosh": Function(1, chlo.cosh, FLOATS),
    "sinh": Function(1, chlo.sinh, FLOATS),
    "erf": Function(1, chlo.erf, FLOATS),
    "erfc": Function(1, chlo.erfc, FLOATS),
    "erf_inv": Function(1, chlo.erf_inv, FLOATS),
    "lgamma": Function(1, chlo.lgamma, FLOATS),
    "next_after": Function(2, chlo.next_after, FLOATS),
    "square": Function(1, chlo.square, NUMBERS),
    "is_inf": Function(1, chlo.is_inf, FLOATS, gives_bool=True),
    "is_pos_inf": Function(1, chlo.is_pos_inf, FLOATS, gives_bool=True),
    "is_neg_inf": Function(1, chlo.is_neg_inf, FLOATS, gives_bool=True),
    # Positions: division rounds down. The plain forms are for dividends that are never negative.
    "divide_positive": Function(2, _divide_positive, ("signed",)),
    "modulo_positive": Function(2, _modulo_positive, ("signed",)),
    "divide_floor": Function(2, _divide_floor, ("signed",)),
    "modulo_floor": Function(2, _modulo_floor, ("signed",)),
}
"""Name -> function. Names are those of the graph level's ops; comparisons are named by their direction."""
