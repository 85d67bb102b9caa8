"""Elementwise functions of the tile level in Triton's language.

A text is a template of the operands `{0}`, `{1}`, ...; `{w}` is the width of the first operand in bits, `{s}` and `{u}`
the signed and unsigned integers of that width. Where the language's own operator differs from the graph's meaning, the
text spells the meaning out: integers divided by zero, shifts past the width, the sign of a negated zero, NaN in maxima,
division and roots that round once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gcomp.lowering.tiles.functions import FLOATS, INTEGERS, kind_of


def text_of(function: str, dtypes: Sequence[str], names: Sequence[str]) -> str:
    """The expression of a function in Triton's language; `dtypes` and `names` are the operands'."""
    dtype = dtypes[-1]
    texts = TEXTS[function]
    template = texts["any"] if "any" in texts else texts[kind_of(dtype)]
    width = "".join(c for c in dtype if c.isdigit()) or "1"
    return template.format(*names, w=width, s=f"tl.int{width}", u=f"tl.uint{width}")


def _on(kinds: Sequence[str], text: str) -> dict[str, str]:
    return dict.fromkeys(kinds, text)


def _libdevice(name: str, arguments: int = 1) -> dict[str, str]:
    return _on(FLOATS, f"libdevice.{name}({', '.join(f'{{{i}}}' for i in range(arguments))})")


_GUARDED = "tl.where(({1} == 0) | ({1} == -1), 1, {1})"

TEXTS: Mapping[str, Mapping[str, str]] = {
    # Arithmetic
    "add": {**_on((*FLOATS, *INTEGERS), "{0} + {1}"), "bool": "{0} | {1}"},
    "subtract": _on((*FLOATS, *INTEGERS), "{0} - {1}"),
    "multiply": {**_on((*FLOATS, *INTEGERS), "{0} * {1}"), "bool": "{0} & {1}"},
    "divide": {
        "f32": "tl.div_rn({0}, {1})", "f64": "{0} / {1}",
        "signed": f"tl.where({{1}} == 0, ~{{1}}, tl.where({{1}} == -1, 0 - {{0}}, {{0}} // {_GUARDED}))",
        "unsigned": "tl.where({1} == 0, ~{1}, {0} // tl.where({1} == 0, 1, {1}))",
    },
    "remainder": {
        **_libdevice("fmod", 2),
        "signed": f"tl.where({{1}} == 0, {{0}}, tl.where({{1}} == -1, 0, {{0}} % {_GUARDED}))",
        "unsigned": "tl.where({1} == 0, {0}, {0} % tl.where({1} == 0, 1, {1}))",
    },
    "negate": {**_on(FLOATS, "{0} * -1.0"), **_on(INTEGERS, "0 - {0}")},
    "abs": {**_on((*FLOATS, "signed"), "tl.abs({0})"), "unsigned": "{0}"},
    "sign": {
        **_on(FLOATS, "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0}))"),
        "signed": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({s})",
        "unsigned": "tl.where({0} > 0, 1, 0).to({u})",
    },
    "maximum": {
        **_on(FLOATS, "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
        **_on(INTEGERS, "tl.maximum({0}, {1})"), "bool": "{0} | {1}",
    },
    "minimum": {
        **_on(FLOATS, "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
        **_on(INTEGERS, "tl.minimum({0}, {1})"), "bool": "{0} & {1}",
    },
    "power": _libdevice("pow", 2),
    "fma": _on(FLOATS, "tl.fma({0}, {1}, {2})"),
    # Logic and bits
    "and": _on((*INTEGERS, "bool"), "{0} & {1}"),
    "or": _on((*INTEGERS, "bool"), "{0} | {1}"),
    "xor": _on((*INTEGERS, "bool"), "{0} ^ {1}"),
    "not": {**_on(INTEGERS, "~{0}"), "bool": "{0} == 0"},
    "shift_left": _on(
        INTEGERS, "tl.where({1}.to({u}, bitcast=True) < {w}, {0} << ({1} & ({w} - 1)), 0)"),
    "shift_right_logical": {
        "signed": "tl.where({1}.to({u}, bitcast=True) < {w}, "
                  "({0}.to({u}, bitcast=True) >> ({1}.to({u}, bitcast=True) & ({w} - 1))).to({s}, bitcast=True), 0)",
        "unsigned": "tl.where({1} < {w}, {0} >> ({1} & ({w} - 1)), 0)",
    },
    "shift_right_arithmetic": {
        "signed": "{0} >> tl.where({1}.to({u}, bitcast=True) < {w}, {1}, {w} - 1)",
        "unsigned": "({0}.to({s}, bitcast=True) >> tl.where({1} < {w}, {1}, {w} - 1).to({s}, bitcast=True))"
                    ".to({u}, bitcast=True)",
    },
    # Comparison and choice
    **{name: _on((*FLOATS, *INTEGERS, "bool"), f"{{0}} {symbol} {{1}}") for name, symbol in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    "select": {"any": "tl.where({0}, {1}, {2})"},
    "is_finite": _on(FLOATS, "tl.abs({0}) < float('inf')"),
    # Rounding
    "floor": _libdevice("floor"),
    "ceil": _libdevice("ceil"),
    "round_nearest_even": _libdevice("rint"),
    "round_nearest_afz": _libdevice("round"),
    # Elementary functions
    "sqrt": {"f32": "tl.sqrt_rn({0})", "f64": "libdevice.sqrt({0})"},
    "rsqrt": _libdevice("rsqrt"),
    "cbrt": _libdevice("cbrt"),
    "exponential": _libdevice("exp"),
    "exponential2": {"f32": "tl.exp2({0})", "f64": "libdevice.exp2({0})"},
    "exponential_minus_one": _libdevice("expm1"),
    "log": _libdevice("log"),
    "log_plus_one": _libdevice("log1p"),
    "logistic": {
        "f32": "tl.div_rn(1.0, 1.0 + libdevice.exp({0} * -1.0))",
        "f64": "1.0 / (1.0 + libdevice.exp({0} * -1.0))",
    },
    "tanh": _libdevice("tanh"),
    "sine": _libdevice("sin"),
    "cosine": _libdevice("cos"),
    "tan": _libdevice("tan"),
    "atan2": _libdevice("atan2", 2),
    "acos": _libdevice("acos"),
    "acosh": _libdevice("acosh"),
    "asin": _libdevice("asin"),
    "asinh": _libdevice("asinh"),
    "atan": _libdevice("atan"),
    "atanh": _libdevice("atanh"),
    "cosh": _libdevice("cosh"),
    "sinh": _libdevice("sinh"),
    "erf": _libdevice("erf"),
    "erfc": _libdevice("erfc"),
    "erf_inv": _libdevice("erfinv"),
    "lgamma": _libdevice("lgamma"),
    "next_after": _libdevice("nextafter", 2),
    "square": _on((*FLOATS, *INTEGERS), "{0} * {0}"),
    "is_inf": _on(FLOATS, "tl.abs({0}) == float('inf')"),
    "is_pos_inf": _on(FLOATS, "{0} == float('inf')"),
    "is_neg_inf": _on(FLOATS, "{0} == float('-inf')"),
    # Positions: division rounds down. The plain forms are for dividends that are never negative.
    "divide_positive": {"signed": "{0} // {1}"},
    "modulo_positive": {"signed": "{0} % {1}"},
    "divide_floor": {"signed": "({0} - tl.where({0} < 0, {1} - 1, 0)) // {1}"},
    "modulo_floor": {"signed": "({0} % {1} + {1}) % {1}"},
}  # fmt: skip
"""Function -> a template for each kind of element type that it takes; `any` where it takes all."""
