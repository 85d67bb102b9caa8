"""Tree ensembles as arrays: what ONNX's attributes say, checked, and brought to one form.

A forest is a table of nodes. A node that decides compares a feature with a threshold and goes left where the test
holds, else right; a leaf is its own child. BRANCH_GTE, BRANCH_GT and BRANCH_NEQ become the opposite test with the
children swapped, and BRANCH_MEMBER a search in the sorted set, so that three tests are left. All is done on whole
arrays: ensembles have hundreds of thousands of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.values import Array

LEQ, LT, EQ = 0, 1, 2
"""The tests that are left."""

GTE, GT, NEQ, MEMBER, LEAF = 3, 4, 5, 6, 7
"""What a node may say besides."""

MODES = {"BRANCH_LEQ": LEQ, "BRANCH_LT": LT, "BRANCH_GTE": GTE, "BRANCH_GT": GT, "BRANCH_EQ": EQ, "BRANCH_NEQ": NEQ,
         "LEAF": LEAF}  # fmt: skip
"""The names of modes, up to version 3."""

NUMBERED = np.array([LEQ, LT, GTE, GT, EQ, NEQ, MEMBER])
"""The modes of version 5, by number."""

_OPPOSITE = {GTE: LT, GT: LEQ, NEQ: EQ}


@dataclass(frozen=True)
class Nodes:
    """The nodes of all trees; arrays by node but `roots`, which holds each tree's first node."""

    roots: Array
    mode: Array
    feature: Array
    threshold: Array
    on_true: Array
    on_false: Array
    nan_true: Array
    """Whether a NaN takes the true branch."""

    @property
    def leaf(self) -> Array:
        """Which nodes are leaves."""
        return self.mode == LEAF


@dataclass(frozen=True)
class Votes:
    """What leaves say: `weight[i]` for `target[i]` at `node[i]`."""

    node: Array
    target: Array
    weight: Array


@dataclass(frozen=True)
class Forest:
    """Checked trees in the one form; arrays are by node, but `roots`."""

    roots: Array
    depth: int
    test: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    nan_left: Array
    tree: Array
    """Which tree a node is in; -1 for all nodes where trees share any."""
    leaf: Array
    """The number that a leaf had before, or -1 for a node that decides."""


# ---- bringing nodes to the one form ------------------------------------------------------------------------------


def forest_of(ctx: NodeContext, nodes: Nodes) -> Forest:
    """The forest of nodes without BRANCH_MEMBER. Raises InvalidModelError where they are no trees."""
    count, leaf = len(nodes.mode), nodes.leaf
    own = np.arange(count)
    for name, child in (("true", nodes.on_true), ("false", nodes.on_false)):
        wrong = ~leaf & ((child < 0) | (child >= count))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            ctx.invalid(f"the {name} branch of node {at} leads nowhere", "there is no such node")
    if len(nodes.roots) == 0 or ((nodes.roots < 0) | (nodes.roots >= count)).any():
        ctx.invalid(f"the roots are {nodes.roots[:8].tolist()}", f"there are {count} nodes, and a tree is needed")
    test, threshold = nodes.mode.copy(), nodes.threshold.copy()
    swapped = np.isin(test, list(_OPPOSITE))
    # Nothing compares with NaN, but NEQ always holds: `x < -inf` never does, and swapped always.
    nowhere = np.isnan(threshold)
    swapped &= ~nowhere | (test == NEQ)
    for mode, opposite in _OPPOSITE.items():
        test[test == mode] = opposite
    test[nowhere] = LT
    threshold[nowhere] = -np.inf
    test[leaf], threshold[leaf], swapped[leaf] = LEQ, 0, False
    left = np.where(leaf, own, np.where(swapped, nodes.on_false, nodes.on_true))
    right = np.where(leaf, own, np.where(swapped, nodes.on_true, nodes.on_false))
    nan_left = np.where(leaf, False, nodes.nan_true != swapped)
    seen, tree = _reached_nodes(nodes.roots, left, right, leaf)
    depth = _depth(ctx, left, right, leaf, seen)
    feature = np.where(leaf, 0, nodes.feature)
    if (seen & (feature < 0)).any():
        ctx.invalid("a node reads a feature with a negative number", "features count from 0")
    uniform = Forest(nodes.roots, depth, test, feature, threshold, left, right, nan_left, tree, leaf & seen)
    return _compact(uniform, seen)


def _reached_nodes(roots: Array, left: Array, right: Array, leaf: Array) -> tuple[Array, Array]:
    """Which nodes some tree reaches, and the tree of each node: -1 for one that is part of several trees."""
    seen = np.zeros(len(leaf), bool)
    tree = np.zeros(len(leaf), np.int64)
    frontier, first = np.unique(roots, return_index=True)
    tree[frontier] = first
    while frontier.size:
        seen[frontier] = True
        inner = frontier[~leaf[frontier]]
        children = np.concatenate([left[inner], right[inner]])
        tree[children] = np.tile(tree[inner], 2)
        frontier = np.unique(children)
        frontier = frontier[~seen[frontier]]
    inner = np.flatnonzero(seen & ~leaf)
    shared = len(np.unique(roots)) != len(roots)
    shared = shared or bool((tree[left[inner]] != tree[inner]).any() or (tree[right[inner]] != tree[inner]).any())
    return seen, np.full(len(leaf), -1) if shared else tree


