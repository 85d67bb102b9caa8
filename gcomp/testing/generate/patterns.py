"""What patterns look for, made with variations: chains of movement, views, dots, ragged dots, scans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import dtype_of, is_complex
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.structures import DotDimensions, RaggedDotDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor, tensor_of, with_shape
from gcomp.testing.generate.elementwise import BINARY, taking
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.movement import padding_of, slice_of
from gcomp.testing.generate.operands import NUMBERS, pooling_window, same_type_unary, sizes_of, varying
from gcomp.testing.generate.passes import seeks
from gcomp.testing.generate.regions import folding_body

# ---- movement -------------------------------------------------------------------------------------------------------


@seeks("canonicalize", weight=12)
def slices_of_slices(g: Growth) -> None:
    """Two or three slices with starts and strides, of something long enough for all."""
    choices = g.choices
    x = varying(g, choices.chosen(((11,), (9,), (13,), (9, 5), (3, 11))))
    for _ in range(choices.chosen((2, 2, 3))):
        if choices.flag(0.4):
            starts, limits, strides = slice_of(g, shape_of(x))
        else:
            limits = [s - choices.integer(0, 1) * (s > 3) for s in sizes_of(x)]
            starts = [choices.integer(0, min(2, max(s - 1, 0))) for s in limits]
            strides = [choices.chosen((2, 1, 3)) for _ in limits]
            if choices.flag(0.15):
                limits[-1] = starts[-1]
        x = g.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=strides)


@seeks("canonicalize", weight=9)
def nearly_no_pad(g: Growth) -> None:
    """A pad by nothing but one amount, or two that cancel."""
    choices, x = g.choices, varying(g, g.choices.chosen(((3,), (1, 3), (2, 3), (1,))))
    amounts = [[0] * rank_of(x) for _ in range(3)]
    at = choices.integer(0, rank_of(x) - 1)
    kind = choices.integer(0, 3)
    if kind == 3:
        amounts[0][at], amounts[1][at] = (1, -1) if choices.flag() else (-1, 1)
    else:
        amounts[kind][at] = 1
    g.emit(hlo.PadOp, x, g.scalar(dtype_text(x.type)), edge_padding_low=amounts[0], edge_padding_high=amounts[1],
           interior_padding=amounts[2])  # fmt: skip


@seeks("canonicalize", weight=6)
def nearly_neutral(g: Growth) -> None:
    """Arithmetic with a constant that is the neutral element except in its last elements: a near miss."""
    choices = g.choices
    x = varying(g, choices.chosen(((2, 5), (6,), (5, 2), (3, 3))))
    shape, text = sizes_of(x), dtype_text(x.type)
    op, neutral = choices.chosen(((hlo.MultiplyOp, 1), (hlo.AddOp, 0), (hlo.SubtractOp, 0), (hlo.DivideOp, 1)))
    size = shape[-1] if choices.flag() else int(np.prod(shape))
    array = np.full(size, neutral)
    array[choices.chosen((-1, 1)) :] = 3
    if size == np.prod(shape):
        array = array.reshape(shape)
    y = g.b.emit(hlo.ConstantOp, value=ElementsAttr.of(array.astype(dtype_of(text))))
    if array.ndim < len(shape):
        y = g.b.broadcast(y, shape, (len(shape) - 1,))
    pair = (y, x) if op in (hlo.AddOp, hlo.MultiplyOp) and choices.flag() else (x, y)
    g.emit(op, *pair, types=(x.type,))


@seeks("canonicalize", weight=6)
def movement_of_cube(g: Growth) -> None:
    """Movement that changes no type, so that only the values tell: of a tensor whose sizes are all equal."""
    choices = g.choices
    sizes = choices.chosen(((2, 2), (3, 3), (2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2), (2,) * 6))
    x, rank = varying(g, sizes), len(sizes)
    for _ in range(choices.integer(1, 3)):
        order = choices.permutation(rank)
        if choices.flag():
            order = list(range(rank))
            i = choices.integer(0, rank - 2)
            order[i], order[i + 1] = i + 1, i
        kind = choices.integer(0, 3)
        if kind == 0:
            x = g.emit(hlo.TransposeOp, x, permutation=order)
        elif kind == 1:
            x = g.emit(hlo.BroadcastInDimOp, x, types=(x.type,), broadcast_dimensions=order)
        elif kind == 2:
            for _ in range(2):
                axes = choices.some(range(rank)) or [rank - 1]
                x = g.emit(hlo.ReverseOp, x, types=(x.type,), dimensions=axes)
        else:
            x = g.emit(hlo.ReshapeOp, x, types=(x.type,))


@seeks("canonicalize", weight=4)
def transpose_of_ones(g: Growth) -> None:
    """A transpose of a tensor with dimensions of size 1, which moves others too, or not."""
    choices = g.choices
    sizes = [choices.chosen((1, 2, 1, 3)) for _ in range(choices.integer(2, 5))]
    x = varying(g, sizes)
    order = choices.permutation(len(sizes))
    if choices.flag():
        kept = iter([i for i in range(len(sizes)) if sizes[i] != 1])
        order = [i if sizes[i] == 1 else next(kept) for i in order]
    g.emit(hlo.TransposeOp, x, permutation=order)


@seeks("canonicalize", weight=6)
def dot_of_view(g: Growth) -> None:
    """A dot of a transposed operand, or of two, any of whose dimensions it batches and contracts, or just one."""
    choices = g.choices
    sizes = [choices.chosen((2, 3, 2, 1)) for _ in range(choices.integer(2, 4))]
    roles = [choices.chosen(("free", "free", "contract", "batch")) for _ in sizes]
    if choices.flag(0.25):
        sizes = [choices.chosen((2, 1, 2)) for _ in range(choices.integer(4, 5))]
        roles = ["free"] * len(sizes)
        roles[choices.integer(0, len(sizes) - 1)] = choices.chosen(("contract", "batch"))
    x = varying(g, sizes)
    order = choices.permutation(len(sizes))
    left = g.emit(hlo.TransposeOp, x, permutation=order)
    batching = [i for i, k in enumerate(order) if roles[k] == "batch"]
    contracting = [i for i, k in enumerate(order) if roles[k] == "contract"]
    columns = [choices.chosen((2, 3))] if choices.flag(0.7) else []
    shape = [shape_of(left)[i] for i in (*batching, *contracting)] + columns
    places = choices.permutation(len(shape))
    right = g.of_type(tensor([shape[i] for i in places], dtype_text(x.type)))
    if choices.flag(0.4):
        again = choices.permutation(len(shape))
        right = g.emit(hlo.TransposeOp, right, permutation=again)
        places = [places[i] for i in again]
    at = [places.index(i) for i in range(len(shape))]
    free = [s for i, s in enumerate(shape_of(left)) if i not in (*batching, *contracting)]
    result = tensor([*shape[: len(batching)], *free, *columns], dtype_text(x.type))
    count = len(batching)
    numbers = DotDimensions(
        tuple(batching), tuple(at[:count]), tuple(contracting), tuple(at[count : len(at) - len(columns)])
    )
    if choices.flag(0.3) and not (free or columns):
        left, right = right, left
        numbers = DotDimensions(numbers[1], numbers[0], numbers[3], numbers[2])
    g.emit(hlo.DotGeneralOp, left, right, types=(result,), dot_dimension_numbers=numbers)


# ---- channels-first views -------------------------------------------------------------------------------------------


def _view(g: Growth, rank: int | None = None, like: SSAValue | None = None) -> SSAValue:
    """The channels-first view of a channels-last tensor; now and then another transpose, of the same type."""
    choices = g.choices
    if like is not None:
        shape = sizes_of(like)
        first = (0, len(shape) - 1, *range(1, len(shape) - 1))
        source = tensor([shape[first.index(i)] for i in range(len(shape))], dtype_text(like.type))
        return g.emit(hlo.TransposeOp, g.of_type(source), permutation=first)
    rank = rank or choices.chosen((4, 3, 4, 5))
    sizes = [choices.chosen((2, 3, 1, 4)) if i < 4 else 1 for i in range(rank)]
    if not g.fits(sizes):
        sizes = [2] * rank
    x = varying(g, sizes, NUMBERS if choices.flag(0.85) else None)
    order = [0, rank - 1, *range(1, rank - 1)]
    if choices.flag(0.1):
        order = choices.permutation(rank)
    elif choices.flag(0.25):
        order = [*order[:2], *reversed(order[2:])]
    return g.emit(hlo.TransposeOp, x, permutation=order)


@seeks("sink-transposes", weight=20)
def elementwise_of_views(g: Growth) -> None:
    """A few elementwise ops on views, constants, weights, broadcasts and scalars."""
    choices, x = g.choices, _view(g)
    for _ in range(choices.integer(1, 3)):
        text, type = dtype_text(x.type), tensor_of(x)
        kind = choices.integer(0, 6)
        if kind == 0:
            x = g.emit(choices.chosen(same_type_unary(text)), x, types=(type,))
        elif kind == 1 and not is_complex(text):
            bound = g.scalar(text) if choices.flag() else _beside(g, x)
            x = g.emit(
                hlo.ClampOp, bound, x, bound if choices.flag(0.2) else g.constant(tensor((), text)), types=(type,)
            )
        elif kind == 2:
            how = choices.chosen(("NE", "EQ", "LT")[: 2 if is_complex(text) else 3])
            type_ = tensor(sizes_of(x), "i1")
            pred = g.emit(hlo.CompareOp, x, _beside(g, x), types=(type_,), comparison_direction=how)
            pair = [x, _beside(g, x)]
            x = g.emit(hlo.SelectOp, pred, *(pair if choices.flag() else pair[::-1]), types=(type,))
        elif kind == 3:
            x = g.convert(x, choices.chosen(("f32", "i32", "f64")))
        else:
            pair = [x, _beside(g, x)]
            x = g.emit(choices.chosen(taking(BINARY, text)), *(pair if choices.flag() else pair[::-1]), types=(type,))


def _beside(g: Growth, x: SSAValue) -> SSAValue:
    """What may stand beside a view: another view, a constant, a weight, a broadcast along the channels or elsewhere."""
    choices, shape, text = g.choices, sizes_of(x), dtype_text(x.type)
    kind = choices.integer(0, 5)
    if kind <= 1:
        return _view(g, like=x)
    if kind == 2:
        return g.b.weight("w", choices.fill(np.arange(5).astype(dtype_of(text)), int(np.prod(shape))).reshape(shape))
    if kind == 3:
        return g.constant(tensor_of(x))
    if kind == 4:
        axis = choices.chosen((1, len(shape) - 1, 0))
        vector = g.fresh(tensor((shape[axis],), text))
        return g.b.broadcast(vector, shape, (axis,))
    return g.like(x)


@seeks("sink-transposes", weight=20)
def movement_of_views(g: Growth) -> None:
    """A pad, a slice, a concatenation or a broadcast of a view; then its inverse, or an elementwise op."""
    choices, x = g.choices, _view(g)
    shape, text = sizes_of(x), dtype_text(x.type)
    kind = choices.chosen((0, 1, 2, 2, 3, 3))
    if kind == 0:
        low, high, gaps = padding_of(g, shape)
        x = g.emit(hlo.PadOp, x, g.scalar(text), edge_padding_low=low, edge_padding_high=high, interior_padding=gaps)
    elif kind == 1:
        starts, limits, strides = slice_of(g, shape)
        x = g.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=strides)
    elif kind == 2:
        parts = [x, *([x] if choices.flag(0.3) else []), *([_view(g, like=x)] if choices.flag(0.7) else [])]
        if choices.flag(0.3):
            parts = [_view(g, like=x) for _ in range(choices.integer(2, 3))] + [x]
        axis = choices.integer(0, len(shape) - 1)
        if g.fits([s * len(parts) if i == axis else s for i, s in enumerate(shape)]):
            x = g.emit(hlo.ConcatenateOp, *parts, dimension=axis)
    else:
        target = [2 if s == 1 else s for s in shape]
        target = target if g.fits(target) else shape
        order = choices.permutation(len(shape)) if choices.flag() else list(range(len(shape)))
        x = g.keep(g.b.broadcast(x, [target[order.index(i)] for i in range(len(shape))], order))
    if choices.flag() and rank_of(x) == len(shape):
        last = [0, *range(2, len(shape)), 1]
        g.emit(hlo.TransposeOp, x, permutation=last)
    else:
        g.emit(choices.chosen(same_type_unary(text)), x, types=(x.type,))


@seeks("sink-transposes", weight=20)
def fold_of_view(g: Growth) -> None:
    """A reduction or a window of a view, over the channels, the space, or both."""
    choices, x = g.choices, _view(g)
    shape, text = sizes_of(x), dtype_text(x.type)
    body = folding_body(g, (text,))
    init = g.scalar(text)
    if choices.flag():
        space = list(range(2, len(shape)))
        axes = choices.chosen(
            ([1], space, [0], [0, 1], [0, *space], [1, *space], [len(shape) - 1], [0, 2], [1, 2], [1, 2])
        )
        kept = [s for i, s in enumerate(shape) if i not in axes]
        folded = g.emit(hlo.ReduceOp, x, init, types=(tensor(kept, text),), dimensions=axes, regions=(body,))
        if choices.flag(0.5):
            ones = [1 if i in axes else s for i, s in enumerate(shape)]
            spread = g.b.broadcast(folded, ones, [i for i in range(len(shape)) if i not in axes])
            g.keep(g.b.broadcast(spread, shape, range(len(shape))))
        return
    w = pooling_window(g, shape, channels=choices.flag(0.6))
    result = [window_size(s, n, t, p, 1, 1) for s, n, t, p in zip(
        shape, w["window_dimensions"], w["window_strides"], w["padding"], strict=True)]  # fmt: skip
    g.emit(hlo.ReduceWindowOp, x, init, types=(tensor(result, text),), regions=(body,), **w)


@seeks("sink-transposes", weight=16)
def sums_in_windows_of_view(g: Growth) -> None:
    """Sums or products in windows over the channels and the space of a view, which round in the order of its dims."""
    choices, x = g.choices, _view(g, g.choices.chosen((4, 3)))
    shape, text = sizes_of(x), dtype_text(x.type)
    widths = [1, *(min(s, choices.chosen((2, 3, 2, 1))) for s in shape[1:])]
    scalar = tensor((), text)
    block = Block(arg_types=[scalar] * 2)
    with g.b.inside(block):
        fold = choices.chosen(taking((hlo.AddOp, hlo.MultiplyOp), text))
        g.b.emit_all(hlo.ReturnOp, g.b.emit(fold, *block.args, types=(scalar,)), types=())
    result = tensor([s - n + 1 for s, n in zip(shape, widths, strict=True)], text)
    g.emit(hlo.ReduceWindowOp, x, g.scalar(text), types=(result,), regions=(Region(block),), window_dimensions=widths)


# ---- dots by weights, softmax ---------------------------------------------------------------------------------------


@seeks("dot-weight-layout", weight=10)
def dot_by_weight(g: Growth) -> None:
    """A dot of one row, or of several, by a weight that lies one way or the other; or nearly: read twice, no matrix."""
    choices = g.choices
    text = g.text_among(NUMBERS)
    inner, columns = choices.chosen((2, 3, 4, 1)), choices.chosen((3, 2, 1, 4))
    rows = list(choices.chosen(((1,), (3,), (), (1, 1), (2, 3), (1, 2), (0,))))
    at = choices.integer(0, len(rows))
    shape = [*rows[:at], inner, *rows[at:]]
    x = g.keep(g.fresh(tensor(shape, text)))
    contracted = choices.integer(0, 1)
    near = choices.integer(0, 7)
    sizes = [inner, columns] if contracted == 0 else [columns, inner]
    if choices.flag(0.3) and columns == inner:
        sizes = [inner, inner]
    y = _ordinary_weight(g, sizes, text)
    if near == 0:
        y = g.constant(tensor(sizes, text))
    if near == 1:
        g.keep(y)
    g.emit(hlo.DotGeneralOp, x, y, types=(tensor([*rows, columns], text),),
           dot_dimension_numbers=DotDimensions((), (), (at,), (contracted,)),
           precision_config=choices.chosen((None, None, ("HIGHEST", "DEFAULT"))))  # fmt: skip
    if near == 2:
        g.emit(hlo.DotGeneralOp, x, y, types=(tensor([*rows, columns], text),),
               dot_dimension_numbers=DotDimensions((), (), (at,), (contracted,)))  # fmt: skip
    if near == 3:
        batched = g.fresh(tensor([sizes[1 - contracted], *rows, inner], text))
        numbers = DotDimensions((0,), (1 - contracted,), (len(rows) + 1,), (contracted,))
        g.emit(hlo.DotGeneralOp, batched, _ordinary_weight(g, sizes, text),
               types=(tensor([columns, *rows], text),), dot_dimension_numbers=numbers)  # fmt: skip


def _ordinary_weight(g: Growth, shape: Sequence[int], text: str) -> SSAValue:
    pool = np.array([0, 1, 2, 3, -1]).astype(dtype_of(text)) if text[0] != "u" else np.arange(4).astype(dtype_of(text))
    return g.b.weight("w", g.choices.fill(pool, int(np.prod(shape))).reshape(tuple(shape)))


@seeks("guard-max-shift", weight=10)
def shifted_by_maximum(g: Growth) -> None:
    """A product less its own maximum; or nearly: of another value, a minimum, the other way round, no product."""
    choices = g.choices
    sizes = list(choices.chosen(((2, 3), (4,), (2, 2, 3), (3, 1), (1, 5))))
    x = varying(g, sizes)
    text, near = dtype_text(x.type), choices.integer(0, 9)
    op = choices.chosen((hlo.MultiplyOp, hlo.DivideOp, hlo.MultiplyOp)) if near else hlo.AddOp
    product = g.emit(op, x, g.like(x), types=(x.type,))
    if choices.flag(0.3):
        product = g.emit(hlo.ReverseOp, product, types=(product.type,), dimensions=[0])
    if choices.flag(0.2):
        product = g.emit(hlo.TransposeOp, product, permutation=choices.permutation(len(sizes)))
    shape = sizes_of(product)
    axes = choices.chosen(([len(shape) - 1], [0], list(range(len(shape)))))
    fold = hlo.MinimumOp if near == 1 else hlo.AddOp if near == 2 else hlo.MaximumOp
    source = g.like(product) if near == 3 else product
    if near == 4 or (near == 5 and text[0] == "u"):
        start = g.scalar(text)
    else:
        start = g.splat(tensor((), text), identity(hlo.MaximumOp, text))
    block = Block(arg_types=[tensor((), text)] * 2)
    with g.b.inside(block):
        g.b.emit_all(hlo.ReturnOp, g.b.emit(fold, *block.args, types=(start.type,)), types=())
    kept = [s for i, s in enumerate(shape) if i not in axes]
    top = g.b.emit(hlo.ReduceOp, source, start, types=(tensor(kept, text),), dimensions=axes, regions=(Region(block),))
    spread = g.b.broadcast(top, shape, [i for i in range(len(shape)) if i not in axes])
    pair = (spread, product) if near == 6 else (product, spread)
    g.emit(hlo.SubtractOp, *pair, types=(product.type,))


# ---- ragged dots and scans ------------------------------------------------------------------------------------------


@seeks("expand-chlo", weight=6)
def ragged_dot(g: Growth) -> None:
    """Products in groups along a free, a contracted or a batching dimension; sizes that fall short, overrun, or are
    negative."""
    choices = g.choices
    text = g.text_among(NUMBERS)
    batch, m, k, n, groups = (
        choices.chosen((2, 1)),
        choices.chosen((4, 3)),
        choices.chosen((3, 2)),
        2,
        choices.chosen((2, 3, 1)),
    )
    batched = choices.flag(0.5)
    lead = [batch] if batched else []
    b = len(lead)
    mode = choices.chosen(("free", "contracted", "batch") if batched else ("free", "contracted"))
    left_order = choices.permutation(b + 2) if choices.flag(0.4) else list(range(b + 2))
    left = [[*lead, m, k][i] for i in left_order]
    lb, lm, lk = (tuple([left_order.index(i)] if i >= 0 else []) for i in (0 if batched else -1, b, b + 1))
    parts = [*lead, k, n, *([groups] if mode == "free" else [])]
    right_order = choices.permutation(len(parts)) if choices.flag(0.5) else list(range(len(parts)))
    right = [parts[i] for i in right_order]
    rb, rk = tuple([right_order.index(0)] if batched else []), (right_order.index(b),)
    ragged = {"free": lm, "contracted": lk, "batch": lb}[mode]
    group = (right_order.index(b + 2),) if mode == "free" else ()
    numbers = RaggedDotDimensions(lb, rb, lk, rk, ragged, group)
    if not (g.fits(left) and g.fits(right)):
        return
    sizes_text = choices.chosen(("i32", "i64", "i8", "ui8"))
    outer = [batch] if batched and mode != "batch" and choices.flag() else []
    sizes = choices.fill(
        np.array([1, 2, 0, 3, -1] if sizes_text[0] == "i" else [1, 2, 0, 3]), int(np.prod([*outer, groups]))
    )
    array = sizes.reshape((*outer, groups)).astype(dtype_of(sizes_text))
    group_sizes = (
        g.b.emit(hlo.ConstantOp, types=(tensor(array.shape, sizes_text),), value=ElementsAttr.of(array))
        if choices.flag(0.7)
        else g.fresh(tensor(array.shape, sizes_text))
    )
    x, y = g.fresh(tensor(left, text)), g.fresh(tensor(right, text))
    probe = [*([groups] if mode == "contracted" else []), *lead, m, n]
    g.emit(chlo.RaggedDotOp, x, y, group_sizes, types=(tensor(probe, text),), ragged_dot_dimension_numbers=numbers)


@seeks("expand-chlo", weight=6)
def scan(g: Growth) -> None:
    """A scan of one or two inputs and carries, along any dimension, forward or backward, of no slices too."""
    choices = g.choices
    sizes = list(choices.chosen(((3, 2), (4,), (2, 3, 2), (0, 2), (1, 3), (2, 1), (3, 3), (2, 2))))
    axis = choices.integer(0, len(sizes) - 1)
    inputs = [varying(g, sizes) for _ in range(choices.chosen((1, 2)))]
    kept = [s for i, s in enumerate(sizes) if i != axis]
    slices = [with_shape(x, kept) for x in inputs]
    carried = [*slices, *([slices[0]] if choices.flag(0.5) else [])]
    inits = [g.of_type(type) for type in carried]
    block = Block(arg_types=[*slices, *carried])
    with g.within(block):
        own, carries = list(block.args[: len(slices)]), list(block.args[len(slices) :])
        text = dtype_text(own[0].type)
        op = choices.chosen(taking((hlo.AddOp, hlo.SubtractOp, hlo.MaximumOp, hlo.MultiplyOp), text))
        after: list[SSAValue] = list(carries)
        after[0] = g.b.emit(op, carries[0], own[0], types=(own[0].type,))
        if len(carried) > len(slices):
            # The last carry takes the first one's place, and the other way round.
            after[0], after[-1] = carries[-1], after[0]
        outputs = [after[0] if choices.flag() else carries[0], *own[1:]]
        g.b.emit_all(hlo.ReturnOp, *outputs, *after, types=())
    wanted = [with_shape(o, [*kept[:axis], sizes[axis], *kept[axis:]]) for o in outputs]
    results = g.b.emit_all(
        chlo.ScanOp, *inputs, *inits, types=(*wanted, *carried), regions=(Region(block),), dimension=axis,
        is_reverse=choices.flag(0.4),
        operandSegmentSizes=chlo.ScanOp.encode_property("operandSegmentSizes", (len(inputs), len(inits))),
        resultSegmentSizes=chlo.ScanOp.encode_property("resultSegmentSizes", (len(outputs), len(carried))),
    )  # fmt: skip
    for result in results[::-1]:
        g.keep(result)
