"""Elementwise ops, and the functions on scalars that regions of reductions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.dtypes import DTYPES, bit_width, dtype_of, is_float, is_integer, is_narrow_float, stored_width
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import APPROXIMATED, SIMPLE
from gcomp.ir.families import PLAIN as BROADCASTING
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import pack, sign_extend
from gcomp.lowering.tiles.elements.table import Elements, elements_of, refusal
from gcomp.lowering.tiles.functions import FUNCTIONS, kind_of
from gcomp.lowering.tiles.tile import HELD, element
from gcomp.reference.numpy.dtypes import float_format

NARROW = frozenset(filter(is_narrow_float, DTYPES))
"""Floats that are computed in f32, and rounded after each op, as the graph does."""

_BYTES = NARROW - {"f16", "bf16", "f8E8M0FNU"}
"""Floats that only f32 and narrower floats are converted to, and whose greatest an inexact f32 is far beyond."""

_CUT = _BYTES | {"bf16", "f8E8M0FNU"}
"""Floats that are rounded from f32 only."""

PLAIN: tuple[type[Operation], ...] = tuple(
    op for op in (*SIMPLE, *APPROXIMATED, *BROADCASTING) if BROADCASTING.get(op, op).name.partition(".")[2] in FUNCTIONS
)
"""Ops whose function has the op's name. What broadcasts is in the maps that say which elements are read."""

_IN_RANGE = frozenset({
    hlo.SelectOp, hlo.ClampOp, hlo.CompareOp, hlo.ConvertOp, hlo.MaximumOp, hlo.MinimumOp, hlo.AndOp, hlo.OrOp,
    hlo.XorOp, hlo.SignOp, hlo.RemainderOp, hlo.ShiftRightArithmeticOp,
})  # fmt: skip
"""Ops that give no number beyond those of their operands' type."""

Compute = Callable[[TileBuilder, Any, Sequence[SSAValue]], SSAValue]

_OTHERS: dict[type[Operation], Compute] = {}


def _computes(*ops: type[Operation]) -> Callable[[Compute], Compute]:
    def register(function: Compute) -> Compute:
        for op in ops:
            _OTHERS[op] = function
        return function

    return register


