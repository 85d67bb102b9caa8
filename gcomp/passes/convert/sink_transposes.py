"""A channels-first view of channels-last data is taken as late as possible: its transpose moves below its users.

Only transposes from channels-last to channels-first move, through elementwise ops, pads, slices, concatenations,
windows, reductions, choices of rows and reshapes of the space, where every other tensor operand is such a transpose
too or costs nothing to transpose (a constant, a weight, or a broadcast). They end where they meet their inverse, or a
user that needs the order: a fold over channels and space together is one, since it would round in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

from typing_extensions import TypeIs
from xdsl.ir import OpResult, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.definitions import derives
from gcomp.ir.gathering import dimensions_of_take, take
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Term, Var
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.types import Tensor, converted_type, rank_of, shape_of, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, Rewrite, apply_rewrites

Ints = tuple[int, ...]

x, y, z = Var("x"), Var("y"), Var("z")


def _first_from_last(rank: int) -> Ints:
    return (0, rank - 1, *range(1, rank - 1))


def _channels_first(p: Ints) -> bool:
    """Whether a transpose makes a channels-first view of channels-last data."""
    return len(p) > 2 and p == _first_from_last(len(p))


def _inverse(p: Ints) -> Ints:
    return tuple(p.index(i) for i in range(len(p)))


def _source_order(p: Ints, v: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """A per-dimension list of a view's, in the order of the view's source; None where the default stands for it."""
    return None if v is None else tuple(v[i] for i in _inverse(p))


def _view(of: Term) -> Op:
    return Op(hlo.TransposeOp, of, permutation=Attr("p"))


_CHANNELS_FIRST = Calc(_channels_first)


def _sink(name: str, lhs: Op, rhs: Term, profit: Calc = _CHANNELS_FIRST, **fields: Any) -> Rule:
    """A view below `lhs` becomes one above `rhs`."""
    return Rule(f"sink-transpose-{name}", lhs, _view(rhs), profit=profit, **fields)


# ---- elementwise -------------------------------------------------------------------------------------------------


def _is_elementwise(op: object) -> TypeIs[type[GraphOp]]:
    return isinstance(op, type) and derives(op, UnaryOp, BinaryOp) and hasattr(op, "name")


ELEMENTWISE = (
    *filter(_is_elementwise, vars(hlo).values()),
    hlo.ClampOp, hlo.SelectOp, hlo.CompareOp, hlo.ConvertOp, hlo.IsFiniteOp,
)  # fmt: skip


_FAMILY = "sink-transpose-elementwise"


def _pays(views: int, p: Ints, *values: SSAValue) -> bool:
    """Whether views, of the first so many values, move below an op whose other operands cost nothing to transpose.

    Nothing is gained where what is viewed costs nothing either; the two would change places for ever.
    """
    sources, others = values[:views], values[views:]
    return (
        _channels_first(p)
        and not all(_is_free(v) for v in sources)
        and all(rank_of(v) == 0 or _is_free(v) for v in others)
    )


def _is_free(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp | WeightOp | hlo.BroadcastInDimOp)


def _inverse_of_rank(p: Ints, v: SSAValue) -> Ints:
    """The inverse, for a value that may be a scalar."""
    return _inverse(p) if rank_of(v) else ()


_SCALARS: Mapping[type[GraphOp], Ints] = {hlo.ClampOp: (0, 2), hlo.SelectOp: (0,)}
"""Op -> the operands that may be scalars beside others that are not."""


def _is_whole(p: Ints, root: SSAValue) -> bool:
    """Whether a view has the result's rank: it is no scalar that stands for all elements."""
    return len(p) == rank_of(root)


