"""Steps of folds: reduce with every combiner, windows, sorts, select_and_scatter, map, top_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import is_complex
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import FLOATS, INTEGERS, dtype_text, rank_of, shape_of, tensor, with_shape
from gcomp.reference.values import special_pool
from gcomp.testing.generate.elementwise import EXACT_UNARY, taking
from gcomp.testing.generate.growth import Growth, step
from gcomp.testing.generate.regions import WIDER, comparator, compare, folding_body

_REAL = INTEGERS | FLOATS
_NEAR = 0.4
"""How often a fold begins near a number that a pass compares something with."""
_BEGINNINGS = [0.6, 0.8, 1.0]
"""How a fold begins, as running totals: with the identity, with an edge value, with any scalar."""


def _init(g: Growth, text: str, body: Region) -> SSAValue:
    """The combiner's identity, mostly; else a limit or another value that may decide how it ends; or any scalar.

    For a pass that compares something with numbers, at times one near these.
    """
    if g.compared and g.choices.flag(_NEAR) and (found := g.compared_with(text)) is not None:
        return found
    applied, kind = applied_op(body), g.choices.weighted(_BEGINNINGS)
    if applied is not None and kind == 0 and not is_complex(text):
        return g.splat(tensor((), text), identity(applied, text))
    if kind == 1:
        return g.splat(tensor((), text), g.choices.chosen(list(special_pool(text))))
    return g.scalar(text)


def _axes(g: Growth, rank: int) -> list[int]:
    if rank and g.choices.flag(0.6):
        return [g.choices.integer(0, rank - 1)]
    return g.choices.some(range(rank))


@step("reduce", hlo.ReduceOp, weight=5)
def reduce(g: Growth) -> None:
    """Any dimensions, none too, and any combiner; at times with the dimensions put back, or the result spread again."""
    choices, x = g.choices, g.pick(least=0 if g.choices.flag(0.1) else 1)
    text = dtype_text(x.type)
    axes = _axes(g, rank_of(x))
    body = folding_body(g, (text,))
    kept = [s for i, s in enumerate(shape_of(x)) if i not in axes]
    result = g.emit(hlo.ReduceOp, x, _init(g, text, body), types=(with_shape(x, kept),), dimensions=axes,
                    regions=(body,))  # fmt: skip
    kind = choices.integer(0, 9)
    if kind == 8:
        ones = [1 if i in axes else s for i, s in enumerate(shape_of(x))]
        g.emit(hlo.ReshapeOp, result, types=(with_shape(x, ones),))
    elif kind == 9:
        places = [i for i in range(rank_of(x)) if i not in axes]
        spread = g.b.emit(hlo.BroadcastInDimOp, result, types=(x.type,), broadcast_dimensions=places)
        g.emit(choices.chosen((hlo.SubtractOp, hlo.MaximumOp) if text != "i1" else (hlo.AndOp,)), x, spread,
               types=(x.type,))  # fmt: skip


@step("wider-reduce", hlo.ReduceOp, weight=0.5)
def wider_reduce(g: Growth) -> None:
    """A fold that computes in a wider type than its operand's."""
    x = g.pick(frozenset({tensor((), t).element_type for t in WIDER}), least=1)
    text, axes = dtype_text(x.type), _axes(g, rank_of(x))
    body = folding_body(g, (WIDER[text],), replaces=0.0)
    kept = [s for i, s in enumerate(shape_of(x)) if i not in axes]
    g.emit(hlo.ReduceOp, x, g.scalar(text), types=(tensor(kept, WIDER[text]),), dimensions=axes, regions=(body,))


@step("argmax", hlo.ReduceOp, weight=1.5)
def variadic_reduce(g: Growth) -> None:
    """Two inputs folded together, as argmax and argmin are."""
    choices, x = g.choices, g.pick(_REAL, least=1)
    text, shape = dtype_text(x.type), shape_of(x)
    axes = [choices.integer(0, len(shape) - 1)] if choices.flag(0.85) else choices.some(range(len(shape)))
    second = choices.chosen(("i32", "i64", *g.palette))
    type = tensor(shape, second)
    if second != "i1" and choices.flag(0.7):
        y = g.b.emit(hlo.IotaOp, types=(type,), iota_dimension=axes[0] if axes else 0)
    else:
        y = g.of_type(type)
    body = folding_body(g, (text, second))
    kept = [s for i, s in enumerate(shape) if i not in axes]
    inits = [g.scalar(text), g.splat(tensor((), second), 0) if choices.flag(0.7) else g.scalar(second)]
    results = g.b.emit_all(hlo.ReduceOp, x, y, *inits, types=(tensor(kept, text), tensor(kept, second)),
                           dimensions=axes, regions=(body,))  # fmt: skip
    for result in results[:: choices.chosen((1, -1))]:
        g.keep(result)


def _window(g: Growth, shape: Sequence[int], *, dilated: bool = True) -> tuple[dict[str, list[Any]], list[int]]:
    """A window, and the shape of what is left; mostly two or three wide, along the last dimensions."""
    choices = g.choices
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    w: dict[str, list[Any]] = {name: [] for name in names}
    result: list[int] = []
    for size in shape:
        still = choices.flag(0.3)
        width = 1 if still else choices.chosen((2, 3, 1))
        stride = 1 if still else choices.chosen((1, 2, 1, 3))
        base = 2 if dilated and not still and choices.flag(0.15) else 1
        dilation = 2 if dilated and not still and choices.flag(0.2) else 1
        low, high = (
            (0, 0) if still or choices.flag() else (choices.chosen((0, 1, 2, -1)), choices.chosen((1, 0, 2, -1)))
        )
        found = window_size(size, width, stride, (low, high), base, dilation)
        if (
            not isinstance(found, int)
            or (found == 0 and size and not choices.flag(0.1))
            or not g.fits((*result, found))
        ):
            width, stride, base, dilation, low, high, found = 1, 1, 1, 1, 0, 0, size
        for name, value in zip(names, (width, stride, base, dilation, [low, high]), strict=True):
            w[name].append(value)
        result.append(found)
    return w, result


