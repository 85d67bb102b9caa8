"""Elementwise functions of lanes: scalars where all lanes are the same, positions where they rise evenly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import gcd

from gcomp.dtypes import bit_width
from gcomp.lowering.llvm import functions, quotients
from gcomp.lowering.llvm.lanes import Lanes, constant_lanes, stepped, uniform, vectorial, whole
from gcomp.lowering.llvm.writer import Writer, scalar_type
from gcomp.lowering.tiles.functions import FUNCTIONS, kind_of


def apply(w: Writer, function: str, operands: Sequence[Lanes]) -> Lanes:
    """A function of operands that have equally many lanes."""
    count, dtypes = operands[0].count, [o.dtype for o in operands]
    dtype = FUNCTIONS[function].result(dtypes)
    if (found := _position(w, function, operands)) is not None:
        return found
    if (truth := _truth(function, operands)) is not None:
        return truth
    if function == "select" and (number := operands[0].number) is not None:
        return operands[1] if number else operands[2]
    if all(o.is_uniform for o in operands):
        return uniform(dtype, _emit(w, function, dtypes, 1, [str(o.base) for o in operands]), count)
    if quotients.is_fast(function, operands):
        return quotients.divide(w, function, operands)
    return vectorial(dtype, count, _emit(w, function, dtypes, count, [whole(w, o) for o in operands]))


def _emit(w: Writer, function: str, dtypes: Sequence[str], count: int, values: Sequence[str]) -> str:
    if function == "select":
        return functions.select(w, dtypes[1], count, *values)
    return functions.ROWS[function][kind_of(dtypes[0])](w, dtypes[0], count, values)


# ---- positions ----------------------------------------------------------------------------------------------------


def _position(w: Writer, function: str, operands: Sequence[Lanes]) -> Lanes | None:
    """The result where operands are integers that are the same, or rise evenly; None where that says nothing."""
    row = _POSITIONS.get(function)
    if row is None or operands[0].dtype not in ("i32", "i64") or any(o.base is None for o in operands):
        return None
    a, b = operands
    if a.number is not None and b.number is not None and a.is_uniform and b.is_uniform:
        number = _NUMBERS[function](a.number, b.number)
        return None if number is None else _fitting(a.dtype, number, a.count)
    return row(w, a, b)


def _fitting(dtype: str, number: int, count: int) -> Lanes | None:
    width = bit_width(dtype)
    return constant_lanes(dtype, number, count) if -(1 << (width - 1)) <= number < 1 << (width - 1) else None


def _sum(w: Writer, a: Lanes, b: Lanes, code: str, sign: int) -> Lanes:
    if b.number == 0 and b.is_uniform:
        return a
    if a.number == 0 and a.is_uniform and sign > 0:
        return b
    if a.number is not None and b.number is not None:
        if (found := _fitting(a.dtype, a.number + sign * b.number, a.count)) is not None:
            return _apart(found, a, b, sign)
    elif a.number == 0 and sign > 0:
        return _apart(b, a, b, sign)
    elif b.number == 0:
        return _apart(a, a, b, sign)
    base = w.pure(f"{code} {scalar_type(a.dtype)} {a.base}, {b.base}")
    return _apart(uniform(a.dtype, base, a.count, multiple=gcd(a.multiple, b.multiple)), a, b, sign)


def _apart(found: Lanes, a: Lanes, b: Lanes, sign: int) -> Lanes:
    """Lanes of this base as far from it as those of two together are from theirs."""
    if a.steps is None and b.steps is None:
        return replace(found, stride=a.stride + sign * b.stride, steps=None)
    return stepped(found, [one + sign * other for one, other in zip(a.distances, b.distances, strict=True)])


def _times(found: Lanes, a: Lanes, factor: int) -> Lanes:
    """Lanes of this base so many times as far from it as others are from theirs."""
    if a.steps is None:
        return replace(found, stride=a.stride * factor)
    return stepped(found, [distance * factor for distance in a.steps])


def _add(w: Writer, a: Lanes, b: Lanes) -> Lanes:
    return _sum(w, a, b, "add", 1)


def _subtract(w: Writer, a: Lanes, b: Lanes) -> Lanes:
    return _sum(w, a, b, "sub", -1)


def _multiply(w: Writer, a: Lanes, b: Lanes) -> Lanes | None:
    if not b.is_uniform:
        a, b = b, a
    if not b.is_uniform:
        return None
    if a.is_uniform:
        base = w.pure(f"mul {scalar_type(a.dtype)} {a.base}, {b.base}")
        return Lanes(a.dtype, a.count, base=base, multiple=_power(a.multiple * b.multiple))
    if b.number is None:
        return None
    if a.number is not None:
        found = _fitting(a.dtype, a.number * b.number, a.count)
        return None if found is None else _times(found, a, b.number)
    base = str(a.base) if b.number == 1 else w.pure(f"mul {scalar_type(a.dtype)} {a.base}, {b.base}")
    return _times(uniform(a.dtype, base, a.count, multiple=_power(a.multiple * b.multiple)), a, b.number)


_MOST_MULTIPLE = 1 << 62
"""What a position is known to be a multiple of, at most."""


def _power(multiple: int) -> int:
    """The greatest power of two in a product, which stays where the product wraps around; one that says enough where
    many factors, as in the powers of a number, would make it as long as memory."""
    return min(multiple & -multiple, _MOST_MULTIPLE)


def _within(a: Lanes, b: Lanes) -> int | None:
    """The divisor, where all lanes of a dividend that is not negative lie between two multiples of it."""
    divisor = b.number
    if divisor is None or divisor <= 0 or not b.is_uniform or a.stride <= 0 or a.is_uniform:
        return None
    reach = a.stride * a.count
    if divisor % reach == 0 and a.multiple % reach == 0:
        return divisor
    return None


def _counted(function: str, a: Lanes, b: Lanes) -> Lanes | None:
    """A function of lanes that are known, and of a size."""
    if a.number is None or a.is_uniform or b.number is None or not b.is_uniform:
        return None
    found: list[int] = []
    for distance in a.distances:
        number = a.number + distance
        result = _NUMBERS[function](number, b.number)
        if result is None or _fitting(a.dtype, number, 1) is None:
            return None
        found.append(result)
    return stepped(constant_lanes(a.dtype, found[0], a.count), [number - found[0] for number in found])


def _divide(w: Writer, a: Lanes, b: Lanes) -> Lanes | None:
    if (known := _counted("divide_positive", a, b)) is not None:
        return known
    if a.is_uniform and b.number is not None and b.number > 0 and b.is_uniform:
        base = a.base if b.number == 1 else w.pure(f"sdiv {scalar_type(a.dtype)} {a.base}, {b.base}")
        multiple = a.multiple // b.number if a.multiple % b.number == 0 else 1
        return Lanes(a.dtype, a.count, base=base, multiple=multiple)
    if (divisor := _within(a, b)) is None:
        return None
    base = w.pure(f"sdiv {scalar_type(a.dtype)} {a.base}, {divisor}")
    return Lanes(a.dtype, a.count, base=base)


def _modulo(w: Writer, a: Lanes, b: Lanes) -> Lanes | None:
    if (known := _counted("modulo_positive", a, b)) is not None:
        return known
    if a.is_uniform and b.number is not None and b.number > 0 and b.is_uniform:
        if b.number == 1:
            return constant_lanes(a.dtype, 0, a.count)
        base = w.pure(f"srem {scalar_type(a.dtype)} {a.base}, {b.base}")
        return Lanes(a.dtype, a.count, base=base, multiple=gcd(a.multiple, b.number))
    if (divisor := _within(a, b)) is None:
        return None
    base = w.pure(f"srem {scalar_type(a.dtype)} {a.base}, {divisor}")
    return Lanes(a.dtype, a.count, base=base, stride=a.stride, multiple=gcd(a.multiple, divisor))


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def _truth(function: str, operands: Sequence[Lanes]) -> Lanes | None:
    """A truth value that is known for all lanes: of positions that are, or where one of two says it."""
    if len(operands) != 2:
        return None
    a, b = operands
    if (compare := _COMPARISONS.get(function)) is not None and a.dtype in ("i32", "i64"):
        if a.number is None or b.number is None:
            return None
        places = zip(a.distances, b.distances, strict=True)
        found = {compare(a.number + one, b.number + other) for one, other in places}
        return constant_lanes("i1", int(found.pop()), a.count) if len(found) == 1 else None
    if function not in ("and", "or") or a.dtype != "i1":
        return None
    for one, other in ((a, b), (b, a)):
        if one.number is not None and one.is_uniform:
            return other if bool(one.number) == (function == "and") else constant_lanes("i1", one.number, a.count)
    return None


Position = Callable[[Writer, Lanes, Lanes], Lanes | None]

_POSITIONS: Mapping[str, Position] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "divide_positive": _divide, "modulo_positive": _modulo,
}  # fmt: skip

_NUMBERS: Mapping[str, Callable[[int, int], int | None]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide_positive": lambda a, b: a // b if a >= 0 and b > 0 else None,
    "modulo_positive": lambda a, b: a % b if a >= 0 and b > 0 else None,
}


def convert_positions(w: Writer, lanes: Lanes, dtype: str) -> Lanes | None:
    """Positions in a wider or narrower type; None where the lanes are no positions."""
    if lanes.dtype not in ("i32", "i64") or dtype not in ("i32", "i64") or lanes.base is None:
        return None
    if lanes.number is not None:
        numbers = [lanes.number + distance for distance in lanes.distances]
        fits = all(_fitting(kind, number, 1) for kind in (lanes.dtype, dtype) for number in numbers)
        return stepped(constant_lanes(dtype, lanes.number, lanes.count), lanes.distances) if fits else None
    if not lanes.is_uniform:
        # Lanes of an i32 may wrap around where those of a wider base would not.
        return None
    code = "sext" if dtype == "i64" else "trunc"
    base = w.pure(f"{code} {scalar_type(lanes.dtype)} {lanes.base} to {scalar_type(dtype)}")
    return replace(lanes, dtype=dtype, base=base, multiple=lanes.multiple if dtype == "i64" else 1)


__all__ = ["apply", "convert_positions"]
