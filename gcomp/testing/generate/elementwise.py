"""Steps of elementwise ops: arithmetic, functions, comparisons, selections, conversions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import highest, lowest
from gcomp.ir.chlo.broadcasting import BroadcastingOp
from gcomp.ir.chlo.elementwise import BinaryFunctionOp, FunctionOp
from gcomp.ir.enums import ChloComparisonDirectionAttr
from gcomp.ir.families import PLAIN, Ops, ops_of
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.elementwise import BinaryOp, TranscendentalOp, UnaryOp
from gcomp.ir.types import BOOL, COMPLEX, FLOATS, INTEGERS, dtype_text, shape_of, tensor, tensor_of, with_element
from gcomp.reference.values import edge_pool
from gcomp.testing.generate.growth import Growth, element, step

Array = np.ndarray[Any, Any]

_NAMED = 0.5
"""How often an op is one that a pass names, where there is such a one."""

FUNCTIONS: Ops = ops_of(TranscendentalOp)
EXACT_UNARY: Ops = tuple(op for op in ops_of(UnaryOp) if op not in (*FUNCTIONS, hlo.RealOp, hlo.ImagOp))
CHLO_FUNCTIONS: Ops = tuple(op for op in ops_of(FunctionOp) if op is not chlo.AsinAcosKernelOp)
BINARY: Ops = ops_of(BinaryOp)
CHLO_BINARY: Ops = ops_of(BinaryFunctionOp)
CHLO_BROADCASTING: Ops = ops_of(BroadcastingOp)
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")

EVERY_ELEMENT = (
    "f32", "i32", "i1", "f64", "f16", "bf16", "i64", "i8", "ui8", "i16", "ui16", "ui32", "ui64", "i4", "ui4", "i2",
    "ui2", "complex<f32>", "complex<f64>", "f8E4M3FN", "f8E5M2", "f8E4M3", "f8E3M4", "f8E5M2FNUZ", "f8E4M3FNUZ",
    "f8E4M3B11FNUZ", "f8E8M0FNU", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
)  # fmt: skip


_OF_REAL = (hlo.RemainderOp, chlo.BesselI1eOp)
"""What takes complex numbers by its specification, and has no reference meaning for them."""


def elements_with_meaning(op: type[GraphOp]) -> frozenset[Attribute]:
    """The element types that an op takes and has a reference meaning for."""
    taken = frozenset(op.ELEMENTS)
    return taken - COMPLEX if op in _OF_REAL else taken


@cache
def taking(ops: Ops, text: str) -> Ops:
    """Those of the ops that take an element type."""
    return tuple(op for op in ops if element(text) in elements_with_meaning(op))


def one_of(g: Growth, ops: Ops, text: str) -> type[GraphOp]:
    """One of the ops that take an element type: often one that the pass names for which the program is made."""
    found = taking(ops, text)
    named = [op for op in found if op in g.named] if g.named else []
    return g.choices.chosen(named if named and g.choices.flag(_NAMED) else found)


def elements_of(ops: Ops) -> frozenset[Attribute]:
    """The element types that one of the ops takes."""
    none: frozenset[Attribute] = frozenset()
    return none.union(*(op.ELEMENTS for op in ops))


_FUNCTION_ELEMENTS = elements_of(FUNCTIONS)


@step("unary", *EXACT_UNARY, weight=7)
def unary(g: Growth) -> None:
    """Negate, abs, not, sign, rounding, bit counts: what the element type allows."""
    x = g.pick()
    op = one_of(g, EXACT_UNARY, dtype_text(x.type))
    g.emit(op, x, types=None if op is hlo.AbsOp else (x.type,))


@step("binary", *BINARY, weight=14)
def binary(g: Growth) -> None:
    """Two operands of one type, at times the same one twice."""
    x = g.pick()
    op = one_of(g, BINARY, dtype_text(x.type))
    y = x if g.choices.flag(0.15) else g.like(x)
    pair = (y, x) if g.choices.flag(0.3) else (x, y)
    g.emit(op, *pair, types=(x.type,))


def special(g: Growth, text: str) -> Any:
    """A number that identities are about."""
    pool = _specials(text)
    return pool[g.choices.integer(0, pool.size - 1)]


@cache
def _specials(text: str) -> Array:
    numbers: Sequence[Any] = (0, 1)
    if is_float(text):
        numbers = (0.0, 1.0, -0.0, -1.0, 2.0, 0.5, np.nan, np.inf, 3.0)
    elif is_complex(text):
        numbers = (0, 1, -1, 1j)
    elif text != "i1":
        numbers = (
            (0, 1, highest(text), 2, 3, lowest(text)) if text[0] == "u" else (0, 1, -1, lowest(text), highest(text))
        )
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(dtype_of(text))


@step("binary-constant", *BINARY, weight=10)
def binary_with_constant(g: Growth) -> None:
    """A number that identities are about on one side, as a dense splat or as a repeated scalar."""
    x = g.pick()
    text = dtype_text(x.type)
    op = one_of(g, BINARY, text)
    symbolic = not all(isinstance(s, int) for s in shape_of(x))
    y = g.splat(tensor_of(x), special(g, text), broadcast=symbolic or g.choices.flag())
    pair = (y, x) if g.choices.flag(0.4) else (x, y)
    g.emit(op, *pair, types=(x.type,))


@step("compare", hlo.CompareOp, weight=4)
def compare(g: Growth) -> None:
    """All directions and all types of comparison."""
    x = g.pick()
    text = dtype_text(x.type)
    y = x if g.choices.flag(0.15) else g.like(x)
    direction = g.choices.chosen(DIRECTIONS[:2] if is_complex(text) else DIRECTIONS)
    kind = "FLOAT" if is_float(text) or is_complex(text) else "UNSIGNED" if text[0] == "u" or text == "i1" else "SIGNED"
    kinds = (kind, None, "TOTALORDER") if is_float(text) else (kind, None)
    g.emit(hlo.CompareOp, x, y, types=(with_element(x, BOOL),), comparison_direction=direction,
           compare_type=g.choices.chosen(kinds))  # fmt: skip


def predicate(g: Growth, x: SSAValue) -> SSAValue:
    """A predicate for the elements of `x`: one for each, or one for all."""
    if g.choices.flag(0.25):
        return g.scalar("i1")
    wanted = with_element(x, BOOL)
    known = [v for v in g.values if v.type is wanted]
    if known and g.choices.flag(0.7):
        return known[-1 - g.choices.near(len(known))]
    if g.choices.flag(0.5):
        return g.of_type(wanted)
    direction = g.choices.chosen(DIRECTIONS[:2])
    return g.emit(hlo.CompareOp, x, g.like(x), types=(wanted,), comparison_direction=direction)


@step("select", hlo.SelectOp, weight=4)
def select(g: Growth) -> None:
    """A predicate for each element or one for all; both branches may be one value."""
    x = g.pick()
    other = x if g.choices.flag(0.1) else g.like(x)
    pred = predicate(g, x)
    pair = (other, x) if g.choices.flag(0.4) else (x, other)
    g.emit(hlo.SelectOp, pred, *pair, types=(x.type,))


@step("clamp", hlo.ClampOp, weight=2)
def clamp(g: Growth) -> None:
    """Bounds of rank 0 or of the operand's type; the lower one may exceed the upper."""
    x = g.pick()
    bounds = [g.scalar(dtype_text(x.type)) if g.choices.flag() else g.like(x) for _ in range(2)]
    g.emit(hlo.ClampOp, bounds[0], x, bounds[1], types=(x.type,))


