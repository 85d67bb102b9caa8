"""Derivatives of reduce and map. A maximum's is shared evenly by the elements that are the maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.autodiff.sweeps import Maybe, Row
from gcomp.autodiff.table import ByTangents, Expanded, Linear, chooses, expands
from gcomp.decompositions.bodies import vectorize_block
from gcomp.dims import Size
from gcomp.ir import looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of


def is_identity(value: SSAValue, op: type[Any]) -> bool:
    """Whether a scalar is a constant that a binary op leaves other operands unchanged by."""
    source = value.owner
    if not isinstance(source, hlo.ConstantOp):
        return False
    array = source.elements_attr.array()
    expected = array.dtype.type(identity(op, dtype_text(value.type)))
    return bool((array == expected).all())


# ---- sums ----


def _sum(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    if operand == 1:
        return b.reduce(hlo.AddOp, g, range(rank_of(g)))
    x, folded = op.operands[0], op.value("dimensions")
    return b.broadcast(g, shape_of(x), [i for i in range(rank_of(x)) if i not in folded])


# ---- maxima and minima ----


def _extreme(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """The mean over the elements that are the result."""
    tangent, x = tangents[0], op.operands[0]
    if tangent is None:
        return [None]
    axes: Sequence[int] = op.value("dimensions")
    result = b.broadcast(op.results[0], shape_of(x), [i for i in range(rank_of(x)) if i not in axes])
    hit = b.convert(b.compare(x, result, "EQ"), element_of(x))
    total = b.reduce(hlo.AddOp, b.multiply(tangent, hit), axes)
    return [b.divide(total, b.reduce(hlo.AddOp, hit, axes))]


def _with_start(b: Builder, op: Any) -> Sequence[SSAValue]:
    """A maximum or minimum that starts elsewhere: that of the elements, and then of the start."""
    kind, x = op.applied(), op.operands[0]
    folded = b.reduce(kind, x, op.value("dimensions"))
    return [b.emit(kind, folded, b.broadcast(op.operands[1], shape_of(folded), ()))]


# ---- any fold ----


def fold(
    b: Builder, body: Any, inputs: Sequence[SSAValue], starts: Sequence[SSAValue], axes: Sequence[int]
) -> list[SSAValue]:
    """The fold of inputs along some dims, pair by pair: neighbours first, and at last from the start."""
    wide = [element_of(t) for t in body.block.args[: len(inputs)]]
    inputs = [b.convert(x, e) for x, e in zip(inputs, wide, strict=True)]
    starts = [b.convert(x, e) for x, e in zip(starts, wide, strict=True)]
    shape = shape_of(inputs[0])
    kept = [i for i in range(len(shape)) if i not in axes]
    rest = tuple(shape[i] for i in kept)
    count = dims.product([shape[i] for i in axes])
    flat = [b.reshape(b.transpose(x, [*axes, *kept]), (count, *rest)) for x in inputs]
    begun = [b.broadcast(x, rest, ()) for x in starts]
    if not isinstance(count, int):

        def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return vectorize_block(b, body.block, [*before, *items], rest)

        return list(looping.scan(b, count, begun, flat, (), step))
    if count == 0:
        return begun
    while count > 1:
        flat, count = _halve(b, body, flat, count, rest), (count + 1) // 2
    ends = [b.reshape(x, rest) for x in flat]
    return vectorize_block(b, body.block, [*begun, *ends], rest)


def _halve(b: Builder, body: Any, flat: Sequence[SSAValue], count: int, rest: Sequence[Size]) -> list[SSAValue]:
    pairs = count // 2
    left = [b.slice_axis(x, 0, 0, 2 * pairs - 1, 2) for x in flat]
    right = [b.slice_axis(x, 0, 1, 2 * pairs, 2) for x in flat]
    made = vectorize_block(b, body.block, [*left, *right], (pairs, *rest))
    if count % 2 == 0:
        return made
    return [b.concatenate([m, b.slice_axis(x, 0, count - 1, count)], 0) for m, x in zip(made, flat, strict=True)]


def _fold(b: Builder, op: Any) -> Sequence[SSAValue]:
    return fold(b, op.body, op.inputs, op.init_values, sorted(op.value("dimensions")))


_SUM = Linear(_sum, lambda op: (0, 1))
_EXTREME, _FROM_START, _FOLD = ByTangents(_extreme), Expanded(_with_start), Expanded(_fold)


@chooses(hlo.ReduceOp)
def reduce(op: Any) -> Row:
    """By what the body applies."""
    kind = op.applied() if len(op.inputs) == 1 else None
    if kind is hlo.AddOp:
        return _SUM
    if kind in (hlo.MaximumOp, hlo.MinimumOp):
        return _EXTREME if is_identity(op.operands[1], kind) else _FROM_START
    return _FOLD


@expands(hlo.MapOp)
def map_elements(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The computation on whole tensors."""
    return vectorize_block(b, op.computation.block, list(op.operands), shape_of(op.result))


__all__ = ["fold", "is_identity"]
