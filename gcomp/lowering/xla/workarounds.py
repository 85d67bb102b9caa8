"""Ops that XLA gets in other words, because of what XLA:CPU would make of them: see docs/guides/upstream_bugs.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float, is_integer, real_of, text_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.constant import ConstantOp
from gcomp.ir.stablehlo.elementwise import MaximumOp, MinimumOp
from gcomp.ir.stablehlo.linalg import CholeskyOp
from gcomp.ir.stablehlo.movement import BroadcastInDimOp, ConcatenateOp
from gcomp.ir.types import ELEMENT_TYPES, Tensor, dtype_text, rank_of, shape_of, with_element
from gcomp.lowering.xla.printer import Printer, Writer
from gcomp.reference.numpy.dtypes import float_format

# ---- what values are known to be ------------------------------------------------------------------------------------


def constant_of(value: SSAValue) -> ElementsAttr | None:
    """The constant that a value is, perhaps repeated."""
    while isinstance(value, OpResult) and isinstance(value.op, BroadcastInDimOp):
        value = value.op.operands[0]
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        return cast(ElementsAttr, value.op.properties["value"])
    return None


# ---- integers -------------------------------------------------------------------------------------------------------


def division(writer: Writer) -> Writer:
    """Divisions of integers: XLA folds them without a look at the divisor, and the processor traps on 0 and overflow.

    So but for known divisors that are neither 0 nor -1, another divisor takes the place of these, and what they give is
    selected. It stands behind a barrier, so that nothing is folded.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        divisor = op.operands[1]
        known = constant_of(divisor)
        array = None if known is None else known.array()
        text = dtype_text(divisor.type)
        if not is_integer(text) or (
            array is not None and bool(array.all() and (text[0] == "u" or (array != -1).all()))
        ):
            return writer(p, op, indent)
        quotient, result = op.name.endswith("divide"), cast(Tensor, op.results[0].type)
        names = [*p.in_one_type(op, indent)]
        if text != "i2":
            return _guard_division(p, result, indent, *names, quotient=quotient)
        return _by_way_of(
            p, result, "i8", indent, names, lambda wide, a, b: _guard_division(p, wide, indent, a, b, quotient=quotient)
        )

    return write


def _guard_division(p: Printer, result: Tensor, indent: str, a: str, b: str, *, quotient: bool) -> str:
    """A division of `a` by `b`, values of the result's type, that never divides by 0 or -1."""
    type, i1 = p.types([result]), p.types([with_element(result, "i1")])

    def number(value: str) -> str:
        return p.line(f"stablehlo.constant dense<{value}> : {type}", indent)

    def equal(value: str) -> str:
        return p.line(f"stablehlo.compare EQ, {b}, {value} : ({type}, {type}) -> {i1}", indent)

    def select(where: str, then: str, other: str) -> str:
        return f"stablehlo.select {where}, {then}, {other} : {i1}, {type}"

    zero, one = number("0"), number("1")
    ones = p.line(f"stablehlo.not {zero} : {type}", indent)
    empty = equal(zero)
    negative = equal(ones) if dtype_text(result)[0] != "u" else None
    safe = p.line(select(empty, one, b), indent)
    if negative is not None:
        safe = p.line(select(negative, one, safe), indent)
    safe = barrier(p, safe, result, indent)
    found = p.line(f"stablehlo.{'divide' if quotient else 'remainder'} {a}, {safe} : {type}", indent)
    if negative is not None:
        minus = p.line(f"stablehlo.negate {a} : {type}", indent) if quotient else zero
        found = p.line(select(negative, minus, found), indent)
    return select(empty, ones if quotient else a, found)


def _by_way_of(
    p: Printer, type: Tensor, element: str, indent: str, names: Sequence[str], write: Callable[[Tensor, str, str], str]
) -> str:
    """What `write` makes of two values of a type with another element type, which it is given first, in the type."""
    other = with_element(type, element)
    given, texts = p.types([type]), p.types([other])
    if _keeps_a_byte(dtype_text(type), element):
        names = [barrier(p, name, type, indent) for name in names]
    a, b = (p.line(f"stablehlo.convert {name} : ({given}) -> {texts}", indent) for name in names)
    return f"stablehlo.convert {p.line(write(other, a, b), indent)} : ({texts}) -> {given}"


