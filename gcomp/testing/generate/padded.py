"""Small programs for every row of the table of padding: `CASES` has builders by name, over the symbols n and m."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Ranges, Size, parse_range
from gcomp.ir import chlo, looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.structures import ConvDimensions, DotDimensions, GatherDimensions, ScatterDimensions
from gcomp.ir.types import shape_of, tensor

N, M = dims.symbol("n"), dims.symbol("m")
Build = Callable[[Builder, Sequence[SSAValue]], Sequence[SSAValue]]
Shaped = tuple[str, Sequence[Size]]
CASES: dict[str, Callable[[], Program]] = {}


def case(*inputs: Shaped) -> Callable[[Build], Build]:
    """Register a program of these inputs: what the function below returns."""

    def register(build: Build) -> Build:
        name = build.__name__
        CASES[name] = lambda: make_program(inputs, build)
        return build

    return register


def make_program(inputs: Sequence[Shaped], build: Build) -> Program:
    """A program; n and m are 1 to 6."""
    ports = [(f"x{i}", tensor(shape, text)) for i, (text, shape) in enumerate(inputs)]
    # Every symbol is the size of some input.
    ports += [("n_", tensor((N,), "i1")), ("m_", tensor((M,), "i1"))]
    program = Program.empty(ports)
    program.ranges = Ranges({"n": parse_range("1..6"), "m": parse_range("1..6")})
    b = Builder(program)
    results = build(b, list(program.block.args))
    program.finish([(f"r{i}", value) for i, value in enumerate(results)])
    program.verify("as made")
    return program


def region(b: Builder, op: type[Any], text: str, **properties: Any) -> Any:
    scalar = tensor((), text)
    return b.region([scalar, scalar], lambda args: [b.emit(op, *args, **properties)])


F = ("f32", (N, 3))
POWERS = "f8E8M0FNU"

# ---- folds ----


@case(F, ("f32", (2, N)), ("i8", (N,)), ("i1", (N,)))
def sums(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Of -0 alone the sum is -0, when it begins with -0."""
    x, y, k, p = args[:4]
    minus = b.constant(-0.0, "f32")
    zeros = b.emit(hlo.NegateOp, b.convert(b.emit(hlo.AndOp, k, b.full_like(k, 0)), "f32"))
    return [
        b.insert(hlo.ReduceOp.apply(hlo.AddOp, x, minus, [0])).results[0], b.reduce(hlo.AddOp, y, [0, 1]),
        b.reduce(hlo.MultiplyOp, y, [1]), b.reduce(hlo.MaximumOp, x, [0]), b.reduce(hlo.MinimumOp, x, [0]),
        b.reduce(hlo.AddOp, k, [0]), b.reduce(hlo.MaximumOp, k, [0]), b.reduce(hlo.MinimumOp, k, [0]),
        b.reduce(hlo.AndOp, k, [0]), b.reduce(hlo.OrOp, k, [0]), b.reduce(hlo.XorOp, k, [0]),
        b.reduce(hlo.AndOp, p, [0]), b.reduce(hlo.OrOp, p, [0]), b.mean(x, [0]), b.reduce(hlo.AddOp, x, [1]),
        b.insert(hlo.ReduceOp.apply(hlo.AddOp, zeros, minus, [0])).results[0],
    ]  # fmt: skip


