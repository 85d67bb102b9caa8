"""Importers of ai.onnx.ml: tree ensembles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array
from gcomp.frontends.onnx.operators.ml.forest import (
    LEAF,
    MEMBER,
    MODES,
    NUMBERED,
    Forest,
    Nodes,
    Votes,
    forest_of,
    votes_at,
    without_members,
)
from gcomp.frontends.onnx.operators.ml.scores import (
    TRANSFORMS,
    Labels,
    above,
    complement,
    constants,
    feature_rows,
    pair,
    top_class,
    transform_name,
)
from gcomp.frontends.onnx.operators.ml.traversal import JOININGS, Joining, join_votes
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, shape_of

MOST_TARGETS = 1 << 24
NUMBERED_JOININGS = ("AVERAGE", "SUM", "MIN", "MAX")
NUMBERED_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class _Ensemble:
    """A node's trees and their votes, and the element type that comparisons and sums are in."""

    forest: Forest
    votes: Votes
    base: Array | None


def _scores(ctx: NodeContext, ensemble: _Ensemble, targets: int, how: Joining) -> SSAValue:
    """The joined votes [N, targets], without base values; of f64 where X, thresholds or weights are."""
    b, x, forest = ctx.b, feature_rows(ctx), ensemble.forest
    needed = int(forest.feature.max(initial=-1)) + 1
    if isinstance(have := shape_of(x)[1], int) and needed > have and forest.depth:
        ctx.invalid(f"a node reads feature {needed - 1}", f"rows have {have} features")
    if not isinstance(have, int):
        ctx.require("le", needed, have)
    wide = "f64" in (dtype_text(x.type), _element(ensemble.votes.weight))
    if _element(forest.threshold) == "f64":
        x = b.convert(x, "f64")
    return join_votes(b, x, forest, ensemble.votes, targets, how, "f64" if wide else "f32")


def _element(array: Array) -> str:
    return "f64" if array.dtype == np.float64 else "f32"


# ---- versions 1 and 3: nodes by (tree, node) numbers -------------------------------------------------------------


def _integer_list(ctx: NodeContext, name: str, count: int | None) -> Array:
    """A list of integers, of a length that it must have."""
    array = np.asarray(ctx.integers(name) or [], np.int64)
    if count is not None and len(array) != count:
        ctx.invalid(f"{name} has {len(array)} entries", f"{count} are expected")
    return array


def _numbers(ctx: NodeContext, name: str, count: int | None) -> Array:
    """A list of numbers, given as floats (f32) or, from version 3 on, as a tensor of f32 or f64."""
    plain = ctx.numbers(name)
    array = ctx.tensor(f"{name}_as_tensor")
    if plain and array is not None and array.size:
        ctx.invalid(f"{name} and {name}_as_tensor are given", "only one of them may be")
    if plain or array is None:
        array = np.asarray(plain or [], np.float32)
    return _check_list(ctx, name, array, count)


def _check_list(ctx: NodeContext, name: str, array: Array, count: int | None) -> Array:
    """A list of numbers as f32, or f64 where it is. Raises InvalidModelError for another shape or dtype."""
    if array.dtype not in (np.float16, np.float32, np.float64):
        ctx.invalid(f"{name} is of {array.dtype}", "floats are expected")
    if array.ndim != 1 or (count is not None and len(array) != count):
        expected = "a list is expected" if count is None else f"{count} entries are expected"
        ctx.invalid(f"{name} has shape {array.shape}", expected)
    return array if array.dtype == np.float64 else array.astype(np.float32)


class _Places:
    """Which node has a (tree, node) number."""

    def __init__(self, ctx: NodeContext, trees: Array, nodes: Array) -> None:
        self.trees, tree = np.unique(trees, return_inverse=True)
        self.nodes, node = np.unique(nodes, return_inverse=True)
        keys = tree * len(self.nodes) + node
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        again = np.flatnonzero(self.keys[1:] == self.keys[:-1])
        if len(again):
            at = int(self.order[again[0]])
            ctx.invalid(f"node {int(nodes[at])} of tree {int(trees[at])} is listed twice", "node numbers are unique")

    def find(self, trees: Array, nodes: Array) -> Array:
        """The places of nodes; -1 where there is no such node."""
        tree = np.minimum(np.searchsorted(self.trees, trees), len(self.trees) - 1)
        node = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        keys = tree * len(self.nodes) + node
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = (self.trees[tree] == trees) & (self.nodes[node] == nodes) & (self.keys[at] == keys)
        return np.where(known, self.order[at], -1)