def _through(op: type[GraphOp]) -> Iterator[Rule]:
    """One rule for each choice of the operands that are views; the others are transposed the other way."""
    short = op.name.partition(".")[2].replace("_", "-")
    scalars = _SCALARS.get(op, ())
    type = Calc(converted_type) if op is hlo.ConvertOp else None
    operands = (x, y, z)[: len(op.get_irdl_definition().operands)]
    for views in product((True, False), repeat=len(operands)):
        others = tuple(v.name for v, is_view in zip(operands, views, strict=True) if not is_view)
        viewed = tuple(v.name for v, is_view in zip(operands, views, strict=True) if is_view)
        if len(others) == len(operands):
            continue
        name = "-".join([short, *(("other", "view")[is_view] for is_view in views if others)])
        left = [_view(v) if is_view else v for v, is_view in zip(operands, views, strict=True)]
        right: list[Term] = list(operands)
        for i, v in enumerate(operands):
            if not views[i]:
                back = Calc(_inverse_of_rank, ("p", v.name)) if i in scalars else Calc(_inverse)
                right[i] = Op(hlo.TransposeOp, v, permutation=back)
        is_whole = any(is_view and i not in scalars for i, is_view in enumerate(views))
        where = None if is_whole else Calc(_is_whole)
        made = Op(op, *right, like="root", type=type)
        profit = Calc(partial(_pays, len(viewed)), ("p", *viewed, *others))
        yield _sink(name, Op(op, *left), made, where=where, profit=profit, family=_FAMILY)


THROUGH_ELEMENTWISE = tuple(rule for op in ELEMENTWISE for rule in _through(op))
"""The table of op and views."""


# ---- movement and folds ------------------------------------------------------------------------------------------


def _attr(name: str) -> Calc:
    """The property captured under a name, in the order of the view's source."""
    return Calc(_source_order, ("p", name))


def _keeps_order(p: Ints, d: Ints) -> bool:
    """Whether dimensions of a view come in the same order in its source: a fold over them is the same."""
    places = [p[i] for i in sorted(d)]
    return places == sorted(places)


def _windows_keep_order(p: Ints, w: Ints) -> bool:
    return _keeps_order(p, tuple(i for i, size in enumerate(w) if size != 1))


def _fold(p: Ints, d: Ints) -> Ints:
    """The source's dimensions that are the view's `d`."""
    return tuple(sorted(p[i] for i in d))


def _left(p: Ints, d: Ints) -> Ints:
    """The order in which a view shows what a fold over its dimensions `d` leaves of the source."""
    kept = [place for i, place in enumerate(p) if i not in d]
    order = sorted(kept)
    return tuple(order.index(place) for place in kept)


def _in_place(p: Ints, d: Ints, root: SSAValue) -> bool:
    return _is_whole(p, root) and d == tuple(range(len(p)))


def _sourced_type(p: Ints, root: SSAValue) -> Tensor:
    return with_shape(root, [shape_of(root)[i] for i in _inverse(p)])


def _is_of_space(p: Ints, x: SSAValue, root: SSAValue) -> bool:
    """Whether a view is channels-first, and its reshape joins or cuts nothing but space."""
    return _channels_first(p) and rank_of(root) > 2 and shape_of(root)[:2] == tuple(shape_of(x)[i] for i in p[:2])


def _reshaped_type(root: SSAValue) -> Tensor:
    """The type of what a channels-first result is a view of."""
    images, channels, *space = shape_of(root)
    return with_shape(root, [images, *space, channels])


def _of_rank(root: SSAValue) -> Ints:
    return _first_from_last(rank_of(root))