_DIGIT = 6
"""XLA looks at so many bits of an exponent, so that 0 ** 64 is 1."""


def double_by_product(writer: Writer) -> Writer:
    """`i + i` of an integer as `i * 2`: XLA ends the process over loops that count so."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        x, y = op.operands
        if x is not y or shape_of(x) or not is_integer(dtype_text(x.type)) or dtype_text(x.type) == "i1":
            return writer(p, op, indent)
        type = p.types([x.type])
        two = p.line(f"stablehlo.constant dense<{_wrap(2, dtype_text(x.type))}> : {type}", indent)
        return f"stablehlo.multiply {p.values([x])}, {two} : {type}"

    return write


def _wrap(number: int, text: str) -> int:
    """A number as an integer type holds it."""
    return int(np.asarray(number).astype(dtype_of(text)))


def power(writer: Writer) -> Writer:
    """Powers of integers: one for each group of so many bits of the exponent. Negative exponents are looked at apart.

    Those of fewer than 8 bits by way of 8: not all of XLA's ways to compute them agree.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        text, known = dtype_text(op.results[0].type), constant_of(op.operands[1])
        if not is_integer(text):
            return writer(p, op, indent)
        array = None if known is None else known.array()
        if array is not None and bit_width(text) >= 8 and bool(((array >= 0) & (array < 1 << _DIGIT)).all()):
            return writer(p, op, indent)
        base, exponent = p.in_one_type(op, indent)
        type = cast(Tensor, op.results[0].type)
        if bit_width(text) >= 8:
            return _powers(p, type, indent, base, exponent)
        byte = "ui8" if text[0] == "u" else "i8"
        return _by_way_of(p, type, byte, indent, (base, exponent), lambda wide, a, b: _powers(p, wide, indent, a, b))

    return write


def _powers(p: Printer, result: Tensor, indent: str, base: str, exponent: str) -> str:
    """The power of values of a type."""
    text, type = dtype_text(result), p.types([result])
    i1, signed = p.types([with_element(result, "i1")]), text[0] != "u"

    def line(name: str, *operands: str) -> str:
        return p.line(f"stablehlo.{name} {', '.join(operands)} : {type}", indent)

    def number(value: int) -> str:
        return p.line(f"stablehlo.constant dense<{value}> : {type}", indent)

    def compare(way: str, a: str, b: str) -> str:
        return p.line(f"stablehlo.compare {way}, {a}, {b} : ({type}, {type}) -> {i1}", indent)

    def select(where: str, then: str, other: str) -> str:
        return p.line(f"stablehlo.select {where}, {then}, {other} : {i1}, {type}", indent)

    mask, step, half = number((1 << _DIGIT) - 1), number(_DIGIT), number(1 << (_DIGIT - 1))
    factor, rest, total, last = base, exponent, "", line("power", base, line("and", exponent, mask))
    for _ in range(_DIGIT, bit_width(text) - signed, _DIGIT):
        root = line("power", factor, half)
        factor, rest = line("multiply", root, root), line("shift_right_logical", rest, step)
        total = line("multiply", total, last) if total else last
        last = line("power", factor, line("and", rest, mask))
    product = f"stablehlo.multiply {total}, {last} : {type}"
    if signed:
        zero, one, minus = number(0), number(1), number(-1)
        odd = compare("NE", line("and", exponent, one), zero)
        inverse = select(compare("EQ", base, minus), select(odd, minus, one), zero)
        inverse = select(compare("EQ", base, one), one, inverse)
        negative = compare("LT", exponent, zero)
        return f"stablehlo.select {negative}, {inverse}, {p.line(product, indent)} : {i1}, {type}"
    return product


_DUAL = {"and": "or", "or": "and"}
_VIEWS = ("broadcast_in_dim", "reshape", "transpose", "slice", "dynamic_slice", "gather", "reverse", "bitcast_convert")


