"""Loops over the leading dimension of arrays, and running folds along an axis: what frontends build of `while`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import Tensor, element_of, rank_of, shape_of, tensor, tensor_of

Step = Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""Of the carried values and the items: the carried values afterwards, and then what is stacked."""
Fold = Callable[[SSAValue, SSAValue], SSAValue]


def scan(
    b: Builder, length: Size, carried: Sequence[SSAValue], stacked: Sequence[SSAValue], outputs: Sequence[Tensor],
    step: Step, *, reverse: bool = False,
) -> Sequence[SSAValue]:  # fmt: skip
    """A loop over the leading dimension of arrays: the carried values after it, and stacks of what each step gives.

    `outputs` are the types of the stacks. In reverse, the last item is the first one to be taken.
    """
    empty = [b.full(shape_of(t), 0, element_of(t)) for t in outputs]
    if length == 0:
        return [*carried, *empty]
    carries = len(carried)
    state = [b.constant(0, "i64"), *carried, *empty]
    types = [tensor_of(v) for v in state]

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.compare(args[0], b.dim(length), "LT")]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        count, before, made = args[0], args[1 : 1 + carries], args[1 + carries :]
        one = b.constant(1, "i64")
        place = b.subtract(b.subtract(b.dim(length), one), count) if reverse else count
        after = step(before, [take_item(b, x, place) for x in stacked])
        grown = [put_item(b, y, part, place) for y, part in zip(made, after[carries:], strict=True)]
        return [b.add(count, one), *after[:carries], *grown]

    regions = [b.region(types, condition), b.region(types, body)]
    return b.emit_all(hlo.WhileOp, *state, types=types, regions=regions)[1:]


def _places(b: Builder, place: SSAValue, rank: int) -> list[SSAValue]:
    return [place, *[b.constant(0, "i64")] * (rank - 1)]


def take_item(b: Builder, x: SSAValue, place: SSAValue) -> SSAValue:
    """The element of an array at a place along its leading dimension."""
    shape = shape_of(x)
    part = b.emit(hlo.DynamicSliceOp, x, *_places(b, place, len(shape)), slice_sizes=[1, *shape[1:]])
    return b.reshape(part, shape[1:])


def put_item(b: Builder, x: SSAValue, part: SSAValue, place: SSAValue) -> SSAValue:
    """An array with an element along its leading dimension replaced."""
    shape = shape_of(x)
    row = b.reshape(part, (1, *shape[1:]))
    return b.emit(hlo.DynamicUpdateSliceOp, x, row, *_places(b, place, len(shape)))


def running(b: Builder, x: SSAValue, axis: int, fold: Fold, unit: SSAValue, *, reverse: bool = False) -> SSAValue:
    """The fold of all elements up to each along an axis, or (in reverse) from each on; `unit` changes nothing.

    A window that reaches back to the start; XLA computes those as trees. Along a symbolic size, which no window has,
    each round folds in what stands 1, 2, 4, ... places before.
    """
    rank, size = rank_of(x), shape_of(x)[axis]
    if size == 0:
        return x
    if not isinstance(size, int):
        return _by_doubling(b, x, axis, fold, unit, reverse)
    padding = [(0, 0)] * rank
    padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
    scalar = tensor((), element_of(x))
    body = b.region([scalar, scalar], lambda args: [fold(*args)])
    window = [size if i == axis else 1 for i in range(rank)]
    return b.emit(hlo.ReduceWindowOp, x, unit, window_dimensions=window, padding=padding, regions=[body])


def _by_doubling(b: Builder, x: SSAValue, axis: int, fold: Fold, unit: SSAValue, reverse: bool) -> SSAValue:
    """Rounds of a loop, each over twice as far a reach."""
    size = shape_of(x)[axis]
    units = b.broadcast(unit, shape_of(x), ())
    types = [tensor((), "i64"), tensor_of(x)]

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.compare(args[0], b.dim(size), "LT")]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        step, made = args
        wide = b.concatenate([made, units] if reverse else [units, made], axis)
        place = step if reverse else b.subtract(b.dim(size), step)
        places = [place if i == axis else b.constant(0, "i64") for i in range(rank_of(x))]
        moved = b.emit(hlo.DynamicSliceOp, wide, *places, slice_sizes=list(shape_of(x)))
        return [b.multiply(step, b.constant(2, "i64")), fold(*((made, moved) if reverse else (moved, made)))]

    regions = [b.region(types, condition), b.region(types, body)]
    return b.emit_all(hlo.WhileOp, b.constant(1, "i64"), x, types=types, regions=regions)[1]
