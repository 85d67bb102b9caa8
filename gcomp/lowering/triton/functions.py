"""Elementwise functions of the tile level: for each, what it takes, its meaning, and its text in Triton's language.

Meanings are those of the graph level, from `gcomp.reference.numpy`. A text is a template of the operands `{0}`, `{1}`,
...; `{w}` is the width of the first operand in bits, `{s}` and `{u}` the signed and unsigned integers of that width.
Where the language's own operator differs from the graph's meaning, the text spells the meaning out: integers divided by
zero, shifts past the width, the sign of a negated zero, NaN in maxima, division and roots that round once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


@dataclass(frozen=True)
class Function:
    """A function on elements. `texts` has a template for each kind of element type that it takes."""

    arity: int
    meaning: Meaning
    texts: Mapping[str, str]
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
        return None if kind_of(dtypes[0]) in self.texts else f"does not take {dtypes[0]}"

    def result(self, dtypes: Sequence[str]) -> str:
        """The element type of the result."""
        return "i1" if self.gives_bool else dtypes[-1]

    def text(self, dtypes: Sequence[str], names: Sequence[str]) -> str:
        """The expression in Triton's language."""
        dtype = dtypes[-1]
        template = self.texts["any" if self.picks else kind_of(dtype)]
        width = "".join(c for c in dtype if c.isdigit()) or "1"
        return template.format(*names, w=width, s=f"tl.int{width}", u=f"tl.uint{width}")


FLOATS, INTEGERS = ("f32", "f64"), ("signed", "unsigned")


def _on(kinds: Sequence[str], text: str) -> dict[str, str]:
    return dict.fromkeys(kinds, text)


def _libdevice(name: str, arguments: int = 1) -> dict[str, str]:
    return _on(FLOATS, f"libdevice.{name}({', '.join(f'{{{i}}}' for i in range(arguments))})")


def _comparison(symbol: str, direction: str) -> Function:
    def meaning(lhs: Array, rhs: Array) -> Array:
        return elementwise.compare(lhs, rhs, comparison_direction=direction)

    return Function(2, meaning, _on((*FLOATS, *INTEGERS, "bool"), f"{{0}} {symbol} {{1}}"), gives_bool=True)