def narrow_bitwise(writer: Writer) -> Writer:
    """`and` and `or` of integers, one of which a conversion made narrower, by De Morgan's laws.

    XLA looks for the narrowest type that such an op may be computed in, and ends the process over vectors.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        if not any(map(_is_narrowed, op.operands)):
            return writer(p, op, indent)
        type = p.types(op.result_types)
        a, b = (p.line(f"stablehlo.not {name} : {type}", indent) for name in p.in_one_type(op, indent))
        dual = _DUAL[op.name.rpartition(".")[2].removeprefix("broadcast_")]
        found = p.line(f"stablehlo.{dual} {a}, {b} : {type}", indent)
        return f"stablehlo.not {found} : {type}"

    return write


def _is_narrowed(value: SSAValue) -> bool:
    """Whether an integer's elements are those of a wider one, cut off."""
    wanted = dtype_text(value.type)
    while isinstance(value, OpResult) and is_integer(wanted) and wanted != "i1":
        op = value.op
        if op.name.rpartition(".")[2] not in (*_VIEWS, "convert"):
            return False
        value = op.operands[0]
        text = dtype_text(value.type)
        if op.name == "stablehlo.convert":
            if not is_integer(text) or bit_width(text) < bit_width(wanted):
                return False
            if bit_width(text) > bit_width(wanted):
                return True
    return False


def mulhi(p: Printer, op: Operation, indent: str) -> str:
    """The upper half of a product: XLA refuses it next to other elementwise ops."""
    text, type = dtype_text(op.results[0].type), p.types([op.results[0].type])
    signed, width = text[0] != "u", bit_width(text)
    wide = p.types([with_element(op.results[0], "i64" if signed and width < 64 else "ui64")])
    shift = "shift_right_arithmetic" if signed and width < 64 else "shift_right_logical"

    def line(name: str, *operands: str) -> str:
        return p.line(f"stablehlo.{name} {', '.join(operands)} : {wide}", indent)

    def number(value: int) -> str:
        return p.line(f"stablehlo.constant dense<{value}> : {wide}", indent)

    a, b = (p.line(f"stablehlo.convert {p.values([v])} : ({type}) -> {wide}", indent) for v in op.operands)
    if width < 64:
        return f"stablehlo.convert {line(shift, line('multiply', a, b), number(width))} : ({wide}) -> {type}"
    half, mask, zero = number(32), number((1 << 32) - 1), number(0)
    (a_low, b_low), (a_high, b_high) = ([line(f, v, n) for v in (a, b)] for f, n in (("and", mask), (shift, half)))
    cross = [line("multiply", a_low, b_high), line("multiply", a_high, b_low)]
    carried = line(shift, line("multiply", a_low, b_low), half)
    total = line("multiply", a_high, b_high)
    for part in cross:
        carried = line("add", carried, line("and", part, mask))
        total = line("add", total, line(shift, part, half))
    total = line("add", total, line(shift, carried, half))
    for x, y in ((a, b), (b, a)) if signed else ():
        # A negative factor was taken for itself plus 2 ** 64.
        sign = line("subtract", zero, line("shift_right_logical", x, number(63)))
        total = line("subtract", total, line("and", sign, y))
    return f"stablehlo.convert {total} : ({wide}) -> {type}"


def popcnt(writer: Writer) -> Writer:
    """Ones of signed integers below 8 bits, of which XLA counts those of the sign's copies too."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        text, type = dtype_text(op.results[0].type), p.types(op.result_types)
        if text[0] == "u" or (width := bit_width(text)) >= 8:
            return writer(p, op, indent)
        wide = p.types([with_element(op.results[0], "i8")])
        byte = p.line(f"stablehlo.convert {p.values(op.operands)} : ({type}) -> {wide}", indent)
        mask = p.line(f"stablehlo.constant dense<{(1 << width) - 1}> : {wide}", indent)
        own = p.line(f"stablehlo.and {byte}, {mask} : {wide}", indent)
        return f"stablehlo.convert {p.line(f'stablehlo.popcnt {own} : {wide}', indent)} : ({wide}) -> {type}"

    return write


def compare(writer: Writer) -> Writer:
    """Comparisons of `i2`, by way of 8 bits."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        if dtype_text(op.operands[0].type) != "i2":
            return writer(p, op, indent)
        names, types = convert_values(p, op.operands, "i8", indent)
        return f'"{op.name}"({", ".join(names)}){p.properties(op.properties)} : ({p.types(types)}) -> {p.results(op)}'

    return write


