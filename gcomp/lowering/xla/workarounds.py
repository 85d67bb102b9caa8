"""Ops that XLA gets in other words, because of what XLA:CPU would make of them: see docs/upstream_bugs.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_integer, real_of
from gcomp.ir.attributes import encode
from gcomp.ir.builder import identity as identity_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.constant import ConstantOp
from gcomp.ir.stablehlo.elementwise import MaximumOp, MinimumOp
from gcomp.ir.stablehlo.indexing import ScatterOp
from gcomp.ir.stablehlo.movement import BroadcastInDimOp
from gcomp.ir.stablehlo.reduction import ReduceOp, ReduceWindowOp
from gcomp.ir.stablehlo.sorting import SortOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor, with_element, with_shape

if TYPE_CHECKING:
    from gcomp.lowering.xla.export import Printer

Writer = Callable[["Printer", Operation, str], str]


# ---- what values are known to be ------------------------------------------------------------------------------------


def _constant(value: SSAValue) -> ElementsAttr | None:
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
        known = _constant(divisor)
        array = None if known is None else known.array()
        text = dtype_text(divisor.type)
        if not is_integer(text) or (
            array is not None and bool(array.all() and (text[0] == "u" or (array != -1).all()))
        ):
            return writer(p, op, indent)
        dividend, other = p.in_one_type(op, indent)
        return _guarded(p, op, indent, dividend, other)

    return write


def _guarded(p: Printer, op: Operation, indent: str, a: str, b: str) -> str:
    """A division of `a` by `b`, values of the result's type, that never divides by 0 or -1."""
    result = op.results[0].type
    type, i1 = p.types([result]), p.types([with_element(result, "i1")])

    def number(value: str) -> str:
        return p.line(f"stablehlo.constant dense<{value}> : {type}", indent)

    def equal(value: str) -> str:
        return p.line(f"stablehlo.compare EQ, {b}, {value} : ({type}, {type}) -> {i1}", indent)

    def select(where: str, then: str, other: str) -> str:
        return f"stablehlo.select {where}, {then}, {other} : {i1}, {type}"

    quotient, zero, one = op.name.endswith("divide"), number("0"), number("1")
    ones = p.line(f"stablehlo.not {zero} : {type}", indent)
    empty = equal(zero)
    negative = equal(ones) if dtype_text(result)[0] != "u" else None
    safe = p.line(select(empty, one, b), indent)
    if negative is not None:
        safe = p.line(select(negative, one, safe), indent)
    safe = p.line(f"stablehlo.optimization_barrier {safe} : {type}", indent)
    found = p.line(f"stablehlo.{'divide' if quotient else 'remainder'} {a}, {safe} : {type}", indent)
    if negative is not None:
        minus = p.line(f"stablehlo.negate {a} : {type}", indent) if quotient else zero
        found = p.line(select(negative, minus, found), indent)
    return select(empty, ones if quotient else a, found)


_DIGIT = 6
"""XLA looks at so many bits of an exponent, so that 0 ** 64 is 1."""


def doubled(writer: Writer) -> Writer:
    """`i + i` of an integer as `i * 2`: XLA ends the process over loops that count so."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        x, y = op.operands
        if x is not y or shape_of(x) or not is_integer(dtype_text(x.type)) or dtype_text(x.type) == "i1":
            return writer(p, op, indent)
        type = p.types([x.type])
        two = p.line(f"stablehlo.constant dense<{_wrapped(2, dtype_text(x.type))}> : {type}", indent)
        return f"stablehlo.multiply {p.values([x])}, {two} : {type}"

    return write


def _wrapped(number: int, text: str) -> int:
    """A number as an integer type holds it."""
    return int(np.asarray(number).astype(dtype_of(text)))


def power(writer: Writer) -> Writer:
    """Powers of integers: one for each group of so many bits of the exponent. Negative exponents are looked at apart.

    Those of fewer than 8 bits by way of 8: not all of XLA's ways to compute them agree.
    """

    def write(p: Printer, op: Operation, indent: str) -> str:
        text, known = dtype_text(op.results[0].type), _constant(op.operands[1])
        if not is_integer(text):
            return writer(p, op, indent)
        if bit_width(text) < 8:
            return in_bytes(p, op, indent)
        array = None if known is None else known.array()
        if array is not None and bool(((array >= 0) & (array < 1 << _DIGIT)).all()):
            return writer(p, op, indent)
        base, exponent = p.in_one_type(op, indent)
        return _powers(p, op, indent, base, exponent)

    return write


def _powers(p: Printer, op: Operation, indent: str, base: str, exponent: str) -> str:
    """The power of values of the result's type."""
    text, type = dtype_text(op.results[0].type), p.types(op.result_types)
    i1, signed = p.types([with_element(op.results[0], "i1")]), text[0] != "u"

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