@step("convert", hlo.ConvertOp, weight=6)
def convert(g: Growth) -> None:
    """To a type of the program, or now and then to any; to the same type too."""
    x = g.pick()
    text = g.choices.chosen(g.palette if g.choices.flag(0.8) else EVERY_ELEMENT)
    g.emit(hlo.ConvertOp, x, types=(with_element(x, text),))


_ROUND_TRIPS = {
    "f32": ("f16", "bf16", "f64", "i32", "f8E4M3FN", "i8"), "f64": ("f32", "i64", "f16"),
    "i32": ("f32", "i64", "i8", "f64", "ui32", "i1"), "i64": ("i32", "f64", "f32"), "f16": ("f32", "bf16", "f8E5M2"),
    "bf16": ("f32", "f16"), "i8": ("i32", "f32", "ui8", "i4", "i16"), "ui8": ("i8", "f32", "i32", "ui4"),
}  # fmt: skip


@step("round-trip", hlo.ConvertOp, weight=1.5)
def round_trip(g: Growth) -> None:
    """To another type and back, which loses what the other type cannot hold."""
    x = g.pick()
    text = dtype_text(x.type)
    between = g.choices.chosen(_ROUND_TRIPS.get(text, ("i32", "f32")))
    g.emit(hlo.ConvertOp, g.emit(hlo.ConvertOp, x, types=(with_element(x, between),)), types=(x.type,))