def concatenate(p: Printer, op: Operation, indent: str) -> str:
    """Concatenations without what is empty, and of 2 bits by way of 8: XLA ends the process over both."""
    dimension = cast(ConcatenateOp, op).value("dimension")
    values = [value for value in op.operands if shape_of(value)[dimension] != 0] or op.operands[:1]
    if bit_width(dtype_text(op.results[0].type)) == 2:
        return _elsewhere(p, op, indent, "ui8" if dtype_text(op.results[0].type)[0] == "u" else "i8", values)
    types = p.types([value.type for value in values])
    return f"stablehlo.concatenate {p.values(values)}, dim = {dimension} : ({types}) -> {p.results(op)}"


# ---- ops that are computed on other elements ------------------------------------------------------------------------

TWO_BITS = {"i2": "i8"}
"""For arithmetic of `i2`: XLA compares with -1 and -2, and shifts them, as if they were others."""

UNSIGNED = {f"i{bits}": f"ui{bits}" for bits in (2, 4, 8, 16, 32, 64)}
"""For zeros before the first one: XLA counts those of negative constants in 64 bits."""

UNSIGNED_BELOW_BYTES = {text: unsigned for text, unsigned in UNSIGNED.items() if bit_width(text) < 8}
"""For shifts of bits: XLA shifts the copies of a constant's sign into its bits."""

ROUNDED = {"f8E3M4": "f32"}
"""For rounding, which of constants XLA makes NaN."""

NORMALIZED = {text: "f32" for text in ELEMENT_TYPES if is_float(text) and bit_width(text) < 32}
"""For normalization: XLA writes `x * s + (offset - mean * s)`, which cancels and overflows in so few bits."""


BELOW_16_BITS = {text: "f32" for text in NORMALIZED if bit_width(text) < 16}
"""For functions that XLA does not have of so few bits."""


def compute_on(elements: Mapping[str, str], writer: Writer) -> Writer:
    """Ops whose results have one of some element types, computed on that which the table has for it."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        element = elements.get(dtype_text(op.results[0].type))
        return writer(p, op, indent) if element is None else _elsewhere(p, op, indent, element, op.operands)

    return write


def _elsewhere(p: Printer, op: Operation, indent: str, element: str, values: Sequence[SSAValue]) -> str:
    """An op of one result on values converted to an element type, and its result converted back."""
    names, types = convert_values(p, values, element, indent)
    result = p.types([with_element(op.results[0], element)])
    found = f'"{op.name}"({", ".join(names)}){p.properties(op.properties)} : ({p.types(types)}) -> {result}'
    return f"stablehlo.convert {p.line(found, indent)} : ({result}) -> {p.types(op.result_types)}"


def convert_values(
    p: Printer, values: Sequence[SSAValue], element: str | Attribute, indent: str
) -> tuple[list[str], list[Tensor]]:
    """The names and types of values, converted to an element type."""
    types = [with_element(value, element) for value in values]
    return [
        p.line(f"stablehlo.convert {p.values([value])} : ({p.types([value.type])}) -> {p.types([type])}", indent)
        for value, type in zip(values, types, strict=True)
    ], types


# ---- booleans, order, numbers of other kinds ------------------------------------------------------------------------

_LOGICAL = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}


def applied_name(op: type[GraphOp], text: str) -> str:
    """The name of a binary op on elements of a type: XLA adds constants of i1 modulo 2, so that is written as `or`."""
    dialect, _, name = op.name.partition(".")
    head = "broadcast_" if name.startswith("broadcast_") else ""
    logical = _LOGICAL.get(name.removeprefix(head)) if text == "i1" else None
    return op.name if logical is None else f"{dialect}.{head}{logical}"


def logical(writer: Writer) -> Writer:
    """Arithmetic on booleans by the name that it has there."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        name = applied_name(cast("type[GraphOp]", type(op)), dtype_text(op.results[0].type))
        if name == op.name:
            return writer(p, op, indent)
        return f'"{name}"({p.values(op.operands)}){p.signature(op)}'

    return write


