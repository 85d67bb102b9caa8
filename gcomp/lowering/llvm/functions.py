"""Elementwise functions as LLVM's instructions, on scalars and vectors alike: what is correctly rounded, and integers.

A row takes the writer, the element type of the operands, how many lanes there are, and the operands. Elementary
functions have no rows: `gcomp.lowering.tiles.expanding` makes them of these before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gcomp.dtypes import bit_width
from gcomp.lowering.llvm.lanes import float_text
from gcomp.lowering.llvm.writer import Writer, scalar_type, suffix, type_of, vector
from gcomp.lowering.tiles.functions import FLOATS, INTEGERS, kind_of

Row = Callable[[Writer, str, int, Sequence[str]], str]


def _plain(code: str) -> Row:
    def row(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
        return w.pure(f"{code} {type_of(dtype, count)} {', '.join(operands)}")

    return row


def _intrinsic(name: str, *more: tuple[str, str]) -> Row:
    def row(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
        type = type_of(dtype, count)
        given = [(type, operand) for operand in operands]
        return w.call(f"llvm.{name}.{suffix(dtype, count)}", type, [*given, *more])

    return row


def _constant(dtype: str, count: int, value: str) -> str:
    """The same constant in all lanes."""
    return value if count == 1 else f"splat ({scalar_type(dtype)} {value})"


def _choose(w: Writer, dtype: str, count: int, condition: str, one: str, other: str) -> str:
    type = type_of(dtype, count)
    return w.pure(f"select {vector('i1', count)} {condition}, {type} {one}, {type} {other}")


def _binary(w: Writer, code: str, dtype: str, count: int, one: str, other: str) -> str:
    return w.pure(f"{code} {type_of(dtype, count)} {one}, {other}")


# ---- integers -----------------------------------------------------------------------------------------------------


def _safe(w: Writer, dtype: str, count: int, divisor: str, *, signed: bool) -> tuple[str, str, str | None]:
    """A divisor that does not trap; where it was 0, and where it was -1."""
    one = _constant(dtype, count, "1")
    zero = _binary(w, "icmp eq", dtype, count, divisor, _constant(dtype, count, "0"))
    safe = _choose(w, dtype, count, zero, one, divisor)
    if not signed:
        return safe, zero, None
    minus = _binary(w, "icmp eq", dtype, count, divisor, _constant(dtype, count, "-1"))
    return _choose(w, dtype, count, minus, one, safe), zero, minus


def _divide(w: Writer, dtype: str, count: int, operands: Sequence[str], *, signed: bool) -> str:
    """Towards zero; x / 0 has all bits set, and the least number by -1 is itself."""
    x, y = operands
    safe, zero, minus = _safe(w, dtype, count, y, signed=signed)
    found = _binary(w, "sdiv" if signed else "udiv", dtype, count, x, safe)
    if minus is not None:
        negated = _binary(w, "sub", dtype, count, _constant(dtype, count, "0"), x)
        found = _choose(w, dtype, count, minus, negated, found)
    return _choose(w, dtype, count, zero, _constant(dtype, count, "-1"), found)


def _remainder(w: Writer, dtype: str, count: int, operands: Sequence[str], *, signed: bool) -> str:
    """With the dividend's sign; x rem 0 is x."""
    x, y = operands
    safe, zero, minus = _safe(w, dtype, count, y, signed=signed)
    found = _binary(w, "srem" if signed else "urem", dtype, count, x, safe)
    if minus is not None:
        found = _choose(w, dtype, count, minus, _constant(dtype, count, "0"), found)
    return _choose(w, dtype, count, zero, x, found)


def _fits(dtype: str, count: int, amount: str) -> bool:
    """Whether a shift's distance is a constant of less than the width."""
    text = amount if count == 1 else amount.removeprefix(f"splat ({scalar_type(dtype)} ").removesuffix(")")
    return text.isdigit() and int(text) < bit_width(dtype)


def _shift(w: Writer, dtype: str, count: int, operands: Sequence[str], *, code: str) -> str:
    """By the width or more, nothing is left."""
    x, amount = operands
    if _fits(dtype, count, amount):
        return _binary(w, code, dtype, count, x, amount)
    fits = _binary(w, "icmp ult", dtype, count, amount, _constant(dtype, count, str(bit_width(dtype))))
    zero = _constant(dtype, count, "0")
    within = _choose(w, dtype, count, fits, amount, zero)
    return _choose(w, dtype, count, fits, _binary(w, code, dtype, count, x, within), zero)


