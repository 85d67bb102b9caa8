"""Attention, written as two products around a softmax, becomes a composite.

The scores may be scaled, or queries and keys, and masked by sums and then by a selection. Their dimensions may lie in
any order: each is followed by a label, from the second product back to the first. Queries may have more heads than keys
and values, which are broadcast then. Scores are scaled before the first product rather than after it, and at once
rather than queries and keys apart: E2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.analysis.spreads import Read
from gcomp.dims import Size
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, match_composite
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.composing import Raising
from gcomp.passes.rewriting import apply_rewrites
from gcomp.records import record

LEAST_SCALE = 2.0**-6
"""The least factor of queries or keys that becomes a part of the scale."""
Label = int | None
"""A dimension of the weights; None for one of size 1 that they do not have."""
Axes = tuple[int, ...]


@record
class Labelled:
    """A value with a label for each dimension."""

    value: SSAValue
    labels: tuple[Label, ...]

    def moved(self) -> Labelled:
        """What transpositions, and reshapes by dimensions of size 1, lead to."""
        current = self
        while (source := current._source()) is not None:
            current = source
        return current

    def _source(self) -> Labelled | None:
        op = self.value.owner
        if isinstance(op, hlo.TransposeOp):
            labels: list[Label] = [None] * len(self.labels)
            for i, d in enumerate(op.value("permutation")):
                labels[d] = self.labels[i]
            return Labelled(op.operand, tuple(labels))
        if not isinstance(op, hlo.ReshapeOp):
            return None
        inner, outer = shape_of(op.operand), shape_of(self.value)
        if [s for s in inner if s != 1] != [s for s in outer if s != 1]:
            return None
        kept = iter([label for label, size in zip(self.labels, outer, strict=True) if size != 1])
        return Labelled(op.operand, tuple(None if s == 1 else next(kept) for s in inner))

    def at(self, value: SSAValue) -> Labelled:
        """Another value of the same shape."""
        return Labelled(value, self.labels)


def match_guard(weights: Labelled) -> tuple[Labelled, bool]:
    """The weights of which NaN is made 0, and whether it is."""
    op = weights.value.owner
    if isinstance(op, hlo.SelectOp) and Read.of(op.on_true).number() == 0:
        test, inner = op.pred.owner, op.on_false
        # In the total order NaN is itself.
        if (isinstance(test, hlo.CompareOp) and test.value("comparison_direction") == "NE"
                and test.value("compare_type") != "TOTALORDER"
                and test.lhs is inner and test.rhs is inner):  # fmt: skip
            return weights.at(inner).moved(), True
    return weights, False


@record
class Scores:
    """What scores are made of: the product, its scale, masks that are added, and the one that selects."""

    product: Labelled
    scale: float = 1.0
    added: tuple[Labelled, ...] = field(default=())
    selected: tuple[Labelled, float] | None = None


def scores_of(value: Labelled) -> Scores | None:
    """Read scores from the outside: a selection, then sums, then the scale, then the product."""
    value = value.moved()
    op = value.value.owner
    if isinstance(op, hlo.SelectOp):
        fill = Read.of(op.on_false).number()
        inner = None if fill is None else scores_of(value.at(op.on_true))
        if inner is None or fill is None or inner.selected is not None or rank_of(op.pred) != rank_of(value.value):
            return None
        return replace(inner, selected=(value.at(op.pred), fill))
    return _match_sum(value)


def _match_sum(value: Labelled) -> Scores | None:
    value = value.moved()
    op = value.value.owner
    if isinstance(op, hlo.AddOp):
        for inner, mask in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            found = _match_sum(value.at(inner))
            if found is not None:
                return replace(found, added=(*found.added, value.at(mask)))
        return None
    return _match_scale(value)


def _match_scale(value: Labelled) -> Scores | None:
    value = value.moved()
    op = value.value.owner
    if isinstance(op, hlo.DotGeneralOp):
        return Scores(value)
    if isinstance(op, hlo.MultiplyOp | hlo.DivideOp):
        pairs = [(op.lhs, op.rhs)] if isinstance(op, hlo.DivideOp) else [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        for inner, factor in pairs:
            number = Read.of(factor).number()
            found = None if number is None or number == 0 else _match_scale(value.at(inner))
            if found is not None and number:
                scale = found.scale / number if isinstance(op, hlo.DivideOp) else found.scale * number
                return replace(found, scale=scale)
    return None


def by_side(numbers: DotDimensions) -> tuple[tuple[Axes, Axes], tuple[Axes, Axes]]:
    """The batching and contracting dimensions of each side."""
    return (
        (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )


@record
class Side:
    """An operand of a product: a label for each dimension but the contracted one, and where that is."""

    value: SSAValue
    labels: tuple[Label, ...]
    contracted: int


def sides(product: Labelled) -> tuple[Side, Side] | None:
    """The operands of a product that contracts one dimension, by the labels of its result."""
    op = product.value.owner
    assert isinstance(op, hlo.DotGeneralOp)
    numbers: DotDimensions = op.value("dot_dimension_numbers")
    if len(numbers.lhs_contracting_dimensions) != 1:
        return None
    found: list[Side] = []
    position = len(numbers.lhs_batching_dimensions)
    for value, (batch, contracting) in zip((op.lhs, op.rhs), by_side(numbers), strict=True):
        labels: list[Label] = [None] * rank_of(value)
        for i, d in enumerate(batch):
            labels[d] = product.labels[i]
        for d in range(rank_of(value)):
            if d not in batch and d not in contracting:
                labels[d] = product.labels[position]
                position += 1
        found.append(Side(value, tuple(labels), contracting[0]))
    return found[0], found[1]


def unscaled(side: Side) -> tuple[Side, float]:
    """An operand without the constants that all of it is multiplied by, and their product.

    PyTorch multiplies queries and keys by the square root of the scale each. Constants that are far from 1 stay:
    without them values may overflow.
    """
    scale = 1.0
    while isinstance(op := side.value.owner, hlo.MultiplyOp):
        pairs = ((op.lhs, op.rhs), (op.rhs, op.lhs))
        numbers = ((inner, Read.of(factor).number()) for inner, factor in pairs)
        found = next(((v, n) for v, n in numbers if n is not None and LEAST_SCALE <= abs(n) <= 1), None)
        if found is None:
            break
        side, scale = replace(side, value=found[0]), scale * found[1]
    return side, scale


@record
class Parts:
    """Attention: queries, keys and values by their labels; those of the sequences and of the batch, in order."""

    query: Side
    key: Side
    value: Side
    features: int
    """The dimension of `value` that the result has."""
    queries: int
    keys: int
    batch: tuple[int, ...]
    scale: float
    """What queries and keys were multiplied by."""
    safe: bool = False
    """Whether a query that sees no key gives 0."""


class RaiseAttention(Raising):
    """softmax(scale * q @ k.T + mask) @ v."""

    name = "raise-attention"
    roots = (hlo.DotGeneralOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        for weights, values in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            labelled, safe = match_guard(Labelled(weights, tuple(range(rank_of(weights)))).moved())
            found = match_composite(b.program, labelled.value, "gcomp.softmax")
            if found is None:
                continue
            axis: int = found[1]["axis"]
            keys = labelled.labels[axis]
            scores = scores_of(labelled.at(found[0].operands[0]))
            parts = None if scores is None or keys is None else self._parts(op, weights, values, keys, scores)
            if scores is None or parts is None:
                continue
            if len({element_of(v) for v in (parts.query.value, parts.key.value, values, weights, op.result)}) != 1:
                continue
            if all(_fits(mask) for mask in (*scores.added, *([scores.selected[0]] if scores.selected else []))):
                return [self._build(op, b, weights, scores, replace(parts, safe=safe))]
        return None

    def _parts(
        self, op: hlo.DotGeneralOp, weights: SSAValue, values: SSAValue, keys: int, scores: Scores
    ) -> Parts | None:
        both = sides(scores.product)
        if both is None:
            return None
        key, query = both if keys in both[0].labels else both[::-1]
        (key, of_keys), (query, of_queries) = unscaled(key), unscaled(query)
        shared = {label for label in key.labels if label is not None} & {*query.labels}
        free = [label for label in key.labels if label is not None and label not in shared]
        own = [label for label in query.labels if label is not None and label not in shared]
        if free != [keys] or not own or keys in query.labels:
            return None
        value = self._values(op, weights, values, keys)
        if value is None:
            return None
        queries = max(own)  # the last in the order of the weights
        batch = tuple(label for label in query.labels if label is not None and label != queries)
        if queries in value[0].labels or not {v for v in value[0].labels if v is not None} <= {*batch, keys}:
            return None
        return Parts(query, key, *value, queries, keys, batch, of_keys * of_queries)

    def _values(self, op: hlo.DotGeneralOp, weights: SSAValue, values: SSAValue, keys: int) -> tuple[Side, int] | None:
        """The values' labels, which are those of the weights' dimensions that they meet, and their own dimension."""
        numbers: DotDimensions = op.value("dot_dimension_numbers")
        left, right = by_side(numbers)
        mine, others = (left, right) if weights is op.lhs else (right, left)
        if tuple(mine[1]) != (keys,):
            return None
        labels: list[Label] = [None] * rank_of(values)
        for weight, d in zip((*mine[0], *mine[1]), (*others[0], *others[1]), strict=True):
            labels[d] = weight
        own = [d for d in range(rank_of(values)) if d not in (*others[0], *others[1])]
        if len(own) != 1:
            return None
        return Side(values, tuple(labels), others[1][0]), own[0]

    def _build(self, op: hlo.DotGeneralOp, b: Builder, weights: SSAValue, scores: Scores, parts: Parts) -> SSAValue:
        sizes = dict(enumerate(shape_of(weights)))
        batch = parts.batch
        query = _arrange(b, parts.query, (*batch, parts.queries), sizes, parts.query.contracted)
        key = _arrange(b, parts.key, (*batch, parts.keys), sizes, parts.key.contracted)
        value = _arrange(b, parts.value, (*batch, parts.keys), sizes, parts.features)
        order = (*batch, parts.queries, parts.keys)
        inputs, attributes = [query, key, value], dict[str, float | int]({"scale": scores.scale * parts.scale})
        if parts.safe:
            attributes["safe"] = 1
        added = [_mask(b, mask, order, sizes) for mask in scores.added]
        if added:
            total = added[0]
            for mask in added[1:]:
                total = b.add(total, mask)
            inputs.append(total)
        if scores.selected is not None:
            inputs.append(_mask(b, scores.selected[0], order, sizes))
            attributes["fill"] = scores.selected[1]
        (result,) = composite(b, "gcomp.attention", inputs, attributes)
        return self._restored(op, b, weights, result, parts)

    def _restored(
        self, op: hlo.DotGeneralOp, b: Builder, weights: SSAValue, result: SSAValue, parts: Parts
    ) -> SSAValue:
        """The composite's result with the dimensions where the product has them."""
        numbers: DotDimensions = op.value("dot_dimension_numbers")
        mine = by_side(numbers)[0 if weights is op.lhs else 1]
        free: list[int] = [d for d in range(rank_of(weights)) if d not in (*mine[0], *mine[1])]
        features = -1
        wanted = [*mine[0], *free, features] if weights is op.lhs else [*mine[0], features, *free]
        present = [*parts.batch, parts.queries, features]
        kept = [label for label in wanted if label in present]
        return b.reshape(b.transpose(result, [present.index(label) for label in kept]), shape_of(op.result))


