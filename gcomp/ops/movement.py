"""Shapes: elements stay what they are, and go elsewhere."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of
from gcomp.ops.reduction import Axes, axes_of, axis_of
from gcomp.tensors.lifting import lift_operands, promote_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.tensor import ArrayLike, Tensor

Shape = Size | Sequence[Size]


def shape_from(shape: Shape) -> tuple[Size, ...]:
    """A shape from what a user writes for one. UsageError for what is none, a tensor among it."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple([size_from(s) for s in cast("Sequence[Any]", sizes)])


def size_from(size: Any) -> Size:
    """A size from what a user writes for one."""
    if isinstance(size, Dim):
        return size
    if isinstance(size, Tensor) and size.is_traced:
        raise UsageError(
            "a size is computed by the program itself",
            why="sizes are integers or symbols, known before the elements are",
            fix="take sizes from shapes (`x.shape[0]`) or static arguments",
        )
    try:
        return operator.index(size)
    except TypeError:
        raise UsageError(f"a size is a {type(size).__name__}, not an integer") from None


@operation
def reshape(x: ArrayLike, shape: Shape) -> Tensor:
    """The elements, in row-major order, in another shape; one size may be -1."""
    b, (value,) = lift_operands(x)
    sizes = list(shape_from(shape))
    if (open_ := sizes.count(-1)) > 1:
        raise UsageError("only one size can be -1")
    if open_:
        rest = dims.product([s for s in sizes if s != -1])
        total = dims.product(shape_of(value))
        inferred = dims.exact_div(total, rest) if rest != 0 else None
        if inferred is None:
            raise UsageError(f"a tensor of shape {shape_of(value)} does not reshape to {tuple(sizes)}")
        sizes[sizes.index(-1)] = inferred
    return Tensor(b, b.reshape(value, sizes))


@operation
def ravel(x: ArrayLike) -> Tensor:
    """The elements in one dimension."""
    b, (value,) = lift_operands(x)
    return Tensor(b, b.reshape(value, (dims.product(shape_of(value)),)))


@operation
def flatten(x: ArrayLike, start: int = 0) -> Tensor:
    """The dimensions from `start` on as one."""
    b, (value,) = lift_operands(x)
    shape = shape_of(value)
    return Tensor(b, b.reshape(value, (*shape[:start], dims.product(shape[start:]))))


@operation
def transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in another order; in reverse by default."""
    b, (value,) = lift_operands(x)
    rank = rank_of(value)
    order = list(range(rank))[::-1] if axes is None else [axis_of(a, rank) for a in axes]
    if sorted(order) != list(range(rank)):
        raise UsageError(f"{list(axes or ())} are not the axes of a tensor of rank {rank}, each once")
    return Tensor(b, b.transpose(value, order))


@operation
def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Tensor:
    """Two dimensions exchanged."""
    b, (value,) = lift_operands(x)
    order = list(range(rank_of(value)))
    first, second = (axis_of(a, len(order)) for a in (axis1, axis2))
    order[first], order[second] = second, first
    return Tensor(b, b.transpose(value, order))


@operation
def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dimensions moved to other places; the others keep their order."""
    b, (value,) = lift_operands(x)
    rank = rank_of(value)
    sources, targets = (
        [axis_of(a, rank) for a in (one if isinstance(one, Sequence) else (one,))] for one in (source, destination)
    )
    if len(sources) != len(targets):
        raise UsageError(f"{len(sources)} dimensions do not move to {len(targets)} places")
    order = [i for i in range(rank) if i not in sources]
    for target, place in sorted(zip(targets, sources, strict=True)):
        order.insert(target, place)
    return Tensor(b, b.transpose(value, order))


@operation
def squeeze(x: ArrayLike, axis: Axes = None) -> Tensor:
    """Without dimensions of size 1: those named, or all."""
    b, (value,) = lift_operands(x)
    shape = shape_of(value)
    axes = [i for i, s in enumerate(shape) if s == 1] if axis is None else axes_of(axis, len(shape))
    if any(shape[a] != 1 for a in axes):
        raise UsageError(f"only dimensions of size 1 can be squeezed away, and the shape is {shape}")
    return Tensor(b, b.reshape(value, [s for i, s in enumerate(shape) if i not in axes]))


@operation
def expand_dims(x: ArrayLike, axis: int | Sequence[int]) -> Tensor:
    """With dimensions of size 1 at these places of the result."""
    b, (value,) = lift_operands(x)
    shape, count = list(shape_of(value)), len(axis) if isinstance(axis, Sequence) else 1
    for place in axes_of(axis, len(shape) + count):
        shape.insert(place, 1)
    return Tensor(b, b.reshape(value, shape))


@operation
def broadcast_to(x: ArrayLike, shape: Shape) -> Tensor:
    """Repeated to a larger shape by NumPy's rules."""
    b, (value,) = lift_operands(x)
    return Tensor(b, b.broadcast_to(value, shape_from(shape)))


