"""Products of quantized tensors as products of integers: every bit stays, or the error does not grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import ConvDimensions, DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of, tensor, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.convert.integer_products import IntegerProducts
from gcomp.passes.convert.quantized_products import QuantizedProducts
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, VerifyEach
from gcomp.reference.interpreter import interpret
from tests.support.thinning import examples

Array = np.ndarray[Any, Any]
Draw = Callable[[Any], Any]
ELEMENTS = ("i8", "ui8", "i4", "ui4")
LIMITS = {"i8": (-128, 127), "ui8": (0, 255), "i4": (-8, 7), "ui4": (0, 15)}


def extremes(program: Program) -> Sequence[Array]:
    """Quantized values, half of them the least or the greatest."""
    rng, arrays = np.random.default_rng(0), list[Array]()
    for port in program.inputs():
        low, high = LIMITS[port.dtype]
        ends, every = rng.choice([low, high], port.shape), rng.integers(low, high + 1, port.shape)
        arrays.append(np.where(rng.random(port.shape) < 0.5, ends, every).astype(dtype_of(port.dtype)))
    return arrays


def numbers(draw: Draw, element: str, shape: Sequence[int]) -> Array:
    """Known quantized values, the limits often among them."""
    low, high = LIMITS[element]
    one = st.one_of(st.sampled_from((low, high, 0, (low + high + 1) // 2)), st.integers(low, high))
    count = int(np.prod(shape))
    return (
        np.array(draw(st.lists(one, min_size=count, max_size=count)), np.int64).reshape(shape).astype(dtype_of(element))
    )


class Side:
    """One operand of a product: an input or constants, a zero point or none, and a scale."""

    def __init__(self, draw: Draw, shape: Sequence[int], along: Sequence[int]) -> None:
        self.element, self.shape = draw(st.sampled_from(ELEMENTS)), tuple(shape)
        axis = draw(st.sampled_from((None, *along)))
        self.axes = () if axis is None else (axis,)
        sizes = [shape[a] for a in self.axes]
        self.known = numbers(draw, self.element, shape) if draw(st.booleans()) else None
        self.turned = draw(st.booleans())
        self.zero = numbers(draw, self.element, sizes) if draw(st.booleans()) else None
        count = int(np.prod(sizes))
        drawn = draw(st.lists(st.floats(2.0**-20, 1024, width=32), min_size=count, max_size=count))
        self.scale = np.array(drawn, np.float32).reshape(sizes)

    def read(self, b: Builder, arguments: list[SSAValue]) -> SSAValue:
        if self.known is None:
            return arguments.pop(0)
        if not self.turned:
            return b.constant(self.known)
        # Constants that are not where they seem: other dims' order, or another shape.
        if self.known.ndim > 1:
            order = list(range(self.known.ndim))[::-1]
            return b.broadcast(b.constant(self.known.transpose(order)), self.shape, order)
        return b.reshape(b.constant(self.known.reshape(-1, 1)), self.shape)

    def centered(self, b: Builder, arguments: list[SSAValue], wide: str) -> SSAValue:
        x = b.convert(self.read(b, arguments), wide)
        if self.zero is None:
            return x
        return b.subtract(x, b.broadcast(b.convert(b.constant(self.zero), wide), self.shape, self.axes))

    def scaled(self, b: Builder, arguments: list[SSAValue]) -> SSAValue:
        x = self.centered(b, arguments, "f32")
        return b.multiply(x, b.broadcast(b.constant(self.scale), self.shape, self.axes))


Product = Callable[[Builder, SSAValue, SSAValue], SSAValue]


def program_of(sides: Sequence[Side], product: Product, *, quantized: bool) -> Program:
    inputs = [(f"x{i}", tensor(s.shape, s.element)) for i, s in enumerate(sides) if s.known is None]
    program = Program.empty(inputs)
    b, arguments = Builder(program), list[SSAValue](program.block.args)
    operands = [s.scaled(b, arguments) if quantized else s.centered(b, arguments, "i32") for s in sides]
    program.finish([("y", product(b, *operands))])
    program.verify("as built")
    return program


@st.composite
def dots(draw: Draw) -> tuple[list[Side], Product]:
    """Operands and dimension numbers of a dot, its dims in any order."""
    sizes = st.integers(1, 4)
    batch, inner, left, right = ([draw(sizes) for _ in range(draw(st.integers(0, n)))] for n in (1, 2, 2, 1))
    orders = [draw(st.permutations(range(len(batch) + len(inner) + len(own)))) for own in (left, right)]

    def shape(own: Sequence[int], order: Sequence[int]) -> list[int]:
        every = [*batch, *inner, *own]
        return [every[i] for i in order]

    def places(order: Sequence[int], first: int, count: int) -> tuple[int, ...]:
        return tuple(list(order).index(i) for i in range(first, first + count))

    n, k = len(batch), len(inner)
    dimensions = DotDimensions(
        places(orders[0], 0, n), places(orders[1], 0, n), places(orders[0], n, k), places(orders[1], n, k)
    )
    contracted = dimensions.lhs_contracting_dimensions, dimensions.rhs_contracting_dimensions
    sides = [
        Side(draw, shape(own, order), [i for i in range(len(order)) if i not in gone])
        for own, order, gone in zip((left, right), orders, contracted, strict=True)
    ]
    return sides, lambda b, x, y: b.dot(x, y, dimensions)


@st.composite
def convolutions(draw: Draw) -> tuple[list[Side], Product]:
    """Operands and windows of a convolution of one or two spatial dims."""
    n, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    small = st.integers(1, 3)
    taken, made = draw(small), draw(small) * groups
    image = [draw(st.integers(4, 6)) for _ in range(n)]
    kernel = [draw(st.integers(1, 2)) for _ in range(n)]
    spatial = tuple(range(2, 2 + n))
    properties: dict[str, Any] = {
        "window_strides": [draw(st.integers(1, 2)) for _ in range(n)],
        "padding": [(draw(st.integers(-1, 2)), draw(st.integers(0, 1))) for _ in range(n)],
        "lhs_dilation": [draw(st.sampled_from((1, 1, 1, 2))) for _ in range(n)],
        "rhs_dilation": [draw(st.integers(1, 2)) for _ in range(n)],
        "dimension_numbers": ConvDimensions(0, 1, spatial, 1, 0, spatial, 0, 1, spatial),
        "feature_group_count": groups,
    }
    sides = [Side(draw, (draw(small), taken * groups, *image), ()), Side(draw, (made, taken, *kernel), (0,))]

    def product(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
        op = hlo.ConvolutionOp.of(x, y, types=(x.type,), **properties)
        type = with_shape(x, op.result_shape())
        op.drop_all_references()
        return b.emit(hlo.ConvolutionOp, x, y, types=(type,), **properties)

    return sides, product


def checked(step: Pass, program: Program) -> list[str]:
    """Run a pass, checked; the element types of the products' operands after it."""
    check = CheckEach(MeaningCheck(inputs=extremes))
    PassManager([step], [CheckUnchanged(), VerifyEach(), check]).run(program)
    assert not step.run(program, PassContext())
    products = [op for op in program.ops() if isinstance(op, hlo.DotGeneralOp | hlo.ConvolutionOp)]
    return [dtype_text(op.operands[0].type) for op in products]


