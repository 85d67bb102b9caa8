"""What passes look for that merge, drop, fold, inline and infer: things twice or nearly, known values, functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions
from gcomp.ir.types import (
    FLOATS,
    INTEGERS,
    UNKNOWN,
    dtype_text,
    is_tensor,
    rank_of,
    shape_of,
    tensor,
    tensor_of,
    with_element,
    with_shape,
)
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.control import function_with
from gcomp.testing.generate.elementwise import BINARY, EVERY_ELEMENT, taking
from gcomp.testing.generate.growth import STEPS, Growth
from gcomp.testing.generate.operands import same_type_unary
from gcomp.testing.generate.passes import finishes, seeks
from gcomp.testing.generate.regions import comparator, folding_body

_BOOL = tensor((), "i1")

# ---- twice, or nearly -----------------------------------------------------------------------------------------------


@seeks("cse", weight=14)
def region_again(g: Growth) -> None:
    """A fold, a sort, a branch or a loop twice, with one body or with another."""
    choices = g.choices
    before = g.b.block.last_op
    kinds = ("if", "while", "case", "reduce", "sort", "reduce-window", "scan", "argmax", "map")
    STEPS[choices.chosen(kinds)].grow(g)
    op = g.b.block.last_op
    if op is None or op is before or not op.regions:
        return
    copy = op.clone()
    g.b.insert(copy)
    if choices.flag(0.7):
        any(_change_inside(g, copy) for _ in range(4))
    for result in copy.results:
        g.keep(result)


def _change_inside(g: Growth, op: Operation) -> bool:
    """Change an op, the order of operands, a constant or what is returned in one of the regions; False if it cannot."""
    region = g.choices.chosen([r for r in op.regions if r.blocks])
    inner = list(region.block.ops)
    found = inner[g.choices.integer(0, len(inner) - 1)]
    operands = list(found.operands)
    block = found.parent
    assert block is not None
    if type(found) in BINARY and g.choices.flag():
        other = g.choices.chosen(taking(BINARY, dtype_text(found.results[0].type)))
        made = other.create(operands=operands, result_types=list(found.result_types))
        block.insert_op_before(made, found)
        found.results[0].replace_all_uses_with(made.results[0])
        block.erase_op(found)
        return other is not type(found)
    if isinstance(found, hlo.ConstantOp) and found.results[0].type == tensor((), "i32"):
        found.properties["value"] = ElementsAttr.of(np.array(g.choices.integer(0, 2), np.int32))
        return True
    for i in range(len(operands) - 1):
        if operands[i] is not operands[i + 1] and operands[i].type == operands[i + 1].type:
            operands[i], operands[i + 1] = operands[i + 1], operands[i]
            found.operands = operands
            return True
    return False


@seeks("cse", weight=6)
def same_inside(g: Growth) -> None:
    """An op outside, again in one or both branches of an `if`, or in one and then after it."""
    choices, x = g.choices, g.pick(FLOATS | INTEGERS)
    op = choices.chosen(taking(BINARY, dtype_text(x.type)))
    other = g.like(x)
    if choices.flag():
        g.emit(op, x, other, types=(x.type,))
    regions: list[Region] = []
    for _ in range(2):
        block = Block()
        with g.within(block):
            y = g.b.emit(op, x, other, types=(x.type,))
            if choices.flag():
                y = g.b.emit(op, y, x, types=(x.type,))
            g.b.emit_all(hlo.ReturnOp, y, types=())
        regions.append(Region(block))
    g.keep(g.b.emit_all(hlo.IfOp, g.of_type(_BOOL), types=(x.type,), regions=regions)[0])
    g.emit(op, x, other, types=(x.type,))


@seeks("cse", weight=5)
def differ_late(g: Growth) -> None:
    """Two ops that differ in their last operand only."""
    choices, x = g.choices, g.pick(FLOATS | INTEGERS)
    type, text = tensor_of(x), dtype_text(x.type)
    ends = [g.fresh(type) for _ in range(2)]
    kind = choices.integer(0, 2)
    first = g.of_type(_BOOL) if kind == 0 else g.fresh(tensor((), text))
    for end in ends:
        if kind == 0:
            g.emit(hlo.SelectOp, first, x, end, types=(type,))
        elif kind == 1:
            g.emit(hlo.ClampOp, first, x, g.b.reduce(hlo.MaximumOp, end, range(rank_of(end))), types=(type,))
        elif rank_of(x) and g.fits([3 * s if i == 0 else s for i, s in enumerate(shape_of(x))]):
            g.emit(hlo.ConcatenateOp, x, x, end, dimension=0)


@seeks("cse", weight=5)
def other_way_round(g: Growth) -> None:
    """The same operands twice, in the other order the second time."""
    x = g.pick(FLOATS | INTEGERS)
    y = g.like(x)
    op = g.choices.chosen(taking((hlo.SubtractOp, hlo.DivideOp, hlo.MinimumOp), dtype_text(x.type)))
    for pair in ((x, y), (y, x)):
        g.emit(op, *pair, types=(x.type,))


@seeks("cse", weight=4)
def compared_twice(g: Growth) -> None:
    """The same operands compared in two ways."""
    x = g.pick(FLOATS | INTEGERS)
    y = g.like(x)
    for how in g.choices.chosen((("LT", "GE"), ("EQ", "NE"), ("LE", "LT"), ("GT", "GT"))):
        g.emit(hlo.CompareOp, x, y, types=(with_element(x.type, "i1"),), comparison_direction=how)


@seeks("inline", weight=4)
def called_again(g: Growth) -> None:
    """A function whose operands may not change places, called twice with the same ones."""
    x = g.pick(FLOATS | INTEGERS)
    operands = [x, g.like(x)]
    op = g.choices.chosen(taking((hlo.SubtractOp, hlo.DivideOp, hlo.AddOp), dtype_text(x.type)))
    function = function_with(g, operands, lambda args: [g.b.emit(op, *args, types=(x.type,))])
    for _ in range(2):
        made = CallOp(function.sym_name.data, operands, function.function_type.outputs.data)
        g.keep(g.b.insert(made).results[0])


@seeks("inline", weight=4)
def called_by_called(g: Growth) -> None:
    """A function that calls another one, at times twice, which stands after it or before."""
    x, choices = g.pick(FLOATS | INTEGERS), g.choices
    op = choices.chosen(taking((hlo.SubtractOp, hlo.AddOp, hlo.MultiplyOp), dtype_text(x.type)))

    def called(function: FuncOp, value: SSAValue) -> SSAValue:
        return g.b.insert(CallOp(function.sym_name.data, [value], function.function_type.outputs.data)).results[0]

    inner = function_with(g, [x], lambda args: [g.b.emit(op, args[0], args[0], types=(x.type,))])
    outer = function_with(g, [x], lambda args: [called(inner, called(inner, args[0]))])
    if choices.flag():
        inner.detach()
        g.program.module.body.block.add_op(inner)
    g.keep(called(outer, x))


@seeks("cse", "fold-constants", weight=2)
def drawn_twice(g: Growth) -> None:
    """Numbers drawn twice within the same known bounds: they are others each time."""
    shape = g.choices.chosen(((3,), (2, 2), (5,)))
    bounds = [g.splat(tensor((), "f32"), number) for number in (0.0, 1.0)]
    sizes = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(np.asarray(shape, np.int64)))
    for _ in range(2):
        g.emit(hlo.RngOp, *bounds, sizes, types=(tensor(shape, "f32"),), rng_distribution="UNIFORM")


@seeks("cse", weight=3)
def zeros_of_both_signs(g: Growth) -> None:
    """A value times 0, and times -0."""
    x = g.pick(FLOATS)
    for bits in g.choices.chosen(((0.0, -0.0), (-0.0, 0.0))):
        g.emit(hlo.MultiplyOp, x, g.splat(tensor_of(x), bits, broadcast=g.choices.flag()), types=(x.type,))


# ---- known values ---------------------------------------------------------------------------------------------------


@seeks("fold-constants", weight=6)
def known_values(g: Growth) -> None:
    """Steps that see constants only, so that all of what they make is known."""
    choices, outer, sealed = g.choices, g.values, g.sealed
    sizes = choices.chosen(((2, 3), (3,), (), (2, 2, 2), (1, 3), (0, 2), (4,)))
    g.values, g.sealed = [g.constant(tensor(sizes, g.text_among(None))) for _ in range(2)], True
    try:
        for _ in range(choices.integer(1, 3)):
            g.take(nested=choices.flag(0.3))
        latest = g.values[-1]
    finally:
        g.values, g.sealed = outer, sealed
    g.keep(latest)


@seeks("fold-constants", weight=12)
def known_arithmetic(g: Growth) -> None:
    """A few elementwise ops and conversions, each of constants at the edges."""
    choices = g.choices
    for _ in range(6):
        text = g.text_among(None) if choices.flag(0.5) else choices.chosen(("i8", "ui8", "i32", "f32", "bf16", "i16"))
        type = tensor((choices.chosen((4, 9, 2)),), text)
        values = [g.constant(type) for _ in range(2)]
        kind = choices.integer(0, 5)
        if kind == 0:
            g.emit(choices.chosen(same_type_unary(text)), values[0], types=(type,))
        elif kind == 1:
            narrow = ("i8", "ui8", "i16", "f16", "bf16", "i32", "f32", "i1")
            g.convert(values[0], choices.chosen(narrow if choices.flag(0.8) else EVERY_ELEMENT))
        elif kind == 2 and text in ("i8", "ui8", "i16", "i32", "i64"):
            # Quotients of numbers that are 0 nowhere: a rule that leaves 0 alone is looked at, too.
            if choices.flag():
                pool = np.array([3, -3, 2, -2, 7, -7, 1]).astype(dtype_of(text))
                values = [g.b.constant(choices.fill(pool, 4), text) for _ in values]
                type = tensor_of(values[0])
            g.emit(choices.chosen((hlo.DivideOp, hlo.RemainderOp)), *values, types=(type,))
        elif kind == 3 and text in ("f32", "bf16", "f16", "f64"):
            # NaN on either side, and on both.
            pool = np.array([np.nan, 1, -2, np.inf, -0.0]).astype(dtype_of(text))
            values = [g.b.constant(choices.fill(pool, 4), text) for _ in values]
            op = choices.chosen((hlo.MaximumOp, hlo.MinimumOp, hlo.PowerOp, hlo.Atan2Op))
            g.emit(op, *values, types=(tensor_of(values[0]),))
        else:
            g.emit(choices.chosen(taking(BINARY, text)), *values, types=(type,))


@seeks("fold-constants", weight=6)
def known_movement(g: Growth) -> None:
    """A constant moved, repeated along either dimension of a square, folded over nothing, or read twice."""
    choices, text = g.choices, g.text_among(FLOATS | INTEGERS)
    array = np.arange(12).astype(dtype_of(text))
    kind = choices.integer(0, 6)
    if kind == 5:
        zeros = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(np.array([[0.0, -0.0, 0.0]], np.float32)))
        g.keep(g.b.transpose(zeros, (1, 0)))
        cube = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array[:8].reshape(2, 2, 2)))
        g.keep(g.b.transpose(cube, choices.chosen(((1, 2, 0), (2, 0, 1)))))
    elif kind == 6:
        pair = [g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array[a : a + 4])) for a in (0, 4)]
        for result in g.b.emit_all(hlo.SortOp, *pair, types=[v.type for v in pair], dimension=0, is_stable=True,
                                   regions=(comparator(g, (text, text)),)):  # fmt: skip
            g.keep(result)
    elif kind == 0:
        size = choices.chosen((3, 2))
        vector = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array[:size]))
        square = g.b.broadcast(vector, (size, size), (choices.integer(0, 1),))
        g.emit(hlo.AddOp, square, g.constant(tensor_of(square)), types=(square.type,))
    elif kind == 1:
        x = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array.reshape(3, 4)))
        y = g.b.transpose(x, (1, 0))
        g.keep(g.b.reshape(y, (2, 6)) if choices.flag() else y)
    elif kind == 2:
        large = np.resize(array, (16, 40)).astype(dtype_of(text))
        y = g.b.reshape(g.b.transpose(g.b.weight("w", large), (1, 0)), (20, 32))
        g.keep(g.b.slice(g.b.add(y, g.fresh(tensor((20, 32), text))), (0, 0), (2, 3)))
    elif kind == 3:
        empty = tensor((0, 2), text)
        body = folding_body(g, (text,), replaces=0.0)
        init = g.constant(tensor((), text))
        g.emit(hlo.ReduceOp, g.constant(empty), init, types=(tensor((2,), text),), dimensions=[0], regions=(body,))
    else:
        read = g.b.weight("w", array)
        op = read.owner
        assert isinstance(op, WeightOp)
        again = WeightOp.read(op.symbol, tensor_of(read))
        g.b.insert(again)
        g.emit(hlo.AddOp, read, g.constant(tensor_of(read)), types=(read.type,))
        g.emit(hlo.AddOp, again.result, g.fresh(tensor_of(read)), types=(read.type,))


@seeks("fold-constants", weight=2)
def known_pieces(g: Growth) -> None:
    """A weight cut into pieces, each too large to be stored beside it, that are put together in another order.

    At times one of the pieces is read by something else too.
    """
    choices, text = g.choices, g.text_among(FLOATS | INTEGERS)
    count, length = choices.chosen((2, 3, 4)), 1032 // dtype_of(text).itemsize
    weight = g.b.weight("w", (np.arange(count * length).reshape(count, length) % 97).astype(dtype_of(text)))
    pieces = [g.b.slice(weight, (i, 0), (i + 1, length)) for i in range(count)]
    if choices.flag(0.3):
        g.keep(g.b.slice(pieces[0], (0, 0), (1, 3)))
    joined = g.b.concatenate([pieces[i] for i in choices.permutation(count)], 0)
    g.emit(hlo.AddOp, joined, g.fresh(tensor_of(joined)), types=(joined.type,))


@seeks("fold-constants", weight=4)
def known_condition(g: Growth) -> None:
    """A branch on a constant, or a loop of known values, that captures what is not known."""
    choices, x = g.choices, g.pick(FLOATS | INTEGERS)
    regions: list[Region] = []
    for op in (hlo.AddOp, hlo.MaximumOp):
        block = Block()
        with g.within(block):
            y = g.b.emit(op, x, g.like(x), types=(x.type,))
            g.b.emit_all(hlo.ReturnOp, y, types=())
        regions.append(Region(block))
    pred = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(np.array(choices.flag(), np.bool_)))
    g.keep(g.b.emit_all(hlo.IfOp, pred, types=(x.type,), regions=regions)[0])


@seeks("fold-constants", weight=1)
def known_kernel(g: Growth) -> None:
    """Quantized values widened and centered into a convolution's kernel, and at times into something else too."""
    choices = g.choices
    text, out = choices.chosen(("i8", "ui8")), choices.chosen((8, 30))
    array = choices.fill(np.arange(100).astype(dtype_of(text)), 9 * 2 * out).reshape((9, 2, out))
    wide = g.b.convert(g.b.weight("w", array), "f32")
    centered = g.b.subtract(wide, g.splat(tensor((9, 2, out), "f32"), 3.0, broadcast=True))
    x = g.fresh(tensor((1, 9, 2), "f32"))
    g.emit(hlo.ConvolutionOp, x, centered, types=(tensor((1, 1, out), "f32"),),
           dimension_numbers=ConvDimensions.channels_last(1), feature_group_count=1, batch_group_count=1)  # fmt: skip
    if choices.flag(0.3):
        g.emit(hlo.ReduceOp, centered, g.splat(tensor((), "f32"), 0.0), types=(tensor((), "f32"),),
               dimensions=[0, 1, 2], regions=(folding_body(g, ("f32",), replaces=0.0),))  # fmt: skip


