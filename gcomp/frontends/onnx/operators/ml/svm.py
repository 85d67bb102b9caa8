"""Importers of ai.onnx.ml: support vector machines. Computed in f32, in f64 where X is, and given as f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array
from gcomp.frontends.onnx.operators.ml.linear import weigh_rows
from gcomp.frontends.onnx.operators.ml.repeat import repeat_steps
from gcomp.frontends.onnx.operators.ml.scores import (
    TRANSFORMS,
    Labels,
    constants,
    feature_rows,
    floats,
    pair,
    top_class,
    transform_name,
)
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take
from gcomp.ir.types import element_of, shape_of

# ---- kernels -----------------------------------------------------------------------------------------------------


def _linear(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    return weigh_rows(ctx, x, vectors)


def _affine(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    """gamma * x.v + coef0"""
    gamma, coef0, _ = _parameters(ctx)
    scaled = ctx.b.scale(weigh_rows(ctx, x, vectors), gamma)
    return ctx.b.add(scaled, ctx.b.scalar_like(scaled, coef0))


def _poly(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    base, degree = _affine(ctx, x, vectors), _parameters(ctx)[2]
    if degree in (1, 2, 3, 4):
        result = base
        for _ in range(int(degree) - 1):
            result = ctx.b.multiply(result, base)
        return result
    return ctx.b.binary(hlo.PowerOp, base, ctx.b.scalar_like(base, degree))


def _rbf(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    """exp(-gamma * |x - v|^2), from the differences: the expanded square would cancel."""
    b, gamma = ctx.b, _parameters(ctx)[0]
    rows, features = shape_of(x)
    if features != vectors.shape[1]:
        x = ctx.restate(x, {1: vectors.shape[1]})
    count, width = vectors.shape
    each = b.broadcast(x, (rows, count, width), (0, 2))
    apart = b.subtract(each, b.broadcast(constants(b, vectors, x), (rows, count, width), (1, 2)))
    square = b.reduce(hlo.AddOp, b.multiply(apart, apart), [2])
    return b.emit(hlo.ExponentialOp, b.scale(square, -gamma))


def _sigmoid(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    return ctx.b.emit(hlo.TanhOp, _affine(ctx, x, vectors))


KERNELS: dict[str, Callable[[NodeContext, SSAValue, Array], SSAValue]] = {
    "LINEAR": _linear,
    "POLY": _poly,
    "RBF": _rbf,
    "SIGMOID": _sigmoid,
}
"""`kernel_type` -> its function of rows [N, F] and vectors [V, F]: [N, V]."""


def _parameters(ctx: NodeContext) -> tuple[float, float, float]:
    """gamma, coef0 and degree; 0 where they are absent."""
    given = ctx.numbers("kernel_params") or [0.0, 0.0, 0.0]
    if len(given) != 3:
        ctx.invalid(f"kernel_params has {len(given)} entries", "gamma, coef0 and degree are expected")
    return given[0], given[1], given[2]


def _kernel(ctx: NodeContext, x: SSAValue, vectors: Array) -> SSAValue:
    name = ctx.string("kernel_type", "LINEAR")
    if name not in KERNELS:
        ctx.invalid(f"kernel_type is {name!r}", f"it must be one of {', '.join(KERNELS)}")
    return KERNELS[name](ctx, x, vectors)


def _required_array(ctx: NodeContext, name: str) -> Array:
    value = floats(ctx, name)
    if value is None:
        ctx.invalid(f"it has no {name}", "the attribute is missing or empty")
    return value


def _vectors(ctx: NodeContext, count: int) -> Array:
    """The support vectors [V, F]."""
    values = _required_array(ctx, "support_vectors")
    if len(values) % count:
        ctx.invalid(f"support_vectors has {len(values)} entries", f"they are {count} vectors of one length")
    return values.reshape(count, -1)


# ---- regression --------------------------------------------------------------------------------------------------


@imports("SVMRegressor", domain="ai.onnx.ml")
def svm_regressor(ctx: NodeContext) -> Results:
    """SVMRegressor: the weighted sum of kernels plus rho, [N, 1]; for a one-class machine its sign, 1 or -1.

    Without support vectors it is linear. ONNX Runtime ignores the transform, which the text defines.
    """
    b, x, transform = ctx.b, feature_rows(ctx), TRANSFORMS[transform_name(ctx)]
    weights, rho, count = _required_array(ctx, "coefficients"), _required_array(ctx, "rho"), ctx.integer("n_supports")
    if count < 0 or len(rho) != 1:
        ctx.invalid(f"it has {count} support vectors and {len(rho)} values of rho", "one rho is expected")
    if count:
        if len(weights) != count:
            ctx.invalid(f"it has {len(weights)} coefficients", f"there are {count} support vectors")
        score = weigh_rows(ctx, _kernel(ctx, x, _vectors(ctx, count)), weights[None])
    else:
        score = weigh_rows(ctx, x, weights[None])
    score = b.add(score, constants(b, rho, score))
    if ctx.flag("one_class"):
        inside = b.compare(score, ctx.b.scalar_like(score, 0), "GT")
        score = b.select(inside, ctx.b.scalar_like(score, 1), ctx.b.scalar_like(score, -1))
    return [b.convert(transform(b, score), "f32")]


# ---- classification ----------------------------------------------------------------------------------------------


@imports("SVMClassifier", domain="ai.onnx.ml")
def svm_classifier(ctx: NodeContext) -> Results:
    """SVMClassifier: the class [N], and scores: of classes if linear or with probabilities, else of pairs of classes.

    With support vectors each pair of classes votes, as in libsvm. Two classes have scores [-s, s] for their one pair.
    """
    labels, per_class = Labels(ctx, "classlabels_ints"), ctx.integers("vectors_per_class") or []
    if any(count < 0 for count in per_class):
        ctx.invalid(f"vectors_per_class is {per_class[:8]}", "counts are not negative")
    if sum(per_class):
        return _by_pairs(ctx, labels, per_class)
    return _without_vectors(ctx, labels)


def _without_vectors(ctx: NodeContext, labels: Labels) -> Results:
    """A linear score for each class, all with the same rho.

    Of two classes the second is taken if no coefficient is negative and a score reaches 0.5: both implementations do
    so. Otherwise it is the class with the greatest score; ONNX Runtime takes the second class as soon as one of two
    scores is positive, even if it is not the greater one.
    """
    b, weights, rho = ctx.b, _required_array(ctx, "coefficients"), _required_array(ctx, "rho")
    if len(weights) % labels.count:
        ctx.invalid(f"it has {len(weights)} coefficients", f"there are {labels.count} classes, of equally many each")
    scores = weigh_rows(ctx, feature_rows(ctx), weights.reshape(labels.count, -1))
    scores = b.add(scores, constants(b, rho[:1], scores))

    def chosen() -> SSAValue:
        best = top_class(b, scores)
        if labels.count != 2 or bool((weights < 0).any()):
            return best
        reached = b.compare(b.reduce(hlo.MaximumOp, scores, [1]), ctx.b.scalar_like(scores, 0.5), "GE")
        return b.select(reached, b.constant(1, "i64"), best)

    return [labels.result(chosen), b.convert(TRANSFORMS[transform_name(ctx)](b, scores), "f32")]


def _by_pairs(ctx: NodeContext, labels: Labels, per_class: Sequence[int]) -> Results:
    b, count = ctx.b, labels.count
    if len(per_class) != count or count < 2:
        ctx.invalid(f"vectors_per_class has {len(per_class)} entries", f"there are {count} classes, and two needed")
    weights, rho = _pair_weights(ctx, per_class), _required_array(ctx, "rho")
    pairs = len(weights)
    if len(rho) != pairs:
        ctx.invalid(f"it has {len(rho)} values of rho", f"there are {pairs} pairs of classes")
    kernels = _kernel(ctx, feature_rows(ctx), _vectors(ctx, sum(per_class)))
    scores = weigh_rows(ctx, kernels, weights)
    scores = b.add(scores, constants(b, rho, scores))
    label = labels.result(lambda: top_class(b, _votes(b, scores, count)))
    name, proba, probb = transform_name(ctx), floats(ctx, "prob_a"), floats(ctx, "prob_b")
    if proba is not None or probb is not None:
        if proba is None or probb is None or len(proba) != pairs or len(probb) != pairs:
            ctx.invalid("prob_a and prob_b do not fit", f"each must have {pairs} entries, one for a pair of classes")
        scores = _probabilities(b, scores, proba, probb, count)
    elif count == 2:
        # For SOFTMAX, SOFTMAX_ZERO and PROBIT ONNX Runtime gives other scores, untransformed in part: against the text.
        scores = pair(b, b.emit(hlo.NegateOp, scores), scores)
    return [label, b.convert(TRANSFORMS[name](b, scores), "f32")]


def _pairs(count: int) -> tuple[Array, Array]:
    """The first and the second class of each pair, in order."""
    first, second = np.triu_indices(count, 1)
    return first, second


def _pair_weights(ctx: NodeContext, per_class: Sequence[int]) -> Array:
    """The weight of each support vector for each pair of classes [pairs, V].

    A vector of class i has, in row j - 1 of the coefficients, its weight against a class j > i, and in row j that
    against a class j < i.
    """
    classes, total = len(per_class), sum(per_class)
    values = _required_array(ctx, "coefficients")
    needed = (classes - 1) * total
    if len(values) != needed:
        ctx.invalid(f"it has {len(values)} coefficients", f"{classes} classes and {total} vectors need {needed}")
    values = values.reshape(classes - 1, total)
    owner = np.repeat(np.arange(classes), per_class)
    first, second = (side[:, None] for side in _pairs(classes))
    mine, theirs = owner == first, owner == second
    row = np.where(mine, second - 1, first)
    return np.where(mine | theirs, values[row, np.arange(total)], np.float32(0))


def _votes(b: Builder, scores: SSAValue, count: int) -> SSAValue:
    """How many pairs each class wins [N, count]: the first class of a pair if its score is above 0, else the second."""
    first, second = _pairs(count)
    wins = b.convert(b.compare(scores, b.scalar_like(scores, 0), "GT"), "f32")
    sides = np.stack([np.eye(count)[first], np.eye(count)[second]])
    gain = b.matmul(wins, b.constant((sides[0] - sides[1]).astype(np.float32)))
    return b.add(gain, b.constant(sides[1].sum(0).astype(np.float32)))


def _probabilities(b: Builder, scores: SSAValue, proba: Array, probb: Array, count: int) -> SSAValue:
    """Probabilities of classes [N, count] from those of pairs, by Wu, Lin and Weng's second method, as in libsvm.

    ONNX's reference has a sum of products where the paper and ONNX Runtime have each product by itself.
    """
    element, rows = element_of(scores), shape_of(scores)[0]
    slope, offset = constants(b, proba, scores), constants(b, probb, scores)
    raw = b.emit(hlo.LogisticOp, b.emit(hlo.NegateOp, b.add(b.multiply(scores, slope), offset)))
    limits = b.full((), 1e-7, element), b.full((), 1 - 1e-7, element)
    won = b.minimum(b.maximum(raw, limits[0]), limits[1])
    lost = b.subtract(b.full((), 1, element), won)
    r = _square(b, won, lost, count)
    q = b.emit(hlo.NegateOp, b.multiply(r, b.transpose(r, [0, 2, 1])))
    diagonal = b.reduce(hlo.AddOp, b.multiply(r, r), [1])
    same = b.constant(np.eye(count, dtype=bool)[None])
    q = b.select(same, b.broadcast(diagonal, (rows, count, count), (0, 1)), q)
    start = b.full((rows, count), 1 / count, element)
    loop = _Coupling(b, q, diagonal, count)
    busy = b.full((rows, 1), True, "i1")
    return repeat_steps(b, max(100, count), [start, busy], loop.sweep, goes_on=loop.any_busy)[0]


def _square(b: Builder, won: SSAValue, lost: SSAValue, count: int) -> SSAValue:
    """Values of pairs [N, pairs] as matrices [N, count, count]: `won` above the diagonal, `lost` below, 0 on it."""
    pairs = shape_of(won)[1]
    assert isinstance(pairs, int)
    first, second = _pairs(count)
    place = np.full((count, count), 2 * pairs)
    place[first, second] = np.arange(pairs)
    place[second, first] = pairs + np.arange(pairs)
    none = b.full((shape_of(won)[0], 1), 0, element_of(won))
    return take(b, b.concatenate([won, lost, none], 1), b.constant(place, "i32"), 1)


class _Coupling:
    """Sweeps that bring p to the minimum of p Q p among probabilities; a row stops when its gradient is level."""

    def __init__(self, b: Builder, q: SSAValue, diagonal: SSAValue, count: int) -> None:
        self.b, self.q, self.diagonal, self.count = b, q, diagonal, count
        self.element = element_of(q)

    def any_busy(self, values: Sequence[SSAValue]) -> SSAValue:
        """Whether a row goes on."""
        return self.b.reduce(hlo.OrOp, values[1], [0, 1])

    def sweep(self, _: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """One pass over all classes, for the rows that are not done."""
        b, (p, busy) = self.b, values
        qp = b.dot(self.q, p, DotDimensions((0,), (0,), (2,), (1,)))
        pqp = b.reduce(hlo.AddOp, b.multiply(p, qp), [1], keepdims=True)
        uneven = b.reduce(hlo.MaximumOp, b.emit(hlo.AbsOp, b.subtract(qp, pqp)), [1], keepdims=True)
        busy = b.emit(hlo.AndOp, busy, b.compare(uneven, b.full((), 0.005 / self.count, self.element), "GE"))
        new = repeat_steps(b, self.count, [p, qp, pqp], self.iteration)[0]
        return [b.select(b.broadcast_to(busy, shape_of(p)), new, p), busy]

    def iteration(self, index: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Moves the probability of one class, and scales all to a sum of one."""
        b, (p, qp, pqp) = self.b, values
        rows, count = shape_of(p)
        mine = b.compare(b.iota((1, count), 1, "i32"), index, "EQ")
        zero, one, two = (b.full((), value, self.element) for value in (0, 1, 2))

        def of(x: SSAValue) -> SSAValue:
            return b.reduce(hlo.AddOp, b.select(mine, x, zero), [1], keepdims=True)

        own, slope = of(self.diagonal), of(qp)
        step = b.divide(b.subtract(pqp, slope), own)
        scale = b.add(one, step)
        start = [b.constant(0, "i32"), index, b.constant(0, "i32")]
        row = b.emit(hlo.DynamicSliceOp, self.q, *start, slice_sizes=[rows, 1, count])
        grown = b.multiply(step, b.add(b.multiply(step, own), b.multiply(two, slope)))
        pqp = b.divide(b.divide(b.add(pqp, grown), scale), scale)
        qp = b.divide(b.add(qp, b.multiply(step, b.reshape(row, (rows, count)))), scale)
        p = b.divide(b.add(p, b.select(mine, step, zero)), scale)
        return [p, qp, pqp]