@settings(max_examples=examples(150), deadline=None)
@given(case=dots())
def test_dots_of_integers_keep_every_bit(case: tuple[list[Side], Product]) -> None:
    assert checked(IntegerProducts(), program_of(*case, quantized=False))[0] in ("i8", "f32")


@settings(max_examples=examples(150), deadline=None)
@given(case=convolutions())
def test_convolutions_of_integers_keep_every_bit(case: tuple[list[Side], Product]) -> None:
    assert checked(IntegerProducts(), program_of(*case, quantized=False)) == ["f32"]


@settings(max_examples=examples(100), deadline=None)
@given(case=convolutions())
def test_convolutions_that_f32_does_not_hold_take_8_bits(case: tuple[list[Side], Product]) -> None:
    import gcomp.analysis.quantized_values as module

    exact = module.EXACT
    module.EXACT = 0
    try:
        assert set(checked(IntegerProducts(), program_of(*case, quantized=False))) <= {"i8", "i32"}
        # Dequantized ones, which would become these, stay in f32 then.
        assert checked(QuantizedProducts(), program_of(*case, quantized=True)) == ["f32"]
    finally:
        module.EXACT = exact


@settings(max_examples=examples(100), deadline=None)
@given(case=st.one_of(dots(), convolutions()))
def test_products_of_dequantized_tensors_are_as_exact(case: tuple[list[Side], Product]) -> None:
    program = program_of(*case, quantized=True)
    assert checked(QuantizedProducts(), program) == ["i32"]
    assert checked(IntegerProducts(), program)[0] in ("i8", "f32", "i32")


