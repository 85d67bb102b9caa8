"""Importers of ai.onnx.ml: linear models. All is computed in f32, in f64 where X is, and given as f32."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import Array
from gcomp.frontends.onnx.operators.ml.scores import (
    TRANSFORMS,
    Labels,
    above,
    complement,
    constants,
    feature_rows,
    floats,
    pair,
    top_class,
    transform_name,
)
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of


def weigh_rows(ctx: NodeContext, x: SSAValue, weights: Array) -> SSAValue:
    """Rows [N, F] times weights [E, F]: [N, E]."""
    have, needed = shape_of(x)[1], weights.shape[1]
    if have != needed:
        x = ctx.restate(x, {1: needed})
    return ctx.b.matmul(x, constants(ctx.b, np.ascontiguousarray(weights.T), x))


def _linear(ctx: NodeContext, targets: int) -> SSAValue:
    """The scores [N, targets] by the attributes `coefficients` and `intercepts`."""
    x = feature_rows(ctx)
    weights, intercepts = floats(ctx, "coefficients"), floats(ctx, "intercepts")
    if weights is None:
        ctx.invalid("it has no coefficients", "the attribute is missing or empty")
    if targets < 1 or len(weights) % targets:
        ctx.invalid(f"it has {len(weights)} coefficients", f"there are {targets} targets or classes")
    scores = weigh_rows(ctx, x, weights.reshape(targets, -1))
    if intercepts is None:
        return scores
    if len(intercepts) != targets:
        ctx.invalid(f"it has {len(intercepts)} intercepts", f"there are {targets} targets or classes")
    return ctx.b.add(scores, constants(ctx.b, intercepts, scores))


@imports("LinearRegressor", domain="ai.onnx.ml")
def linear_regressor(ctx: NodeContext) -> Results:
    """LinearRegressor: a weighted sum of the features for each target, plus its intercept, [N, targets].

    Transforms apply to one target too, as the text says; ONNX Runtime leaves out all but PROBIT there.
    """
    transform = TRANSFORMS[transform_name(ctx)]
    return [ctx.b.convert(transform(ctx.b, _linear(ctx, ctx.integer("targets", 1))), "f32")]


@imports("LinearClassifier", domain="ai.onnx.ml")
def linear_classifier(ctx: NodeContext) -> Results:
    """LinearClassifier: the class with the first greatest score [N], and the transformed scores [N, E].

    One row of coefficients for two classes decides for the second one where its score is above 0.
    """
    b, labels, name = ctx.b, Labels(ctx, "classlabels_ints"), transform_name(ctx)
    rows = _rows_of_coefficients(ctx, labels.count)
    scores = _linear(ctx, rows)
    if labels.count != (2 if rows == 1 else rows):
        ctx.invalid(f"it has {rows} rows of coefficients", f"there are {labels.count} classes")
    if rows == 1:
        return [labels.result(lambda: above(b, scores, 0)), b.convert(_both(ctx, scores, name), "f32")]
    return [labels.result(lambda: top_class(b, scores)), b.convert(TRANSFORMS[name](b, scores), "f32")]


def _rows_of_coefficients(ctx: NodeContext, classes: int) -> int:
    """How many scores there are: as many as intercepts, or as coefficients for the features of X."""
    intercepts = floats(ctx, "intercepts")
    if intercepts is not None:
        return len(intercepts)
    features = ctx.shape()[-1] if ctx.rank() else 0
    if not isinstance(features, int):
        return classes
    return len(ctx.numbers("coefficients") or []) // max(features, 1)


def _both(ctx: NodeContext, score: SSAValue, name: str) -> SSAValue:
    """The scores of two classes from that of the second.

    Without a transform they are [1 - s, s], as in ONNX Runtime; ONNX's reference has [-s, s]. The text asks for the
    transform of both, which the reference does, on [-s, s]; ONNX Runtime does it for LOGISTIC only.
    """
    if name == "NONE":
        return pair(ctx.b, complement(ctx.b, score), score)
    return TRANSFORMS[name](ctx.b, pair(ctx.b, ctx.b.emit(hlo.NegateOp, score), score))