def _ensemble(ctx: NodeContext, votes: str, targets: int) -> _Ensemble:
    """The trees of versions 1 and 3, whose votes are in the attributes that start with `votes`."""
    ids = _integer_list(ctx, "nodes_nodeids", None)
    count = len(ids)
    if not count:
        ctx.invalid("it has no nodes", "nodes_nodeids is missing or empty")
    trees = _integer_list(ctx, "nodes_treeids", count)
    places = _Places(ctx, trees, ids)
    mode = _modes(ctx, count)
    leaf = mode == LEAF
    branches = [_integer_list(ctx, name, count) for name in ("nodes_truenodeids", "nodes_falsenodeids")]
    children = [np.where(leaf, 0, places.find(trees, branch)) for branch in branches]
    missing = ctx.integers("nodes_missing_value_tracks_true")
    first = np.sort(np.unique(trees, return_index=True)[1])
    nodes = Nodes(
        first,
        mode,
        _integer_list(ctx, "nodes_featureids", count),
        _numbers(ctx, "nodes_values", count),
        children[0],
        children[1],
        _integer_list(ctx, "nodes_missing_value_tracks_true", count) != 0 if missing else np.zeros(count, bool),
    )
    forest = forest_of(ctx, nodes)
    targeted = _integer_list(ctx, f"{votes}_ids", None)
    many = len(targeted)
    at = places.find(_integer_list(ctx, f"{votes}_treeids", many), _integer_list(ctx, f"{votes}_nodeids", many))
    if (at < 0).any():
        ctx.invalid(f"entry {int(np.flatnonzero(at < 0)[0])} of {votes}_nodeids is of no node", "votes are nodes'")
    cast = Votes(at, _targets(ctx, f"{votes}_ids", targeted, targets), _numbers(ctx, f"{votes}_weights", many))
    base = _numbers(ctx, "base_values", None)
    return _Ensemble(forest, votes_at(forest, cast), base if len(base) else None)


def _modes(ctx: NodeContext, count: int) -> Array:
    modes = ctx.strings("nodes_modes") or []
    if len(modes) != count:
        ctx.invalid(f"nodes_modes has {len(modes)} entries", f"{count} are expected")
    unknown = set(modes) - MODES.keys()
    if unknown:
        ctx.invalid(f"a node's mode is {min(unknown)!r}", f"it must be one of {', '.join(MODES)}")
    return np.asarray([MODES[mode] for mode in modes], np.int64)


def _targets(ctx: NodeContext, name: str, ids: Array, count: int) -> Array:
    if count < 1:
        ctx.invalid(f"it has {count} targets or classes", "there must be at least one")
    if count > MOST_TARGETS:
        ctx.unsupported(f"it has {count} targets or classes, more than {MOST_TARGETS}")
    if ((ids < 0) | (ids >= count)).any():
        ctx.invalid(f"{name} has {int(ids.min())} to {int(ids.max())}", f"there are {count} targets or classes")
    return ids


@imports("TreeEnsembleRegressor", domain="ai.onnx.ml")
def tree_ensemble_regressor(ctx: NodeContext) -> Results:
    """TreeEnsembleRegressor: the joined votes of the leaves reached, plus base values, [N, n_targets] of f32.

    A target without any vote is 0, as in ONNX Runtime; ONNX's reference gives the greatest float for MIN. Its base
    value is added even so, and the transform is applied to one target too, as the text says; ONNX Runtime then leaves
    the base value out, and for one target all transforms but PROBIT.
    """
    b, targets = ctx.b, ctx.integer("n_targets")
    name = ctx.string("aggregate_function", "SUM")
    if name not in JOININGS:
        ctx.invalid(f"aggregate_function is {name!r}", f"it must be one of {', '.join(JOININGS)}")
    ensemble = _ensemble(ctx, "target", targets)
    transform = TRANSFORMS[transform_name(ctx)]
    scores = _scores(ctx, ensemble, targets, JOININGS[name])
    return [b.convert(transform(b, _with_base(ctx, scores, ensemble.base)), "f32")]