@settings(max_examples=examples(150), deadline=None)
@given(case=st.one_of(dots(), convolutions()))
def test_products_by_weights_become_products_of_bytes_of_the_same_bits(case: tuple[list[Side], Product]) -> None:
    program = program_of(*case, quantized=False)
    products = [op for op in program.ops() if isinstance(op, hlo.DotGeneralOp | hlo.ConvolutionOp)]
    taken = checked(IntegerProducts(form="bytes"), program)
    assert taken[0] in ("ui8", "f32", "i32")
    right = case[0][1]
    if isinstance(products[0], hlo.DotGeneralOp) and right.known is not None and not right.turned:
        assert taken == ["ui8"]
    elif right.known is None:
        assert taken == ["f32"]


@settings(max_examples=examples(100), deadline=None)
@given(case=st.one_of(dots(), convolutions()))
def test_products_of_dequantized_tensors_are_as_exact_in_bytes(case: tuple[list[Side], Product]) -> None:
    program = program_of(*case, quantized=True)
    assert checked(QuantizedProducts(form="bytes"), program) == ["i32"]
    assert checked(IntegerProducts(form="bytes"), program)[0] in ("ui8", "f32", "i32")


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_maxima_of_windows_are_those_of_quantized_values(data: st.DataObject) -> None:
    size, window, stride = (data.draw(st.integers(1, n)) for n in (6, 3, 2))
    padding = [data.draw(st.integers(0, 2)) for _ in range(2)]
    side = Side(data.draw, (2, size), ())
    program = Program.empty([("x", tensor(side.shape, side.element))])
    side.known = None
    b = Builder(program)
    x, start = side.scaled(b, list(program.block.args)), b.full((), -np.inf, "f32")
    kind = tensor((), "f32")
    properties: dict[str, Any] = {
        "window_dimensions": [1, window], "window_strides": [1, stride], "padding": [[0, 0], padding],
    }  # fmt: skip
    body = b.region((kind, kind), lambda values: [b.maximum(*values)])
    program.finish([("y", b.emit(hlo.ReduceWindowOp, x, start, regions=[body], **properties))])
    program.verify("as built")
    before = interpret(program, extremes(program))
    changed = QuantizedProducts(form="bytes").run(program, PassContext())
    assert changed == (side.element in ("i8", "ui8") and max(padding) < window)
    assert interpret(program, extremes(program))[0].tobytes() == before[0].tobytes()


def test_sums_that_could_overflow_stay_as_they_are() -> None:
    most = (2**31 - 1) // (255 * 128)
    for count, expected in ((most, "i32"), (most + 1, "f32")):
        # One row, which 8 bits are slow at, stays where f32 does not hold the sum.
        for rows, element in ((2, expected), (1, "f32")):
            program = Program.empty([("x", tensor((rows, count), "ui8")), ("w", tensor((count, 1), "i8"))])
            b = Builder(program)
            operands = [b.multiply(b.convert(v, "f32"), b.full(shape_of(v), 0.5, "f32")) for v in program.block.args]
            program.finish([("y", b.dot(*operands, DotDimensions((), (), (1,), (0,))))])
            assert checked(QuantizedProducts(), program) == [element]