@step("reduce-window", hlo.ReduceWindowOp, weight=2)
def reduce_window(g: Growth) -> None:
    """Windows with strides, dilations and padding; an inner value or the identity to start from."""
    choices, x = g.choices, g.pick(least=1, static=True)
    text = dtype_text(x.type)
    w, result = _window(g, [s for s in shape_of(x) if isinstance(s, int)])
    body = folding_body(g, (text,))
    for name in ("base_dilations", "window_dilations", "window_strides"):
        if all(v == 1 for v in w[name]) and choices.flag():
            del w[name]
    g.emit(hlo.ReduceWindowOp, x, _init(g, text, body), types=(tensor(result, text),), regions=(body,), **w)


@step("sort", hlo.SortOp, weight=1.5)
def sort(g: Growth) -> None:
    """One or two inputs along any dimension; comparators that are no strict order too."""
    choices, x = g.choices, g.pick(least=1)
    texts = [dtype_text(x.type)]
    values = [x]
    if choices.flag(0.4):
        texts.append(choices.chosen(("i32", *g.palette)))
        type = tensor(shape_of(x), texts[1])
        iota = texts[1] != "i1" and choices.flag()
        values.append(g.b.emit(hlo.IotaOp, types=(type,), iota_dimension=0) if iota else g.of_type(type))
    results = g.b.emit_all(hlo.SortOp, *values, types=[v.type for v in values], regions=(comparator(g, texts),),
                           dimension=choices.integer(0, rank_of(x) - 1), is_stable=choices.flag())  # fmt: skip
    for result in results:
        g.keep(result)


@step("top-k", chlo.TopKOp, weight=0.5)
def top_k(g: Growth) -> None:
    """The largest elements along the last dimension."""
    x = g.pick(_REAL, least=1, static=True)
    last = shape_of(x)[-1]
    k = g.choices.integer(0, last) if isinstance(last, int) else 0
    for result in g.b.emit_all(chlo.TopKOp, x, k=k):
        g.keep(result)


@step("select-and-scatter", hlo.SelectAndScatterOp, weight=0.7)
def select_and_scatter(g: Growth) -> None:
    """The gradient of pooling, with any comparison and any combiner."""
    x = g.pick(_REAL, least=1, static=True)
    text = dtype_text(x.type)
    w, result = _window(g, [s for s in shape_of(x) if isinstance(s, int)], dilated=False)
    del w["base_dilations"], w["window_dilations"]
    block = Block(arg_types=[tensor((), text)] * 2)
    with g.b.inside(block):
        found = compare(g, g.choices.chosen(("GE", "LE", "GT", "LT", "NE")), block.args[0], block.args[1], text)
        g.b.emit_all(hlo.ReturnOp, found, types=())
    body = folding_body(g, (text,))
    source = g.of_type(tensor(result, text))
    g.emit(hlo.SelectAndScatterOp, x, source, _init(g, text, body), types=(x.type,), regions=(Region(block), body), **w)


@step("map", hlo.MapOp, weight=0.4)
def map_elements(g: Growth) -> None:
    """A computation on each element."""
    x = g.pick()
    text = dtype_text(x.type)
    block = Block(arg_types=[tensor((), text)] * 2)
    with g.b.inside(block):
        op = g.choices.chosen([o for o in taking(EXACT_UNARY, text) if o is not hlo.AbsOp or not is_complex(text)])
        inner = g.b.emit(op, block.args[0], types=(tensor((), text),))
        result = g.b.emit(hlo.MaximumOp, inner, block.args[1], types=(tensor((), text),))
        g.b.emit_all(hlo.ReturnOp, result, types=())
    g.emit(hlo.MapOp, x, g.like(x), types=(x.type,), regions=(Region(block),), dimensions=list(range(rank_of(x))))


@step("cumulative", hlo.ReduceWindowOp, weight=0.5)
def cumulative(g: Growth) -> None:
    """A running sum or maximum, as a window over all that came before or comes after, or nearly."""
    choices, x = g.choices, g.pick(least=1, static=True, empty=False)
    shape, text = [s for s in shape_of(x) if isinstance(s, int)], dtype_text(x.type)
    axis = choices.integer(0, len(shape) - 1)
    body = folding_body(g, (text,), replaces=0.0)
    window = [s if i == axis else 1 for i, s in enumerate(shape)]
    before = choices.flag(0.7)
    padding = [([s - 1, 0] if before else [0, s - 1]) if i == axis else [0, 0] for i, s in enumerate(shape)]
    if choices.flag(0.35):
        others = [i for i in range(len(shape)) if i != axis]
        at = choices.chosen(others) if others and choices.flag(0.7) else axis
        low, high = choices.chosen(((1, -1), (-1, 1), (1, 0), (0, 1), (1, 1), (0, -1)))
        padding[at] = [padding[at][0] + low, padding[at][1] + high]
        window[at] += choices.chosen((0, 0, 0, 1))
    result = [window_size(s, w, 1, (p[0], p[1]), 1, 1) for s, w, p in zip(shape, window, padding, strict=True)]
    g.emit(hlo.ReduceWindowOp, x, _init(g, text, body), types=(tensor(result, text),), regions=(body,),
           window_dimensions=window, padding=padding)  # fmt: skip