@step("function", *FUNCTIONS, weight=3)
def function(g: Growth) -> None:
    """A function of floats or complex numbers."""
    x = g.pick(_FUNCTION_ELEMENTS)
    op = one_of(g, FUNCTIONS, dtype_text(x.type))
    g.emit(op, x, types=(x.type,))


_INVERSES = (
    (hlo.NegateOp, hlo.NegateOp), (hlo.NotOp, hlo.NotOp), (hlo.LogOp, hlo.ExponentialOp),
    (hlo.ExponentialOp, hlo.LogOp), (chlo.SquareOp, hlo.SqrtOp), (hlo.SqrtOp, chlo.SquareOp),
    (hlo.AbsOp, hlo.AbsOp), (hlo.FloorOp, hlo.CeilOp), (hlo.LogPlusOneOp, hlo.ExponentialMinusOneOp),
)  # fmt: skip


@step("inverse", *{op for pair in _INVERSES for op in pair}, weight=2)
def inverse(g: Growth) -> None:
    """A function and its inverse, which differ at the edges."""
    x = g.pick()
    text = dtype_text(x.type)
    pairs = [pair for pair in _INVERSES if all(element(text) in op.ELEMENTS for op in pair)]
    if is_complex(text):
        pairs = [pair for pair in pairs if hlo.AbsOp not in pair]
    first, second = g.choices.chosen(pairs)
    g.emit(second, g.emit(first, x))


@step("chlo-function", *CHLO_FUNCTIONS, *CHLO_BINARY, weight=0.8)
def chlo_function(g: Growth) -> None:
    """A function or predicate of CHLO."""
    x = g.pick(FLOATS)
    if g.choices.flag(0.15):
        g.emit(one_of(g, CHLO_BINARY, dtype_text(x.type)), x, g.like(x))
    else:
        g.emit(one_of(g, CHLO_FUNCTIONS, dtype_text(x.type)), x)


def _drop_dimensions(g: Growth, shape: Sequence[Size]) -> list[Size]:
    """A shape that broadcasts to another: dimensions in front are left out, others have size 1."""
    return [1 if g.choices.flag(0.4) else s for s in shape[g.choices.integer(0, len(shape)) :]]


@step("chlo-broadcasting", *CHLO_BROADCASTING, weight=1)
def chlo_broadcasting(g: Growth) -> None:
    """Operands of shapes that broadcast: a value, and one of its shape with dimensions dropped or of size 1."""
    x = g.pick()
    text = dtype_text(x.type)
    op = g.choices.chosen(_broadcasting(text))
    pair = (x, g.of_type(tensor(_drop_dimensions(g, shape_of(x)), text)))
    pair = pair[::-1] if g.choices.flag() else pair
    if op is chlo.BroadcastCompareOp:
        direction = ChloComparisonDirectionAttr(g.choices.chosen(DIRECTIONS))
        g.emit(op, *pair, comparison_direction=direction)
    else:
        g.emit(op, *pair)