# ---- several tensors ------------------------------------------------------------------------------------------------


@operation
def concatenate(xs: Sequence[ArrayLike], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    if not xs:
        raise UsageError("there is nothing to concatenate")
    b, values = promote_operands(*xs)
    return Tensor(b, b.concatenate(values, axis_of(axis, rank_of(values[0]))))


@operation
def stack(xs: Sequence[ArrayLike], axis: int = 0) -> Tensor:
    """Tensors of one shape beside each other along a new axis."""
    if not xs:
        raise UsageError("there is nothing to stack")
    b, values = promote_operands(*xs)
    shapes = [shape_of(v) for v in values]
    if any(s != shapes[0] for s in shapes):
        raise UsageError("the tensors to stack have other shapes", why=", ".join(map(str, dict.fromkeys(shapes))))
    place = axis_of(axis, len(shapes[0]) + 1)
    wide = [b.reshape(v, (*shapes[0][:place], 1, *shapes[0][place:])) for v in values]
    return Tensor(b, b.concatenate(wide, place))


@operation
def split(x: ArrayLike, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between indices."""
    b, (value,) = lift_operands(x)
    place = axis_of(axis, rank_of(value))
    size = shape_of(value)[place]
    if isinstance(sections, int):
        part = dims.exact_div(size, sections) if sections > 0 else None
        if part is None:
            raise UsageError(f"a dimension of size {size} has no {sections} equal parts")
        cuts: list[Size] = [part * i for i in range(sections + 1)]
    else:
        cuts = [0, *[_within(size, c) for c in sections], size]
    parts = pairwise(cuts)
    return [Tensor(b, b.slice_axis(value, place, lo, dims.dmax(lo, hi))) for lo, hi in parts]


def _within(size: Size, index: int) -> Size:
    """A place in a dimension; negative ones from its end."""
    return dims.dmin(size, index) if index >= 0 else dims.dmax(size + index, 0)


# ---- repetition and borders -----------------------------------------------------------------------------------------


@operation
def tile(x: ArrayLike, reps: int | Sequence[int]) -> Tensor:
    """The whole tensor again and again along each dimension."""
    b, (value,) = lift_operands(x)
    counts = list(reps) if isinstance(reps, Sequence) else [reps]
    shape: list[Size] = [*([1] * (len(counts) - rank_of(value))), *shape_of(value)]
    counts = [*([1] * (len(shape) - len(counts))), *counts]
    pairs = [s for one in zip(counts, shape, strict=True) for s in one]
    wide = b.broadcast(value, pairs, [2 * i + 1 for i in range(len(shape))][len(shape) - rank_of(value) :])
    return Tensor(b, b.reshape(wide, [n * s for n, s in zip(counts, shape, strict=True)]))


@operation
def repeat(x: ArrayLike, repeats: int, axis: int | None = None) -> Tensor:
    """Each element (along an axis, or of all) again and again."""
    b, (value,) = lift_operands(x)
    if axis is None:
        value = b.reshape(value, (dims.product(shape_of(value)),))
    place, shape = 0 if axis is None else axis_of(axis, rank_of(value)), shape_of(value)
    wide = b.broadcast(
        value,
        (*shape[: place + 1], repeats, *shape[place + 1 :]),
        [i if i <= place else i + 1 for i in range(len(shape))],
    )
    return Tensor(b, b.reshape(wide, [s * repeats if i == place else s for i, s in enumerate(shape)]))


@operation
def flip(x: ArrayLike, axis: Axes = None) -> Tensor:
    """The elements along axes (all by default) in reverse."""
    b, (value,) = lift_operands(x)
    axes = axes_of(axis, rank_of(value))
    return Tensor(b, b.emit(hlo.ReverseOp, value, dimensions=axes) if axes else value)


@operation
def roll(x: ArrayLike, shift: int, axis: int | None = None) -> Tensor:
    """The elements shifted along an axis (or through all); what falls off the end comes in at the start."""
    b, (value,) = lift_operands(x)
    shape = shape_of(value)
    if axis is None:
        value = b.reshape(value, (dims.product(shape),))
    place = 0 if axis is None else axis_of(axis, rank_of(value))
    size = shape_of(value)[place]
    if size == 0:
        return Tensor(b, b.reshape(value, shape))
    cut = -dims.mod(shift, size) + size
    parts = [b.slice_axis(value, place, cut, size), b.slice_axis(value, place, 0, cut)]
    return Tensor(b, b.reshape(b.concatenate(parts, place), shape))


@operation
def pad(x: ArrayLike, pad_width: Any, constant: ArrayLike = 0, *, mode: str = "constant") -> Tensor:
    """With a border: of a constant, of the edge's elements (mode "edge"), or mirrored (mode "reflect").

    `pad_width` is one number, one pair for all dimensions, or a pair for each.
    """
    b, (value,) = lift_operands(x)
    pairs = pairs_of(pad_width, rank_of(value))
    if mode == "constant":
        _, (filling,) = lift_operands(constant, b=b)
        filling = b.convert(filling, element_of(value))
        return Tensor(b, b.pad(value, filling, [lo for lo, _ in pairs], [hi for _, hi in pairs]))
    border = {"edge": _edge, "reflect": _mirror}.get(mode)
    if border is None:
        raise UsageError(f"there is no mode {mode!r}", fix='the modes are "constant", "edge" and "reflect"')
    for axis, (low, high) in enumerate(pairs):
        parts = [border(b, value, axis, low, True), value, border(b, value, axis, high, False)]
        value = b.concatenate([p for p, n in zip(parts, (low, 1, high), strict=True) if n], axis)
    return Tensor(b, value)


def pairs_of(width: Any, rank: int) -> list[tuple[int, int]]:
    """(low, high) for each dimension from one number, one pair, or a pair for each."""
    if isinstance(width, int):
        return [(width, width)] * rank
    entries: list[Any] = list(width)
    if len(entries) == 2 and all(isinstance(e, int) for e in entries):
        return [(entries[0], entries[1])] * rank
    if len(entries) != rank or not all(isinstance(e, Sequence) and len(cast("Sequence[int]", e)) == 2 for e in entries):
        raise UsageError(f"{width} is no width of a border for rank {rank}", fix="pass a pair for each dimension")
    return [(int(low), int(high)) for low, high in entries]


def _edge(b: Builder, x: SSAValue, axis: int, count: int, low: bool) -> SSAValue:
    size = shape_of(x)[axis]
    line = b.slice_axis(x, axis, 0, 1) if low else b.slice_axis(x, axis, size - 1, size)
    return b.broadcast(line, [count if i == axis else s for i, s in enumerate(shape_of(x))], range(rank_of(x)))


def _mirror(b: Builder, x: SSAValue, axis: int, count: int, low: bool) -> SSAValue:
    size = shape_of(x)[axis]
    if isinstance(size, int) and count >= size:
        raise UsageError(f"a border of {count} is no mirror image of a dimension of size {size}")
    part = b.slice_axis(x, axis, 1, count + 1) if low else b.slice_axis(x, axis, size - 1 - count, size - 1)
    return b.emit(hlo.ReverseOp, part, dimensions=[axis])


# ---- triangles and diagonals ----------------------------------------------------------------------------------------


def _triangle(name: str, direction: str, doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, k: int = 0) -> Tensor:
        b, (value,) = lift_operands(x)
        shape, rank = shape_of(value), rank_of(value)
        if rank < 2:
            raise UsageError(f"{name} takes matrices, not a tensor of rank {rank}")
        row, column = (b.iota(shape, rank - n) for n in (2, 1))
        keeps = b.compare(column, b.add(row, b.full((), k, "i64")), direction)
        return Tensor(b, b.select(keeps, value, b.full_like(value, 0)))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


tril = _triangle("tril", "LE", "The elements on and below the k-th diagonal; 0 elsewhere.")
triu = _triangle("triu", "GE", "The elements on and above the k-th diagonal; 0 elsewhere.")


@operation
def diagonal(x: ArrayLike) -> Tensor:
    """The main diagonal of the last two dimensions, which must be of one size."""
    b, (value,) = lift_operands(x)
    shape, rank = shape_of(value), rank_of(value)
    if rank < 2 or shape[-1] != shape[-2]:
        raise UsageError(f"a tensor of shape {shape} has no main diagonal", why="its last two sizes differ")
    own = b.compare(b.iota(shape, rank - 2), b.iota(shape, rank - 1), "EQ")
    kept = b.select(own, value, b.full_like(value, 0))
    return Tensor(b, b.reduce(hlo.OrOp if dtype_text(value.type) == "i1" else hlo.AddOp, kept, [rank - 1]))


@operation
def trace(x: ArrayLike) -> Tensor:
    """The sum of the main diagonal of the last two dimensions."""
    from gcomp.ops.reduction import sum

    return sum(diagonal(x), axis=-1)


@operation
def meshgrid(*xs: ArrayLike) -> list[Tensor]:
    """Coordinates of a grid: NumPy's with indexing="ij"."""
    b, values = lift_operands(*xs)
    shape = [shape_of(v)[0] for v in values]
    return [Tensor(b, b.broadcast(v, shape, [i])) for i, v in enumerate(values)]


__all__ = ["broadcast_to", "concatenate", "diagonal", "expand_dims", "flatten", "flip", "meshgrid", "moveaxis",
           "pad", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack", "swapaxes", "tile", "trace",
           "transpose", "tril", "triu"]  # fmt: skip