def clamp(writer: Writer) -> Writer:
    """Bounds that are not known to be in order: XLA takes `clamp(a, x, b)` to be at least `a`, where it may be `b`.

    Booleans: XLA folds `clamp(false, false, true)` to true.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        low, _, high = op.operands
        type, text = p.types(op.result_types), dtype_text(op.results[0].type)
        ends = [known.array() for v in (low, high) if (known := constant_of(v)) is not None]
        if text != "i1" and len(ends) == len((low, high)) and bool((ends[0] <= ends[1]).all()):
            return writer(p, op, indent)
        names = list(p.in_one_type(op, indent))
        if low is high and is_integer(text):
            # So LLVM finds out by itself, and takes hours over a power of that which is padded.
            names[1] = names[0]
        larger = p.line(f"{applied_name(MaximumOp, text)} {names[1]}, {names[0]} : {type}", indent)
        return f"{applied_name(MinimumOp, text)} {larger}, {names[2]} : {type}"

    return write


def convert(writer: Writer) -> Writer:
    """Conversions of complex numbers to real ones, by their real parts: over constants XLA ends the process.

    Those of f4 to integers by way of f32: XLA takes its greatest number, 6, for the greatest of the integers.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        source, target = op.operands[0], op.results[0]
        text, wanted = dtype_text(source.type), dtype_text(target.type)
        if is_complex(text) and not is_complex(wanted):
            way, between = "real", real_of(text)
        elif text == "f4E2M1FN" and is_integer(wanted):
            way, between = "convert", "f32"
        else:
            return writer(p, op, indent)
        type = p.types([with_element(source, between)])
        part = p.line(f"stablehlo.{way} {p.values([source])} : ({p.types([source.type])}) -> {type}", indent)
        return f"stablehlo.convert {part} : ({type}) -> {p.types([target.type])}"

    return write


def apart(writer: Writer, confused: Callable[[Operation], bool]) -> Writer:
    """An op that XLA makes something wrong of together with what makes its operands: barriers stand between them."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        if not confused(op):
            return writer(p, op, indent)
        hidden = ", ".join([barrier(p, p.values([v]), v.type, indent) for v in op.operands])
        types = p.types(op.operand_types)
        return f'"{op.name}"({hidden}){p.properties(op.properties)} : ({types}) -> {p.results(op)}'

    return write


def barrier(p: Printer, name: str, type: Attribute, indent: str) -> str:
    """The name of a value of which XLA does not know what it is."""
    return p.line(f"stablehlo.optimization_barrier {name} : {p.types([type])}", indent)


def _keeps_a_byte(text: str, wanted: str) -> bool:
    """Whether elements of 4 bits become 8: what was just computed XLA holds in a byte, and takes more of it than 4."""
    return is_integer(text) and is_integer(wanted) and bit_width(text) == 4 and bit_width(wanted) == 8


def widens_computed(op: Operation) -> bool:
    """Whether computed integers of 4 bits become ones of 8. Those of constants and weights are right as they are."""
    (source,), (target,) = op.operands, op.results
    computed = isinstance(source, OpResult) and not isinstance(source.op, ConstantOp | WeightOp)
    return computed and _keeps_a_byte(dtype_text(source.type), dtype_text(target.type))


def compares_totally(op: Operation) -> bool:
    """Whether matrices are compared in a total order: of constants laid out in columns, XLA takes the bits in rows."""
    return cast(GraphOp, op).value("compare_type") == "TOTALORDER" and rank_of(op.results[0]) > 1


def changes_rank(op: Operation) -> bool:
    """Whether the result has another rank: of two such casts of bits XLA makes one, whose shape is another."""
    return rank_of(op.operands[0]) != rank_of(op.results[0])


def after(*producers: str) -> Callable[[Operation], bool]:
    """Whether the operand is what one of some ops makes."""

    def holds(op: Operation) -> bool:
        before = _skip_same_type(op.operands[0])
        return isinstance(before, OpResult) and before.op.name in producers

    return holds


def divides_quotient(op: Operation) -> bool:
    """Whether a quotient of floats is divided, or divides: XLA makes a product of it, which may overflow or vanish."""
    if is_integer(dtype_text(op.results[0].type)):
        return False
    made = (_skip_same_type(value) for value in op.operands)
    return any(isinstance(v, OpResult) and v.op.name in _QUOTIENTS for v in made)


_QUOTIENTS = ("stablehlo.divide", "chlo.broadcast_divide")


def _skip_same_type(value: SSAValue) -> SSAValue:
    """The value below a chain of type-preserving unary ops, which XLA's simplifier may remove."""
    while isinstance(value, OpResult) and len(value.op.operands) == 1 and value.op.operands[0].type == value.type:
        value = value.op.operands[0]
    return value