def test_scales_that_are_unknown_or_extreme_or_vary_along_the_sum_stay() -> None:
    def built(scale: Callable[[Builder], SSAValue]) -> Program:
        ports = [("x", tensor((2, 3), "i8")), ("w", tensor((3, 4), "i8")), ("s", tensor((), "f32"))]
        program = Program.empty(ports)
        b = Builder(program)
        x, w, _ = program.block.args
        right = b.multiply(b.convert(w, "f32"), b.full((3, 4), 0.5, "f32"))
        program.finish([("y", b.matmul(b.multiply(b.convert(x, "f32"), scale(b)), right))])
        return program

    def spread(b: Builder, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        return b.broadcast(value, (2, 3), axes)

    refused: list[Callable[[Builder], SSAValue]] = [
        lambda b: spread(b, b.program.block.args[2], ()),
        lambda b: spread(b, b.full((), 1e-30, "f32"), ()),
        lambda b: spread(b, b.full((), 1e30, "f32"), ()),
        lambda b: spread(b, b.full((), np.nan, "f32"), ()),
        lambda b: spread(b, b.full((), -1.0, "f32"), ()),
        lambda b: spread(b, b.constant([1.0, 2.0, 3.0], "f32"), (1,)),
    ]
    for scale in refused:
        assert not QuantizedProducts().run(built(scale), PassContext())
    assert QuantizedProducts().run(built(lambda b: spread(b, b.constant([1.0, 2.0], "f32"), (0,))), PassContext())


def test_f32_takes_the_sums_that_it_holds_and_no_others() -> None:
    for count, expected in ((258, "f32"), (259, "i8")):
        program = Program.empty([("x", tensor((1, count), "ui8")), ("w", tensor((count, 2), "ui8"))])
        b, wide = Builder(program), list[SSAValue]()
        for v in program.block.args:
            zero = b.broadcast(b.convert(b.full((), 0, "ui8"), "i32"), shape_of(v), ())
            wide.append(b.subtract(b.convert(v, "i32"), zero))
        program.finish([("y", b.matmul(*wide))])
        assert checked(IntegerProducts(), program) == [expected]
    # Known weights tell more than their number: these sum to few.
    program = Program.empty([("x", tensor((1, 5000), "ui8"))])
    b = Builder(program)
    weights = b.convert(b.constant(np.ones((5000, 2), np.int8)), "i32")
    program.finish([("y", b.matmul(b.convert(program.block.args[0], "i32"), weights))])
    assert checked(IntegerProducts(), program) == ["f32"]


def test_sums_that_are_read_in_f32_stay_there_with_known_biases_while_exact() -> None:
    """A row of 64 products of at most 255 * 128, plus a bias: below 2**24 in all, or not."""
    room = 2**24 - 1 - 64 * 255 * 128
    for bias, expected in ((room, ("f32", "f32")), (-room, ("f32", "f32")), (room + 1, ("f32", "i32"))):
        program = Program.empty([("x", tensor((1, 64), "ui8")), ("w", tensor((64, 2), "i8"))])
        b = Builder(program)
        total = b.matmul(*[b.convert(v, "i32") for v in program.block.args])
        added = b.add(total, b.broadcast(b.constant(np.array([3, bias], np.int32)), (1, 2), (1,)))
        program.finish([("y", b.convert(added, "f32"))])
        element = checked(IntegerProducts(), program)[0]
        sums = [dtype_text(op.results[0].type) for op in program.ops() if isinstance(op, hlo.AddOp)]
        assert (element, sums[-1]) == expected