# ---- functions ------------------------------------------------------------------------------------------------------


@seeks("inline-composites", weight=14)
def composite_of_two(g: Growth) -> None:
    """A composite of two operands and two results of one type, used twice; with a composite inside, at times."""
    choices = g.choices
    x = g.pick(FLOATS | INTEGERS)
    y = g.fresh(tensor_of(x))
    nested = choices.flag(0.4)
    inner = function_with(g, [x], lambda args: [g.b.emit(hlo.NegateOp, args[0], types=(x.type,))]) if nested else None
    results = choices.integer(0, 3)

    def body(args: list[SSAValue]) -> list[SSAValue]:
        found = g.b.emit(hlo.SubtractOp, *args, types=(x.type,))
        if inner is not None:
            found = g.b.emit(hlo.CompositeOp, found, types=(x.type,), name="my.inner",
                             decomposition=inner.sym_name.data, composite_attributes=DictionaryAttr({}))  # fmt: skip
        return [[found, args[1]], [args[1], found], [args[1], args[0]], [found, found]][results]

    function = function_with(g, [x, y], body)
    for operands in ((x, y), (y, x))[: choices.chosen((2, 1))]:
        made = g.b.emit_all(hlo.CompositeOp, *operands, types=(x.type, x.type), name="my.pair",
                            decomposition=function.sym_name.data, composite_attributes=DictionaryAttr({}))  # fmt: skip
        for result in made:
            g.keep(result)