def _shift_arithmetic(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    """By the width or more, the sign is left."""
    x, amount = operands
    if _fits(dtype, count, amount):
        return _binary(w, "ashr", dtype, count, x, amount)
    fits = _binary(w, "icmp ult", dtype, count, amount, _constant(dtype, count, str(bit_width(dtype))))
    within = _choose(w, dtype, count, fits, amount, _constant(dtype, count, str(bit_width(dtype) - 1)))
    return _binary(w, "ashr", dtype, count, x, within)


def _integer_sign(w: Writer, dtype: str, count: int, operands: Sequence[str], *, signed: bool) -> str:
    zero, one = (_constant(dtype, count, v) for v in "01")
    positive = _binary(w, "icmp sgt" if signed else "icmp ne", dtype, count, operands[0], zero)
    found = _choose(w, dtype, count, positive, one, zero)
    if not signed:
        return found
    negative = _binary(w, "icmp slt", dtype, count, operands[0], zero)
    return _choose(w, dtype, count, negative, _constant(dtype, count, "-1"), found)


def _negate(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    return _binary(w, "sub", dtype, count, _constant(dtype, count, "0"), operands[0])


def _invert(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    return _binary(w, "xor", dtype, count, operands[0], _constant(dtype, count, "true" if dtype == "i1" else "-1"))


def _itself(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    return operands[0]


def _unsafe(w: Writer, dtype: str, count: int, operands: Sequence[str], *, code: str) -> str:
    """Towards zero: of positions, whose divisor is greater than 0 in all lanes that take part."""
    x, y = operands
    if not y.startswith("%"):
        return _binary(w, code, dtype, count, x, y)
    return _binary(w, code, dtype, count, x, _safe(w, dtype, count, y, signed=True)[0])


def at_least_one(w: Writer, size: str) -> str:
    """A size, as an i64, that positions are divided by: 0, where no lane takes part, is 1."""
    return _safe(w, "i64", 1, size, signed=False)[0]


def _divide_floor(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    """Down: one less than towards zero where something is left below 0."""
    quotient, below = _unsafe(w, dtype, count, operands, code="sdiv"), _below(w, dtype, count, operands)
    less = _binary(w, "sub", dtype, count, quotient, _constant(dtype, count, "1"))
    return _choose(w, dtype, count, below, less, quotient)


def _modulo_floor(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    """With the divisor's sign, which is positive."""
    rest, below = _unsafe(w, dtype, count, operands, code="srem"), _below(w, dtype, count, operands)
    return _choose(w, dtype, count, below, _binary(w, "add", dtype, count, rest, operands[1]), rest)


def _below(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    """Where something is left that is below 0."""
    rest = _unsafe(w, dtype, count, operands, code="srem")
    return _binary(w, "icmp slt", dtype, count, rest, _constant(dtype, count, "0"))


# ---- floats -------------------------------------------------------------------------------------------------------


def _float_sign(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    """Zero and NaN stay as they are."""
    zero, one, minus = (_constant(dtype, count, float_text(v)) for v in (0.0, 1.0, -1.0))
    positive = _binary(w, "fcmp ogt", dtype, count, operands[0], zero)
    negative = _binary(w, "fcmp olt", dtype, count, operands[0], zero)
    return _choose(w, dtype, count, positive, one, _choose(w, dtype, count, negative, minus, operands[0]))


def _compared_with_infinity(
    w: Writer, dtype: str, count: int, operands: Sequence[str], *, code: str, value: float, absolute: bool
) -> str:
    x = _intrinsic("fabs")(w, dtype, count, operands) if absolute else operands[0]
    return _binary(w, code, dtype, count, x, _constant(dtype, count, float_text(value)))


def _square(w: Writer, dtype: str, count: int, operands: Sequence[str]) -> str:
    code = "fmul" if kind_of(dtype) in ("f32", "f64") else "mul"
    return _binary(w, code, dtype, count, operands[0], operands[0])


# ---- the table ----------------------------------------------------------------------------------------------------


def _on(kinds: Sequence[str], row: Row) -> dict[str, Row]:
    return dict.fromkeys(kinds, row)


def _numbers(of_floats: str, of_integers: str) -> dict[str, Row]:
    return {**_on(FLOATS, _plain(of_floats)), **_on(INTEGERS, _plain(of_integers))}


def _comparison(direction: str) -> dict[str, Row]:
    equality = direction in ("eq", "ne")
    return {
        # Of NaN, only `ne` holds.
        **_on(FLOATS, _plain(f"fcmp {'une' if direction == 'ne' else f'o{direction}'}")),
        "signed": _plain(f"icmp {direction if equality else f's{direction}'}"),
        "unsigned": _plain(f"icmp {direction if equality else f'u{direction}'}"),
        "bool": _plain(f"icmp {direction if equality else f'u{direction}'}"),
    }


def _infinite(code: str, value: float, *, absolute: bool) -> dict[str, Row]:
    return _on(FLOATS, partial(_compared_with_infinity, code=code, value=value, absolute=absolute))


_INFINITY = float("inf")

ROWS: Mapping[str, Mapping[str, Row]] = {
    "add": {**_numbers("fadd", "add"), "bool": _plain("or")},
    "subtract": _numbers("fsub", "sub"),
    "multiply": {**_numbers("fmul", "mul"), "bool": _plain("and")},
    "divide": {
        **_on(FLOATS, _plain("fdiv")),
        "signed": partial(_divide, signed=True), "unsigned": partial(_divide, signed=False),
    },
    "remainder": {"signed": partial(_remainder, signed=True), "unsigned": partial(_remainder, signed=False)},
    "negate": {**_on(FLOATS, _plain("fneg")), **_on(INTEGERS, _negate)},
    "abs": {**_on(FLOATS, _intrinsic("fabs")), "signed": _intrinsic("abs", ("i1", "false")), "unsigned": _itself},
    "sign": {
        **_on(FLOATS, _float_sign),
        "signed": partial(_integer_sign, signed=True), "unsigned": partial(_integer_sign, signed=False),
    },
    "maximum": {
        **_on(FLOATS, _intrinsic("maximum")), "signed": _intrinsic("smax"), "unsigned": _intrinsic("umax"),
        "bool": _plain("or"),
    },
    "minimum": {
        **_on(FLOATS, _intrinsic("minimum")), "signed": _intrinsic("smin"), "unsigned": _intrinsic("umin"),
        "bool": _plain("and"),
    },
    "and": _on((*INTEGERS, "bool"), _plain("and")),
    "or": _on((*INTEGERS, "bool"), _plain("or")),
    "xor": _on((*INTEGERS, "bool"), _plain("xor")),
    "not": _on((*INTEGERS, "bool"), _invert),
    "shift_left": _on(INTEGERS, partial(_shift, code="shl")),
    "shift_right_logical": _on(INTEGERS, partial(_shift, code="lshr")),
    "shift_right_arithmetic": _on(INTEGERS, _shift_arithmetic),
    **{direction: _comparison(direction) for direction in ("eq", "ne", "lt", "le", "gt", "ge")},
    "is_finite": _infinite("fcmp olt", _INFINITY, absolute=True),
    "is_inf": _infinite("fcmp oeq", _INFINITY, absolute=True),
    "is_pos_inf": _infinite("fcmp oeq", _INFINITY, absolute=False),
    "is_neg_inf": _infinite("fcmp oeq", -_INFINITY, absolute=False),
    "floor": _on(FLOATS, _intrinsic("floor")),
    "ceil": _on(FLOATS, _intrinsic("ceil")),
    "round_nearest_even": _on(FLOATS, _intrinsic("roundeven")),
    "sqrt": _on(FLOATS, _intrinsic("sqrt")),
    "fma": _on(FLOATS, _intrinsic("fma")),
    "square": _on((*FLOATS, *INTEGERS), _square),
    "divide_positive": {"signed": partial(_unsafe, code="sdiv")},
    "modulo_positive": {"signed": partial(_unsafe, code="srem")},
    "divide_floor": {"signed": _divide_floor},
    "modulo_floor": {"signed": _modulo_floor},
}  # fmt: skip
"""Function -> kind of element type -> its instructions."""


def select(w: Writer, dtype: str, count: int, condition: str, one: str, other: str) -> str:
    """Lanes of one where a condition holds, else of the other."""
    return _choose(w, dtype, count, condition, one, other)


__all__ = ["ROWS", "at_least_one", "select"]
