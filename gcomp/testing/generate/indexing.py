"""Steps of indexing: gather and scatter with every form of dimension numbers, dynamic slices, indices out of bounds."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.structures import GatherDimensions, ScatterDimensions
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor
from gcomp.testing.generate.growth import MOST_ELEMENTS, MOST_RANK, Growth, step
from gcomp.testing.generate.regions import folding_body

_USUAL = 0.25

INDEX_ELEMENTS = ("i32", "i64", "ui8", "i8", "ui32", "i16")


def index_of(g: Growth, text: str, shape: Sequence[Size]) -> SSAValue:
    """Indices: mostly counted or small constants, else any integers, which may lie far outside."""
    type = tensor(shape, text)
    if not shape or any(not isinstance(s, int) for s in shape) or g.choices.flag(0.4):
        return g.of_type(type)
    return g.numbers(type)


class Windows:
    """Dimension numbers of a gather; a scatter's are the same under other names."""

    def __init__(self, g: Growth, operand: Sequence[Size]) -> None:
        choices = g.choices
        rank = len(operand)
        # One element, or a few: what `x[i]` and `x.at[i].set` are in programs, and little else.
        self.usual = choices.flag(_USUAL)
        kinds = [6 if self.usual else choices.integer(0, 9) for _ in range(rank)]
        self.batching = [d for d in range(rank) if kinds[d] > 7][:2]
        self.collapsed = [d for d in range(rank) if 4 < kinds[d] <= 7 and not g.maybe_empty(operand[d])]
        self.window = [d for d in range(rank) if d not in {*self.batching, *self.collapsed}]
        indexed = [d for d in range(rank) if d not in self.batching and (self.usual or choices.flag(0.7))]
        order = choices.permutation(len(indexed)) if choices.flag(0.3) else range(len(indexed))
        self.index_map = [indexed[i] for i in order]
        self.sizes: list[Size] = [self._window_size(g, operand[d], d) for d in range(rank)]
        self._lay_out_indices(g, operand)
        total = len(self.batch) + len(self.window)
        places = choices.permutation(total) if choices.flag(0.4) else list(range(total))
        self.offsets = sorted(places[len(self.batch) :])
        inside, rest = iter([self.sizes[d] for d in self.window]), iter(self.batch)
        self.result: list[Size] = [next(inside) if d in self.offsets else next(rest) for d in range(total)]

    def _window_size(self, g: Growth, size: Size, d: int) -> Size:
        if d not in self.window:
            return 0 if g.maybe_empty(size) else 1
        if not isinstance(size, int) or g.choices.flag(0.3):
            return size
        return g.choices.integer(min(1, size) if g.choices.flag(0.95) else 0, size)

    def _lay_out_indices(self, g: Growth, operand: Sequence[Size]) -> None:
        choices = g.choices
        plain: list[Size] = []
        room = MOST_RANK - len(self.window) - len(self.batching)
        inside = g.count([self.sizes[d] for d in self.window]) * g.count([operand[d] for d in self.batching])
        for _ in range(min(room, choices.integer(0, 1 if self.usual else 2))):
            size = choices.chosen((2, 1, 3, 4, 0)) if choices.flag(0.9) else 1
            if g.count(plain) * size * max(inside, 1) <= MOST_ELEMENTS:
                plain.append(size)
        batch = [*plain, *(operand[d] for d in self.batching)]
        order = choices.permutation(len(batch)) if choices.flag(0.4) else list(range(len(batch)))
        shape = [batch[d] for d in order]
        places = [order.index(len(plain) + i) for i in range(len(self.batching))]
        self.batch = shape
        at = choices.integer(0, len(shape)) if choices.flag(0.4) else len(shape)
        if len(self.index_map) == 1 and choices.flag():
            at = len(shape)
            self.indices: list[Size] = list(shape)
        else:
            self.indices = [*shape[:at], len(self.index_map), *shape[at:]]
        self.index_vector_dim = at
        vector_inside = at < len(self.indices)
        self.index_batching = [p + (vector_inside and p >= at) for p in places]

    def gather(self) -> GatherDimensions:
        """The dimension numbers of a gather."""
        return GatherDimensions(
            tuple(self.offsets), tuple(self.collapsed), tuple(self.batching), tuple(self.index_batching),
            tuple(self.index_map), self.index_vector_dim,
        )  # fmt: skip

    def scatter(self) -> ScatterDimensions:
        """The dimension numbers of a scatter."""
        return ScatterDimensions(*self.gather())


