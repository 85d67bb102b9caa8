"""Tree ensembles as operations: all rows go down all trees at once, one level a step, and the leaves' votes are joined.

The state is a node for each (tree, row). A leaf is its own child, so a step more does no harm and the loop runs as
often as the deepest tree is deep, whatever the data. What all nodes have in common is a scalar and not a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.model.values import Array
from gcomp.frontends.onnx.operators.ml.forest import EQ, LEQ, LT, Forest, Votes
from gcomp.frontends.onnx.operators.ml.repeat import repeat_steps
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, shape_of

Table = Callable[[SSAValue], SSAValue]


def table(b: Builder, values: Array, element: str) -> Table:
    """The function from states to a value of their nodes."""
    if values.size and (values == values[0]).all():
        only = b.constant(values[0], element)
        return lambda state: only
    every = b.constant(values, element)
    return lambda state: take(b, every, state, 0)


def leaves_reached(b: Builder, x: SSAValue, forest: Forest, roots: Array) -> SSAValue:
    """The leaf [T, N] (i32) that each row of x [N, F] ends at in each tree, given the trees' roots [T]."""
    rows = shape_of(x)[0]
    state = b.broadcast(b.constant(roots, "i32"), (len(roots), rows), (0,))
    if not forest.depth:
        return state
    feature = table(b, forest.feature, "i32")
    goes_left = _test(b, forest, dtype_text(x.type))
    children = b.constant(np.stack([forest.right, forest.left], 1).reshape(-1), "i32")
    two = b.constant(2, "i32")

    def step(_: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        (now,) = values
        held = goes_left(now, _features(b, x, feature(now)))
        return [take(b, children, b.add(b.multiply(now, two), b.convert(held, "i32")), 0)]

    return repeat_steps(b, forest.depth, [state], step)[0]


def _features(b: Builder, x: SSAValue, feature: SSAValue) -> SSAValue:
    """The features [T, N] of rows [N, F] at numbers [T, N]; [1, N] for one number."""
    if not shape_of(feature):
        feature = b.broadcast(feature, (1, shape_of(x)[0]), ())
    dimensions = GatherDimensions((), (1,), (0,), (1,), (1,), 2)
    return b.emit(hlo.GatherOp, x, feature, dimension_numbers=dimensions, slice_sizes=[1, 1])


def _test(b: Builder, forest: Forest, element: str) -> Callable[[SSAValue, SSAValue], SSAValue]:
    """The function from states and features to whether they go left."""
    threshold, kind = table(b, forest.threshold, element), table(b, forest.test, "i8")
    nan_left = table(b, forest.nan_left, "i1")
    kinds = set(forest.test[forest.leaf < 0].tolist())
    directions = {LEQ: "LE", LT: "LT", EQ: "EQ"}

    def goes_left(state: SSAValue, x: SSAValue) -> SSAValue:
        limit = threshold(state)
        if len(kinds) == 1:
            held = b.compare(x, limit, directions[min(kinds)])
        else:
            mode, less, equal = kind(state), b.compare(x, limit, "LT"), b.compare(x, limit, "EQ")
            reaches = b.binary(hlo.AndOp, equal, b.compare(mode, b.constant(LT, "i8"), "NE"))
            falls = b.binary(hlo.AndOp, less, b.compare(mode, b.constant(EQ, "i8"), "NE"))
            held = b.emit(hlo.OrOp, reaches, falls)
        # A comparison with NaN does not hold, which is right for nodes at which NaN goes right.
        if not forest.nan_left.any():
            return held
        missing = b.binary(hlo.AndOp, b.compare(x, x, "NE"), nan_left(state))
        return b.binary(hlo.OrOp, held, missing)

    return goes_left


# ---- joining votes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Joining:
    """How the votes for a target become one: SUM, AVERAGE, MIN or MAX."""

    op: type[GraphOp]
    neutral: float
    average: bool = False

    @property
    def sums(self) -> bool:
        """Whether it adds votes up."""
        return self.op is hlo.AddOp

    def gather_up(self, total: Array, at: tuple[Array, ...], weight: Array) -> None:
        """Join votes of one leaf for one target in a table."""
        ufunc = np.add if self.sums else np.minimum if self.op is hlo.MinimumOp else np.maximum
        ufunc.at(total, at, weight)


JOININGS = {
    "SUM": Joining(hlo.AddOp, 0.0),
    "AVERAGE": Joining(hlo.AddOp, 0.0, average=True),
    "MIN": Joining(hlo.MinimumOp, np.inf),
    "MAX": Joining(hlo.MaximumOp, -np.inf),
}
"""`aggregate_function` -> how it joins."""


def join_votes(
    b: Builder, x: SSAValue, forest: Forest, votes: Votes, targets: int, how: Joining, element: str
) -> SSAValue:
    """The scores [N, targets] of rows [N, F], of an element type; 0 where a target got no vote."""
    scores = _by_tree(b, x, forest, votes, targets, how, element)
    if scores is None:
        scores = _by_leaf(b, x, forest, votes, targets, how, element)
    if not how.average:
        return scores
    return b.divide(scores, b.full((), len(forest.roots), element))


def _by_tree(
    b: Builder, x: SSAValue, forest: Forest, votes: Votes, targets: int, how: Joining, element: str
) -> SSAValue | None:
    """Scores where each tree votes for one target only, as boosted trees do; None where that is not so.

    The trees are ordered by target, and each target gets as many, so that votes [targets, trees, N] join over the
    middle. Targets of fewer trees are filled up with a leaf that does not vote.
    """
    count = len(forest.roots)
    if targets > 2 * count + 8:
        return None
    if targets == 1:
        target = np.zeros(count, np.int64)
    elif (forest.tree < 0).any():
        return None
    else:
        target = np.zeros(count, np.int64)
        of_vote = forest.tree[votes.node]
        target[of_vote] = votes.target
        if (target[of_vote] != votes.target).any():
            return None
    most = int(np.bincount(target, minlength=targets).max())
    if most * targets > 2 * count + 8:
        return None
    order = np.argsort(target, kind="stable")
    place = np.arange(count) - np.searchsorted(target[order], target[order])
    silent = len(forest.leaf)
    roots = np.full((targets, most), silent)
    roots[target[order], place] = forest.roots[order]
    grown = _with_silent_leaf(forest) if (roots == silent).any() else forest
    weight = np.full(len(grown.leaf), how.neutral)
    how.gather_up(weight, (votes.node,), votes.weight)
    voted = np.zeros(len(grown.leaf), bool)
    voted[votes.node] = True
    leaf = leaves_reached(b, x, grown, roots.reshape(-1))
    shape = (targets, most, shape_of(x)[0])

    def join(op: type[GraphOp], values: Array, kind: str) -> SSAValue:
        each = b.broadcast_to(table(b, values, kind)(leaf), shape_of(leaf))
        return b.transpose(b.reduce(op, b.reshape(each, shape), [1]), [1, 0])

    scores = join(how.op, weight, element)
    if how.sums or voted[grown.leaf >= 0].all():
        return scores
    return _or_zero(b, join(hlo.OrOp, voted, "i1"), scores)


def _with_silent_leaf(forest: Forest) -> Forest:
    last = len(forest.leaf)
    return Forest(
        forest.roots, forest.depth, np.append(forest.test, LEQ), np.append(forest.feature, 0),
        np.append(forest.threshold, 0).astype(forest.threshold.dtype), np.append(forest.left, last),
        np.append(forest.right, last), np.append(forest.nan_left, False), np.append(forest.tree, -1),
        np.append(forest.leaf, last),
    )  # fmt: skip


def _or_zero(b: Builder, voted: SSAValue, scores: SSAValue) -> SSAValue:
    return b.select(voted, scores, b.scalar_like(scores, 0))


def _by_leaf(
    b: Builder, x: SSAValue, forest: Forest, votes: Votes, targets: int, how: Joining, element: str
) -> SSAValue:
    """Scores where a leaf may vote for any targets: a row of weights for each leaf, or its few votes one by one."""
    leaf = leaves_reached(b, x, forest, forest.roots)
    most = int(np.bincount(votes.node).max()) if len(votes.node) else 1
    if 4 * most <= targets:
        return _few_votes(b, leaf, forest, votes, targets, most, how, element)
    weight = np.full((len(forest.leaf), targets), how.neutral)
    how.gather_up(weight, (votes.node, votes.target), votes.weight)
    voted = np.zeros(weight.shape, bool)
    voted[votes.node, votes.target] = True
    scores = b.reduce(how.op, take(b, b.constant(weight, element), leaf, 0), [0])
    if how.sums or voted[forest.leaf >= 0].all():
        return scores
    return _or_zero(b, b.reduce(hlo.OrOp, take(b, b.constant(voted), leaf, 0), [0]), scores)


def _few_votes(
    b: Builder, leaf: SSAValue, forest: Forest, votes: Votes, targets: int, most: int, how: Joining, element: str
) -> SSAValue:
    """Scores where leaves have few votes for many targets: each target joins those that name it."""
    order = np.argsort(votes.node, kind="stable")
    node = votes.node[order]
    slot = np.arange(len(node)) - np.searchsorted(node, node)
    weight = np.zeros((len(forest.leaf), most))
    target = np.full(weight.shape, -1)
    weight[node, slot], target[node, slot] = votes.weight[order], votes.target[order]
    shape = (*shape_of(leaf), most, targets)
    named = b.broadcast(take(b, b.constant(target, "i32"), leaf, 0), shape, (0, 1, 2))
    hit = b.compare(named, b.iota(shape, 3, "i32"), "EQ")
    each = b.broadcast(take(b, b.constant(weight, element), leaf, 0), shape, (0, 1, 2))
    scores = b.reduce(how.op, b.select(hit, each, b.full((), how.neutral, element)), [0, 2])
    return scores if how.sums else _or_zero(b, b.reduce(hlo.OrOp, hit, [0, 2]), scores)