def concatenate(writer: Writer) -> Writer:
    """Concatenations of elements of 2 bits, over which XLA ends the process: by way of 8 bits."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        two = bit_width(dtype_text(op.results[0].type)) == 2
        return in_bytes(p, op, indent) if two else writer(p, op, indent)

    return write


def in_bytes(p: Printer, op: Operation, indent: str) -> str:
    """An op on smaller integers, by way of 8 bits."""
    wide = "ui8" if dtype_text(op.results[0].type)[0] == "u" else "i8"
    *types, result = (p.types([with_element(value, wide)]) for value in (*op.operands, *op.results))
    names = [
        p.line(f"stablehlo.convert {p.values([value])} : ({p.types([value.type])}) -> {type}", indent)
        for value, type in zip(op.operands, types, strict=True)
    ]
    properties = p.properties(op.properties)
    found = f'"{op.name}"({", ".join(names)}){properties} : ({", ".join(types)}) -> {result}'
    return f"stablehlo.convert {p.line(found, indent)} : ({result}) -> {p.types(op.result_types)}"


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
    """Bounds that are not known to be in order: XLA takes `clamp(a, x, b)` to be at least `a`, where it may be `b`."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        low, _, high = op.operands
        ends = [known.array() for v in (low, high) if (known := _constant(v)) is not None]
        if len(ends) == len((low, high)) and bool((ends[0] <= ends[1]).all()):
            return writer(p, op, indent)
        type, text = p.types(op.result_types), dtype_text(op.results[0].type)
        names = list(p.in_one_type(op, indent))
        larger = p.line(f"{applied_name(MaximumOp, text)} {names[1]}, {names[0]} : {type}", indent)
        return f"{applied_name(MinimumOp, text)} {larger}, {names[2]} : {type}"

    return write