def _depth(ctx: NodeContext, left: Array, right: Array, leaf: Array, seen: Array) -> int:
    """The longest way from a root to a leaf: nodes are taken away once nothing above them is left."""
    inner = np.flatnonzero(seen & ~leaf)
    above = np.bincount(left[inner], minlength=len(leaf)) + np.bincount(right[inner], minlength=len(leaf))
    frontier = np.flatnonzero(seen & (above == 0))
    taken, steps = 0, 0
    while frontier.size:
        taken, steps = taken + frontier.size, steps + 1
        inner = frontier[~leaf[frontier]]
        children, ways = np.unique(np.concatenate([left[inner], right[inner]]), return_counts=True)
        above[children] -= ways
        frontier = children[above[children] == 0]
    if taken < int(seen.sum()):
        around = np.flatnonzero(seen & (above > 0))[:4].tolist()
        ctx.invalid(f"its trees have a cycle around nodes {around}", "the way from a root must end at a leaf")
    return steps - 1


def _compact(forest: Forest, seen: Array) -> Forest:
    """The forest without its unreached nodes; `leaf` becomes the old number of a node that is a leaf, else -1."""
    kept = np.flatnonzero(seen)
    place = np.cumsum(seen) - 1
    return Forest(
        roots=place[forest.roots],
        depth=forest.depth,
        test=forest.test[kept],
        feature=forest.feature[kept],
        threshold=forest.threshold[kept],
        left=place[forest.left[kept]],
        right=place[forest.right[kept]],
        nan_left=forest.nan_left[kept],
        tree=forest.tree[kept],
        leaf=np.where(forest.leaf[kept], kept, -1),
    )


def votes_at(forest: Forest, votes: Votes) -> Votes:
    """The votes of the forest's own leaves, at their places in it; others are never asked."""
    leaves = np.flatnonzero(forest.leaf >= 0)
    old = forest.leaf[leaves]
    at = np.minimum(np.searchsorted(old, votes.node), max(len(old) - 1, 0))
    ours = old[at] == votes.node
    return Votes(leaves[at[ours]], votes.target[ours], votes.weight[ours])


# ---- set membership ----------------------------------------------------------------------------------------------


def without_members(ctx: NodeContext, nodes: Nodes, values: Array | None) -> Nodes:
    """The nodes with each BRANCH_MEMBER replaced by a binary search in its set, the sets being delimited by NaN."""
    members = np.flatnonzero(nodes.mode == MEMBER)
    listed = np.zeros(0) if values is None else values
    ends = np.flatnonzero(np.isnan(listed))
    # The last set may do without its delimiter.
    if len(listed) and not np.isnan(listed[-1]):
        ends = np.append(ends, len(listed))
    if len(ends) != len(members):
        ctx.invalid(f"membership_values lists {len(ends)} sets", f"{len(members)} nodes are BRANCH_MEMBER")
    start = 0
    parts, size = [nodes], len(nodes.mode)
    for node, end in zip(members.tolist(), ends.tolist(), strict=True):
        chosen, start = np.unique(listed[start:end]), end + 1
        search = _search(nodes, node, chosen, size)
        parts.append(search)
        size += len(search.mode)
    names = ("mode", "feature", "threshold", "on_true", "on_false", "nan_true")
    return replace(nodes, **{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})


def _search(nodes: Nodes, node: int, chosen: Array, first: int) -> Nodes:
    """Turns `node` into the root of a search in the sorted set `chosen`; the nodes below it, numbered from `first`.

    They are a complete binary tree: inner nodes in heap order ask `x < v`, and the last level asks `x == v`.
    """
    yes, no, nan_true = int(nodes.on_true[node]), int(nodes.on_false[node]), bool(nodes.nan_true[node])
    if len(chosen) == 0:
        # Nothing equals NaN.
        nodes.mode[node], nodes.threshold[node] = EQ, np.nan
        return _some(nodes, 0)
    width = 1 << (len(chosen) - 1).bit_length()
    # Values at the end are repeated to fill the last level.
    filled = chosen[np.minimum(np.arange(width), len(chosen) - 1)]
    heap = np.arange(2 * width - 1)
    level = np.frexp(heap + 1.0)[1] - 1
    inner = heap < width - 1
    span = width >> level
    middle = (heap + 1 - (1 << level)) * span + span // 2
    at = np.where(heap == 0, node, first + heap - 1)
    threshold = np.where(inner, filled[np.minimum(middle, width - 1)], filled[np.maximum(heap - (width - 1), 0)])
    below = np.minimum(2 * heap + 1, 2 * width - 2), np.minimum(2 * heap + 2, 2 * width - 2)
    whole = Nodes(
        nodes.roots,
        np.where(inner, LT, EQ),
        np.full(len(heap), nodes.feature[node]),
        threshold,
        np.where(inner, at[below[0]], yes),
        np.where(inner, at[below[1]], no),
        np.full(len(heap), nan_true),
    )
    for name in ("mode", "threshold", "on_true", "on_false"):
        getattr(nodes, name)[node] = getattr(whole, name)[0]
    return _some(whole, 1)


def _some(nodes: Nodes, start: int) -> Nodes:
    """The nodes from `start` on, or none for 0."""
    rows = slice(start, None) if start else slice(0, 0)
    return Nodes(
        nodes.roots, nodes.mode[rows], nodes.feature[rows], nodes.threshold[rows], nodes.on_true[rows],
        nodes.on_false[rows], nodes.nan_true[rows],
    )  # fmt: skip