# ---- types that say little ------------------------------------------------------------------------------------------


@seeks("infer-shapes", weight=3)
def known_limits(g: Growth) -> None:
    """A dynamic slice with known limits and strides, of something long enough for them."""
    choices = g.choices
    x = g.keep(g.fresh(tensor((9, 3), g.text_among(None))))
    starts, limits = [choices.integer(0, 2), choices.integer(0, 1)], [choices.integer(7, 9), 3]
    strides = [choices.chosen((2, 1, 3)), choices.chosen((1, 2))]
    shape = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    operands = [g.sizes(values) for values in (starts, limits, strides)]
    g.emit(hlo.RealDynamicSliceOp, x, *operands, types=(with_shape(x, shape),))


@finishes("infer-shapes")
def blurred(program: Program, choices: Choices) -> Program:
    """The program with unknown sizes in place of some that follow from operands, where it stays valid."""
    if choices.flag(0.3):
        return program
    candidate = program.clone()
    for op in candidate.ops():
        if not isinstance(op, GraphOp) or not op.INFERS or choices.flag(0.5):
            continue
        for result in op.results:
            returned = any(use.operation.name == "func.return" for use in result.uses)
            if is_tensor(result.type) and not returned:
                shape: list[Any] = [UNKNOWN if choices.flag() else s for s in shape_of(result)]
                setattr(result, "_type", with_shape(result, shape))  # noqa: B010
    try:
        candidate.verify("as generated")
    except (GcompError, VerifyException, dims.DimError):
        return program
    return candidate