@elements_of(*PLAIN, hlo.CompareOp, hlo.SelectOp, hlo.ClampOp, chlo.BroadcastCompareOp, chlo.BroadcastSelectOp)
def elementwise(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The op's function of the operands' elements."""
    return compute(elements.b, op, elements.operands(op, result, access))


def compute(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """An elementwise op on tiles of its operands' elements."""
    if type(op) in _OTHERS:
        found = _OTHERS[type(op)](b, op, operands)
    else:
        found = compute_rounded(b, op, op.name.partition(".")[2].removeprefix("broadcast_"), operands)
    return found if type(op) in _IN_RANGE else sign_extend(b, found, dtype_text(op.results[0].type))


def compute_rounded(b: TileBuilder, op: Operation, function: str, operands: Sequence[SSAValue]) -> SSAValue:
    """A function of tiles; of narrow floats in f32, rounded to the operands' type."""
    kinds = [element(v) for v in operands]
    if why := FUNCTIONS[function].refuses(["f32" if k in NARROW else k for k in kinds]):
        raise refusal(op, why)
    found = b.apply(function, *[b.cast(v, "f32") if k in NARROW else v for v, k in zip(operands, kinds, strict=True)])
    return narrow(b, found, kinds[-1]) if kinds[-1] in NARROW and element(found) == "f32" else found


@_computes(hlo.ShiftRightLogicalOp, chlo.BroadcastShiftRightLogicalOp)
def _shift_right_logical(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """Of the bits that the type has."""
    bits = pack(b, operands[0], dtype_text(op.results[0].type))
    return compute_rounded(b, op, "shift_right_logical", [bits, operands[1]])


@_computes(hlo.ShiftRightArithmeticOp, chlo.BroadcastShiftRightArithmeticOp)
def _shift_right_arithmetic(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """With the sign that the type's bits have, also where the type has none."""
    kind = dtype_text(op.results[0].type)
    if kind not in HELD or not kind.startswith("ui"):
        return compute_rounded(b, op, "shift_right_arithmetic", operands)
    signed = b.bitcast(sign_extend(b, b.bitcast(operands[0], "i8"), kind[1:]), "ui8")
    return pack(b, compute_rounded(b, op, "shift_right_arithmetic", [signed, operands[1]]), kind)


@_computes(chlo.NextAfterOp, chlo.BroadcastNextAfterOp)
def _next_after(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """The neighbour in the operands' own type: of narrow floats, the next bits as an integer."""
    kind = element(operands[0])
    if kind not in NARROW:
        return compute_rounded(b, op, "next_after", operands)
    x, y = (b.cast(v, "f32") for v in operands)
    zero, bits = b.constant(0.0, "f32"), f"i{stored_width(kind)}"
    sign = _signed_number(1 << (bit_width(kind) - 1), stored_width(kind))
    one, own, other = b.constant(1, bits), *(b.bitcast(v, bits) for v in operands)
    away = b.apply("eq", b.apply("lt", x, y), b.apply("gt", x, zero))
    least = b.apply("select", b.apply("gt", y, zero), one, b.constant(sign + 1, bits))
    found = b.apply("select", away, b.add(own, one), b.apply("subtract", own, one))
    found = b.apply("select", b.apply("eq", x, zero), least, found)
    if not float_format(dtype_of(kind)).has_negative_zero:
        found = b.apply("select", b.apply("eq", found, b.constant(sign, bits)), b.constant(0, bits), found)
    found = b.apply("select", b.apply("eq", x, y), other, found)
    nan = b.apply("or", b.apply("ne", x, x), b.apply("ne", y, y))
    return b.apply("select", nan, b.constant(float("nan"), kind), b.bitcast(found, kind))


@_computes(hlo.SelectOp, chlo.BroadcastSelectOp)
def _select(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.apply("select", *operands)


@_computes(hlo.ClampOp)
def _clamp(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    least, x, most = operands
    return compute_rounded(b, op, "minimum", [compute_rounded(b, op, "maximum", [x, least]), most])


@_computes(hlo.CompareOp, chlo.BroadcastCompareOp)
def _compare(b: TileBuilder, op: Any, operands: Sequence[SSAValue]) -> SSAValue:
    kind = element(operands[0])
    if kind_of(kind) == "complex":
        raise refusal(op, "it compares complex numbers")
    if op.value("compare_type") == "TOTALORDER" and kind_of(kind) in ("f32", "f64", "narrow"):
        operands = [total_order(b, x) for x in operands]
    elif kind == "i1":
        operands = [b.cast(x, "i32") for x in operands]
    return compute_rounded(b, op, str(op.value("comparison_direction")).lower(), operands)


def _signed_number(bits: int, width: int) -> int:
    """The number that bits are in a signed integer."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def total_order(b: TileBuilder, x: SSAValue) -> SSAValue:
    """Integers in the order of floats, -NaN < -inf < ... < -0 < 0 < ... < NaN."""
    if not float_format(dtype_of(element(x))).has_negative_zero:
        # Their one NaN has no place by its bits: it is the greatest.
        x = _one_nan(b, b.cast(x, "f32"))
    width, own = stored_width(element(x)), bit_width(element(x))
    bits = b.bitcast(x, f"i{width}")
    if own < width:
        distance = b.constant(width - own, f"i{width}")
        bits = b.apply("shift_right_arithmetic", b.apply("shift_left", bits, distance), distance)
    flipped = b.apply("xor", bits, b.constant((1 << (width - 1)) - 1, f"i{width}"))
    return b.apply("select", b.apply("lt", bits, b.constant(0, f"i{width}")), flipped, bits)


@_computes(hlo.ConvertOp)
def _convert(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return convert(b, op, operands[0], dtype_text(op.results[0].type))


def convert(b: TileBuilder, op: Operation, x: SSAValue, to: str) -> SSAValue:
    """Elements in another type, as `stablehlo.convert` does it (docs/guides/semantics.md)."""
    source = element(x)
    if source == to:
        return x
    if kind_of(to) == "complex" or kind_of(source) == "complex":
        raise refusal(op, "it converts complex numbers")
    if source in NARROW and to != "f32":
        x, source = b.cast(x, "f32"), "f32"
    if to == "i1":
        return b.apply("ne", x, b.constant(0, source))
    if to in HELD:
        x = _to_integer(b, x, to) if is_float(source) else b.cast(x, to)
        return sign_extend(b, x, to)
    if is_float(source) and is_integer(to):
        return _to_integer(b, x, to)
    if source == "i1" and to in NARROW:
        x = b.cast(x, "f32")
    elif to in NARROW and is_integer(source):
        # An integer is rounded once: f32 holds those of 16 bits, and what is inexact is beyond f16 and 8-bit floats.
        wide = "f32" if bit_width(source) <= 16 or to in _BYTES else "f64"
        x = b.cast(x if to == "f16" or to in _BYTES else _sticky(b, x), wide)
    if to in _CUT and element(x) == "f64":
        x = _to_odd(b, x)
    return narrow(b, x, to)


def _sticky(b: TileBuilder, x: SSAValue) -> SSAValue:
    """An integer that f64 holds, and that bf16 rounds as it does this one: of large ones, low bits become one bit."""
    kind = element(x)
    if bit_width(kind) < 64:
        return x
    high = b.apply("shift_right_arithmetic" if kind == "i64" else "shift_right_logical", x, b.constant(40, kind))
    large = b.apply("ne", high, b.constant(0, kind))
    if kind == "i64":
        large = b.apply("and", large, b.apply("ne", high, b.constant(-1, kind)))
    low = b.constant((1 << 24) - 1, kind)
    more = b.apply("ne", b.apply("and", x, low), b.constant(0, kind))
    kept = b.apply("and", x, b.apply("not", low))
    rounded_to_odd = b.apply("or", kept, b.apply("select", more, b.constant(1 << 24, kind), b.constant(0, kind)))
    return b.apply("select", large, rounded_to_odd, x)


def narrow(b: TileBuilder, x: SSAValue, to: str) -> SSAValue:
    """A float, rounded. GPUs make the greatest 8-bit float of all that is too large, where the graph has NaN or inf."""
    if to not in _CUT or to == "bf16":
        return b.cast(x, to)
    x = b.cast(x, "f32")
    if not float_format(dtype_of(to)).has_nan:
        return b.cast(_one_nan(b, x), to)
    if to not in ("f8E4M3FN", "f8E5M2"):
        return b.cast(x, to)
    size = b.apply("abs", x)
    if to == "f8E4M3FN":
        return b.cast(b.apply("select", b.apply("gt", size, b.constant(464.0, "f32")), b.constant(_NAN, "f32"), x), to)
    x = _on_grid(b, x)
    infinite = b.apply("ge", size, b.constant(61440.0, "f32"))
    signed = b.apply("select", b.apply("gt", x, b.constant(0.0, "f32")), b.constant(0x7C, "i8"), b.constant(-4, "i8"))
    return b.bitcast(b.apply("select", infinite, signed, b.bitcast(b.cast(x, to), "i8")), to)


def _on_grid(b: TileBuilder, x: SSAValue) -> SSAValue:
    """An f32 rounded to a number of f8E5M2: sm_80 would cut it to an f16 first, and round ties that are none."""
    exponent = b.apply("and", b.apply("shift_right_logical", b.bitcast(x, "i32"), b.constant(23, "i32")),
                       b.constant(0xFF, "i32"))  # fmt: skip
    # A unit in the last place is 2 ** (exponent - 127 - 2), and 2 ** -16 below the normal numbers.
    place = b.apply("subtract", b.apply("maximum", exponent, b.constant(127 - 14, "i32")), b.constant(2, "i32"))
    unit, inverse = (
        b.bitcast(b.apply("shift_left", biased, b.constant(23, "i32")), "f32")
        for biased in (place, b.apply("subtract", b.constant(254, "i32"), place))
    )
    magic = b.constant(1.5 * 2**23, "f32")
    whole = b.apply("subtract", b.add(b.multiply(x, inverse), magic), magic)
    return b.multiply(whole, unit)


_NAN = float("nan")


def _one_nan(b: TileBuilder, x: SSAValue) -> SSAValue:
    """NaN, of whatever bits, as the positive quiet one."""
    return b.apply("select", b.apply("ne", x, x), b.constant(_NAN, element(x)), x)


def _to_odd(b: TileBuilder, x: SSAValue) -> SSAValue:
    """An f64 as an f32 whose last bit says that more follows: what is rounded again is then rounded as once."""
    near = b.cast(x, "f32")
    back, bits, one = b.cast(near, "f64"), b.bitcast(near, "i32"), b.constant(1, "i32")
    beyond = b.apply("gt", b.apply("abs", back), b.apply("abs", x))
    below = b.apply("select", beyond, b.apply("subtract", bits, one), bits)
    inexact = b.apply("and", b.apply("ne", back, x), b.apply("eq", x, x))
    return b.bitcast(b.apply("select", inexact, b.apply("or", below, one), bits), "f32")


def _to_integer(b: TileBuilder, x: SSAValue, to: str) -> SSAValue:
    """Towards zero; NaN is 0, and what is too large or too small is the greatest or least integer."""
    limits: Any = ml_dtypes.iinfo(dtype_of(to))
    source = element(x)
    low, high = b.constant(float(limits.min), source), b.constant(float(int(limits.max) + 1), source)
    above, below = b.apply("ge", x, high), b.apply("lt", x, low)
    inside = b.apply("and", b.apply("lt", x, high), b.apply("ge", x, low))
    found = b.cast(b.apply("select", inside, x, b.constant(0.0, source)), to)
    found = b.apply("select", above, b.constant(int(limits.max), to), found)
    return b.apply("select", below, b.constant(int(limits.min), to), found)


# ---- regions ------------------------------------------------------------------------------------------------------


def apply_region(b: TileBuilder, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """A region on rank-0 tensors, as a function on tiles."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        if isinstance(op, hlo.ConstantOp):
            # One of several elements, or of none, has no value here: an op that uses it is refused.
            if op.elements_attr.is_splat:
                values[op.results[0]] = b.constant(op.elements_attr.splat(), dtype_text(op.results[0].type))
            continue
        if (type(op) not in _OTHERS and type(op) not in PLAIN) or any(v not in values for v in op.operands):
            raise refusal(op, "the region of a reduction holds elementwise ops only")
        values[op.results[0]] = compute(b, op, [values[v] for v in op.operands])
    return []


WIDENED = frozenset({"stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum"})


def accumulator(block: Block, dtype: str) -> str:
    """The type in which a region's results are accumulated: f32 for sums and products of narrow floats."""
    plain = all(op.name in WIDENED or isinstance(op, ReturnOp) for op in block.ops)
    return "f32" if dtype in NARROW and plain else dtype