def convert(writer: Writer) -> Writer:
    """Conversions of complex numbers to real ones, by their real parts: over constants XLA ends the process."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        source, target = op.operands[0], op.results[0]
        text = dtype_text(source.type)
        if not is_complex(text) or is_complex(dtype_text(target.type)):
            return writer(p, op, indent)
        real = p.types([with_element(source, real_of(text))])
        part = p.line(f"stablehlo.real {p.values([source])} : ({p.types([source.type])}) -> {real}", indent)
        return f"stablehlo.convert {part} : ({real}) -> {p.types([target.type])}"

    return write


# ---- folds ----------------------------------------------------------------------------------------------------------


def started(
    p: Printer, op: ReduceOp, applied: type[GraphOp], indent: str, write: Callable[[str], str], init: str
) -> str:
    """A fold by one op, which `write` writes with an initial value. XLA leaves that out where it folds one element.

    So a fold that does not start from the op's identity does here, and what it would start from comes after it.
    """
    start, type = op.init_values[0], tensor((), element_of(op.results[0]))
    identity = ElementsAttr.of(np.asarray(identity_of(applied, dtype_text(type)), dtype_of(dtype_text(type))))
    known = _constant(start)
    narrow = element_of(start) != element_of(type)
    if known is not None and not narrow and known.array().tobytes() == identity.array().tobytes():
        return write(init)
    result = p.types(op.result_types)
    folded = p.line(write(p.line(f"stablehlo.constant {identity}", indent)), indent)
    repeated = f"stablehlo.broadcast_in_dim {init}, dims = [] : ({p.types([type])}) -> {result}"
    return f"{applied_name(applied, dtype_text(type))} {p.line(repeated, indent)}, {folded} : {result}"


def operands(
    p: Printer, op: Operation, indent: str
) -> tuple[Sequence[str], Sequence[Attribute], Mapping[str, Attribute]]:
    """The names and types of the operands of an op that folds or indexes, and its properties.

    What is folded is converted before to the type that the body computes in: of a fold over no dimension XLA returns
    the operand in its own type. Indices become signed: XLA reads unsigned constants as signed.
    """
    names, types = [p.values([v]) for v in op.operands], [v.type for v in op.operands]
    for i, arg in _folded(op):
        wide = with_element(types[i], element_of(arg))
        if wide != types[i]:
            names[i] = p.line(f"stablehlo.convert {names[i]} : ({p.types([types[i]])}) -> {p.types([wide])}", indent)
            types[i] = wide
    for i in _indices(op):
        if (text := dtype_text(types[i]))[0] != "u":
            continue
        if bit_width(text) == 64:
            most = p.line(f"stablehlo.constant dense<{2**63 - 1}> : {p.types([types[i]])}", indent)
            names[i] = p.line(f"stablehlo.minimum {names[i]}, {most} : {p.types([types[i]])}", indent)
        wide = with_element(types[i], "i64" if bit_width(text) > 16 else "i32")
        names[i] = p.line(f"stablehlo.convert {names[i]} : ({p.types([types[i]])}) -> {p.types([wide])}", indent)
        types[i] = wide
    if isinstance(op, SortOp):
        # Sorting that need not be stable ends the process over comparators that are no strict order.
        return names, types, {**op.properties, "is_stable": BoolAttr.from_bool(True)}
    if not isinstance(op, ScatterOp) or (free := unindexed(op)) is None:
        return names, types, op.properties
    # Of several updates at one place without an index XLA applies the last one only: so there is one, and it is 0.
    i, numbers = len(op.inputs), op.value("scatter_dimension_numbers")
    sizes = list(shape_of(types[i]))
    sizes[numbers.index_vector_dim] = 1
    types[i] = with_shape(types[i], sizes)
    names[i] = p.line(f"stablehlo.constant dense<0> : {p.types([types[i]])}", indent)
    indexed = encode("scatter_dimension_numbers", numbers._replace(scatter_dims_to_operand_dims=(free,)))
    return names, types, {**op.properties, "scatter_dimension_numbers": indexed}


def unindexed(op: ScatterOp) -> int | None:
    """The first dimension, none of which a scatter indexes, that is no batching dimension; -1 where there is none."""
    numbers = op.value("scatter_dimension_numbers")
    if numbers.scatter_dims_to_operand_dims:
        return None
    return next((d for d in range(rank_of(op.inputs[0])) if d not in numbers.input_batching_dims), -1)


def product(writer: Writer) -> Writer:
    """Products of elements below 8 bits with a wider result, which XLA refuses: of operands as wide as the result."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        result = element_of(op.results[0])
        if bit_width(dtype_text(op.operands[0].type)) >= 8 or element_of(op.operands[0]) == result:
            return writer(p, op, indent)
        types = [p.types([with_element(value, result)]) for value in op.operands]
        names = [
            p.line(f"stablehlo.convert {p.values([value])} : ({p.types([value.type])}) -> {type}", indent)
            for value, type in zip(op.operands, types, strict=True)
        ]
        head = f'"{op.name}"({", ".join(names)}){p.properties(op.properties)}'
        return f"{head} : ({', '.join(types)}) -> {p.results(op)}"

    return write


def adjusted(p: Printer, op: Operation, indent: str) -> str:
    """MLIR's generic form of an op that indexes."""
    names, types, properties = operands(p, op, indent)
    return f'"{op.name}"({", ".join(names)}){p.properties(properties)} : ({p.types(types)}) -> {p.results(op)}'


def _indices(op: Operation) -> range:
    """The numbers of the operands that are indices."""
    count = len(op.operands)
    first = {"stablehlo.gather": 1, "stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2}.get(
        op.name, count
    )
    return range(len(op.inputs), len(op.inputs) + 1) if isinstance(op, ScatterOp) else range(first, count)


def _folded(op: Operation) -> Iterator[tuple[int, SSAValue]]:
    """The numbers of the operands that the body of an op folds, each with an argument of the type it computes in."""
    if isinstance(op, ReduceOp | ReduceWindowOp):
        yield from enumerate(op.body.block.args)
    elif isinstance(op, ScatterOp):
        count = len(op.inputs)
        for i, arg in enumerate(op.update_computation.block.args):
            yield i + (i >= count), arg