def _divide_floor(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs // np.where(rhs == 0, 1, rhs).astype(rhs.dtype))


def _modulo_floor(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs % np.where(rhs == 0, 1, rhs).astype(rhs.dtype))


def _divide_positive(lhs: Array, rhs: Array) -> Array:
    """As the operator of the language does it, towards zero: what is never negative does not see the difference."""
    below = (lhs < 0) & (_modulo_floor(lhs, rhs) != 0)
    return np.asarray(_divide_floor(lhs, rhs) + below).astype(lhs.dtype)


def _modulo_positive(lhs: Array, rhs: Array) -> Array:
    return np.asarray(lhs - _divide_positive(lhs, rhs) * rhs).astype(lhs.dtype)


def _exponential2(x: Array) -> Array:
    return np.asarray(np.exp2(x.astype(np.float64)).astype(x.dtype))


_GUARDED = "tl.where(({1} == 0) | ({1} == -1), 1, {1})"

FUNCTIONS: dict[str, Function] = {
    # Arithmetic
    "add": Function(2, elementwise.add, {**_on((*FLOATS, *INTEGERS), "{0} + {1}"), "bool": "{0} | {1}"}),
    "subtract": Function(2, elementwise.subtract, _on((*FLOATS, *INTEGERS), "{0} - {1}")),
    "multiply": Function(2, elementwise.multiply, {**_on((*FLOATS, *INTEGERS), "{0} * {1}"), "bool": "{0} & {1}"}),
    "divide": Function(2, elementwise.divide, {
        "f32": "tl.div_rn({0}, {1})", "f64": "{0} / {1}",
        "signed": f"tl.where({{1}} == 0, ~{{1}}, tl.where({{1}} == -1, 0 - {{0}}, {{0}} // {_GUARDED}))",
        "unsigned": "tl.where({1} == 0, ~{1}, {0} // tl.where({1} == 0, 1, {1}))",
    }),
    "remainder": Function(2, elementwise.remainder, {
        **_libdevice("fmod", 2),
        "signed": f"tl.where({{1}} == 0, {{0}}, tl.where({{1}} == -1, 0, {{0}} % {_GUARDED}))",
        "unsigned": "tl.where({1} == 0, {0}, {0} % tl.where({1} == 0, 1, {1}))",
    }),
    "negate": Function(1, elementwise.negate, {**_on(FLOATS, "{0} * -1.0"), **_on(INTEGERS, "0 - {0}")}),
    "abs": Function(1, elementwise.abs, {**_on((*FLOATS, "signed"), "tl.abs({0})"), "unsigned": "{0}"}),
    "sign": Function(1, elementwise.sign, {
        **_on(FLOATS, "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0}))"),
        "signed": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({s})",
        "unsigned": "tl.where({0} > 0, 1, 0).to({u})",
    }),
    "maximum": Function(2, elementwise.maximum, {
        **_on(FLOATS, "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
        **_on(INTEGERS, "tl.maximum({0}, {1})"), "bool": "{0} | {1}",
    }),
    "minimum": Function(2, elementwise.minimum, {
        **_on(FLOATS, "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
        **_on(INTEGERS, "tl.minimum({0}, {1})"), "bool": "{0} & {1}",
    }),
    "power": Function(2, elementwise.power, _libdevice("pow", 2)),
    # Logic and bits
    "and": Function(2, elementwise.and_, _on((*INTEGERS, "bool"), "{0} & {1}")),
    "or": Function(2, elementwise.or_, _on((*INTEGERS, "bool"), "{0} | {1}")),
    "xor": Function(2, elementwise.xor, _on((*INTEGERS, "bool"), "{0} ^ {1}")),
    "not": Function(1, elementwise.not_, {**_on(INTEGERS, "~{0}"), "bool": "{0} == 0"}),
    "shift_left": Function(2, elementwise.shift_left, _on(
        INTEGERS, "tl.where({1}.to({u}, bitcast=True) < {w}, {0} << ({1} & ({w} - 1)), 0)")),
    "shift_right_logical": Function(2, elementwise.shift_right_logical, {
        "signed": "tl.where({1}.to({u}, bitcast=True) < {w}, "
                  "({0}.to({u}, bitcast=True) >> ({1}.to({u}, bitcast=True) & ({w} - 1))).to({s}, bitcast=True), 0)",
        "unsigned": "tl.where({1} < {w}, {0} >> ({1} & ({w} - 1)), 0)",
    }),
    "shift_right_arithmetic": Function(2, elementwise.shift_right_arithmetic, {
        "signed": "{0} >> tl.where({1}.to({u}, bitcast=True) < {w}, {1}, {w} - 1)",
        "unsigned": "({0}.to({s}, bitcast=True) >> tl.where({1} < {w}, {1}, {w} - 1).to({s}, bitcast=True))"
                    ".to({u}, bitcast=True)",
    }),
    # Comparison and choice
    **{name: _comparison(symbol, direction) for name, symbol, direction in (
        ("eq", "==", "EQ"), ("ne", "!=", "NE"), ("lt", "<", "LT"), ("le", "<=", "LE"), ("gt", ">", "GT"),
        ("ge", ">=", "GE"))},
    "select": Function(3, elementwise.select, {"any": "tl.where({0}, {1}, {2})"}, picks=True),
    "is_finite": Function(1, elementwise.is_finite, _on(FLOATS, "tl.abs({0}) < float('inf')"), gives_bool=True),
    # Rounding
    "floor": Function(1, elementwise.floor, _libdevice("floor")),
    "ceil": Function(1, elementwise.ceil, _libdevice("ceil")),
    "round_nearest_even": Function(1, elementwise.round_nearest_even, _libdevice("rint")),
    "round_nearest_afz": Function(1, elementwise.round_nearest_afz, _libdevice("round")),
    # Elementary functions
    "sqrt": Function(1, elementwise.sqrt, {"f32": "tl.sqrt_rn({0})", "f64": "libdevice.sqrt({0})"}),
    "rsqrt": Function(1, elementwise.rsqrt, _libdevice("rsqrt")),
    "cbrt": Function(1, elementwise.cbrt, _libdevice("cbrt")),
    "exponential": Function(1, elementwise.exponential, _libdevice("exp")),
    "exponential2": Function(1, _exponential2, {"f32": "tl.exp2({0})", "f64": "libdevice.exp2({0})"}),
    "exponential_minus_one": Function(1, elementwise.exponential_minus_one, _libdevice("expm1")),
    "log": Function(1, elementwise.log, _libdevice("log")),
    "log_plus_one": Function(1, elementwise.log_plus_one, _libdevice("log1p")),
    "logistic": Function(1, elementwise.logistic, {
        "f32": "tl.div_rn(1.0, 1.0 + libdevice.exp({0} * -1.0))",
        "f64": "1.0 / (1.0 + libdevice.exp({0} * -1.0))",
    }),
    "tanh": Function(1, elementwise.tanh, _libdevice("tanh")),
    "sine": Function(1, elementwise.sine, _libdevice("sin")),
    "cosine": Function(1, elementwise.cosine, _libdevice("cos")),
    "tan": Function(1, elementwise.tan, _libdevice("tan")),
    "atan2": Function(2, elementwise.atan2, _libdevice("atan2", 2)),
    "acos": Function(1, chlo.acos, _libdevice("acos")),
    "acosh": Function(1, chlo.acosh, _libdevice("acosh")),
    "asin": Function(1, chlo.asin, _libdevice("asin")),
    "asinh": Function(1, chlo.asinh, _libdevice("asinh")),
    "atan": Function(1, chlo.atan, _libdevice("atan")),
    "atanh": Function(1, chlo.atanh, _libdevice("atanh")),
    "cosh": Function(1, chlo.cosh, _libdevice("cosh")),
    "sinh": Function(1, chlo.sinh, _libdevice("sinh")),
    "erf": Function(1, chlo.erf, _libdevice("erf")),
    "erfc": Function(1, chlo.erfc, _libdevice("erfc")),
    "erf_inv": Function(1, chlo.erf_inv, _libdevice("erfinv")),
    "lgamma": Function(1, chlo.lgamma, _libdevice("lgamma")),
    "next_after": Function(2, chlo.next_after, _libdevice("nextafter", 2)),
    "square": Function(1, chlo.square, _on((*FLOATS, *INTEGERS), "{0} * {0}")),
    "is_inf": Function(1, chlo.is_inf, _on(FLOATS, "tl.abs({0}) == float('inf')"), gives_bool=True),
    "is_pos_inf": Function(1, chlo.is_pos_inf, _on(FLOATS, "{0} == float('inf')"), gives_bool=True),
    "is_neg_inf": Function(1, chlo.is_neg_inf, _on(FLOATS, "{0} == float('-inf')"), gives_bool=True),
    # Positions: division rounds down. The plain forms are for dividends that are never negative.
    "divide_positive": Function(2, _divide_positive, {"signed": "{0} // {1}"}),
    "modulo_positive": Function(2, _modulo_positive, {"signed": "{0} % {1}"}),
    "divide_floor": Function(2, _divide_floor, {"signed": "({0} - tl.where({0} < 0, {1} - 1, 0)) // {1}"}),
    "modulo_floor": Function(2, _modulo_floor, {"signed": "({0} % {1} + {1}) % {1}"}),
}  # fmt: skip
"""Name -> function. Names are those of the graph level's ops; comparisons are named by their direction."""