def quotient(writer: Writer) -> Writer:
    """Quotients of floats by a constant, which XLA makes products with a reciprocal that may be infinite, or 0.

    Where a reciprocal is no normal number, the constant stands behind a barrier.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        known = constant_of(op.operands[1])
        if known is None or _has_reciprocals(known.array()):
            return writer(p, op, indent)
        a, b = p.in_one_type(op, indent)
        return f"stablehlo.divide {a}, {barrier(p, b, op.result_types[0], indent)} : {p.types(op.result_types)}"

    return write


def _has_reciprocals(divisors: np.ndarray[Any, Any]) -> bool:
    """Whether the reciprocals of all numbers but 0 are normal numbers of their type; True of integers."""
    text = text_of(divisors.dtype)
    if not is_float(text) and not is_complex(text):
        return True
    form = float_format(divisors.dtype)
    sizes = np.abs(divisors.astype(np.complex128 if is_complex(text) else np.float64))
    numbers = sizes[np.isfinite(sizes) & (sizes != 0)]
    with np.errstate(all="ignore"):
        reciprocals = 1 / numbers
    return bool(((reciprocals >= form.tiny) & (reciprocals <= form.max)).all())


def of_no_number(writer: Writer) -> Writer:
    """Functions that XLA computes by way of `exp`, where a program has NaN among its constants.

    Once LLVM knows that an operand is NaN, XLA's `exp` leaves what was in memory before. So NaN is selected; of complex
    numbers, where the real part is NaN.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        found, value, result = writer(p, op, indent), op.operands[0], op.results[0]
        if not p.has_nan:
            return found
        type, i1, x = p.types([result.type]), p.types([with_element(result, "i1")]), p.values([value])
        text, nan = dtype_text(result.type), x
        if is_complex(text):
            part = p.types([with_element(result, real_of(text))])
            x = p.line(f"stablehlo.real {x} : ({type}) -> {part}", indent)
            nan = p.line(f"stablehlo.complex {x}, {x} : {type}", indent)
            other = p.line(f"stablehlo.compare NE, {x}, {x} : ({part}, {part}) -> {i1}", indent)
        else:
            other = p.line(f"stablehlo.compare NE, {x}, {x} : ({type}, {type}) -> {i1}", indent)
        return f"stablehlo.select {other}, {nan}, {p.line(found, indent)} : {i1}, {type}"

    return write


# ---- whole matrices --------------------------------------------------------------------------------------------------


def cholesky(p: Printer, op: Operation, indent: str) -> str:
    """A factor, and 0 in the other triangle, where XLA has NaN if there is none. Of complex matrices it reads the
    imaginary parts of the diagonal, which are to count as 0."""
    result = op.results[0]
    text, rank = dtype_text(result.type), rank_of(result)
    type, i1, places = (p.types([with_element(result, t)]) for t in (text, "i1", "i32"))
    x = p.values(op.operands)
    row, column = (p.line(f"stablehlo.iota dim = {rank - k} : {places}", indent) for k in (2, 1))

    def select(direction: str, on_true: str, on_false: str) -> str:
        where = p.line(f"stablehlo.compare {direction}, {row}, {column} : ({places}, {places}) -> {i1}", indent)
        return f"stablehlo.select {where}, {on_true}, {on_false} : {i1}, {type}"

    if is_complex(text):
        part = p.types([with_element(result, real_of(text))])
        real = p.line(f"stablehlo.real {x} : ({type}) -> {part}", indent)
        own = p.line(f"stablehlo.convert {real} : ({part}) -> {type}", indent)
        x = p.line(select("EQ", own, x), indent)
    factor = p.line(f'"{op.name}"({x}){p.properties(op.properties)} : ({type}) -> {type}', indent)
    zero = p.line(f"stablehlo.constant dense<{'(0.0,0.0)' if is_complex(text) else '0.0'}> : {type}", indent)
    return select("GE" if cast(CholeskyOp, op).value("lower") else "LE", factor, zero)
