"""Steps of contraction: dot_general with every layout, convolution with every window, and what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.structures import ConvDimensions, DotDimensions
from gcomp.ir.types import COMPLEX, FLOATS, INTEGERS, dtype_text, element_of, rank_of, shape_of, tensor
from gcomp.testing.generate.growth import MOST_ELEMENTS, MOST_RANK, Growth, step

_NUMBERS = INTEGERS | FLOATS | COMPLEX
_WIDER = {"bf16": "f32", "f16": "f32", "i8": "i32", "ui8": "ui32", "f8E4M3FN": "f32", "i4": "i32", "f32": "f64"}


def result_text(g: Growth, text: str) -> str:
    """The element type of a contraction: the operands', or at times a wider one."""
    return _WIDER.get(text, text) if g.choices.flag(0.25) else text


def _place_roles(g: Growth, roles: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    order = g.choices.permutation(len(roles)) if g.choices.flag(0.4) else list(range(len(roles)))
    return [roles[i] for i in order]


@step("dot", hlo.DotGeneralOp, weight=4)
def dot(g: Growth) -> None:
    """Any number of batching and contracting dimensions on either side, in any order; vectors and scalars too."""
    choices, x = g.choices, g.pick(_NUMBERS)
    text, shape = dtype_text(x.type), shape_of(x)
    kinds = [choices.weighted((5.0, 8.0, 10.0)) for _ in shape]
    contracting = [d for d in range(len(shape)) if kinds[d] == 0]
    batching = [d for d in range(len(shape)) if kinds[d] == 2]
    free = [d for d in range(len(shape)) if kinds[d] == 1]
    roles = [*(("b", d) for d in batching), *(("c", d) for d in contracting)]
    sizes: list[Size] = []
    outer = g.count([shape[d] for d in (*batching, *free)])
    inner = g.count([shape[d] for d in (*batching, *contracting)])
    room = MOST_RANK - max(len(batching) + len(free), len(roles))
    for _ in range(min(room, choices.integer(0, 2))):
        size = choices.chosen((2, 3, 1, 4, 0))
        if max(outer, inner) * g.count(sizes) * size <= MOST_ELEMENTS:
            sizes.append(size)
            roles.append(("f", len(sizes) - 1))
    roles = _place_roles(g, roles)
    y = g.of_type(tensor([sizes[k] if kind == "f" else shape[k] for kind, k in roles], text))
    free_right = [k for kind, k in roles if kind == "f"]
    batch_order = choices.permutation(len(batching)) if choices.flag(0.3) else range(len(batching))
    contract_order = choices.permutation(len(contracting)) if choices.flag(0.3) else range(len(contracting))
    left_b, left_c = [batching[i] for i in batch_order], [contracting[i] for i in contract_order]
    numbers = DotDimensions(
        tuple(left_b), tuple([roles.index(("b", d)) for d in left_b]),
        tuple(left_c), tuple([roles.index(("c", d)) for d in left_c]),
    )  # fmt: skip
    result = [*(shape[d] for d in left_b), *(shape[d] for d in free), *(sizes[k] for k in free_right)]
    if choices.flag(0.3):
        x, y = y, x
        numbers = DotDimensions(numbers[1], numbers[0], numbers[3], numbers[2])
        result = [*(shape[d] for d in left_b), *(sizes[k] for k in free_right), *(shape[d] for d in free)]
    g.emit(hlo.DotGeneralOp, x, y, types=(tensor(result, result_text(g, text)),), dot_dimension_numbers=numbers,
           precision_config=choices.chosen((None, None, ("DEFAULT", "DEFAULT"), ("HIGHEST", "DEFAULT"))))  # fmt: skip


@step("matmul", hlo.DotGeneralOp, weight=2)
def matmul(g: Growth) -> None:
    """The usual product: rows by columns, batched or not, vectors on either side; at times of a transposed operand."""
    choices, x = g.choices, g.pick(FLOATS | INTEGERS, least=1)
    shape, text = shape_of(x), dtype_text(x.type)
    inner, columns = shape[-1], choices.chosen((2, 1, 3, 4))
    if g.count(shape[:-1]) * columns > MOST_ELEMENTS or g.count((inner,)) * columns > MOST_ELEMENTS:
        columns = 1
    if choices.flag(0.3):
        y = g.of_type(tensor((columns, inner), text))
        y = g.emit(hlo.TransposeOp, y, permutation=(1, 0))
    else:
        y = g.of_type(tensor((inner,) if choices.flag(0.2) else (inner, columns), text))
    if rank_of(x) > 1 and choices.flag(0.2):
        order = list(range(rank_of(x)))
        order[-1], order[-2] = order[-2], order[-1]
        x = g.b.emit(hlo.TransposeOp, x, permutation=order)
        contracted = len(order) - 2
    else:
        contracted = rank_of(x) - 1
    kept = [s for i, s in enumerate(shape_of(x)) if i != contracted]
    result = tensor([*kept, *shape_of(y)[1:]], result_text(g, text))
    g.emit(hlo.DotGeneralOp, x, y, types=(result,), dot_dimension_numbers=DotDimensions((), (), (contracted,), (0,)))


# ---- convolution ----------------------------------------------------------------------------------------------------


def _order(g: Growth, spatial: int) -> tuple[int, int, tuple[int, ...]]:
    """Where batch, features and space stand: channels first, channels last, or anywhere."""
    kind = g.choices.integer(0, 2)
    if kind == 0:
        return 0, 1, tuple(range(2, spatial + 2))
    if kind == 1:
        return 0, spatial + 1, tuple(range(1, spatial + 1))
    places = g.choices.permutation(spatial + 2)
    return places[0], places[1], tuple(places[2:])


def _image(g: Growth) -> SSAValue:
    choices = g.choices
    if g.values and choices.flag(0.6):
        x = g.pick(FLOATS | INTEGERS, least=2, most=5, static=True, empty=choices.flag(0.1))
        if 2 <= rank_of(x) <= 5:
            return x
    rank = choices.chosen((4, 3, 5, 2))
    sizes: list[int] = []
    for _ in range(rank):
        size = choices.chosen((2, 3, 4, 1, 5))
        sizes.append(size if g.fits((*sizes, size)) else 1)
    return g.keep(g.of_type(tensor(sizes, g.text_among(FLOATS | INTEGERS))))


@step("convolution", hlo.ConvolutionOp, weight=2.5)
def convolution(g: Growth) -> None:
    """Any layout, stride, dilation, reversal and padding (negative too), and groups of features or of the batch."""
    choices, x = g.choices, _image(g)
    shape, text = [s for s in shape_of(x) if isinstance(s, int)], dtype_text(x.type)
    spatial = len(shape) - 2
    b, f, space = _order(g, spatial)
    features, batches = _groups(g, shape[f], shape[b])
    window, w = _window(g, [shape[i] for i in space])
    out_features = choices.chosen((1, 2, 3)) * features * batches
    result_sizes = [
        window_size(shape[i], window[d], w["window_strides"][d], w["padding"][d], w["lhs_dilation"][d],
                    w["rhs_dilation"][d]) for d, i in enumerate(space)
    ]  # fmt: skip
    if not g.fits((shape[b] // batches, out_features, *result_sizes)):
        out_features = features * batches
    i, o, kernel_space = _order(g, spatial)
    kernel = _arrange_sizes((i, o, kernel_space), (shape[f] // features, out_features, window))
    ob, of, out_space = _order(g, spatial)
    result = _arrange_sizes((ob, of, out_space), (shape[b] // batches, out_features, result_sizes))
    numbers = ConvDimensions(b, f, space, i, o, kernel_space, ob, of, out_space)
    g.emit(hlo.ConvolutionOp, x, g.of_type(tensor(kernel, text)), types=(tensor(result, result_text(g, text)),),
           dimension_numbers=numbers, feature_group_count=features, batch_group_count=batches, **w)  # fmt: skip


def _arrange_sizes(places: tuple[int, int, Sequence[int]], sizes: tuple[Size, Size, Sequence[Size]]) -> list[Size]:
    shape: list[Size] = [0] * (2 + len(sizes[2]))
    shape[places[0]], shape[places[1]] = sizes[0], sizes[1]
    for place, size in zip(places[2], sizes[2], strict=True):
        shape[place] = size
    return shape


def _groups(g: Growth, features: int, batch: int) -> tuple[int, int]:
    kind = g.choices.integer(0, 4)
    if kind == 3 and features > 1:
        return g.choices.chosen([d for d in range(features, 0, -1) if features % d == 0]), 1
    if kind == 4 and batch > 1:
        return 1, g.choices.chosen([d for d in range(batch, 0, -1) if batch % d == 0])
    return 1, 1


def _window(g: Growth, sizes: Sequence[int]) -> tuple[list[int], dict[str, list[Any]]]:
    choices = g.choices
    plain = choices.flag(0.35)
    window = [choices.chosen((1, 2, 3)) for _ in sizes]
    w: dict[str, list[Any]] = {
        "window_strides": [choices.chosen((1, 1, 2, 3)) for _ in sizes],
        "padding": [[choices.chosen((0, 1, 2, -1)) for _ in range(2)] for _ in sizes],
        "lhs_dilation": [1 if plain else choices.chosen((1, 1, 2)) for _ in sizes],
        "rhs_dilation": [1 if plain else choices.chosen((1, 1, 2)) for _ in sizes],
        "window_reversal": [not plain and choices.flag(0.2) for _ in sizes],
    }
    if sizes and not plain and choices.flag(0.25):
        # The numbers of a dimension depend on each other in transposed ones, and in groups laid along a dimension.
        d, size = choices.integer(0, len(sizes) - 1), choices.chosen((2, 3))
        window[d] = w["lhs_dilation"][d] = size
        w["rhs_dilation"][d], w["window_strides"][d] = 1, choices.chosen((size - 1, size, 1))
        w["padding"][d] = [choices.chosen((0, size - 1))] * 2
    return window, w


_FIRST = ConvDimensions(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))


@step("network", hlo.ConvolutionOp, hlo.BatchNormInferenceOp, weight=1.2)
def network(g: Growth) -> None:
    """What convolutional networks are made of: a convolution by a weight, normalization, a bias, a relu, in channels
    first; depthwise or not."""
    choices = g.choices
    x = g.pick(FLOATS, least=4, most=4, static=True, empty=False)
    text, (n, c, *_) = dtype_text(x.type), shape_of(x)
    if choices.flag(0.7) and isinstance(c, int) and isinstance(n, int):
        depthwise, size = choices.flag(0.3), choices.chosen((1, 3))
        pad = size // 2
        kernel = (
            g.constant(tensor((c, 1 if depthwise else c, size, size), text)) if c * c * size * size <= 400 else None
        )
        if kernel is not None:
            x = g.emit(hlo.ConvolutionOp, x, kernel, types=(x.type,), window_strides=(1, 1),
                       padding=((pad, pad), (pad, pad)), dimension_numbers=_FIRST,
                       feature_group_count=c if depthwise else 1, batch_group_count=1)  # fmt: skip
    if choices.flag(0.6):
        vectors = [g.constant(tensor((c,), text)) for _ in range(4)]
        x = g.emit(hlo.BatchNormInferenceOp, x, *vectors, types=(x.type,), epsilon=1e-3, feature_index=1)
    if choices.flag(0.4):
        bias = g.b.emit(hlo.BroadcastInDimOp, g.of_type(tensor((c,), text)), types=(x.type,), broadcast_dimensions=(1,))
        x = g.emit(hlo.AddOp, x, bias, types=(x.type,))
    if choices.flag(0.5):
        zero = g.splat(tensor(shape_of(x), text), 0, broadcast=True)
        g.emit(hlo.MaximumOp, x, zero, types=(x.type,))


@step("many-channels", hlo.ConvolutionOp, weight=0.4)
def many_channels(g: Growth) -> None:
    """A convolution with channels and groups that fill vectors or nearly do, which kernels tell apart: of many groups
    each reads and makes a few, as many as each other, as the window has rows, or others."""
    choices = g.choices
    groups = choices.chosen((1, 8, 4, 16, 5, 32))
    reads, makes = (choices.chosen((1, 2, 4, 8, 3)) for _ in range(2))
    if groups == 1:
        reads, makes = choices.chosen((4, 16, 3, 1)), choices.chosen((16, 32, 12, 33))
    window = [choices.chosen((makes if makes <= 4 else 2, 1, 2, 3)), choices.chosen((1, 2, 3))]
    padding = [[choices.chosen((0, 0, 1, 2)) for _ in range(2)] for _ in window]
    strides = [choices.chosen((1, 1, 2)) for _ in window]
    sizes = [w + choices.integer(0, 3) for w in window]
    out = [window_size(n, w, s, p, 1, 1) for n, w, s, p in zip(sizes, window, strides, padding, strict=True)]
    numbers = choices.chosen((ConvDimensions.channels_last(2), _FIRST))
    n, text = choices.chosen((1, 1, 2)), g.text_among(FLOATS)
    x, y = ([n, groups * c, *space] for c, space in ((reads, sizes), (makes, out)))
    kernel = [groups * makes, reads, *window]
    if numbers != _FIRST:
        x, y, kernel = [x[0], *x[2:], x[1]], [y[0], *y[2:], y[1]], [*window, reads, groups * makes]
    w = (g.constant if choices.flag(0.5) else g.fresh)(tensor(kernel, text))
    g.emit(hlo.ConvolutionOp, g.fresh(tensor(x, text)), w, types=(tensor(y, text),), window_strides=strides,
           padding=padding, dimension_numbers=numbers, feature_group_count=groups, batch_group_count=1)  # fmt: skip


@step("quantized", hlo.DotGeneralOp, hlo.ConvertOp, weight=1)
def quantized(g: Growth) -> None:
    """A product of 8-bit integers, centered in 32 bits, or dequantized in f32."""
    choices, x = g.choices, g.pick(frozenset({element_of(tensor((), t)) for t in ("i8", "ui8")}), least=2, most=2,
                                   static=True, empty=False)  # fmt: skip
    text, (rows, inner) = dtype_text(x.type), shape_of(x)
    columns = choices.chosen((2, 1, 3))
    kernel = g.constant(tensor((inner, columns), choices.chosen((text, "i8", "ui8"))))
    wide = "i32" if choices.flag(0.6) else "f32"
    sides: list[SSAValue] = []
    for value in (x, kernel):
        type = tensor(shape_of(value), wide)
        side = g.emit(hlo.ConvertOp, value, types=(type,))
        if choices.flag(0.6):
            zero = g.splat(type, choices.chosen((128, 0, 3, -1)), broadcast=choices.flag())
            side = g.emit(hlo.SubtractOp, side, zero, types=(type,))
        if wide == "f32" and choices.flag(0.8):
            side = g.emit(hlo.MultiplyOp, side, g.splat(type, choices.chosen((0.5, 0.25, 0.1)), broadcast=True),
                          types=(type,))  # fmt: skip
        sides.append(side)
    g.emit(hlo.DotGeneralOp, *sides, types=(tensor((rows, columns), wide),),
           dot_dimension_numbers=DotDimensions((), (), (1,), (0,)))  # fmt: skip


@step("words", hlo.DotGeneralOp, hlo.ReshapeOp, weight=0.5)
def words(g: Growth) -> None:
    """Unsigned bytes times a weight of signed ones in panels of words, as passes for processors lay it out."""
    choices, b = g.choices, g.b
    count, width, panels = choices.chosen((1, 3, 2, 9)), choices.chosen((4, 1, 16, 32)), choices.chosen((1, 2))
    rows = choices.chosen((1, 5, 3, 14))
    x = g.fresh(tensor((rows, 4 * count), "ui8"))
    if choices.flag(0.3):
        x = g.emit(hlo.AddOp, x, x, types=(x.type,))
    kernel = g.constant(tensor((panels, count, width, 4), "i8"))
    taken = b.reshape(x, (rows, count, 4))
    product = g.emit(hlo.DotGeneralOp, taken, kernel, types=(tensor((rows, panels, width), "i32"),),
                     dot_dimension_numbers=DotDimensions((), (), (1, 2), (1, 3)))  # fmt: skip
    g.emit(hlo.ReshapeOp, product, types=(tensor((rows, panels * width), "i32"),))