@cache
def _broadcasting(text: str) -> Ops:
    """The broadcasting ops that take an element type; for complex numbers no comparisons, powers or remainders."""
    plain = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.DivideOp)
    kept = taking(CHLO_BROADCASTING, text)
    return tuple(op for op in kept if PLAIN[op] in plain) if is_complex(text) else kept


@step("chlo-select", chlo.BroadcastSelectOp, weight=0.3)
def chlo_select(g: Growth) -> None:
    """A choice whose predicate and branches broadcast to one shape."""
    x = g.pick()
    shape, text = shape_of(x), dtype_text(x.type)
    other = g.of_type(tensor(_drop_dimensions(g, shape), text))
    pair = (other, x) if g.choices.flag() else (x, other)
    g.emit(chlo.BroadcastSelectOp, g.of_type(tensor(_drop_dimensions(g, shape), "i1")), *pair)


@step("is-finite", hlo.IsFiniteOp, weight=0.7)
def is_finite(g: Growth) -> None:
    """Whether a float is a number."""
    g.emit(hlo.IsFiniteOp, g.pick(FLOATS))


@step("complex", hlo.ComplexOp, hlo.RealOp, hlo.ImagOp, weight=1)
def complex_parts(g: Growth) -> None:
    """A complex number of two reals, or a part of one."""
    if g.choices.flag():
        x = g.pick(frozenset(hlo.ComplexOp.ELEMENTS))
        g.emit(hlo.ComplexOp, x, g.like(x))
    else:
        x = g.pick(FLOATS | COMPLEX if g.choices.flag(0.2) else COMPLEX)
        g.emit(g.choices.chosen((hlo.RealOp, hlo.ImagOp)), x)


_BITCASTS = {
    8: ("i8", "ui8", "f8E4M3FN", "f8E5M2"), 16: ("i16", "ui16", "f16", "bf16"), 32: ("i32", "ui32", "f32"),
    64: ("i64", "ui64", "f64"), 4: ("i4", "ui4"),
}  # fmt: skip
_BITCAST_ELEMENTS = frozenset(element(t) for texts in _BITCASTS.values() for t in texts)


@step("bitcast", hlo.BitcastConvertOp, weight=0.8)
def bitcast(g: Growth) -> None:
    """The bits as another type, of the same width, narrower or wider."""
    x = g.pick(_BITCAST_ELEMENTS)
    shape, wide = shape_of(x), bit_width(dtype_text(x.type))
    widths = [w for w in _BITCASTS if w == wide or (w < wide and g.fits((*shape, wide // w)))]
    widths += [w for w in _BITCASTS if w > wide and shape and shape[-1] == w // wide]
    narrow = g.choices.chosen(sorted(widths, key=lambda w: w != wide))
    result = shape if narrow == wide else (*shape, wide // narrow) if narrow < wide else shape[:-1]
    g.emit(hlo.BitcastConvertOp, x, types=(tensor(result, g.choices.chosen(_BITCASTS[narrow])),))


@step("reduce-precision", hlo.ReducePrecisionOp, weight=0.6)
def reduce_precision(g: Growth) -> None:
    """Rounding to a float of fewer bits."""
    x = g.pick(FLOATS)
    exponent, mantissa = g.choices.chosen(((5, 10), (8, 7), (8, 23), (4, 3), (5, 2), (11, 52), (2, 1), (1, 0)))
    g.emit(hlo.ReducePrecisionOp, x, exponent_bits=exponent, mantissa_bits=mantissa)


@step("relu", hlo.MaximumOp, weight=1)
def relu(g: Growth) -> None:
    """The greater of a value and zero, or the lesser of it and a bound."""
    x = g.pick(FLOATS | INTEGERS)
    zero = g.splat(tensor_of(x), edge_pool(dtype_text(x.type))[0], broadcast=True)
    g.emit(hlo.MaximumOp, x, zero, types=(x.type,))