def _arrange(b: Builder, side: Side, order: Sequence[int], sizes: dict[int, Size], last: int) -> SSAValue:
    """A side with its labels in order and the dimension `last` at the end, broadcast along labels that it lacks."""
    value, labels = side.value, side.labels
    present = [label for label in order if label in labels]
    places = [tuple(labels).index(label) for label in present]
    rest = [d for d in range(rank_of(value)) if d not in places and d != last]
    moved = b.transpose(value, [*rest, *places, last])
    size = shape_of(value)[last]
    flat = b.reshape(moved, [*(sizes[label] for label in present), size])
    positions = [order.index(label) for label in present]
    return b.broadcast(flat, [*(sizes[label] for label in order), size], [*positions, len(order)])


def _fits(mask: Labelled) -> bool:
    """Whether each dimension along which a mask varies has a label."""
    bare = Read.of(mask.value).bare()
    sizes = shape_of(bare.value)
    return all(
        size == 1 or (p is not None and mask.labels[p] is not None) for p, size in zip(bare.places, sizes, strict=True)
    )


def _mask(b: Builder, mask: Labelled, order: Sequence[int], sizes: dict[int, Size]) -> SSAValue:
    """A mask in the order of the scores, with size 1 where it does not vary."""
    bare = Read.of(mask.value).bare()
    labels: list[Label] = [
        None if p is None or size == 1 else mask.labels[p]
        for p, size in zip(bare.places, shape_of(bare.value), strict=True)
    ]
    present = [label for label in order if label in labels]
    places = [labels.index(label) for label in present]
    rest = [d for d in range(len(labels)) if d not in places]
    moved = b.transpose(bare.value, [*rest, *places])
    return b.reshape(moved, [sizes[label] if label in present else 1 for label in order])


@dataclass(frozen=True)
class RaiseAttentionPass(Pass):
    """Find attention, once softmaxes are found."""

    name: ClassVar[str] = "raise-attention"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (RaiseAttention(),), context)