def _with_base(ctx: NodeContext, scores: SSAValue, base: Array | None) -> SSAValue:
    """Scores [N, E] plus a base value for each column."""
    if base is None:
        return scores
    if len(base) != shape_of(scores)[1]:
        ctx.invalid(f"base_values has {len(base)} entries", f"there are {shape_of(scores)[1]} targets or classes")
    return ctx.b.add(scores, constants(ctx.b, base, scores))


@imports("TreeEnsembleClassifier", domain="ai.onnx.ml")
def tree_ensemble_classifier(ctx: NodeContext) -> Results:
    """TreeEnsembleClassifier: the top class [N] and the classes' scores [N, E] of f32.

    The top class is that of the first greatest score before the transform. ONNX Runtime differs for two classes that
    both get votes (it gives 1 or 0 for a positive or other score, even if these are no labels), and for classes
    without any vote in a row (it passes them over).
    """
    b, labels = ctx.b, Labels(ctx, "classlabels_int64s")
    ensemble = _ensemble(ctx, "class", labels.count)
    name = transform_name(ctx)
    if labels.count == 2 and len(voted := np.unique(ctx.integers("class_ids") or [])) == 1:
        return _binary(ctx, ensemble, labels, name, int(voted[0]))
    scores = _with_base(ctx, _scores(ctx, ensemble, labels.count, JOININGS["SUM"]), ensemble.base)
    if labels.count == 1:
        label = labels.zero_or_one(lambda: above(b, scores, 0))
    else:
        label = labels.result(lambda: top_class(b, scores))
    return [label, b.convert(TRANSFORMS[name](b, scores), "f32")]


def _binary(ctx: NodeContext, ensemble: _Ensemble, labels: Labels, name: str, voted: int) -> Results:
    """Two classes of which one gets votes, by the rules of ONNX Runtime; ONNX's text does not mention the case.

    The point is of the second class if the votes exceed 0.5 where all weights are positive, or 0 where they are not.
    Votes for the first class are the second's: the scores are [1 - s, s] or [-s, s] by the same distinction, and only
    LOGISTIC is applied, to [-s, s] always. Votes for the second class stay where they are, and are transformed as ever.
    """
    b, base = ctx.b, ensemble.base
    if base is not None and (voted or len(base) != 1):
        ctx.unsupported(
            f"it has {len(base)} base values, and of two classes only that at {voted} gets votes",
            fix="vote for the class at 0 with one base value, or for both; implementations disagree on what this means",
        )
    one = Votes(ensemble.votes.node, np.zeros_like(ensemble.votes.target), ensemble.votes.weight)
    score = _scores(ctx, _Ensemble(ensemble.forest, one, None), 1, JOININGS["SUM"])
    positive = bool((_numbers(ctx, "class_weights", None) >= 0).all())
    score = _with_base(ctx, score, base)
    label = labels.result(lambda: above(b, score, 0.5 if positive else 0.0))
    if voted:
        scores = TRANSFORMS[name](b, pair(b, b.full_like(score, 0), score))
    else:
        scores = _second_class(b, score, positive, name)
    return [label, b.convert(scores, "f32")]


def _second_class(b: Builder, score: SSAValue, positive: bool, name: str) -> SSAValue:
    """The scores of two classes [N, 2] from one [N, 1].

    ONNX Runtime leaves one of them unset for PROBIT; here both are transformed, as in ONNX's reference.
    """
    opposite = b.emit(hlo.NegateOp, score)
    if name == "LOGISTIC":
        return TRANSFORMS[name](b, pair(b, opposite, score))
    if name == "PROBIT":
        return TRANSFORMS[name](b, pair(b, complement(b, score), score))
    return pair(b, complement(b, score) if positive else opposite, score)


# ---- version 5: nodes and leaves by position ---------------------------------------------------------------------


