"""Changes of what belongs together: the property of one op is another's, or one undoes what another does.

Conditions ask for such relations (a slice that takes off what a pad added; reductions along the same dimensions), and
by chance they hardly come about, or are broken where a rewrite does not match any more at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.types import element_of, is_tensor, rank_of, shape_of, static_shape, with_shape
from gcomp.testing.near.edits import Scene, edit, pass_through, repeat_value
from gcomp.testing.near.types import retype
from gcomp.testing.near.whole import resize_everywhere


@edit(1.5)
def property_of_another(scene: Scene) -> bool:
    """A property of an op becomes one of a near op's that is of its kind."""

    def has_lists(op: Operation) -> bool:
        return isinstance(op, GraphOp) and not isinstance(op, hlo.ConstantOp | WeightOp) and bool(op.properties)

    op, other = scene.op(has_lists), scene.op(has_lists)
    if op is None or other is None:
        return False
    name = scene.choices.chosen(list(op.properties))
    old = op.properties[name]
    fitting = [new for n, new in other.properties.items() if type(new) is type(old) and new != old and n != "value"]
    if isinstance(old, DenseArrayBase):
        of = cast(Any, old).elt_type
        fitting = [new for new in fitting if cast(Any, new).elt_type == of]
    if not fitting:
        return False
    op.properties[name] = scene.choices.chosen(fitting)
    return True


_OPPOSITES: dict[type[GraphOp], type[GraphOp]] = {
    hlo.ExponentialOp: hlo.LogOp, hlo.LogOp: hlo.ExponentialOp, hlo.AddOp: hlo.SubtractOp, hlo.SubtractOp: hlo.AddOp,
    hlo.MultiplyOp: hlo.DivideOp, hlo.DivideOp: hlo.MultiplyOp, hlo.NegateOp: hlo.NegateOp, hlo.NotOp: hlo.NotOp,
    hlo.SqrtOp: hlo.SqrtOp, hlo.MaximumOp: hlo.MinimumOp, hlo.MinimumOp: hlo.MaximumOp,
    hlo.ExponentialMinusOneOp: hlo.LogPlusOneOp, hlo.LogPlusOneOp: hlo.ExponentialMinusOneOp,
}  # fmt: skip


@edit(2)
def undone(scene: Scene) -> bool:
    """What an op does is undone, or done again, before its result is used."""
    op = scene.op(lambda op: len(op.results) == 1 and is_tensor(op.results[0].type) and bool(op.operands))
    if op is None or not is_tensor(op.operands[0].type):
        return False
    b, result = Builder(scene.program, InsertPoint.after(op)), op.results[0]
    uses = list(result.uses)
    back = _UNDO.get(type(op), _undo_arithmetic)(op, b)
    if back is None or not uses:
        return False
    for use in uses if scene.choices.flag(0.7) else uses[:1]:
        if back.type == use.operation.operands[use.index].type or scene.choices.flag():
            use.operation.operands[use.index] = back
    return True


def _undo_arithmetic(op: Operation, b: Builder) -> SSAValue | None:
    opposite = _OPPOSITES.get(cast("type[GraphOp]", type(op)))
    if opposite is None:
        return None
    operands = [op.results[0], *op.operands[1:]]
    return b.emit(opposite, *operands, types=op.result_types)


def _undo_pad(op: hlo.PadOp, b: Builder) -> SSAValue | None:
    shape = static_shape(op.result)
    low, high = sizes_of(op.edge_padding_low), sizes_of(op.edge_padding_high)
    if shape is None:
        return None
    starts = [max(0, n) if isinstance(n, int) else 0 for n in low]
    limits = [s - max(0, n) if isinstance(n, int) else s for s, n in zip(shape, high, strict=True)]
    return b.slice(op.result, starts, limits, [gap + 1 for gap in op.value("interior_padding")])


def _undo_slice(op: hlo.SliceOp, b: Builder) -> SSAValue | None:
    before, starts, limits = shape_of(op.operand), sizes_of(op.start_indices), sizes_of(op.limit_indices)
    if not all(isinstance(n, int) for n in (*before, *starts, *limits)):
        return None
    zero = b.scalar_like(op.operand, 0)
    gaps = [s - 1 for s in op.value("strides")]
    high = [n - limit for n, limit in zip(before, limits, strict=True)]
    return b.emit(hlo.PadOp, op.result, zero, edge_padding_low=starts, edge_padding_high=high, interior_padding=gaps)


def _undo_transpose(op: hlo.TransposeOp, b: Builder) -> SSAValue:
    p: tuple[int, ...] = op.value("permutation")
    return b.transpose(op.result, [p.index(i) for i in range(len(p))])


def _undo_broadcast(op: hlo.BroadcastInDimOp, b: Builder) -> SSAValue | None:
    kept: tuple[int, ...] = op.value("broadcast_dimensions")
    shape = static_shape(op.result)
    if shape is None or list(kept) != sorted(kept) or 0 in shape:
        return None
    first = b.slice(op.result, [0] * len(shape), [n if i in kept else 1 for i, n in enumerate(shape)])
    return b.reshape(first, [shape[i] for i in kept])