THROUGH_MOVEMENT = (
    _sink("pad",
          Op(hlo.PadOp, _view(x), y, edge_padding_low=Attr("low"), edge_padding_high=Attr("high"),
             interior_padding=Attr("gap")),
          Op(hlo.PadOp, x, y, edge_padding_low=_attr("low"), edge_padding_high=_attr("high"),
             interior_padding=_attr("gap"))),
    _sink("slice",
          Op(hlo.SliceOp, _view(x), start_indices=Attr("a"), limit_indices=Attr("b"), strides=Attr("s")),
          Op(hlo.SliceOp, x, start_indices=_attr("a"), limit_indices=_attr("b"), strides=_attr("s"))),
    _sink("broadcast",
          Op(hlo.BroadcastInDimOp, _view(x), broadcast_dimensions=Attr("d")),
          Op(hlo.BroadcastInDimOp, x, broadcast_dimensions=Attr("d"), type=Calc(_sourced_type)),
          where=Calc(_in_place), doc="all dimensions of a view (a reduced one, say) stay in place"),
    _sink("reduce-window",
          Op(hlo.ReduceWindowOp, _view(x), y, window_dimensions=Attr("w"), window_strides=Attr("s"),
             base_dilations=Attr("b"), window_dilations=Attr("e"), padding=Attr("q")),
          Op(hlo.ReduceWindowOp, x, y, like="root", window_dimensions=_attr("w"), window_strides=_attr("s"),
             base_dilations=_attr("b"), window_dilations=_attr("e"), padding=_attr("q")),
          where=Calc(_windows_keep_order)),
    Rule("sink-transpose-reshape",
         Op(hlo.ReshapeOp, _view(x)),
         Op(hlo.TransposeOp, Op(hlo.ReshapeOp, x, type=Calc(_reshaped_type)), permutation=Calc(_of_rank)),
         where=Calc(_is_of_space), profit=_CHANNELS_FIRST, doc="space is joined or cut beside the channels"),
    Rule("sink-transpose-reduce",
         Op(hlo.ReduceOp, _view(x), y, dimensions=Attr("d")),
         Op(hlo.TransposeOp, Op(hlo.ReduceOp, x, y, like="root", dimensions=Calc(_fold)), permutation=Calc(_left)),
         where=Calc(_keeps_order), profit=_CHANNELS_FIRST,
         doc="what remains keeps its order when the channels go, or the space does"),
)  # fmt: skip


def _source(value: SSAValue) -> SSAValue | None:
    """The channels-last tensor of which `value` is the channels-first view."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.TransposeOp)):
        return None
    return value.op.operand if _channels_first(value.op.value("permutation")) else None


def _raise_result(result: SSAValue, b: Builder) -> list[SSAValue]:
    return [b.transpose(result, _first_from_last(rank_of(result)))]


class SinkConcatenate(Pattern):
    """Through concatenations of views."""

    name = "sink-transpose-concatenate"
    roots = (hlo.ConcatenateOp,)

    def rewrite(self, op: hlo.ConcatenateOp, b: Builder) -> Sequence[SSAValue] | None:
        sources = [s for v in op.operands if (s := _source(v)) is not None]
        if len(sources) < len(op.operands):
            return None
        dimension: int = op.value("dimension")
        axis = _first_from_last(rank_of(op.result))[dimension]
        return _raise_result(b.concatenate(sources, axis), b)


class SinkTake(Pattern):
    """Through the choice of rows or columns by their numbers, as resizing does it."""

    name = "sink-transpose-take"
    roots = (hlo.GatherOp,)

    def rewrite(self, op: hlo.GatherOp, b: Builder) -> Sequence[SSAValue] | None:
        source, axis = _source(op.operand), _taken_axis(op)
        if source is None or axis is None:
            return None
        taken = take(b, source, op.start_indices, _first_from_last(rank_of(source))[axis])
        return _raise_result(taken, b)


def _taken_axis(op: hlo.GatherOp) -> int | None:
    """The dimension along which a gather takes whole slices by a list of numbers; None for any other gather."""
    if rank_of(op.start_indices) != 1 or len(op.dimensions.start_index_map) != 1:
        return None
    (axis,) = op.dimensions.start_index_map
    whole = [1 if i == axis else n for i, n in enumerate(shape_of(op.operand))]
    is_take = op.dimensions == dimensions_of_take(axis, rank_of(op.operand), 1)
    return axis if is_take and list(sizes_of(op.slice_sizes)) == whole else None


PATTERNS: tuple[Rewrite, ...] = (*THROUGH_ELEMENTWISE, *THROUGH_MOVEMENT, SinkConcatenate(), SinkTake())


@dataclass(frozen=True)
class SinkTransposes(Pass):
    """Move channels-first views below their users."""

    name: ClassVar[str] = "sink-transposes"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, PATTERNS, context)
