"""Complex numbers in all that a pass over them looks for: functions, folds, sorts, loops, transforms, products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.definitions import derives
from gcomp.ir.families import Ops
from gcomp.ir.stablehlo.elementwise import BinaryOp
from gcomp.ir.types import Tensor, dtype_text, rank_of, real_element, shape_of, tensor, with_element, with_shape
from gcomp.pairs.table import FUNCTIONS
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.passes import seeks
from gcomp.testing.generate.regions import folding_body

PAIRS = "complex-to-pairs"

_BINARY: Ops = (
    *(op for op in FUNCTIONS if derives(op, BinaryOp)),
    hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp,
)  # fmt: skip
_UNARY: Ops = (*(op for op in FUNCTIONS if op not in _BINARY), hlo.NegateOp, hlo.RealOp, hlo.ImagOp)


def _type(g: Growth, least: int = 0) -> Tensor:
    shape = [g.choices.chosen((2, 3, 1, 4)) for _ in range(g.choices.integer(least, 3))]
    return tensor(shape, g.choices.chosen(("complex<f32>", "complex<f32>", "complex<f64>")))


def _numbers(g: Growth, type: Tensor) -> SSAValue:
    """A value of complex numbers: one that there is, or one of parts."""
    if g.choices.flag(0.4):
        part = with_element(type, real_element(type))
        return g.emit(hlo.ComplexOp, g.of_type(part), g.of_type(part))
    return g.of_type(type)


@seeks(PAIRS, weight=8)
def function(g: Growth) -> None:
    """A function of one or two complex numbers, or a choice between two."""
    type = _type(g)
    x, kind = _numbers(g, type), g.choices.integer(0, 9)
    if kind < 5:
        g.emit(g.choices.chosen(_UNARY), x)
    elif kind < 8:
        g.emit(g.choices.chosen(_BINARY), x, _numbers(g, type))
    elif kind < 9:
        direction = g.choices.chosen(("EQ", "NE"))
        g.emit(hlo.CompareOp, x, _numbers(g, type), comparison_direction=direction, compare_type="FLOAT")
    else:
        g.emit(hlo.SelectOp, g.of_type(with_element(type, "i1")), x, _numbers(g, type))


@seeks(PAIRS, "view-as-real", weight=3)
def conversion(g: Growth) -> None:
    """Between complex numbers, and from and to real ones, integers and booleans."""
    type = _type(g)
    texts = ("complex<f32>", "complex<f64>", "f32", "f64", "i32", "i1", "f16")
    to = g.choices.chosen(texts)
    if g.choices.flag():
        g.emit(hlo.ConvertOp, _numbers(g, type), types=(with_element(type, to),))
    else:
        g.emit(hlo.ConvertOp, g.of_type(with_element(type, to)), types=(type,))


@seeks(PAIRS, weight=4)
def fold(g: Growth) -> None:
    """A fold of complex numbers, alone or beside another, by any body."""
    x = _numbers(g, _type(g, 1))
    axes = [g.choices.integer(0, rank_of(x) - 1)]
    scalar = with_shape(x, ())
    values, inits = [x], [g.of_type(scalar)]
    if g.choices.flag(0.3):
        other = with_element(x, "f32")
        values.append(g.of_type(other))
        inits.append(g.of_type(with_shape(other, ())))
    kept = [s for i, s in enumerate(shape_of(x)) if i not in axes]
    types = [with_shape(v, kept) for v in values]
    regions = (folding_body(g, [dtype_text(v.type) for v in values]),)
    for result in g.b.emit_all(hlo.ReduceOp, *values, *inits, types=types, regions=regions, dimensions=axes):
        g.keep(result)


@seeks(PAIRS, weight=3)
def sorted_along(g: Growth) -> None:
    """Complex numbers that are sorted by a part of theirs, or along with others."""
    x = _numbers(g, _type(g, 1))
    values = [x, g.of_type(with_element(x, "i32"))] if g.choices.flag() else [g.of_type(with_element(x, "i32")), x]
    part = g.choices.chosen((hlo.RealOp, hlo.ImagOp))
    place = values.index(x)

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        left, right = (g.b.emit(part, args[2 * place + k]) for k in range(2))
        return [g.b.compare(left, right, g.choices.chosen(("LT", "GT")))]

    scalars = [with_shape(v, ()) for v in values for _ in range(2)]
    region = g.b.region(scalars, body)
    types = [v.type for v in values]
    axis = g.choices.integer(0, rank_of(x) - 1)
    for result in g.b.emit_all(hlo.SortOp, *values, types=types, regions=(region,), dimension=axis, is_stable=True):
        g.keep(result)


@seeks(PAIRS, weight=3)
def carried(g: Growth) -> None:
    """A loop of a few turns that carries complex numbers beside a counter, at times two that change places."""
    type = _type(g)
    values = [_numbers(g, type), _numbers(g, type)]
    zero, factor = g.b.constant(0, "i32"), _numbers(g, type)
    swapped = g.choices.flag()
    types = [zero.type, *(v.type for v in values)]
    turns = g.choices.integer(0, 3)

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        count, x, y = args
        changed = g.b.emit(g.choices.chosen((hlo.AddOp, hlo.MultiplyOp)), x, factor)
        return [g.b.add(count, g.b.constant(1, "i32")), *((y, changed) if swapped else (changed, y))]

    condition = g.b.region(types, lambda args: [g.b.compare(args[0], g.b.constant(turns, "i32"), "LT")])
    made = g.b.emit_all(hlo.WhileOp, zero, *values, types=types, regions=(condition, g.b.region(types, body)))
    for result in made[1:]:
        g.keep(result)


@seeks(PAIRS, weight=4)
def moved(g: Growth) -> None:
    """Complex numbers joined, cut at a place that data say, or written there."""
    x = _numbers(g, _type(g, 1))
    axis = g.choices.integer(0, rank_of(x) - 1)
    starts = [g.of_type(tensor((), "i32")) for _ in range(rank_of(x))]
    match g.choices.integer(0, 2):
        case 0:
            g.emit(hlo.ConcatenateOp, x, _numbers(g, with_shape(x, shape_of(x))), dimension=axis)
        case 1:
            sizes = [1 if i == axis else s for i, s in enumerate(shape_of(x))]
            g.emit(hlo.DynamicSliceOp, x, *starts, slice_sizes=sizes)
        case _:
            sizes = [1 if i == axis else s for i, s in enumerate(shape_of(x))]
            g.emit(hlo.DynamicUpdateSliceOp, x, _numbers(g, with_shape(x, sizes)), *starts)


@seeks(PAIRS, weight=3)
def transform(g: Growth) -> None:
    """A Fourier transform over one or two dimensions, of a length that is a product, a prime, one, or any."""
    kind = g.choices.chosen(("FFT", "IFFT", "RFFT", "IRFFT"))
    lengths: list[Size] = [*g.shape(most=2)]
    if not lengths or g.choices.flag(0.6):
        lengths = [g.choices.chosen((2, 3, 4, 1, 6, 5)) for _ in range(g.choices.integer(1, 2))]
    if g.choices.flag(0.2):
        lengths[-1] = g.choices.chosen((66, 130))
    part = g.choices.chosen(("f32", "f64"))
    half = lengths[-1] // 2 + 1 if lengths[-1] != 0 else 0
    shape = [*lengths[:-1], half] if kind == "IRFFT" else lengths
    x = g.of_type(tensor(shape, part)) if kind == "RFFT" else _numbers(g, tensor(shape, f"complex<{part}>"))
    g.emit(hlo.FftOp, x, fft_type=kind, fft_length=lengths)


@seeks(PAIRS, weight=3)
def product(g: Growth) -> None:
    """A product of matrices."""
    m, k, n = (g.choices.chosen((2, 3, 1)) for _ in range(3))
    text = g.choices.chosen(("complex<f32>", "complex<f64>"))
    x, y = _numbers(g, tensor((m, k), text)), _numbers(g, tensor((k, n), text))
    g.keep(g.b.dot(x, y, DotDimensions((), (), (1,), (0,))))


@seeks(PAIRS, weight=2)
def known(g: Growth) -> None:
    """A constant or a weight of complex numbers, of a scalar too."""
    type = _type(g)
    shape = [s for s in shape_of(type) if isinstance(s, int)]
    parts = [complex(g.choices.integer(-3, 3), g.choices.integer(-3, 3)) for _ in range(math.prod(shape))]
    array = np.asarray(parts, dtype_of(dtype_text(type))).reshape(shape)
    value = g.b.weight("w", array) if g.choices.flag() else g.b.constant(array)
    g.emit(hlo.AddOp, value, _numbers(g, type))


@seeks("view-as-real", weight=6)
def part(g: Growth) -> None:
    """A part of complex numbers, or complex numbers of two parts; both, at times."""
    type = _type(g)
    half = with_element(type, real_element(type))
    if g.choices.flag():
        g.emit(hlo.ComplexOp, g.of_type(half), g.emit(hlo.ImagOp, g.of_type(type)))
    g.emit(g.choices.chosen((hlo.RealOp, hlo.ImagOp)), g.of_type(type if g.choices.flag(0.8) else half))