@step("gather", hlo.GatherOp, weight=3.5)
def gather(g: Growth) -> None:
    """Any dimension numbers; symbolic dimensions are batching, or taken whole, or indexed one by one."""
    x = g.pick(least=1)
    w = Windows(g, shape_of(x))
    indices = index_of(g, g.choices.chosen(INDEX_ELEMENTS), w.indices)
    g.emit(hlo.GatherOp, x, indices, dimension_numbers=w.gather(), slice_sizes=w.sizes,
           indices_are_sorted=g.choices.flag(0.1))  # fmt: skip


@step("scatter", hlo.ScatterOp, weight=2.5)
def scatter(g: Growth) -> None:
    """The same numbers, any combiner, or the last update alone; targets may be hit more than once."""
    x = g.pick(least=1)
    text = dtype_text(x.type)
    w = Windows(g, shape_of(x))
    indices = index_of(g, g.choices.chosen(INDEX_ELEMENTS), w.indices)
    updates = g.of_type(tensor(w.result, text))
    region = folding_body(g, (text,), replaces=0.4)
    g.emit(hlo.ScatterOp, x, indices, updates, types=(x.type,), regions=(region,),
           scatter_dimension_numbers=w.scatter(), indices_are_sorted=False, unique_indices=False)  # fmt: skip


def _starts(g: Growth, rank: int) -> list[SSAValue]:
    text = g.choices.chosen(INDEX_ELEMENTS)
    if g.choices.flag(0.3):
        return [g.scalar(text)] * rank
    return [g.scalar(text) if g.choices.flag() else g.numbers(tensor((), text)) for _ in range(rank)]


def _parts(g: Growth, shape: Sequence[Size]) -> list[Size]:
    return [
        size if not isinstance(size, int) or g.choices.flag(0.35) else g.choices.integer(min(1, size), size)
        for size in shape
    ]


@step("dynamic-slice", hlo.DynamicSliceOp, weight=2)
def dynamic_slice(g: Growth) -> None:
    """Starts known or not, within and outside."""
    x = g.pick(least=0 if g.choices.flag(0.1) else 1)
    g.emit(hlo.DynamicSliceOp, x, *_starts(g, rank_of(x)), slice_sizes=_parts(g, shape_of(x)))


@step("dynamic-update-slice", hlo.DynamicUpdateSliceOp, weight=2)
def dynamic_update_slice(g: Growth) -> None:
    """An update of any size that fits, at any start; now and then a value's own slice."""
    x = g.pick(least=0 if g.choices.flag(0.1) else 1)
    starts, parts = _starts(g, rank_of(x)), _parts(g, shape_of(x))
    if g.choices.flag(0.2):
        update = g.emit(hlo.DynamicSliceOp, x, *starts, slice_sizes=parts)
    else:
        update = g.of_type(tensor(parts, dtype_text(x.type)))
    g.emit(hlo.DynamicUpdateSliceOp, x, update, *starts, types=(x.type,))


@step("slice-and-update", hlo.DynamicUpdateSliceOp, hlo.SliceOp, weight=0.8)
def slice_and_update(g: Growth) -> None:
    """A value updated, and read before and after: what storing in place gets wrong."""
    x = g.pick(least=1)
    starts, parts = _starts(g, rank_of(x)), _parts(g, shape_of(x))
    updated = g.emit(
        hlo.DynamicUpdateSliceOp, x, g.of_type(tensor(parts, dtype_text(x.type))), *starts, types=(x.type,)
    )
    op: type[GraphOp] = g.choices.chosen((hlo.MaximumOp, hlo.AddOp))
    g.emit(op, updated, x, types=(x.type,))