def _undo_concatenate(op: hlo.ConcatenateOp, b: Builder) -> SSAValue | None:
    axis: int = op.value("dimension")
    return b.slice_axis(op.result, axis, 0, shape_of(op.operands[0])[axis])


_UNDO: dict[type[Operation], Callable[[Any, Builder], SSAValue | None]] = {
    hlo.PadOp: _undo_pad,
    hlo.SliceOp: _undo_slice,
    hlo.TransposeOp: _undo_transpose,
    hlo.BroadcastInDimOp: _undo_broadcast,
    hlo.ConcatenateOp: _undo_concatenate,
    hlo.ReverseOp: lambda op, b: b.emit(
        hlo.ReverseOp, op.result, types=op.result_types, dimensions=op.value("dimensions")
    ),
    hlo.ReshapeOp: lambda op, b: b.reshape(op.result, shape_of(op.operand)),
    hlo.ConvertOp: lambda op, b: b.convert(op.result, element_of(op.operand)),
}


@edit(2.5)
def another_value_everywhere(scene: Scene) -> bool:
    """Replace all uses of a value by the value with one more op applied, or by a broadcast smaller input."""
    op = scene.op(lambda op: any(is_tensor(v.type) for v in op.operands))
    if op is None:
        return False
    value = scene.choices.chosen([v for v in op.operands if is_tensor(v.type)])
    block = scene.program.block
    if (value.owner if isinstance(value.owner, Block) else value.owner.parent) is not block:
        return False
    point = InsertPoint.at_start(block) if isinstance(value.owner, Block) else InsertPoint.after(value.owner)
    uses, b = list(value.uses), Builder(scene.program, point)
    new = repeat_value(scene, b, value) if scene.choices.flag(0.4) else pass_through(b, value, scene.choices)
    if new is None:
        return False
    for use in uses:
        use.operation.operands[use.index] = new
    return True


@edit(2)
def reduced_along_others(scene: Scene) -> bool:
    """Reductions along the same dimensions are along others, and what spreads their results out again follows."""
    op = scene.op(lambda op: isinstance(op, hlo.ReduceOp) and is_tensor(op.operands[0].type))
    if not isinstance(op, hlo.ReduceOp):
        return False
    rank, old = rank_of(op.operands[0]), op.value("dimensions")
    new = tuple(scene.choices.some(range(rank)))
    if new == old:
        return False
    for other in dict.fromkeys(scene.ops):
        if isinstance(other, hlo.ReduceOp) and other.value("dimensions") == old and rank_of(other.operands[0]) == rank:
            other.properties["dimensions"] = other.encode_property("dimensions", new)
            for result in other.results:
                _spread_again(result, shape_of(other.operands[0]), new)
    return True


def _spread_again(result: SSAValue, shape: Sequence[Size], reduced: Sequence[int]) -> None:
    """Follow what brings a result of a reduction back to the rank of its operand."""
    kept = [i for i in range(len(shape)) if i not in reduced]
    for use in result.uses:
        user = use.operation
        if isinstance(user, hlo.BroadcastInDimOp) and rank_of(user.result) == len(shape):
            user.properties["broadcast_dimensions"] = user.encode_property("broadcast_dimensions", kept)
        elif isinstance(user, hlo.ReshapeOp) and rank_of(user.result) == len(shape):
            retype(user.result, with_shape(user.result, [s if i in kept else 1 for i, s in enumerate(shape)]))
        elif isinstance(user, UnaryOp | BinaryOp | hlo.ConvertOp):
            _spread_again(user.results[0], shape, reduced)


_PLACES: dict[type[Operation], tuple[str, Callable[[Any], SSAValue]]] = {
    hlo.BroadcastInDimOp: ("broadcast_dimensions", lambda op: op.result),
    hlo.TransposeOp: ("permutation", lambda op: op.operand),
    hlo.ReduceOp: ("dimensions", lambda op: op.operands[0]),
    hlo.ReverseOp: ("dimensions", lambda op: op.operand),
    hlo.ConcatenateOp: ("dimension", lambda op: op.operands[0]),
    hlo.SortOp: ("dimension", lambda op: op.operands[0]),
    hlo.IotaOp: ("iota_dimension", lambda op: op.result),
}
"""The property that names dimensions, and whose they are."""


@edit(2)
def along_another_as_long(scene: Scene) -> bool:
    """What runs along one dimension runs along another, which is made as long: all types stay as they are."""
    op = scene.op(lambda op: type(op) in _PLACES)
    if op is None:
        return False
    name, of = _PLACES[type(op)]
    shape = static_shape(of(op))
    if shape is None or len(shape) < 2:
        return False
    first, second = scene.choices.permutation(len(shape))[:2]
    if shape[first] != shape[second] and not resize_everywhere(scene.program, shape[first], shape[second]):
        return False
    graph, turned = cast(GraphOp, op), {first: second, second: first}
    old = graph.value(name)
    new = turned.get(old, old) if isinstance(old, int) else tuple([turned.get(d, d) for d in old])
    if new == old:
        return False
    op.properties[name] = graph.encode_property(name, new)
    return True


__all__ = ["along_another_as_long", "another_value_everywhere", "property_of_another", "reduced_along_others", "undone"]