@imports("TreeEnsemble", since=5, domain="ai.onnx.ml")
def tree_ensemble(ctx: NodeContext) -> Results:
    """TreeEnsemble: the joined votes of the leaves reached, [N, n_targets] of the type of X.

    Sets of members are listed in the order of the nodes, as the text says; ONNX's reference takes them in the order
    in which it walks the trees, and ends a set at its member 0.
    """
    b, targets = ctx.b, ctx.integer("n_targets")
    how = _name_entry(ctx, "aggregate_function", 1, NUMBERED_JOININGS)
    transform = _name_entry(ctx, "post_transform", 0, NUMBERED_TRANSFORMS)
    nodes, votes = _leaves_last(ctx, targets)
    forest = forest_of(ctx, nodes)
    scores = _scores(ctx, _Ensemble(forest, votes_at(forest, votes), None), targets, JOININGS[how])
    return [b.convert(TRANSFORMS[transform](b, scores), ctx.element())]


def _name_entry(ctx: NodeContext, name: str, default: int, names: tuple[str, ...]) -> str:
    number = ctx.integer(name, default)
    if not 0 <= number < len(names):
        ctx.invalid(f"{name} is {number}", f"it must be below {len(names)}")
    return names[number]


def _leaves_last(ctx: NodeContext, targets: int) -> tuple[Nodes, Votes]:
    """Nodes of version 5 with the leaves after them, so that both have one numbering."""
    mode = _attribute(ctx, "nodes_modes")
    if mode.ndim != 1 or mode.dtype != np.uint8 or (len(mode) and int(mode.max()) >= len(NUMBERED)):
        ctx.invalid(f"nodes_modes is {mode.dtype}{mode.shape}", f"a list of uint8 below {len(NUMBERED)} is expected")
    count = len(mode)
    targeted = _integer_list(ctx, "leaf_targetids", None)
    leaves = len(targeted)
    weight = _check_list(ctx, "leaf_weights", _attribute(ctx, "leaf_weights"), leaves)
    splits = _check_list(ctx, "nodes_splits", _attribute(ctx, "nodes_splits"), count)
    children = [_children(ctx, branch, count, leaves) for branch in ("true", "false")]
    missing = ctx.integers("nodes_missing_value_tracks_true")
    tracks = _integer_list(ctx, "nodes_missing_value_tracks_true", count) != 0 if missing else np.zeros(count, bool)
    roots = _integer_list(ctx, "tree_roots", None)
    if ((roots < 0) | (roots >= count)).any():
        ctx.invalid(f"tree_roots are {roots[:8].tolist()}", f"there are {count} nodes")
    # A root with one leaf for both branches is a tree that is a leaf: its test does not matter.
    alone = (children[0][roots] == children[1][roots]) & (children[0][roots] >= count)
    values = ctx.tensor("membership_values")
    if values is not None:
        values = _check_list(ctx, "membership_values", values, None)
    nodes = Nodes(
        np.where(alone, children[0][roots], roots),
        _then(NUMBERED[mode], leaves, LEAF),
        _then(_integer_list(ctx, "nodes_featureids", count), leaves, 0),
        _then(splits, leaves, 0),
        _then(children[0], leaves, 0),
        _then(children[1], leaves, 0),
        _then(tracks, leaves, False),
    )
    if values is not None or (nodes.mode == MEMBER).any():
        nodes = without_members(ctx, nodes, values)
    votes = Votes(count + np.arange(leaves), _targets(ctx, "leaf_targetids", targeted, targets), weight)
    return nodes, votes


def _attribute(ctx: NodeContext, name: str) -> Array:
    value = ctx.tensor(name)
    if value is None:
        ctx.invalid(f"attribute {name} is missing", "the operator requires it")
    return value


def _then(array: Array, count: int, value: int | bool) -> Array:
    return np.concatenate([array, np.full(count, value, array.dtype)])


def _children(ctx: NodeContext, branch: str, count: int, leaves: int) -> Array:
    """Where a branch of each node leads: to a node, or to a leaf, which come after all nodes."""
    child = _integer_list(ctx, f"nodes_{branch}nodeids", count)
    leaf = _integer_list(ctx, f"nodes_{branch}leafs", count) != 0
    limit = np.where(leaf, leaves, count)
    if ((child < 0) | (child >= limit)).any():
        at = int(np.flatnonzero((child < 0) | (child >= limit))[0])
        ctx.invalid(f"the {branch} branch of node {at} leads nowhere", f"there are {count} nodes and {leaves} leaves")
    return np.where(leaf, count + child, child)