@case(("f32", (N, 2)), ("complex<f32>", (N,)))
def folds(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Bodies that have no neutral element that is known: the last one, a difference, argmax, a complex product.

    Powers of two have none for a sum.
    """
    x, z = args[:2]
    zero, one = b.constant(0.0, "f32"), b.constant(1, "complex<f32>")
    last = b.region([tensor((), "f32")] * 2, lambda a: [a[1]])
    less = b.region([tensor((), "f32")] * 2, lambda a: [b.subtract(a[1], a[0])])
    product = region(b, hlo.MultiplyOp, "complex<f32>")
    index = b.iota(shape_of(x), 0, "i32")
    kinds = [tensor((), "f32"), tensor((), "i32")]

    def greater(a: Sequence[SSAValue]) -> list[SSAValue]:
        first = b.compare(a[0], a[2], "GE")
        return [b.select(first, a[0], a[2]), b.select(first, a[1], a[3])]

    best = b.emit_all(
        hlo.ReduceOp, x, index, b.constant(-np.inf, "f32"), b.constant(0, "i32"), dimensions=[0],
        regions=[b.region([*kinds, *kinds], greater)],
    )  # fmt: skip
    return [
        b.emit(hlo.ReduceOp, x, zero, dimensions=[0], regions=[last]),
        b.emit(hlo.ReduceOp, x, zero, dimensions=[0], regions=[less]), *best,
        b.emit(hlo.ReduceOp, z, one, dimensions=[0], regions=[product]),
        b.insert(hlo.ReduceOp.apply(hlo.AddOp, b.convert(x, POWERS), b.constant(1.0, POWERS), [0])).results[0],
    ]  # fmt: skip


@case(("f32", (2, N)))
def windows(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Windows that reach beyond the end on either side, strided and dilated ones."""
    x, two = args[0], b.constant(2.0, "f32")
    largest, total = region(b, hlo.MaximumOp, "f32"), region(b, hlo.AddOp, "f32")
    source = b.emit(hlo.SliceOp, x, start_indices=[0, 0], limit_indices=[2, N], strides=[1, 2])
    picked = b.emit(
        hlo.SelectAndScatterOp, x, source, b.constant(0.0, "f32"), window_dimensions=[1, 1], window_strides=[1, 2],
        regions=[region(b, hlo.CompareOp, "f32", comparison_direction="GE", compare_type="FLOAT"), total.clone()],
    )  # fmt: skip
    return [
        b.emit(hlo.ReduceWindowOp, x, two, window_dimensions=[1, 3], padding=[[0, 0], [1, 1]], regions=[largest]),
        b.emit(hlo.ReduceWindowOp, x, two, window_dimensions=[2, 2], window_strides=[1, 2],
               padding=[[0, 0], [0, 2]], base_dilations=[1, 2], window_dilations=[1, 2], regions=[total]),
        picked,
        b.emit(hlo.ReduceWindowOp, x, two, window_dimensions=[1, 2], padding=[[0, 0], [0, 1]], regions=[total.clone()]),
    ]  # fmt: skip


@case(("f32", (N, 2)), ("f32", (N,)))
def running(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Running sums from both ends, and a scan."""
    x, y = args[:2]
    unit = b.constant(0.0, "f32")
    scalar = tensor((), "f32")

    def body(a: Sequence[SSAValue]) -> list[SSAValue]:
        total = b.subtract(a[0], a[1])
        return [b.multiply(total, a[0]), total]

    scans = [
        b.emit_all(chlo.ScanOp, y, unit, types=(tensor((N,), "f32"), scalar), dimension=0, is_reverse=back,
                   operandSegmentSizes=(1, 1), resultSegmentSizes=(1, 1),
                   regions=[b.region([scalar, scalar], body)])
        for back in (False, True)
    ]  # fmt: skip
    return [
        looping.running(b, x, 0, b.add, unit), looping.running(b, x, 0, b.add, unit, reverse=True),
        *scans[0], *scans[1],
    ]  # fmt: skip


# ---- products ----


@case(("f32", (2, N)), ("f32", (N, 3)), ("f32", (M, N)), ("i32", (N, N)))
def products(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, y, z, k = args[:4]
    return [
        b.matmul(x, y), b.matmul(z, y), b.matmul(k, k),
        b.dot(z, z, DotDimensions((0,), (0,), (1,), (1,))), b.dot(x, z, DotDimensions((), (), (1,), (1,))),
    ]  # fmt: skip


@case(("f32", (2, N, 3)), ("f32", (M, N, 3)), ("f32", (3, 3, 2)), ("f32", (1, N, 2)), ("f32", (2, N, 4)))
def convolutions(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, y, kernel, deep, features = args[:5]
    plain: dict[str, Any] = {"dimension_numbers": ConvDimensions(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))}
    channels = ConvDimensions(0, 1, (2,), 1, 2, (0,), 0, 2, (1,))
    return [
        b.convolution(x, kernel, padding=[[1, 1]], **plain),
        b.convolution(y, kernel, padding=[[0, 2]], window_strides=[2], **plain),
        b.convolution(x, kernel, padding=[[2, 3]], lhs_dilation=[2], rhs_dilation=[2], window_reversal=[True], **plain),
        b.convolution(features, deep, dimension_numbers=channels, padding=[[0, 0]]),
    ]  # fmt: skip


@case(("f32", (N, 5, 4)), ("f32", (3, 2, 6)), ("f32", (4, M, 3)), ("f32", (3, 3, 2)))
def grouped_convolutions(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Groups divide features or the batch; the other one, and what the windows move along, may be padded."""
    x, kernel, y, other = args[:4]
    plain: dict[str, Any] = {"dimension_numbers": ConvDimensions(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))}
    return [
        b.convolution(x, kernel, padding=[[1, 1]], feature_group_count=2, **plain),
        b.convolution(y, other, padding=[[1, 1]], batch_group_count=2, **plain),
    ]  # fmt: skip


# ---- movement ----


@case(("f32", (N, M, 2)), ("f32", (2, N)))
def reshapes(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Merged and split, summed over while merged, and shapes that no layout is of."""
    x, y = args[:2]
    flat = b.reshape(x, (N * M, 2))
    long = b.reshape(x, (2 * N * M,))
    return [
        b.reduce(hlo.AddOp, flat, [0]), b.reshape(b.emit(hlo.SineOp, flat), (N, M, 2)), b.reshape(long, (M, N, 2)),
        b.reshape(y, (2 * N,)), b.reshape(y, (N, 2)), b.transpose(b.reshape(long, (2, N, M)), [2, 0, 1]),
        b.slice_axis(b.reshape(y, (2 * N,)), 0, 1, 2 * N), b.emit(hlo.ReverseOp, long, dimensions=[0]),
        b.reduce(hlo.MaximumOp, b.reshape(b.add(flat, b.full_like(flat, 1)), (N, 2 * M)), [1]),
    ]  # fmt: skip


@case(("f32", (N, 2)), ("f32", (M, 2)), ("f32", (1, 2)))
def joins(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, y, z = args[:3]
    return [
        b.concatenate([x, y], 0), b.concatenate([x, z, y, z], 0), b.concatenate([x, x, x], 0),
        b.reduce(hlo.AddOp, b.concatenate([z, x, y], 0), [0]), b.concatenate([x, x], 1),
    ]  # fmt: skip


@case(("f32", (N, 2)), ("f32", (N + 2,)), ("f32", (9, 2)))
def parts(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Slices from either end, and of a table; reversals."""
    x, y, table = args[:3]
    return [
        b.slice_axis(x, 0, N - 1, N), b.slice_axis(x, 0, 0, 1), b.slice_axis(y, 0, N, N + 2),
        b.slice_axis(y, 0, 1, N + 1), b.slice_axis(y, 0, 2, N + 2, 2), b.slice_axis(table, 0, 0, N),
        b.slice_axis(b.concatenate([x, x], 0), 0, N, 2 * N), b.slice_axis(table, 0, N, N + 3),
        b.emit(hlo.ReverseOp, x, dimensions=[0, 1]), b.emit(hlo.ReverseOp, y, dimensions=[0]),
    ]  # fmt: skip


@case(("f32", (N,)), ("f32", (2,)))
def pads(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, y = args[:2]
    seven = b.constant(7.0, "f32")
    return [
        b.pad(x, seven, [1], [2]), b.pad(x, seven, [0], [3], [1]), b.pad(y, seven, [N], [1]), b.pad(y, seven, [0], [N]),
        b.pad(x, seven, [N], [N]), b.pad(x, seven, [2], [-1]), b.reduce(hlo.AddOp, b.pad(x, seven, [0], [3]), [0]),
        b.pad(x, seven, [0], [8 - N]),
    ]  # fmt: skip


@case(("f32", (N, 1)), ("f32", (M,)))
def spreads(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Broadcasts, positions, sizes as numbers."""
    x, y = args[:2]
    wide = b.broadcast(x, (N, M), (0, 1))
    size = b.emit(hlo.GetDimensionSizeOp, wide, dimension=1)
    ones = b.full((N, M), 1.0, "f32")
    return [
        b.add(wide, b.broadcast(y, (N, M), (1,))), b.iota((N, 2), 0), b.iota((2, N), 0, "f32"), size,
        b.dim(N * M + (N // 2)), b.dim(N % 3 + M), b.dim(dims.dmax(N, M) - dims.dmin(N - M, 2)),
        b.reduce(hlo.AddOp, ones, [0, 1]), b.reduce(hlo.AddOp, b.emit(hlo.ExponentialOp, b.subtract(ones, ones)), [0]),
        b.dim((N - M) // 2), b.dim(dims.dmin(N - M, 2) // 3), b.dim(dims.dmin(N - M, 2) % 3),
    ]  # fmt: skip


# ---- places that are data ----


@case(("f32", (N, 3)), ("i32", (4, 1)), ("i8", (M, 1)), ("i64", ()), ("ui8", (M, 1)))
def gathers(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Indices beyond the end, and below 0, are clamped."""
    x, few, many, at, unsigned = args[:5]
    row = GatherDimensions((1,), (0,), (), (), (0,), 1)
    zero = b.constant(0, "i64")
    return [
        b.emit(hlo.GatherOp, x, few, dimension_numbers=row, slice_sizes=[1, 3]),
        b.emit(hlo.GatherOp, x, many, dimension_numbers=row, slice_sizes=[1, 3], indices_are_sorted=True),
        b.emit(hlo.GatherOp, x, unsigned, dimension_numbers=row, slice_sizes=[1, 2]),
        b.emit(hlo.GatherOp, x, few, dimension_numbers=GatherDimensions((0,), (1,), (), (), (1,), 1),
               slice_sizes=[N, 1]),
        b.emit(hlo.DynamicSliceOp, x, at, zero, slice_sizes=[1, 3]),
        b.emit(hlo.DynamicSliceOp, b.concatenate([x, x], 0), at, zero, slice_sizes=[N, 2]),
        b.emit(hlo.DynamicUpdateSliceOp, x, b.full((1, 3), 5, "f32"), at, zero),
        b.emit(hlo.DynamicUpdateSliceOp, b.concatenate([x, x], 0), x, at, zero),
    ]  # fmt: skip


@case(("f32", (5, 2)), ("i32", (N, 1)), ("f32", (N, 2)), ("f32", (N,)), ("f32", (M,)), ("i32", (M, 1)))
def scatters(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Updates of padding are left out, whatever their index; places beyond the end, too."""
    x, at, rows, y, few, places = args[:6]
    numbers = ScatterDimensions((1,), (0,), (), (), (0,), 1)
    total, last = region(b, hlo.AddOp, "f32"), b.region([tensor((), "f32")] * 2, lambda a: [a[1]])
    single = ScatterDimensions((), (0,), (), (), (0,), 1)
    return [
        b.emit(hlo.ScatterOp, x, at, rows, scatter_dimension_numbers=numbers, regions=[total]),
        b.emit(hlo.ScatterOp, x, at, rows, scatter_dimension_numbers=numbers, indices_are_sorted=True,
               regions=[last.clone()]),
        b.emit(hlo.ScatterOp, y, places, few, scatter_dimension_numbers=single, regions=[last]),
    ]  # fmt: skip


@case(("f32", (N, 3)), ("i32", (N,)), ("f16", (2, N)))
def orders(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Ascending, descending and by the key of another; the largest, among ties."""
    x, k, h = args[:3]
    least = b.emit(hlo.BitcastConvertOp, b.emit(hlo.OrOp, k, b.full_like(k, -1)), types=(tensor((N,), "f32"),))

    def by(direction: str, text: str, others: int = 0) -> Any:
        kinds = [tensor((), text)] * 2 + [tensor((), "f32")] * others
        kind = "TOTALORDER" if text == "f32" else "SIGNED"
        return b.region(
            kinds,
            lambda a: [b.emit(hlo.CompareOp, a[0], a[1], comparison_direction=direction, compare_type=kind)],
        )

    few = b.emit(
        hlo.SliceOp, b.concatenate([h, h, h], 1), start_indices=[0, 0], limit_indices=[2, 3 * N], strides=[1, 1]
    )
    return [
        b.emit(hlo.SortOp, x, dimension=0, regions=[by("LT", "f32")]),
        b.emit(hlo.SortOp, x, dimension=0, regions=[by("GT", "f32")]),
        *b.emit_all(hlo.SortOp, k, b.reshape(b.slice_axis(x, 1, 0, 1), (N,)), dimension=0, is_stable=True,
                    regions=[by("GT", "i32", 2)]),
        *b.emit_all(chlo.TopKOp, few, k=2), *b.emit_all(chlo.TopKOp, b.transpose(x, [1, 0]), k=1),
        *b.emit_all(chlo.TopKOp, least, k=1),
    ]  # fmt: skip


# ---- control flow, composites ----


@case(("f32", (N, 2)), ("i1", ()), ("i32", ()))
def branches(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Branches whose results have different layouts, and different padding."""
    x, p, i = args[:3]
    flat = b.reshape(b.transpose(x, [1, 0]), (2 * N,))
    plain = b.reshape(x, (2 * N,))
    first, second = (
        b.emit(hlo.IfOp, p, regions=[b.region([], lambda _, v=v: [v]) for v in values])
        for values in ((flat, plain), (plain, flat))
    )
    zeros = b.full((N, 2), 0.0, "f32")
    chosen = b.emit(hlo.CaseOp, i, regions=[
        b.region([], lambda _: [zeros]), b.region([], lambda _: [b.emit(hlo.CosineOp, x)]),
        b.region([], lambda _: [b.full((N, 2), 3.0, "f32")]),
    ])  # fmt: skip
    return [first, second, b.reduce(hlo.AddOp, chosen, [0])]


@case(("f32", (N, 2)), ("f32", (2 * N,)), ("f32", (2,)))
def loops(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """A recurrence over the rows, and a loop that carries a layout which changes in its first iteration."""
    x, flat, h = args[:3]

    def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> list[SSAValue]:
        after = b.add(b.scale(before[0], 0.5), items[0])
        return [after, after]

    row = tensor((N, 2), "f32")
    forth = looping.scan(b, N, [h], [x], [row], step)
    back = looping.scan(b, N, [h], [x], [row], step, reverse=True)
    types = [tensor((), "i64"), flat.type]
    turned = b.emit_all(hlo.WhileOp, b.constant(0, "i64"), flat, types=types, regions=[
        b.region(types, lambda a: [b.compare(a[0], b.dim(N), "LT")]),
        b.region(types, lambda a: [
            b.add(a[0], b.constant(1, "i64")),
            b.reshape(b.transpose(b.reshape(a[1], (N, 2)), [1, 0]), (2 * N,)),
        ]),
    ])  # fmt: skip
    return [*forth, *back, turned[1]]


@case(("f32", (2, N, 4)), ("f32", (2, N)), ("i1", (2, N)))
def composites(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, y, mask = args[:3]
    scale = b.constant([1.0, 2.0, 3.0, 4.0], "f32")
    seen = composite(
        b, "gcomp.attention", [x, x, x, b.broadcast(mask, (2, N, N), (0, 2))], {"scale": 0.5, "fill": -1e9, "safe": 1}
    )
    return [
        *composite(b, "gcomp.softmax", [y], {"axis": 1}), *composite(b, "gcomp.softmax", [x], {"axis": 2}),
        *composite(b, "gcomp.layer_norm", [x, scale], {"axis": 2, "epsilon": 1e-5}),
        *composite(b, "gcomp.gelu", [x], {"approximate": "none"}), *composite(b, "gcomp.logsumexp", [y], {"axis": 1}),
        *seen, *composite(b, "gcomp.log_softmax", [y], {"axis": 1}),
    ]  # fmt: skip


@case(("f32", (N, 2, 2)), ("f32", (N, 2, M)), ("f32", (N, 3)), ("ui8", (N,)))
def batches(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Ops that are independent along some dimensions."""
    a, y, x, k = args[:4]
    scale = [b.constant(v, "f32") for v in ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.5, 1.0, 1.5], [1.0, 1.0, 4.0])]
    eye = b.full((N, 2, 2), 0.25, "f32")
    return [
        b.emit(hlo.TriangularSolveOp, a, y, left_side=True, lower=True, unit_diagonal=True, transpose_a="NO_TRANSPOSE"),
        b.emit(hlo.CholeskyOp, eye, lower=True), b.convert(x, "f64"),
        b.select(b.compare(x, x, "EQ"), x, b.full_like(x, 0)),
        b.emit(hlo.BatchNormInferenceOp, x, *scale, epsilon=1e-3, feature_index=1),
        b.emit(hlo.BitcastConvertOp, x, types=(tensor((N, 3, 4), "ui8"),)), b.emit(hlo.NotOp, k),
    ]  # fmt: skip


@case(("f32", (N, 2)))
def counted(b: Builder, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Composites that look independent, and count: by a sum of ones, and by the size."""
    results: list[SSAValue] = []
    for i, size in enumerate((True, False)):
        function = FuncOp(f"counts.{i}", ([args[0].type], []), visibility="private")
        with b.inside(function.body.block):
            (x,) = function.body.block.args
            count = b.reduce(hlo.AddOp, b.full((N,), 1, "i32"), [0])
            if size:
                count = b.emit(hlo.GetDimensionSizeOp, x, dimension=0)
            b.insert(ReturnOp(b.divide(x, b.broadcast(b.convert(count, "f32"), (N, 2), ()))))
        function.update_function_type()
        b.program.module.body.block.add_op(function)
        results.append(
            b.emit(hlo.CompositeOp, args[0], types=(args[0].type,), name="test.counted", decomposition=f"counts.{i}")
        )
    return results
